package schema_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"

	"obelus/engine/schema"
)

func matching(t *testing.T, pattern string) *schema.Schema {
	t.Helper()
	schema, err := schema.New(map[string]any{"pattern": pattern})
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	return schema
}

func TestPattern_ECMAScript(t *testing.T) {
	for _, test := range []struct{ pattern, fits, misfits string }{
		{`^(?=.*\d)(?=.*[a-z]).{4,}$`, "abc1", "abcd"},
		{`^(?!tmp-)`, "a", "tmp-a"},
		{`(?<=\$)\d+`, "$5", "5"},
		{`^(a|b)\1$`, "aa", "ab"},
		{`^\cC$`, "\x03", "C"},
		{`^\s$`, "\u00a0", "x"},
		{`^\s$`, "\ufeff", "\u200b"},
		{`^\S$`, "\u200b", "\u2029"},
		{`^[\s\S]$`, "\n", ""},
		{`^[^\S]$`, "\u3000", "x"},
		{`^[\sx]+$`, "x\u2003", "y"},
		{`^[\s-x]$`, "-", "y"},
		{`^.$`, "\u0085", "\u2028"},
		{`^\d$`, "0", "٣"},
		{`^\w+$`, "a_1", "é"},
		{`^\p{Letter}+$`, "é", "1"},
		{`^\p{L}+$`, "é", "1"},
		{`^\p{Script=Greek}+$`, "α", "a"},
		{`^\u00e9$`, "é", "u00e9"},
		{`^\u{1F432}+$`, "🐲", "u"},
		{`^\uD83D\uDC32$`, "🐲", "x"},
		{`^🐲*$`, "🐲🐲", "🐉"},
		{`^\x41\0$`, "A\x00", "A0"},
		{`^[\b]$`, "\b", "b"},
		{`a\b`, "a b", "ab"},
		{`^[[:alpha:]$`, ":", "z"},
		{`^[^]$`, "\n", ""},
		{`^[]$|x`, "x", "]"},
		{`^\-\_\@\/$`, "-_@/", "-"},
		{`^(?<year>\d{4})-\k<year>$`, "1999-1999", "1999-2000"},
		{`^a{1001}$`, strings.Repeat("a", 1001), "a"},
		{`^abc$`, "abc", "abc\n"},
		{`^(?i)abc$`, "ABC", "abd"}, // of Go, as before
		{`\Aabc\z`, "abc", "abcd"},
	} {
		schema := matching(t, test.pattern)
		if err := schema.Validate(test.fits, ""); err != nil {
			t.Errorf("%s holding %q: %v", test.pattern, test.fits, err)
		}
		if err := schema.Validate(test.misfits, ""); err == nil || !strings.Contains(err.Error(), "does not match pattern '"+strings.ReplaceAll(test.pattern, `\`, `\\`)+"'") {
			t.Errorf("%s holding %q: %v", test.pattern, test.misfits, err)
		}
	}
	for _, pattern := range []string{`(`, `[a`, `a**`, `(?<a`, `\`, `[b-a]`, `(?=` + strings.Repeat("a", 5000) + `)`} {
		if _, err := schema.New(map[string]any{"pattern": pattern}); err == nil {
			t.Errorf("%.20s is a pattern", pattern)
		}
	}
}

// TestPattern_TimeIsBounded holds that a pattern that takes exponential time by backtracking is
// linear where Go's regexp can express it, and else ends with an error that is no verdict.
func TestPattern_TimeIsBounded(t *testing.T) {
	long := strings.Repeat("a", 50_000) + "!"
	if err := matching(t, `^(\w+\s?)+$`).Validate(long, ""); err == nil || !strings.HasPrefix(err.Error(), "'aaa") {
		t.Errorf("%.200v", err)
	}
	if err := matching(t, `^(?=.*[a-z])(?!.*\s).+!$`).Validate(long, ""); err != nil {
		t.Errorf("%.200v", err)
	}
	defer schema.BoundCheckTime(50 * time.Millisecond)()
	const slow = `^(?=a)(\w+\s?)+$`
	text := strings.Repeat("a", 60) + "!"
	not := map[string]any{"not": map[string]any{"pattern": slow}}
	for name, c := range map[string]struct {
		schema map[string]any
		value  any
	}{
		"pattern":           {map[string]any{"pattern": slow}, text},
		"patternProperties": {map[string]any{"patternProperties": map[string]any{slow: false}}, map[string]any{text: 1}},
		"not":               {not, text},
		"propertyNames":     {map[string]any{"propertyNames": not}, map[string]any{text: 1}},
		"many texts":        {map[string]any{"items": not}, []any{text, text, text}},
	} {
		s, err := schema.New(c.schema)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(c.value, "x"); err == nil || !strings.Contains(err.Error(), "x: it can't be held against its schema: that takes more than 50ms") {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}

func TestPattern_StackIsBounded(t *testing.T) {
	err := matching(t, `^(?=a)(?:a|b|(c))*$`).Validate(strings.Repeat("a", 2_000_000), "x")
	if err == nil || !strings.Contains(err.Error(), "x: it can't be held against its schema: a pattern has too many ways to match a text") {
		t.Errorf("%.200v", err)
	}
}

// TestPattern_NestedGroups holds that no pattern takes long to compile: groups are nested 50
// deep at most where Go's regexp can't tell, and what all patterns of a schema take is bounded.
func TestPattern_NestedGroups(t *testing.T) {
	nested := func(n int, then string) string {
		return "(?=a)" + strings.Repeat("(", n) + "a" + strings.Repeat(then, n)
	}
	for _, then := range []string{")*", ")?", ")+"} {
		pattern := strings.TrimPrefix(nested(600, then), "(?=a)")
		if _, err := schema.New(map[string]any{"pattern": pattern}); err == nil || !strings.Contains(err.Error(), "may have groups nested 50 deep, and not 600") {
			t.Errorf("%s: %v", then, err)
		}
	}
	if _, err := schema.New(map[string]any{"pattern": `(?=\(\([(])` + nested(40, ")*")}); err != nil {
		t.Error(err)
	}
	properties := map[string]any{}
	for i := range 1000 {
		properties[fmt.Sprint("p", i)] = map[string]any{"pattern": nested(49, ")*") + fmt.Sprint(i)}
	}
	if _, err := schema.New(map[string]any{"properties": properties}); err == nil || !strings.Contains(err.Error(), "it takes too much") {
		t.Errorf("many: %v", err)
	}
}

// TestPattern_AsByBacktracking holds that what is translated for Go's regexp matches what the
// engine made for ECMA-262 does.
func TestPattern_AsByBacktracking(t *testing.T) {
	atoms := []string{"a", "b", "-", ".", `\s`, `\S`, `\d`, `\D`, `\w`, `\W`, `\b`, `\B`, "^", "$", `\.`, `\-`, `\u0041`, `\x41`, `\cJ`, `\t`, `\p{L}`, `\P{Lu}`, "é",
		"[ab]", "[^a]", `[\s]`, `[^\s]`, `[\S]`, `[\d.-]`, `[\w\s]`, `[a-c-]`, `[[a]`, `[\b\-]`, `[^\]^]`, `[\u2028é]`, "(?:a|b)", "(a)", "(|a)", "🐲"}
	suffixes := []string{"", "", "", "*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "|"}
	characters := []rune("ab-A .é🐲\n\r\t\b\u2028\u00a0\ufeff\u0085٣1_]^[")
	agree, matched := 0, 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 2))
		var pattern strings.Builder
		for range 1 + r.IntN(5) {
			pattern.WriteString(atoms[r.IntN(len(atoms))] + suffixes[r.IntN(len(suffixes))])
		}
		theirs, err := regexp2.Compile(pattern.String(), regexp2.ECMAScript|regexp2.Unicode)
		if err != nil {
			continue // such as \b*
		}
		schema := matching(t, pattern.String())
		for range 6 {
			var text strings.Builder
			for range r.IntN(5) {
				text.WriteRune(characters[r.IntN(len(characters))])
			}
			want, err := theirs.MatchString(text.String())
			if err != nil {
				t.Fatal(err)
			}
			got := schema.Validate(text.String(), "") == nil
			if got != want {
				t.Errorf("%s and %q: %v, want %v", pattern.String(), text.String(), got, want)
			}
			agree++
			if want {
				matched++
			}
		}
	}
	if agree < 10_000 || matched < agree/10 {
		t.Errorf("%d compared, %d match", agree, matched)
	}
}
