package host

import (
	"context"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/store"
)

// carryOut runs a plan file of a project in memory.
func carryOut(t *testing.T, files map[string]string, file string) (*engine.Outcome, store.Log) {
	t.Helper()
	request, registry, err := open(t, files).Plan(file)
	if err != nil {
		t.Fatal(err)
	}
	log := store.NewMemory()
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

func TestPlanners(t *testing.T) {
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
			calls = function(context) return context.out and { output = context.out } or { calls = context.state.plan } end }`, "done 5"},
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
		{"returns nothing", "return function(context) end", "failed null: p.lua: the plan's function must return a table with calls, output or both, not a nil"},
		{"returns something else", "return function(context) return { call = {} } end", `failed null: the planner has been asked 100 times without giving an output: the setting ticks allows no more; the last time: p.lua: the plan's function returned the unknown field "call" (did you mean "calls"?)`},
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

func TestDelegates(t *testing.T) {
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

func TestDelegateErrors(t *testing.T) {
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
		_, err = engine.Compile(request, registry, engine.NothingExists)
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
