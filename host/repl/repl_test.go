package repl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/host"
	"obelus/host/internal/inspect"
)

// evalAll gives what each input gives: its values, its error, or "…" where it
// is incomplete.
func evalAll(r *Session, inputs ...string) (got []string) {
	for _, input := range inputs {
		values, err := r.Eval(context.Background(), input)
		var incomplete *IncompleteError
		switch {
		case errors.As(err, &incomplete):
			got = append(got, "…")
		case err != nil:
			got = append(got, err.Error())
		default:
			got = append(got, strings.Join(values, " "))
		}
	}
	return got
}

func openREPL(t *testing.T, files map[string]string, actions Actions) *Session {
	t.Helper()
	folder := fstest.MapFS{}
	for name, text := range files {
		folder[name] = &fstest.MapFile{Data: []byte(text)}
	}
	h, err := host.Open(host.Config{FS: folder})
	if err != nil {
		t.Fatal(err)
	}
	r := New(h.Generation(), actions)
	t.Cleanup(r.Close)
	return r
}

func TestEval_IncompleteInput(t *testing.T) {
	for _, input := range []string{"function f()", "1 +", "=1 +", "x = [[a", "--[[ a", "f(", "x =", "if x then", "x = {1,", "local", "a.b", "for i = 1"} {
		want := "…"
		if input == "a.b" {
			want = `stdin:1: attempt to index a (a nil value), key "b"`
		}
		if got := evalAll(openREPL(t, nil, Actions{}), input); got[0] != want {
			t.Errorf("%s: %s", input, got[0])
		}
	}
	for _, input := range []string{`"abc`, "1 + + 2", "x y", "end", "=", "#x y", "= x = 1"} {
		if got := evalAll(openREPL(t, nil, Actions{}), input); !strings.HasPrefix(got[0], "stdin:1: ") && input != "=" {
			t.Errorf("%s: %s", input, got[0])
		}
	}
}

func TestEval_AfterError(t *testing.T) {
	timeout := 300 * time.Millisecond
	if raceEnabled { // under which all takes longer
		timeout *= 5
	}
	r := openREPL(t, map[string]string{"obelus.lua": fmt.Sprintf(`return { timeout = %q }`, timeout)}, Actions{})
	got := evalAll(r,
		"n = 0 function inc() n = n + 1 return n end do local k = 0 function count() k = k + 1 return k end end",
		"inc() count() error('a')",
		"inc(), count()",
		"while true do n = n + 1 end", // within one line
		"n > 10",
		"function deep() return 1 + deep() end deep()",
		"c = coroutine.wrap(function() while true do coroutine.yield(count()) end end)",
		"c()",
		"c(), error('b')",
		"c()",
		"pcall(function() pcall(error, 'c') error('d', 0) end)",
		"string.rep('a', 3), ('b'):rep(2)",
		"setmetatable({}, { __tostring = function() while true do end end })",
		"count()",
	)
	want := []string{
		"", "stdin:2: a", "2 2", "stdin:4: timed out after " + timeout.String(), "true", "stdin:6: stack overflow", "", "3", "stdin:9: b", "5",
		`false "d"`, `"aaa" "bb"`, "{}", "6",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSession_Actions(t *testing.T) {
	var asked []any
	answer := func(_ context.Context, name string, given map[string]any) (any, string, error) {
		asked = append(asked, name, given)
		switch name {
		case "bad":
			return nil, "", errors.New("it is refused")
		case "slow":
			return nil, "waiting", nil
		}
		return map[string]any{"list": []any{}, "name": name}, "", nil
	}
	r := openREPL(t, map[string]string{
		"activities/a.lua": `Tool.register("a", { properties = { list = { type = "array" } } })  Activity.register("a", function() end)`,
		"lib/runs.lua":     `return run("p")`,
	}, Actions{Run: answer, Call: answer})
	got := evalAll(r, `run("p").name`, `run("p", { x = 1 }).list`, `call("a", { list = {} })`, `call("slow")`, `call("bad")`, `require "runs"`, `call("a", { print })`)
	want := []string{
		`"p"`, "{}", `{ list = {}, name = "a" }`, `nil "waiting"`, "stdin:5: it is refused",
		"lib/runs.lua:1: run is refused at the top level of a script, which may run again for every call: do it in the activity",
		"stdin:7: bad argument #2 to call: call[1]: a function can't be turned into JSON",
	}
	want[6] = got[6] // see the codec for its words
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(got[6], "stdin:7: bad argument #2 to call") {
		t.Error(got[6])
	}
	if list, ok := asked[5].(map[string]any)["list"].([]any); !ok || len(list) > 0 {
		t.Errorf("the tool's schema says that it is an array: %v", asked[5])
	}
}

func TestSession_Complete(t *testing.T) {
	r := openREPL(t, map[string]string{
		"activities/pay.lua": `Tool.register("pay.now", { properties = { amount = {}, _scopes = {} } })  Activity.register("pay.now", function() end)`,
		"lib/shop/cart.lua":  "return {}", "lib/deep/init.lua": "return {}",
		"plans/a.lua": "return {}", "plans/sub/b.json": "[]",
	}, Actions{})
	evalAll(r, "order = { total = 1, lines = { first = 'a' }, [1] = 2, ['a b'] = 3 }", "child = setmetatable({}, { __index = order })", "text = 'x'")
	for _, test := range []struct{ line, want string }{
		{"ord", "|order"},
		{"x = order.to", "x = order.|total"},
		{"print(order.lines.", "print(order.lines.|first"},
		{"child.", "child.|lines total"},
		{"text:up", "text:|upper"},
		{"Activity.", "Activity.|register"},
		{"whi", "|while"},
		{"return", "|return "},
		{"nothing.x", "nothing.|"},
		{`c = require("shop`, `c = require("|shop.cart`},
		{`require 'de`, `require '|debug deep`},
		{`call("pa`, `call("|pay.now`},
		{"call pa", "call |pay.now"},
		{"call pay.now am", "call pay.now |amount="},
		{`call("pay.now", { am`, `call("pay.now", { |amount=`},
		{"run plans/", "run |plans/a.lua plans/sub/b.json"},
		{`run("plans/a`, `run("|plans/a.lua`},
	} {
		from, words := r.Complete(test.line)
		if got := test.line[:from] + "|" + strings.Join(words, " "); got != test.want {
			t.Errorf("%s: %s", test.line, got)
		}
	}
	if _, words := r.Complete(""); !slices.Contains(words, "order") || !slices.Contains(words, "Tool") || slices.ContainsFunc(words, func(w string) bool { return w[0] == 0 }) {
		t.Error(words)
	}
}

func TestEval_ShowsTables(t *testing.T) {
	r := openREPL(t, nil, Actions{})
	got := evalAll(r, "t = { 1, 'two', { x = 1, ['end'] = 2, [2.5] = 3 } } t.self = t", "t", "json.decode('[null]')", "f = function() end", "{ f, print }",
		"{ a = ('x'):rep(50), b = ('y'):rep(50) }", "d = {} for i = 1, 30 do d = { d, d } end", "#tostring(d) > 0",
		"{ [1] = 2, [3] = 4 }", "{ nil, 2 }", "{ [3] = 1 }", "{ 2, [2.5] = 1, 3 }", "{ [0.3] = 1, [0.1 + 0.2] = 2 }")
	want := []string{
		"", `{ 1, "two", { [2.5] = 3, ["end"] = 2, x = 1 }, self = {…} }`, "{ json.null }", "", "{ function: stdin:4, function: built in }",
		"{\n  a = \"" + strings.Repeat("x", 50) + "\",\n  b = \"" + strings.Repeat("y", 50) + "\",\n}", "", "true",
		"{ 2, [3] = 4 }", "{ [2] = 2 }", "{ [3] = 1 }", "{ 2, 3, [2.5] = 1 }", "{ [0.3] = 1, [0.30000000000000004] = 2 }",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, input := range []string{"_G", "package.loaded._G"} { // with what nothing has touched yet
		if all := evalAll(openREPL(t, nil, Actions{}), input)[0]; !strings.Contains(all, "Tool = {") || !strings.Contains(all, "tostring = function: built in") {
			t.Errorf("%s is %s", input, all)
		}
	}
	if values, err := r.Eval(context.Background(), "d"); err != nil || len(values[0]) > 2*inspect.MaxInspected {
		t.Error(err, len(values[0]))
	}
}

// TestEval_Numerals: a number in a source is what Lua takes it for.
func TestEval_Numerals(t *testing.T) {
	r := openREPL(t, map[string]string{}, Actions{})
	for text, want := range map[string]string{
		"010": "10", "0x1F": "31", "0xcbf29ce484222325 == 14695981039346656037": "true", "0xFFFFFFFFFFFFFFFFF == 2 ^ 68 - 1": "true",
		"1e400 == math.huge": "true", "-1e400 < 0": "true", "1e-400": "0", "5. + .5": "5.5", "1E+2": "100", "123456789012345": "123456789012345",
		"1e": `malformed number "1e"`, "1e+": `malformed number "1e+"`, ".5e": `malformed number ".5e"`,
	} {
		if got := evalAll(r, "="+text); !strings.HasSuffix(got[0], want) {
			t.Errorf("%s is %s, not %s", text, got[0], want)
		}
	}
}
