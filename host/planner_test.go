package host

import (
	"context"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// carryOut runs a plan file of a project in memory.
func carryOut(t *testing.T, files map[string]string, file string) (*journal.Outcome, store.Log) {
	t.Helper()
	request, registry, err := open(t, files).Plan(file)
	if err != nil {
		t.Fatal(err)
	}
	log := memory.New()
	runner := &engine.Runner{Log: log, Registry: registry, Parallel: 1}
	outcome, err := runner.Run(context.Background(), engine.Start{Context: "c", Request: request})
	if err != nil {
		t.Fatal(err)
	}
	return outcome, log
}

const adding = `
Tool.register("add", { properties = { list = { type = "array" } } })
Activity.register("add", function(call) return (call.a or 0) + #(call.list or {}) end)`

func TestPlanner(t *testing.T) {
	tests := []struct{ name, plan, want string }{
		{"a function", `return function(context)
			if context.state then return { output = context.state.n } end
			return { calls = { { _tool = "add", a = 1, _outputPath = "†state.n" } } }
		end`, "done 1"},
		{"a function beside other fields", `return { context = { Message.state { n = 1 }, Message.input { secret = 2 } }, scopes = { "state" },
			calls = function(context)
				assert(context.input == nil)
				if context.state.n > 3 then return { calls = {}, output = { n = "†state.n" } } end
				return { { _tool = "add", a = context.state.n + 1, _outputPath = "†state.n" } }
			end }`, `done {"n":4}`},
		{"the schemas of tools go for its calls", `return function(context)
			if context.state then return { output = context.state.n } end
			return { calls = { { _tool = "add", a = 1, list = {}, _outputPath = "†state.n" } } }
		end`, "done 1"},
		{"calls out of the context", `return { context = { Message.state { plan = { { _tool = "add", a = 5, _outputPath = "†out" } } } },
			calls = function(context) return context.out and { output = context.out } or { calls = text(context.state.plan) } end }`, "done 5"},
		{"nothing outlives an ask", `local asked = 0
			return function(context)
				asked = asked + 1
				if context.state then return { output = asked } end
				return { calls = { { _tool = "add", _outputPath = "†state.n" } } }
			end`, "done 1"},
		{"instances", `return { context = { { type = "state", _instance = "①", n = 7 } },
			calls = function(context) return { output = context._instances["①"].state.n } end }`, "done 7"},
		{"raises", "\nreturn function(context) error('no idea') end", "failed null: p.lua:2: no idea"},
		{"gives up", "return function(context) return nil, 'no idea' end", "failed null: no idea"},
		{"breaks down", "return function(context)\nreturn context.state.n end", "failed null: p.lua:2: attempt to index context.state (a nil value), key \"n\""},
		{"returns nothing", "return function(context) end", "failed null: p.lua: the plan's function must return a table with calls, output or both, not nil"},
		{"returns something else", "return function(context) return { call = {} } end", `failed null: the planner gave the same solution again after it had been refused: p.lua: the plan's function returned the unknown field "call" (did you mean "calls"?)`},
		{"is told what it returned", `return function(context)
			local told = context.error and context.error.error.message
			return told and { output = told } or { calls = { _tool = "fill" } }
		end`, `done "p.lua:3: calls is a list of calls: put braces around this one"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			outcome, _ := carryOut(t, map[string]string{"activities/a.lua": adding, "p.lua": test.plan}, "p.lua")
			got := strings.TrimSuffix(string(outcome.Status)+" "+string(store.EncodeJSON(outcome.Output))+": "+outcome.Error, ": ")
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestDelegate(t *testing.T) {
	const call = `return { context = { Message.state { n = 2, secret = 3 } },
		calls = { { _tool = "work", _delegate = "NAME", a = "†state.n", _scopes = { "state.n" }, _outputPath = "†out" } }, output = "†out" }`
	tests := []struct{ name, delegate, want string }{
		{"list", `Delegate.register("list", { context = { Message.system("be brief") },
			calls = { { _tool = "add", a = "†input.a", list = {}, _outputPath = "†r" } }, output = { r = "†r", state = "†state" } })`,
			`done {"r":2,"state":{"n":2}}`},
		{"planner", `Delegate.register("planner", function(context) return { output = { context.input.a, context.state.n } } end)`, "done [2,2]"},
		{"a/file.lua", ``, "done 20"},
		{"a/file.json", ``, "done 2"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			outcome, _ := carryOut(t, map[string]string{
				"activities/a.lua": adding + test.delegate,
				"a/file.lua": `Activity.register("tenfold", function(call) return call.a * 10 end)
					return { calls = { { _tool = "tenfold", a = "†input.a", _outputPath = "†r" } }, output = "†r" }`,
				"a/file.json": `{"calls": [{"_tool": "add", "a": "†input.a", "_outputPath": "†r"}], "output": "†r"}`,
				"p.lua":       strings.ReplaceAll(call, "NAME", test.name),
			}, "p.lua")
			if got := string(outcome.Status) + " " + string(store.EncodeJSON(outcome.Output)); got != test.want {
				t.Errorf("got  %s\nwant %s\n%v", got, test.want, outcome.Calls)
			}
		})
	}
}

func TestDelegate_Errors(t *testing.T) {
	for source, want := range map[string]string{
		"\nDelegate.register('d', {calls = 3})":                                      `activities/a.lua:2: delegate "d": calls must be a list of calls or a function, not a number`,
		"\nDelegate.register('d', {{_tool = 'x', a = 0/0}})":                         `activities/a.lua:2: delegate "d": call 1.a: NaN is not a JSON number`,
		"\nDelegate.register('d', 3)":                                                `activities/a.lua:2: bad argument #2 to Delegate.register: table or function expected, got number`,
		"Delegate.register('d', {})\nDelegate.register('d', {})":                     `activities/a.lua:2: delegate "d" is registered twice: first at activities/a.lua:1`,
		"Delegate.register('anonymous', {})":                                         `activities/a.lua:1: delegate "anonymous": a call that names it is handed to its tool alone: give the delegate another name`,
		"Activity.register('a', function() Delegate.register('d', {}) end)":          ``,
		"Delegate.register('d', { { _tool = 'x', _delegate = '../../etc/x.lua' } })": ``,
	} {
		_, err := Open(Config{FS: project(map[string]string{"activities/a.lua": source})})
		if got := errorText(err); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", source, got, want)
		}
	}
	for file, want := range map[string]string{
		"../out.lua":    `call 1 (x): _delegate: ../out.lua: a plan is a file below the project's folder`,
		"gone.lua":      `call 1 (x): _delegate: gone.lua: there is no such file`,
		"halper":        `call 1 (x): _delegate: "halper" is neither a registered delegate nor a .lua or .json file (did you mean "helper"?)`,
		"broken.lua":    `call 1 (x): _delegate: broken.lua:1: the file ends too early: the "{" of line 1 is not closed`,
		"activities/..": `call 1 (x): _delegate: "activities/.." is neither a registered delegate nor a .lua or .json file`,
	} {
		request, registry, err := open(t, map[string]string{
			"activities/a.lua": "Delegate.register('helper', {})", "broken.lua": "return {",
			"p.lua": `return { { _tool = "x", _delegate = "` + file + `", _outputPath = "†a" } }`,
		}).Plan("p.lua")
		if err != nil {
			t.Fatal(err)
		}
		_, err = plan.Compile(request, registry, plan.NothingExists)
		if got := strings.TrimPrefix(errorText(err), "p.lua:1: "); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", file, got, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestPlanner_DataDoesNotAct is about texts of a context that begin with †: a plan's function
// hands them on as texts, wherever they stand.
func TestPlanner_DataDoesNotAct(t *testing.T) {
	const request = `return { context = {
			Message.state { secret = "s3cret", list = { "†state.secret", { deep = "† me" } }, path = "state.secret" },
			Message.input { name = "†state.secret", ["†key"] = 1, twice = "††x" },
			{ type = "state", _instance = "①", title = "†state.secret" },
		}, calls = function(context)
			if context.o then return { output = RESULT } end
			return { calls = { { _tool = "echo", v = VALUE, _outputPath = PATH } } }
		end }`
	tests := []struct{ name, value, path, result, want string }{
		{"whole text", `context.input.name`, `"†o"`, `"†o"`, `done "†state.secret"`},
		{"as the output", `1`, `"†o"`, `context.input.name`, `done "†state.secret"`},
		{"within a list", `context.state.list`, `"†o"`, `"†o"`, `done ["†state.secret",{"deep":"† me"}]`},
		{"a whole kind", `context.input`, `"†o"`, `"†o"`, `done {"name":"†state.secret","twice":"††x","†key":1}`},
		{"of an instance", `context._instances["①"].state.title`, `"†o"`, `"†o"`, `done "†state.secret"`},
		{"its escaped form", `{ context.input.name, "x" .. context.input.name }`, `"†o"`, `"†o"`, `done ["†state.secret","x††state.secret"]`},
		{"text compares and joins", `tostring(text(context.input.name) == "†state.secret") .. text(context.input.name)`, `"†o"`, `"†o"`, `done "true†state.secret"`},
		{"text of a table", `"x" .. text(context.state.list)[2].deep`, `"†o"`, `"†o"`, `done "x† me"`},
		{"text leaves its argument", `{ text(context.state.list) and context.state.list[1] }`, `"†o"`, `"†o"`, `done ["†state.secret"]`},
		{"literal", `literal("† me")`, `"†o"`, `"†o"`, `done "† me"`},
		{"literal of a table", `literal { "†a", { b = "†c" }, 5, true }`, `"†o"`, `"†o"`, `done ["†a",{"b":"†c"},5,true]`},
		{"text of a table that is there twice", `(function() local t = { context.input.name } t.self = t t = text(t) t.self = rawequal(t.self, t) return t.self end)()`, `"†o"`, `"†o"`, `done true`},
		{"literal of an empty array", `literal(json.array())`, `"†o"`, `"†o"`, `done []`},
		{"ref", `ref "state.secret"`, `ref "o"`, `ref "o"`, `done "s3cret"`},
		{"ref of alternatives", `ref "state.none || state.secret && o.x || 'else'"`, `"†o"`, `"†o"`, `done "else"`},
		{"ref of a text that is data", `ref(context.state.path)`, `"†o"`, `"†o"`, `done "s3cret"`},
		{"ref in parentheses", `ref "(state.none || state.secret) || 1"`, `ref "(o || o2) && p"`, `ref "o"`, `done "s3cret"`},
		{"an escaped path", `1`, `context.input.name`, `"†o"`,
			`failed null: the planner gave the same solution again after it had been refused: p.lua:7: call 1 (echo): _outputPath: "††state.secret" begins with two †, as data does that is no reference (in a plan's function ref "state.secret" gives the reference "†state.secret"; text(v) takes the second † off)`},
		{"no reference", `ref "a + b"`, `"†o"`, `"†o"`, `failed null: p.lua:7: bad argument #1 to ref: expected a path such as state.a, ||, && or a parenthesis, found "+ b"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			plan := strings.NewReplacer("VALUE", test.value, "PATH", test.path, "RESULT", test.result).Replace(request)
			outcome, _ := carryOut(t, map[string]string{"activities/a.lua": `Activity.register("echo", function(call) return call.v end)`, "p.lua": plan}, "p.lua")
			got := strings.TrimSuffix(string(outcome.Status)+" "+string(store.EncodeJSON(outcome.Output))+": "+outcome.Error, ": ")
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestPlanner_OwnGlobalsWin: scripts that call something of their own text, ref or literal.
func TestPlanner_OwnGlobalsWin(t *testing.T) {
	for _, plan := range []string{
		"text = 'mine'\nreturn function() return { output = text } end",
		"function ref() return 'mine' end\nreturn function() return { output = ref('a b') } end",
		"local literal = 'mine'\nreturn function() return { output = literal } end",
	} {
		outcome, _ := carryOut(t, map[string]string{"p.lua": plan}, "p.lua")
		if outcome.Output != "mine" {
			t.Errorf("%s: got %v %s", plan, outcome.Output, outcome.Error)
		}
	}
}
