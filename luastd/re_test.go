package luastd

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// TestRe_MatchesAsRegexp holds the matches that are found one by one, at once or
// read, to those that package regexp finds.
func TestRe_MatchesAsRegexp(t *testing.T) {
	patterns := []string{"", "a", "a*", "a*?", "(a)|b", "(?i)AB", "^", "$", "(?m)^", "(?m)$", `\b`, `\B`, `\bfoo\b`, "a|ab", "ab|a", "(a+)(b?)", ".", "(?s).", "(?s:.)b",
		`\Qa.b`, "é", `\s+`, "x{2,3}", "(?U)a+", `[^\n]+`, `\A`, `\z`, "((a)|(b)|c)+", `(?i)é`, "(?P<n>a)b", "(?-s).$", "[[:word:]]+", "(|a)+", "(?:)|a"}
	texts := []string{"", "a", "aab", "foo bar foo", "a\nb\n", "ab aB AB", "äöü é É", "xxxxx", "a.b a.b", "\xff\xfea\xff", "aaa", "\n\n", "abcabc", "日本語 a"}
	e := &Env{}
	for _, text := range patterns {
		p, err := compilePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range texts {
			want := regexp.MustCompile(text).FindAllStringSubmatchIndex(s, -1)
			for _, size := range []int{p.size, atOnce + 1} { // the second is read
				p := &pattern{whole: p.whole, size: size, text: p.text}
				matches, got := e.matches(nil, p, s), [][]int(nil)
				for found := matches.next(); found != nil; found = matches.next() {
					got = append(got, found)
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%q on %q, size %d: got %v, want %v", text, s, size, got, want)
				}
			}
		}
	}
}

// TestRe_PatternsAreBounded holds what one state keeps, and how long a match goes
// on after its time.
func TestRe_PatternsAreBounded(t *testing.T) {
	L := lua.NewState()
	defer L.Close()
	units, most := 0, 1<<40
	e := &Env{Charge: func(L *lua.LState, n int) {
		if units += n; units > most {
			L.RaiseError("out of time")
		}
	}}
	L.SetGlobal("match", L.NewFunction(func(L *lua.LState) int { return reMatch(e, L) }))
	L.SetGlobal("gsub", L.NewFunction(func(L *lua.LState) int { return reGsub(e, L) }))
	if err := L.DoString(`for i = 1, 300 do match("x", "x{" .. i .. "}y") end`); err != nil {
		t.Fatal(err)
	}
	if n := len(e.patterns.kept); n == 0 || n > keptPatterns || e.patterns.steps > keptSteps {
		t.Errorf("%d patterns of %d steps are kept", n, e.patterns.steps)
	}
	for _, script := range []string{
		`match(("x"):rep(1e7), "(x?){900}y")`,
		`gsub(("c"):rep(1e6), "c.*?b|c", "")`, // each match looks at all the rest
		`gsub(("c"):rep(1e6), "(c?){900}z|c", "")`,
	} {
		units, most = 0, 200_000
		err := L.DoString(script)
		if err == nil || !strings.Contains(err.Error(), "out of time") || units > most+100_000 {
			t.Errorf("%s: %v after %d units", script, err, units)
		}
	}
}
