package host

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"obelus/engine/plan"
	"obelus/host/internal/luac"
	"obelus/store"
)

var planTools = `
Tool.register("sum", { properties = { items = { type = "array", items = { type = "object", properties = { tags = { type = "array" } } } } } })
Activity.register("sum", function(call) return #call.items end)`

// describe writes a request as text.
func describe(r *plan.Request) string {
	var b strings.Builder
	for _, c := range r.Calls {
		fmt.Fprintf(&b, "%d %s\n", c.Line, store.EncodeJSON(c.Call))
	}
	for _, m := range r.Context {
		fmt.Fprintf(&b, "%s %s %s\n", m.Type, m.Kind, store.EncodeJSON(m.Data.Value))
	}
	if r.Mode != "" {
		fmt.Fprintln(&b, "mode", r.Mode)
	}
	if r.Output.Set {
		fmt.Fprintf(&b, "output %d %s\n", r.OutputLine, store.EncodeJSON(r.Output.Value))
	}
	if r.Schema != nil {
		fmt.Fprintf(&b, "schema %s\n", store.EncodeJSON(r.Schema))
	}
	if r.Tools != nil {
		fmt.Fprintf(&b, "tools %s\n", store.EncodeJSON(r.Tools))
	}
	return b.String()
}

func TestPlan(t *testing.T) {
	tests := []struct{ name, file, source, want string }{
		{"list", "p.lua", "return {\n  { _tool = 'sum', items = {} },\n\n  { _tool = 'sum', items = {{}, {tags = {}}}, _scopes = {} },\n}",
			"2 {\"_tool\":\"sum\",\"items\":[]}\n4 {\"_scopes\":[],\"_tool\":\"sum\",\"items\":[{},{\"tags\":[]}]}\n"},
		{"made by a function", "p.lua", "local function step(n)\n  return {\n    _tool = 'sum', n = n }\nend\nreturn { step(1), step(2) }",
			"2 {\"_tool\":\"sum\",\"n\":1}\n2 {\"_tool\":\"sum\",\"n\":2}\n"},
		{"none", "p.lua", "return {}", ""},
		{"request", "p.lua", "return {\n context = { Message.state{user = 'x'}, {type = 'input', input = {}} },\n calls = {\n  { _tool = 'sum' } },\n mode = 'lazy',\n schema = {required = {}},\n output = '†a' }",
			"4 {\"_tool\":\"sum\"}\ndata state {\"user\":\"x\"}\ndata input {}\nmode lazy\noutput 7 \"†a\"\nschema {\"required\":[]}\n"},
		{"messages", "p.lua", "return { calls = {}, context = { Message.data{data = {a = 1}, kind = 'user'}, Message.input{x = 1}, Message.system('be kind'), Message.text('hello'), Message.tool{t = {required = {}}}, Message.plan({{_tool = 'x'}}, 'lazy') } }",
			"data user {\"a\":1}\ndata input {\"x\":1}\nsystem  \"be kind\"\ntext  \"hello\"\ntool  {\"t\":{\"required\":[]}}\nplan  [{\"_tool\":\"x\"}]\n"},
		{"null output", "p.lua", "return { calls = {},\n output = json.null }", "output 2 null\n"},
		{"output of a call", "p.lua", "local first = {\n _tool = 'sum', output = 1 }\nreturn { calls = { first },\n output = '†a' }", "1 {\"_tool\":\"sum\",\"output\":1}\noutput 4 \"†a\"\n"},
		{"requires", "p.lua", "local items = require 'items'\nreturn { { _tool = 'sum', items = items } }", "2 {\"_tool\":\"sum\",\"items\":[1,2]}\n"},
		{"json list", "p.json", "[\n {\"_tool\": \"sum\",\n  \"items\": []},\n {\"_tool\": \"sum\"}, {\"_tool\": \"x\"}]",
			"2 {\"_tool\":\"sum\",\"items\":[]}\n4 {\"_tool\":\"sum\"}\n4 {\"_tool\":\"x\"}\n"},
		{"json request", "p.json", "{\n \"tools\": {\"t\": {}},\n \"plan\":\n [\n  {\"_tool\": \"t\", \"n\": 9007199254740993}],\n \"context\": [{\"type\": \"state\", \"a\": 1}],\n \"output\":\n  \"†a\"}",
			"5 {\"_tool\":\"t\",\"n\":9007199254740993}\ndata state {\"a\":1}\noutput 8 \"†a\"\ntools {\"t\":{}}\n"},
		{"json mark", "p.json", "\ufeff[]", ""},
		{"one call", "p.lua", "\nreturn { _tool = 'sum', items = {} }", "2 {\"_tool\":\"sum\",\"items\":[]}\n"},
		{"a list with messages", "p.lua", "return {\n {type = 'state', a = 1},\n { _tool = 'sum', type = 'x' },\n {type = 'input', input = {}} }",
			"3 {\"_tool\":\"sum\",\"type\":\"x\"}\ndata state {\"a\":1}\ndata input {}\n"},
		{"calls with messages", "p.lua", "return { context = {{type = 'state', a = 1}}, calls = {{_tool = 'sum'}, {type = 'text', text = 'b'}} }",
			"1 {\"_tool\":\"sum\"}\ndata state {\"a\":1}\ntext  \"b\"\n"},
		{"json one call", "p.json", "{\"_tool\": \"sum\"}", "1 {\"_tool\":\"sum\"}\n"},
		{"json with comments", "p.json", "// a plan\n[\n /* a\n call */ {\"_tool\": \"sum\",},\n]", "4 {\"_tool\":\"sum\"}\n"},
		{"json list with messages", "p.json", "[\n {\"_tool\": \"sum\"},\n {\"type\": \"state\", \"a\": 1},\n {\"_tool\": \"sum\", \"type\": \"x\"}]",
			"2 {\"_tool\":\"sum\"}\n4 {\"_tool\":\"sum\",\"type\":\"x\"}\ndata state {\"a\":1}\n"},
		{"json calls with messages", "p.json", "{\"context\": [{\"type\": \"state\", \"a\": 1}], \"plan\": [{\"type\": \"text\", \"text\": \"b\"},\n{\"_tool\": \"sum\"}]}",
			"2 {\"_tool\":\"sum\"}\ndata state {\"a\":1}\ntext  \"b\"\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := open(t, map[string]string{"activities/a.lua": planTools, "lib/items.lua": "return {1, 2}", "plans/" + test.file: test.source})
			r, registry, err := g.Plan("plans/" + test.file)
			if err != nil {
				t.Fatal(err)
			}
			if registry != g.Registry() || r.Name != "plans/"+test.file {
				t.Errorf("registry or name is wrong: %s", r.Name)
			}
			if got := describe(r); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestPlan_Errors(t *testing.T) {
	tests := []struct{ name, file, source, want string }{
		{"nothing", "p.lua", "", "p.lua: a plan must return a list of calls, a table with calls, or a function: it returns nothing"},
		{"text", "p.lua", "return 'x'", "p.lua: a plan must return a list of calls, a table with calls, or a function, not a string"},
		{"messages alone", "p.lua", "\nreturn { {type = 'state', a = 1} }", "p.lua: there are messages and no call: append them (obelus append), or give them as the context of a request, {context = …}, for a model to plan"},
		{"a hole beside messages", "p.lua", "return {{type = 'state', a = 1}, nil, {_tool = 'y'}}", `p.lua: call 2 is nil: the list of calls has a hole`},
		{"JSON in Lua", "p.lua", "[\n  {\"_tool\": \"x\"}\n]", `p.lua:1: syntax error at "[": this is JSON, which a file .json holds; in Lua: return { { _tool = "x", n = 1 } }`},
		{"TypeScript in Lua", "p.lua", "Activity.register('x', async ({ n }, { state }) => {\n});", `p.lua:1: syntax error at "=": this is no Lua; in Lua: function(call, context) … end`},
		{"constants in Lua", "p.lua", "const n = 1;", `p.lua:1: syntax error at "n": this is no Lua; in Lua: local n = 1`},
		{"a comment in Lua", "p.lua", "// none\nreturn {}", `p.lua:1: syntax error at "/": this is no Lua; in Lua: -- begins a comment`},
		{"output beside a function", "p.lua", "return {calls = function() end, output = 1}", "p.lua:1: output belongs into what the function returns, beside the calls"},
		{"scopes of a function", "p.lua", "return {calls = function() end, scopes = 'state'}", `p.lua:1: scopes: expected a list such as ["state"], found "state"`},
		{"scopes without a function", "p.lua", "return {calls = {}, scopes = {}}", "p.lua:1: scopes are for a function or a model: they say what of the context it gets"},
		{"unknown field", "p.lua", "-- a plan\nreturn {\n  call = {} }", `p.lua:3: unknown field "call" (did you mean "calls"?)`},
		{"output of a plan by a model", "p.lua", "return {mode = 'lazy',\n output = 1}", `p.lua:2: the model that plans it gives the output: schema says what it must be`},
		{"offer beside calls", "p.lua", "return {calls = {},\n offer = {'a'}}", `p.lua:2: offer is for a request that a model plans, which has neither calls nor a function`},
		{"offer", "p.lua", "return {offer = 'a'}", `p.lua:1: offer must be a list of tools by name, not "a"`},
		{"refusals", "p.json", `{"refusals": 0}`, `p.json:1: refusals must be a whole number above 0, not a number`},
		{"both", "p.lua", "return {calls = {}, plan = {}}", `p.lua:1: "plan" is another word for "calls": give one of them`},
		{"calls", "p.lua", "return {calls = 3}", `p.lua:1: calls must be a list of calls or a function, not a number`},
		{"one call as calls", "p.lua", "return {calls =\n { _tool = 'x' }}", `p.lua:2: calls is a list of calls: put braces around this one`},
		{"a name in calls", "p.lua", "return {calls = { a = {} }}", `p.lua: the list of calls has the key "a": calls stand one after the other`},
		{"hole", "p.lua", "return {{_tool = 'x'}, nil, {_tool = 'y'}}", `p.lua: call 2 is nil: the list of calls has a hole`},
		{"mixed", "p.lua", "return {{_tool = 'x'}, calls = {}}", `p.lua: the list of calls has the key "calls": calls stand one after the other`},
		{"mode", "p.lua", "return {calls = {}, mode = 'slow'}", `p.lua:1: mode must be "eager" or "lazy", not "slow"`},
		{"value", "p.lua", "return {\n {_tool = 'x'},\n {_tool = 'y', a = {1, 0/0}}}", `p.lua:3: call 2.a[2]: NaN is not a JSON number`},
		{"message", "p.lua", "return {calls = {}, context = {{type = 'state', a = 1}, {type = 'sate'}}}", `p.lua:1: context message 2: unknown type "sate" (one of data, state, input, tool, plan, system, text, meta)`},
		{"context", "p.lua", "return {calls = {}, context = 'x'}", `p.lua:1: context must be a list of messages, not "x"`},
		{"raises", "p.lua", "\nlocal x = nil + 1", `p.lua:2: attempt to perform arithmetic on a nil value`},
		{"author raises", "p.lua", "\nerror('set X first')", `p.lua:2: set X first`},
		{"syntax", "p.lua", "return {", `p.lua:1: the file ends too early: the "{" of line 1 is not closed`},
		{"goto", "p.lua", "return function()\n  goto x\nend", `p.lua:2: no visible label 'x' for <goto>`},
		{"label", "p.lua", "::x::\n\n::x::", `p.lua:3: label 'x' already defined on line 1`},
		{"goto over a local", "p.lua", "\ngoto x\nlocal a\n::x::\nreturn a", `p.lua:2: <goto x> jumps into the scope of local 'a'`},
		{"json syntax", "p.json", "[\n{]", `p.json:2: not JSON: invalid character ']' looking for beginning of object key string, at line 2 column 2`},
		{"json open comment", "p.json", "[\n{} /* none\n]", `p.json:2: not JSON: the comment is not closed: */ is missing, at line 2 column 4`},
		{"json messages alone", "p.json", `[{"type": "state", "a": 1}]`, `p.json: there are messages and no call: append them (obelus append), or give them as the context of a request, {context = …}, for a model to plan`},
		{"json calls of one", "p.json", `{"calls": {"_tool": "x"}}`, `p.json:1: calls is a list of calls: put [ and ] around this one`},
		{"json mode", "p.json", `{"calls": [], "mode": "slow"}`, `p.json:1: mode must be "eager" or "lazy", not "slow"`},
		{"json key twice", "p.json", "[{\"_tool\": \"x\", \"n\": [1, {\"a\": {\"b\": 1},\n \"c\": 2, \"a\": null}]}]", `p.json:2: "a" stands twice in one object: only one of them would count, at line 2 column 12`},
		{"json calls twice", "p.json", "{\"calls\": [],\n\n\"calls\": [{}]}", `p.json:3: "calls" stands twice in one object: only one of them would count, at line 3 column 7`},
		{"json value", "p.json", "3", `p.json:1: a plan is a list of calls, or an object with calls, not a number`},
		{"json field", "p.json", "{\"calls\": [\n],\n\"moode\": 1}", `p.json:3: unknown field "moode" (did you mean "mode"?)`},
		{"json calls", "p.json", `{"calls": {}}`, `p.json:1: calls must be a list of calls, not an object`},
		{"json no calls", "p.json", `{"calls": null}`, `p.json:1: calls must be a list of calls, not null`},
		{"tools", "p.json", `{"calls": [], "tools": []}`, `p.json:1: tools must be an object of schemas by name, not an array`},
		{"ending", "p.txt", ``, `p.txt: a plan is a .lua or a .json file`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := open(t, map[string]string{test.file: test.source}).Plan(test.file)
			var one *ScriptError
			if !errors.As(err, &one) {
				t.Fatalf("got %T %v", err, err)
			}
			if err.Error() != test.want {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
		})
	}
	g := open(t, nil)
	for file, want := range map[string]string{
		"../p.lua":   "../p.lua: a plan is a file below the project's folder",
		"/etc/p.lua": "/etc/p.lua: a plan is a file below the project's folder",
		"none.db":    "none.db: a plan is a .lua or a .json file", // nobody looks whether it is there
		"gone.lua":   "gone.lua: there is no such file",
	} {
		if _, _, err := g.Plan(file); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestPlan_ReadAgain: a plan is read as its file is now, whether its request was kept or not, and
// what a caller sets in one request is not in the next.
func TestPlan_ReadAgain(t *testing.T) {
	for _, test := range []struct {
		name, file, before, after, want string
	}{
		{"constant", "p.lua", "return { calls = { { _tool = 'sum', n = -1, text = 'a' .. 'b' } }, output = '†a' }", "return { calls = {}, output = '†b' }",
			"1 {\"_tool\":\"sum\",\"n\":-1,\"text\":\"ab\"}\noutput 1 \"†a\"\n"},
		{"computed", "p.lua", "local sum = 'sum'\nreturn { calls = { { _tool = sum } }, output = '†a' }", "return { calls = {}, output = '†b' }",
			"2 {\"_tool\":\"sum\"}\noutput 2 \"†a\"\n"},
		{"json", "p.json", `{"calls": [{"_tool": "sum"}], "output": "†a"}`, `{"calls": [], "output": "†b"}`,
			"1 {\"_tool\":\"sum\"}\noutput 1 \"†a\"\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := project(map[string]string{"activities/a.lua": planTools, test.file: test.before})
			h, err := Open(Config{FS: files})
			if err != nil {
				t.Fatal(err)
			}
			read := func() *plan.Request {
				t.Helper()
				r, registry, err := h.Plan(test.file)
				if err != nil {
					t.Fatal(err)
				}
				if registry != h.Generation().Registry() {
					t.Error("the registry is not the generation's")
				}
				return r
			}
			for range 3 {
				r := read()
				if got := describe(r); got != test.want {
					t.Errorf("got\n%s\nwant\n%s", got, test.want)
				}
				r.Mode, r.Output = "lazy", store.Optional{}
			}
			files.(fstest.MapFS)[test.file].Data = []byte(test.after)
			if got, want := describe(read()), "output 1 \"†b\"\n"; got != want {
				t.Errorf("after a change: got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// countingFS counts the files that are read.
type countingFS struct {
	fstest.MapFS
	reads int
}

func (c *countingFS) ReadFile(name string) ([]byte, error) {
	c.reads++
	return c.MapFS.ReadFile(name)
}

// TestPlan_Current: a plan's file is read again unless its time and its size show that it is as
// it was. A file without a time, or one that had just been changed, may have another text all the
// same.
func TestPlan_Current(t *testing.T) {
	long, just := time.Now().Add(-time.Hour), time.Now()
	for _, test := range []struct {
		name          string
		before, after time.Time
		text          string
		reads         int
	}{
		{"as it was", long, long, "return { calls = {}, output = '†a' }", 1},
		{"changed later", long, just, "return { calls = {}, output = '†b' }", 2},
		{"changed earlier", long, long.Add(-time.Second), "return { calls = {}, output = '†b' }", 2},
		{"another size", long, long, "return { calls = {}, output = '†ab' }", 2},
		{"changed just now", just, just, "return { calls = {}, output = '†b' }", 2},
		{"in the future", just.Add(time.Hour), just.Add(time.Hour), "return { calls = {}, output = '†b' }", 2},
		{"without a time", time.Time{}, time.Time{}, "return { calls = {}, output = '†b' }", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := &countingFS{MapFS: fstest.MapFS{"p.lua": {Data: []byte("return { calls = {}, output = '†a' }"), ModTime: test.before}}}
			h, err := Open(Config{FS: files})
			if err != nil {
				t.Fatal(err)
			}
			files.reads = 0
			if _, _, err := h.Plan("p.lua"); err != nil {
				t.Fatal(err)
			}
			files.MapFS["p.lua"] = &fstest.MapFile{Data: []byte(test.text), ModTime: test.after}
			r, _, err := h.Plan("p.lua")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(test.text, "'"+r.Output.Value.(string)+"'") || files.reads != test.reads {
				t.Errorf("the output is %v after %d reads, of %s", r.Output.Value, files.reads, test.text)
			}
			delete(files.MapFS, "p.lua")
			if _, _, err := h.Plan("p.lua"); err == nil {
				t.Error("it reads a file that is not there")
			}
		})
	}
}

// TestPlan_NotConstant: a plan's file that does more than return a value is run for each request.
func TestPlan_NotConstant(t *testing.T) {
	for name, source := range map[string]string{
		"call":     "return { { _tool = 'sum', id = require('id').new() } }",
		"global":   "return { { _tool = 'sum', id = id } }",
		"operator": "return { { _tool = 'sum', n = 1 + tonumber('1') } }",
		"length":   "return { { _tool = 'sum', n = #'a' } }",
		"function": "return function() return { calls = {} } end",
		"key":      "return { calls = {}, [name or 'output'] = 1 }",
		"two":      "local a = 1\nreturn { { _tool = 'sum', n = a } }",
		"nothing":  "",
	} {
		chunk, err := luac.ParseChunk("p.lua", []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		if luac.IsConstant(chunk) {
			t.Errorf("%s: %s is taken for a constant", name, source)
		}
	}
}

// TestPlan_Alone: a plan file may register what it calls.
func TestPlan_Alone(t *testing.T) {
	g := open(t, map[string]string{
		"other.lua": `error("not loaded")`,
		"plan.lua": `
local factor = 3
Tool.register("times", { properties = { n = { type = "number" }, list = { type = "array" } } })
Activity.register("times", { retries = 1 }, function(call) factor = factor * call.n; return factor end)
return { { _tool = "times", n = 2, list = {} } }`,
	})
	r, registry, err := g.Plan("./plan.lua")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := describe(r), "5 {\"_tool\":\"times\",\"list\":[],\"n\":2}\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	a := registry.Activities["times"]
	if a.Retries != 1 || a.Script != "plan.lua" || registry.Tools["times"] == nil || len(g.Registry().Activities) != 0 {
		t.Errorf("got %+v", a)
	}
	for range 2 {
		result, err := a.Activity.Run(t.Context(), plan.Invocation{Call: map[string]any{"n": 2}})
		if err != nil || string(store.EncodeJSON(result.Value)) != "6" {
			t.Errorf("got %v %v", result, err)
		}
	}
}

func TestPlan_RegistersTwice(t *testing.T) {
	g := open(t, map[string]string{
		"activities/a.lua": planTools,
		"plan.lua":         "\nActivity.register('sum', function() end)\nTool.register('sum', {})\nreturn {}",
	})
	_, _, err := g.Plan("plan.lua")
	want := `plan.lua:2: activity "sum" is registered twice: activities/a.lua registers it too
plan.lua:3: tool "sum" is registered twice: the project registers it too`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
