package luastd

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"obelus/luastd/internal/formats"
)

// TestYAML_RoundTrip writes random values, made of what YAML gives a meaning to,
// and reads them back.
func TestYAML_RoundTrip(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 20_000 {
		v := randomYAMLValue(random, 3)
		text := encodeYAML(v, func(int) bool { return false })
		back, _, err := decodeYAML(text)
		if err != nil || !reflect.DeepEqual(v, back) {
			t.Fatalf("%#v\nwritten %q\nread %#v %v", v, text, back, err)
		}
	}
}

var yamlPieces = []string{"a", "b", "Z", " ", "\n", ":", "- ", "#", "'", "\"", "\\", "\t", "|", ">", "&", "*", "!", "%", "@", "`", "{", "}", "[", "]", ",",
	"?", "0", "1", "e", "x", ".", "-", "+", "~", "null", "true", "yes", "on", "é", "\u2028", "\r", "<<", "=", "_", "2001-01-01", "---", "...", "\x01", "\x7f",
	"\u0085", "\ufeff", "😀", "\n\n", " \n", "\n ", "(", ")", "/", ";"}

func randomYAMLText(random *rand.Rand) string {
	var b strings.Builder
	for range random.Intn(5) {
		b.WriteString(yamlPieces[random.Intn(len(yamlPieces))])
	}
	return b.String()
}

func randomYAMLValue(random *rand.Rand, depth int) any {
	switch n := random.Intn(8); {
	case n < 4 || depth == 0:
		return randomYAMLText(random)
	case n == 4:
		return []any{nil, true, false, json.Number("12"), json.Number("-1.5"), json.Number("12345678901234567890"), json.Number("1e+300")}[random.Intn(7)]
	case n == 5:
		list := []any{}
		for range random.Intn(3) {
			list = append(list, randomYAMLValue(random, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range random.Intn(3) {
		object[randomYAMLText(random)] = randomYAMLValue(random, depth-1)
	}
	return object
}

// TestYAML_HostileText reads texts that grow, or that a careless parser takes long over. Each
// is read or refused for its reason, and the memory that this takes grows no faster than the
// text does.
func TestYAML_HostileText(t *testing.T) {
	lines := func(n int, line func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(line(i))
		}
		return b.String()
	}
	repeat := func(text string) func(n int) string {
		return func(n int) string { return strings.Repeat(text, n/len(text)) }
	}
	within := func(start, text, end string) func(n int) string {
		return func(n int) string { return start + strings.Repeat(text, (n-len(start+end))/len(text)) + end }
	}
	part := func(text func(n int) string) func(n int) string { // with few enough brackets and commas
		return func(n int) string { return text(n / 30) }
	}
	tests := map[string]struct {
		text func(n int) string
		err  string // "" for none
	}{
		"laughs": {func(n int) string {
			text := "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
			for i := 1; i < 10; i++ {
				text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
			}
			return text
		}, "once its aliases are written out"},
		"merges": {func(n int) string {
			text := "m0: &m0 {a: 1}\n"
			for i := 1; i < 60; i++ {
				text += fmt.Sprintf("m%d: &m%d {<<: [*m%d, *m%d], k%d: [*m%d, *m%d]}\n", i, i, i-1, i-1, i, i-1, i-1)
			}
			return text
		}, "once its aliases are written out"},
		"merged often": {func(n int) string {
			return "a: &a\n" + lines(n/2, func(i int) string { return fmt.Sprintf("  k%d: 1\n", i) }) +
				lines(n/3, func(i int) string { return fmt.Sprintf("m%d: {<<: *a}\n", i) })
		}, "once its aliases are written out"},
		"long text":      {within("a: &a "+strings.Repeat("x", 100_000)+"\nb:\n", "- *a\n", ""), "once its aliases are written out"},
		"anchors":        {repeat("&a\n"), "expected <document start>"},
		"anchored lists": {part(within("[", "&a [],", "]")), ""},
		"long anchor":    {within("- &", "a", " 1\n"), ""},
		"long alias":     {within("- *", "a", "\n"), "unknown anchor"},
		"tags":           {repeat("!!str "), "expected <document start>"},
		"tagged":         {part(within("[", "!!str,", "]")), ""},
		"directives":     {within("", "%A\n", "---\n1\n"), "unknown directive"},
		"lists":          {part(repeat("[")), "exceeded max depth"},
		"mappings":       {part(repeat("{a: ")), "expected node content"},
		"dashes":         {repeat("- "), "exceeded max depth"},
		"questions":      {repeat("? "), "exceeded max depth"},
		"colons":         {repeat(": "), "exceeded max depth"},
		"dash lines":     {func(n int) string { return lines(n, func(i int) string { return strings.Repeat(" ", i%1000) + "-\n" }) }, "nested deeper"},
		"steps": {func(n int) string {
			return lines(n, func(int) string { return strings.Repeat(" ", 300) + strings.Repeat("- ", 100) + "\n" })
		}, ""},
		"deep names": {func(n int) string {
			text := ""
			for i := range 100 {
				text += strings.Repeat(" ", i) + strings.Repeat("k", 900) + ":\n"
			}
			return text + lines(n-len(text), func(i int) string { return fmt.Sprintf("%s%d: 1\n", strings.Repeat(" ", 100), i) })
		}, ""},
		"blank lines":  {within("a: b", "\n", "c: d\n"), ""},
		"comments":     {within("a:\n", " #\n", " b\n"), ""},
		"lines":        {within("a: b\n", " c\n", ""), ""},
		"quoted lines": {within("a: \"b\n", " c\n", " d\""), ""},
		"not closed":   {repeat("\"a "), "expected <document start>"},
		"block":        {within("a: |\n", " c \n", ""), ""},
		"blocks":       {repeat("- |\n\n\n"), ""},
		"flow":         {within("[", "1,", "1]"), ""},
		"flow names": {part(func(n int) string {
			return "{" + lines(n-20, func(i int) string { return fmt.Sprintf("k%d: 1,", i) }) + "}"
		}), ""},
		"commas":            {within("[a,", "1,", "1]"), "more than 50000 commas"},
		"commas in a block": {within("a: |\n", " 1,2,3,4\n", ""), ""},
		"names":             {func(n int) string { return lines(n-20, func(i int) string { return fmt.Sprintf("k%d: 1\n", i) }) }, ""},
		"pairs":             {part(within("[", "a: b,", "]")), ""},
		"long name":         {within("", "k", ": 1"), ""},
		"digits":            {within("", "1", ""), ""},
		"hexadecimal":       {within("0x", "f", ""), "more than 1000 digits"},
		"fraction":          {within("1.", "1", ""), ""},
		"a blank too many":  {within("- |\n", strings.Repeat(" ", 50)+"\n", " a\n"), "expected '-' indicator"},
	}
	const most = 1 << 20
	memory := func(text string) (bytes uint64, err error) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err = decodeYAML(text)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, err
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := test.text(most)
			if len(text) > most {
				text = text[:most]
			}
			whole, err := memory(text)
			if err == nil != (test.err == "") || err != nil && (!strings.Contains(err.Error(), test.err) || len(err.Error()) > 400) {
				t.Errorf("got %v, want %q", err, test.err)
			}
			if half, _ := memory(test.text(most / 2)); err == nil && whole > 3*half+1<<20 {
				t.Errorf("reading %d bytes takes %d bytes of memory, half of them %d", len(text), whole, half)
			}
		})
	}
}

// TestYAML_CommentInMultilineScalar holds that a comment behind any line of a scalar without
// quotes ends it and is no part of it, also where a line begins like an entry of a list.
func TestYAML_CommentInMultilineScalar(t *testing.T) {
	for text, want := range map[string]string{
		"run: cmd\n  -flag one # first\nnext: 1\n":               `{"next":1,"run":"cmd -flag one"}`,
		"a: x\n  -y\n  # d\nb: 1\n":                              `{"a":"x -y","b":1}`,
		"a:\n  x\n  - y # c\nb: 1\n":                             `{"a":"x - y","b":1}`,
		"a:\n  -x # c\nb: 1\n":                                   `{"a":"-x","b":1}`,
		"- a\n  -b\t# c\n- d # e\n":                              `["a -b","d"]`,
		"- k: a\n    -b # c\n# d\n  l: 1\n":                      `[{"k":"a -b","l":1}]`,
		"a\n-b # c\n":                                            `"a -b"`,
		"--- a\n- b # c\n":                                       `"a - b"`,
		"{a: b\n -c # d\n , e: f # g\n }\n":                      `{"a":"b -c","e":"f"}`,
		"[a\n -b # c\n ,d\n -e# f\n ]\n":                         `["a -b","d -e# f"]`,
		"a: b\n  ?c # d\ne: f\n  :g # h\n":                       `{"a":"b ?c","e":"f :g"}`,
		"? a\n  -b # c\n: d\n  -e # f\n":                         `{"a -b":"d -e"}`,
		"a: b # c\n  d\n":                                        "",
		"a: b\n  # c\n  d\n":                                     "",
		"a: &x b\n  -c # d\ne: *x # f\n":                         `{"a":"b -c","e":"b -c"}`,
		"a: 'b\n  -c # d'\ne: \"f\n  -g # h\"\ni: |\n  -j # k\n": `{"a":"b -c # d","e":"f -g # h","i":"-j # k\n"}`,
	} {
		checkYAML(t, text, want)
	}
}

// TestYAML_Corners holds what parsers often have wrong.
func TestYAML_Corners(t *testing.T) {
	for text, want := range map[string]string{
		"a: |\n\n# c\nb: 1\n":        `{"a":"","b":1}`,
		"a: |\nb: >-\nc: |+\n\nd:\n": `{"a":"","b":"","c":"\n","d":null}`,
		"a: 1\n\t\nb: 2\n":           `{"a":1,"b":2}`,
		"- !!int &c 4\n- *c\n- &d !!str 5\n- !!null\n- ! 6\n- !!str\n": `[4,4,"5",null,"6",""]`,
		"{a\n b: c, ? d\n e : f, g}\n":                                 `{"a b":"c","d e":"f","g":null}`,
		"&a: key: &a value\nfoo:\n  *a:\n":                             "",
		"!!null : a\n&b : c\n":                                         "", // two empty names
		"&b : c\n":                                                     `{"":"c"}`,
		"a: [\n  b,\n]\nc: {\n}\n":                                     `{"a":["b"],"c":{}}`,
		"a: [\nb]\n":                                                   `{"a":["b"]}`,
		"a: \"b\nc\"\n":                                                `{"a":"b c"}`,
		"\"v\"#c\n":                                                    "",
		"[-]\n":                                                        "",
		"[a,#c\n]\n":                                                   "",
		"a:\n\tb: 1\n":                                                 "",
		"- a\n -b\n- c\n":                                              `["a -b","c"]`,
		"a: \"\\ud83d\\ude00\"\n":                                      "",
		"a: \"\\ud83d\"\n":                                             "",
		"%FOO x\n---\na\n":                                             "",
		"%YAML 1.3\n---\na\n":                                          "",
		"%YAML 1.2\n---\na\n":                                          `"a"`,
		"! 6\n":                                                        `"6"`,
		"a: \"\\U0001F600 😀\"\n":                                       `{"a":"😀 😀"}`,
		"a: b\u2028c\n":                                                "",
		"%YAML 1.2\na\n":                                               "",
		"---\na: 1\n---\n# c\n":                                        `{"a":1}`,
		"a: 1\r\nb: |\r\n  c\r\n  d\rf: 2":                             `{"a":1,"b":"c\nd\n","f":2}`,
		"a: &x {b: 1}\nc: {<<: *x, <<: {d: 2}, b: 3}\n": `{"a":{"b":1},"c":{"b":3,"d":2}}`,
		"a: *x\n--- # c\n": "",
		"a: b\u0081\n":     "{\"a\":\"b\u0081\"}",
		"a: \"b\u0081\"\n": "{\"a\":\"b\u0081\"}",
	} {
		checkYAML(t, text, want)
	}
}

// checkYAML holds what YAML means in JSON, or that it is refused if that is empty.
func checkYAML(t *testing.T, text, want string) {
	t.Helper()
	v, _, err := decodeYAML(text)
	if got := formats.CompactJSON(v); err == nil != (want != "") || err == nil && got != want {
		t.Errorf("%q is read as %s, %v, want %s", text, got, err, want)
	}
}

// TestYAML_ColonsInFlow holds that between brackets a colon ends a name where a blank or an
// indicator follows it, or quotes or brackets stand before it, and is text elsewhere.
func TestYAML_ColonsInFlow(t *testing.T) {
	for text, want := range map[string]string{
		`{http://x: 1}`: `{"http://x":1}`, `{"a":1, 'b':[2]}`: `{"a":1,"b":[2]}`, `{a: [1], b: c:d}`: `{"a":[1],"b":"c:d"}`,
		`{a:, b: -1}`: `{"a":null,"b":-1}`, `{x:y: z}`: `{"x:y":"z"}`, `{a:1}`: `{"a:1":null}`, `[{a:"b"}]`: `[{"a:\"b\"":null}]`, `["a":1, b: c]`: `[{"a":1},{"b":"c"}]`,
	} {
		checkYAML(t, text, want)
	}
}
