package inspect

import (
	"regexp"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/sandbox"
)

// mostShown is how many characters of a value a message shows, and mostBefore how
// many of them stand before what differs.
const (
	mostShown  = 60
	mostBefore = 20
)

// layout is what inspect puts between fields; what is quoted has no line breaks.
var layout = regexp.MustCompile(`\n *`)

func onLine(text string) string { return layout.ReplaceAllString(text, " ") }

// Line is a value on one line, cut where it is long.
func Line(s *sandbox.State, v lua.LValue) string { return cut([]rune(onLine(Text(s, v))), 0) }

// Difference is inspect of two values that differ, with as many digits as it takes.
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

// LineDifference shows two values that differ: where they are long, what is around the
// first difference, and of texts of several lines the first line that differs.
func LineDifference(s *sandbox.State, a, b lua.LValue) (x, y string) {
	x, y = Difference(s, a, b)
	x, y = onLine(x), onLine(y)
	if len([]rune(x)) <= mostShown && len([]rune(y)) <= mostShown {
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

// around cuts two texts so that their first difference is seen.
func around(a, b string) (x, y string) {
	first, second := []rune(a), []rune(b)
	n := 0
	for n < min(len(first), len(second)) && first[n] == second[n] {
		n++
	}
	if n < mostShown-mostBefore {
		n = 0
	}
	return cut(first, max(n-mostBefore, 0)), cut(second, max(n-mostBefore, 0))
}

// cut is a text from some character on, with a mark where something is left out.
func cut(text []rune, from int) string {
	before, behind := "", ""
	if from > 0 {
		before = "…"
	}
	if text = text[from:]; len(text) > mostShown {
		text, behind = text[:mostShown-1], "…"
	}
	return before + string(text) + behind
}
