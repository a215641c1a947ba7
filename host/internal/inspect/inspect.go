// Package inspect writes values of Lua as text for people: whole, on one line, or two values around
// their difference.
package inspect

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/lazyregexp"
	"obelus/host/internal/limits"
	"obelus/host/internal/luatext"
	"obelus/host/internal/sandbox"
	"obelus/luastd"
)

// inspector writes values as text for people, in Lua's notation where there is one.
type inspector struct {
	s *sandbox.State
	// Columns of a table that is written on one line; 0 gives each field a line of its own.
	width int
	exact bool                 // numbers have all their digits
	open  map[*lua.LTable]bool // tables that are being written, one within the other
	left  int                  // bytes that may still be written
}

// MaxInspected is roughly the longest text of a value, in bytes: tables that hold others several
// times can be endless.
const MaxInspected = 1 << 20

// Text returns a value as text, a line for each field, sorted.
func Text(s *sandbox.State, v lua.LValue) string { return newInspector(s, 0).text(v, "") }

// Short returns a value as text, with lists as lists and short tables on one line.
func Short(s *sandbox.State, v lua.LValue) string { return newInspector(s, 76).text(v, "") }

func newInspector(s *sandbox.State, width int) *inspector {
	return &inspector{s: s, width: width, open: map[*lua.LTable]bool{}, left: MaxInspected}
}

func (p *inspector) text(v lua.LValue, indent string) string {
	text := ""
	switch v := v.(type) {
	case *lua.LTable:
		return p.table(v, indent)
	case lua.LString:
		text = strconv.Quote(string(v))
	case lua.LNumber:
		if text = luatext.FormatNumber(v); p.exact {
			text = luatext.FormatExact(v)
		}
	case *lua.LFunction:
		text = functionText(v)
	case *lua.LUserData:
		if text = p.s.PlainText(v); v == luastd.Null {
			text = "json.null"
		}
	default:
		text = v.String()
	}
	p.left -= len(text)
	return text
}

func functionText(f *lua.LFunction) string {
	if f.IsG {
		return "function: built in"
	}
	return "function: " + f.Proto.SourceName + ":" + strconv.Itoa(f.Proto.LineDefined)
}

func (p *inspector) table(t *lua.LTable, indent string) string {
	p.s.Fill(t)
	if p.open[t] || len(p.open) > limits.MaxDepth/10 || p.left < 0 {
		return "{…}"
	}
	p.open[t] = true
	defer delete(p.open, t)
	if p.s.Run != nil && t == p.s.Run.Env {
		p.s.FillEnv(t)
	}
	fields, listed := map[string]lua.LValue{}, 0
	for t.RawGetInt(listed+1) != lua.LNil {
		listed++
	}
	for key, v := t.Next(lua.LNil); key != lua.LNil && len(fields) <= p.left; key, v = t.Next(key) {
		if !sandbox.IsHidden(key) {
			fields[keyOrder(key)+p.key(key, listed)] = v
		}
	}
	if len(fields) == 0 {
		return "{}"
	}
	var parts []string
	size := len(indent)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		part := key[len(keyOrder(lua.LNil)):] + p.text(fields[key], indent+"  ")
		p.left -= len(indent) + 4
		parts = append(parts, part)
		if size += len(part) + 2; strings.Contains(part, "\n") {
			size += p.width
		}
	}
	if size < p.width {
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return "{\n" + indent + "  " + strings.Join(parts, ",\n"+indent+"  ") + ",\n" + indent + "}"
}

// keyOrder returns a prefix by which numbers sort before names, in numeric order.
func keyOrder(key lua.LValue) string {
	if n, ok := key.(lua.LNumber); ok {
		bits := math.Float64bits(float64(n))
		if n < 0 {
			bits = ^bits
		} else {
			bits |= 1 << 63
		}
		return fmt.Sprintf("0%016x", bits)
	}
	return "1----------------"
}

// key returns a key as a constructor has it, up to its value; elements of a list of n without holes
// need none.
func (p *inspector) key(key lua.LValue, n int) string {
	switch key := key.(type) {
	case lua.LString:
		if luatext.IsName(string(key)) && !slices.Contains(luatext.Keywords, string(key)) {
			return string(key) + " = "
		}
		return "[" + strconv.Quote(string(key)) + "] = "
	case lua.LNumber:
		if p.width > 0 && key >= 1 && int(key) <= n && key == lua.LNumber(int(key)) {
			return ""
		}
		return "[" + luatext.FormatExact(key) + "] = "
	}
	return "[" + p.s.PlainText(key) + "] = "
}

// maxShown is the number of characters of a value that a message shows, and maxBefore the number of
// them before a difference.
const (
	maxShown  = 60
	maxBefore = 20
)

// layout matches the breaks that Text puts between fields; quoted text has none.
var layout = lazyregexp.New(`\n *`)

func onLine(text string) string { return layout().ReplaceAllString(text, " ") }

// Line returns a value as text on one line, cut if it is long.
func Line(s *sandbox.State, v lua.LValue) string { return cut([]rune(onLine(Text(s, v))), 0) }

// Difference returns the texts of two values that differ, with as many digits as it takes.
func Difference(s *sandbox.State, a, b lua.LValue) (x, y string) {
	if x, y = Text(s, a), Text(s, b); x != y {
		return x, y
	}
	exact := func(v lua.LValue) string {
		p := newInspector(s, 0)
		p.exact = true
		return p.text(v, "")
	}
	return exact(a), exact(b)
}

// LineDifference returns the texts of two values that differ, each on one line. Of long values it
// shows the part around the first difference, and of texts with several lines the first line that
// differs.
func LineDifference(s *sandbox.State, a, b lua.LValue) (x, y string) {
	x, y = Difference(s, a, b)
	x, y = onLine(x), onLine(y)
	if len([]rune(x)) <= maxShown && len([]rune(y)) <= maxShown {
		return x, y
	}
	first, ok := a.(lua.LString)
	second, ok2 := b.(lua.LString)
	if !ok || !ok2 || !strings.Contains(string(first+second), "\n") {
		return around(x, y)
	}
	lines, others := strings.Split(string(first), "\n"), strings.Split(string(second), "\n")
	n := 0
	for n < min(len(lines), len(others)) && lines[n] == others[n] {
		n++
	}
	x, y = around(lineOf(lines, n), lineOf(others, n))
	return x + " in line " + strconv.Itoa(n+1), y
}

func lineOf(lines []string, n int) string {
	if n < len(lines) {
		return strconv.Quote(lines[n])
	}
	return "no such line"
}

// around cuts two texts such that their first difference is seen.
func around(a, b string) (x, y string) {
	first, second := []rune(a), []rune(b)
	n := 0
	for n < min(len(first), len(second)) && first[n] == second[n] {
		n++
	}
	if n < maxShown-maxBefore {
		n = 0
	}
	return cut(first, max(n-maxBefore, 0)), cut(second, max(n-maxBefore, 0))
}

// cut returns the part of a text that begins at a character, with marks for the parts left out.
func cut(text []rune, from int) string {
	before, behind := "", ""
	if from > 0 {
		before = "…"
	}
	if text = text[from:]; len(text) > maxShown {
		text, behind = text[:maxShown-1], "…"
	}
	return before + string(text) + behind
}
