package host

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"obelus/engine/plan"
	"obelus/host/internal/luac"
	"obelus/host/internal/sandbox"
)

// TestFaults runs every activity of testdata/faults; the comment above it is
// its error.
func TestFaults(t *testing.T) {
	source, err := os.ReadFile("testdata/faults/faults.lua")
	if err != nil {
		t.Fatal(err)
	}
	g := open(t, map[string]string{"activities/faults.lua": string(source)})
	cases := regexp.MustCompile(`(?m)^-- (.*?): (activities/.*)\nActivity\.register\("(.*?)"`).FindAllStringSubmatch(string(source), -1)
	if len(cases) != len(g.Registry().Activities) {
		t.Fatalf("%d cases have a comment, there are %d", len(cases), len(g.Registry().Activities))
	}
	for _, c := range cases {
		t.Run(c[1], func(t *testing.T) {
			if c[1] != c[3] {
				t.Fatalf("the comment is about %q", c[1])
			}
			_, err := call(g, c[3], plan.Invocation{Call: map[string]any{"_tool": c[3]}})
			one, ok := err.(*ScriptError)
			if !ok {
				t.Fatalf("got %T %v", err, err)
			}
			if one.Error() != c[2] {
				t.Errorf("got  %s\nwant %s", one, c[2])
			}
		})
	}
}

func TestTraceback(t *testing.T) {
	g := open(t, map[string]string{
		"lib/deep.lua":     "return { f = function(t)\n return t.x.y\nend }",
		"activities/a.lua": "local deep = require 'deep'\nActivity.register('a', function(call)\n local n = deep.f(call)\n return n\nend)",
	})
	_, err := call(g, "a", plan.Invocation{})
	got := strings.Join(append([]string{err.Error()}, err.(*ScriptError).Traceback...), "\n")
	want := `lib/deep.lua:2: attempt to index t.x (a nil value), key "y"
lib/deep.lua:2: in function 'f'
activities/a.lua:3: in main chunk`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSyntaxErrors(t *testing.T) {
	tests := []struct{ name, source, want string }{
		{"token", "local x = = 1", "a.lua:1: syntax error at \"=\"\n  local x = = 1\n            ^"},
		{"tab", "\tlocal x = = 1", "a.lua:1: syntax error at \"=\"\n  \tlocal x = = 1\n  \t          ^"},
		{"end of file", "function f()\n  if x then\n  end\n\n", "a.lua:3: the file ends too early: the \"function\" of line 1 is not closed\n    end\n       ^"},
		{"brace", "return {\n  a = 1,\n", "a.lua:2: the file ends too early: the \"{\" of line 1 is not closed\n    a = 1,\n          ^"},
		{"string", "x = \"abc\nreturn x", "a.lua:1: unterminated string: its end is missing\n  x = \"abc\n         ^"},
		{"character", "local a = 1\nx = a ! 2", "a.lua:2: syntax error at \"!\": invalid token\n  x = a ! 2\n        ^"},
		{"two commas", "local a = {\n  1,\n  , 3,\n}", "a.lua:3: syntax error at \",\"\n    , 3,\n    ^"},
		{"a semicolon too many", "local a = {1,; 3}", "a.lua:1: syntax error at \";\"\n  local a = {1,; 3}\n               ^"},
		{"number", "local a = 1\nx = 3e\ny = 4", "a.lua:2: malformed number \"3e\"\n  x = 3e"},
		{"keyword", "local end = 1", "a.lua:1: syntax error at \"end\"\n  local end = 1\n        ^"},
		{"break", "break", "a.lua:1: no loop to break\n  break"},
		{"deep tables", "return " + strings.Repeat("{", 60000) + strings.Repeat("}", 60000), "a.lua:1: nested deeper than 200"},
		{"deep not", "return " + strings.Repeat("not ", 60000) + "x", "a.lua:1: nested deeper than 200"},
		{"deep sum", "return " + strings.Repeat("1+", 100000) + "1", "a.lua:1: nested deeper than 200"},
		{"deep parentheses", "return " + strings.Repeat("(", 100000), "a.lua:1: the file ends too early"},
		{"deep blocks", strings.Repeat("do ", 30000) + strings.Repeat("end ", 30000), "a.lua:1: nested deeper than 200"},
		{"deep calls", "return f" + strings.Repeat("()", 100000), "a.lua:1: nested deeper than 200"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := luac.Compile("a.lua", []byte(test.source), sandbox.Functions)
			one, ok := err.(*ScriptError)
			if !ok {
				t.Fatalf("got %T %v", err, err)
			}
			got := one.Error()
			if snippet := one.Snippet(); snippet != "" && len(snippet) < 200 {
				got += "\n" + snippet
			}
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestCompile_Sources(t *testing.T) {
	for name, source := range map[string]string{
		"byte order mark": "\ufeffreturn 1",
		"shebang":         "#!/usr/bin/env obelus\nreturn 1",
		"both":            "\ufeff#!/usr/bin/lua\r\nreturn 1",
		"empty":           "",
		"only a shebang":  "#!x",
		"many elseif":     "if x == 1 then" + strings.Repeat(" elseif x == 2 then", 5000) + " end",
		"many joined":     "return " + strings.Repeat(`"x" .. `, 150) + `"x"`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := luac.Compile("a.lua", []byte(source), sandbox.Functions); err != nil {
				t.Error(err)
			}
		})
	}
}
