package inspect

import (
	"regexp"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/sandbox"
)

// maxShown is the number of characters of a value that a message shows, and maxBefore the number of
// them before a difference.
const (
	maxShown  = 60
	maxBefore = 20
)

// layout matches the breaks that Text puts between fields; quoted text has none.
var layout = regexp.MustCompile(`\n *`)

func onLine(text string) string { return layout.ReplaceAllString(text, " ") }

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
