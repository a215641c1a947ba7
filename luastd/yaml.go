package luastd

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
)

// yaml: the part of YAML that JSON has too. In Lua:
//
//	local yaml = require("yaml")
//	local config = assert(yaml.decode(text))
//	local text = yaml.encode({ name = "x", ports = { 80, 443 } })
//	-- name: x
//	-- ports:
//	--   - 80
//	--   - 443
//
// What is read: one document of at most 1 MiB, nested at most 128 deep, by the rules of
// YAML 1.2.2; what those refuse is refused. One thing more is read: brackets that span lines
// may close in the column of the name that they belong to. Anchors, aliases and << work as
// long as the whole, written out, has no more than a million values and 64 MiB of text. What
// stands without quotes is read by the core schema of YAML 1.2: yes, no, 1_000 and timestamps
// are text, 010 is ten, 0o10 is eight. Whole numbers stay exact; those beyond ±2^53 reach a
// script as their digits. Names that are not text become it.
// Refused are infinities and NaN, names that are lists or mappings, names given twice, and
// tags other than !!str, !!int, !!float, !!bool, !!null, !!seq, !!map, !!timestamp and
// !!binary; the last two are text.
//
// The parser is our own, in yamlread.go, yamlblock.go, yamlflow.go and yamlscalar.go. Of the
// libraries at hand none reads all of the YAML test suite: the best ones read 244 and 251 of its
// 256 single documents and refuse 89 and 85 of the 94 that are wrong, and what they miss can't
// be made good from outside without reading the text as they do.
var yamlFuncs = []Func{
	{"decode", yamlDecode},
	{"encode", yamlEncode},
}

// yaml.decode(text) → value | nil, err; null alone is json.null
func yamlDecode(e *Env, L *lua.LState) int {
	text := L.CheckString(1)
	var v any
	var values int
	var err error
	e.aside(L, len(text)/4+1, func(context.Context) { v, values, err = decodeYAML(text) })
	if err != nil {
		return failed(L, "not YAML that can be read: "+err.Error())
	}
	e.charge(L, values)
	if v == nil {
		L.Push(Null)
	} else {
		L.Push(e.Codec.ToLua(v))
	}
	return 1
}

// yaml.encode(value) → text, names sorted, each on a line of its own; text of
// several lines as a block where that keeps it. A value that JSON does not
// have raises.
func yamlEncode(e *Env, L *lua.LState) int {
	v, err := e.Codec.FromLua(L.Get(1), "value")
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	var text string
	e.aside(L, 4*weight(v), func(ctx context.Context) {
		text = encodeYAML(v, func(size int) bool { return size > e.maxString() || ctx.Err() != nil })
	})
	e.limit(L, len(text))
	L.Push(lua.LString(text))
	return 1
}

// encodeYAML writes a value, until enough says that the text so far is.
func encodeYAML(v any, enough func(size int) bool) string {
	if text, ok := v.(string); ok && strings.Contains(text, "\n") {
		return quotedYAML(text) + "\n" // a block would need an indent
	}
	w := yamlWriter{enough: enough}
	if !w.value(v, 0, false) {
		w.b.WriteByte('\n')
	}
	return strings.TrimLeft(w.b.String(), " \n")
}

// yamlWriter writes values in block style, so that older readers too read them as they are.
type yamlWriter struct {
	b      strings.Builder
	enough func(size int) bool
}

// value writes what follows "name:" or "-" at a depth: a scalar on the same
// line, or lines of its own, the first of which may stand on the same line
// after "-". It reports whether the last line has been ended.
func (w *yamlWriter) value(v any, depth int, listed bool) (ended bool) {
	indent := strings.Repeat("  ", depth)
	lead := "\n" + indent
	if listed {
		lead = " "
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			w.b.WriteString(" {}")
			return false
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if w.enough(w.b.Len()) {
				break
			}
			w.b.WriteString(lead + yamlText(name) + ":")
			w.below(v[name], depth, false)
			lead = indent
		}
		return true
	case []any:
		if len(v) == 0 {
			w.b.WriteString(" []")
			return false
		}
		for _, element := range v {
			if w.enough(w.b.Len()) {
				break
			}
			w.b.WriteString(lead + "-")
			w.below(element, depth, true)
			lead = indent
		}
		return true
	case string:
		if lines, mark, ok := yamlBlock(v); ok {
			w.b.WriteString(mark + "\n")
			for _, line := range lines {
				w.b.WriteString(indent + line + "\n")
			}
			return true
		}
		w.b.WriteString(" " + yamlText(v))
		return false
	}
	text, _ := scalarText(v)
	if v == nil {
		text = "null"
	} else if _, ok := v.(json.Number); ok && !strings.Contains(text, ".") {
		text = strings.Replace(strings.ToLower(text), "e", ".0e", 1) // a number to older readers too
		if text == "-0" {
			text = "-0.0" // as a whole number it would lose its sign
		}
	}
	w.b.WriteString(" " + text)
	return false
}

func (w *yamlWriter) below(v any, depth int, listed bool) {
	if !w.value(v, depth+1, listed) {
		w.b.WriteByte('\n')
	}
}

// yamlPlain is text that is nothing but itself to every reader of YAML, and
// yamlWords what looks like it and is not. A pattern with all letters takes so long
// to compile that no start of the program should wait for it.
var (
	yamlPlain = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[\pL_/][\pL\pN_./@%+,-]*( [\pL\pN_./@%+(-][\pL\pN_./@%+,()-]*)*$`)
	})
	yamlWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
)

// yamlText is text on one line: as it is where that is safe, else in quotes, as
// JSON writes it.
func yamlText(text string) string {
	if len(text) < 200 && yamlPlain().MatchString(text) && !slices.Contains(yamlWords, strings.ToLower(text)) {
		return text
	}
	return quotedYAML(text)
}

func quotedYAML(text string) string {
	var b strings.Builder
	for _, r := range compactJSON(text) {
		if invisible(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// invisible is what JSON may have as it is and YAML may not, or takes for the
// end of a line.
func invisible(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff
}

func compactJSON(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // v is JSON
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// yamlBlock is text as the lines of a block: printable, none of them empty or
// with spaces at either end, whose meaning readers differ about.
func yamlBlock(text string) (lines []string, mark string, ok bool) {
	body, ended := strings.CutSuffix(text, "\n")
	if mark = " |-"; ended {
		mark = " |"
	}
	if lines = strings.Split(body, "\n"); len(lines) < 2 && !ended {
		return nil, "", false
	}
	for _, line := range lines {
		if line == "" || line != strings.TrimSpace(line) || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || invisible(r) }) {
			return nil, "", false
		}
	}
	return lines, mark, true
}
