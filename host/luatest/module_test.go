package luatest

import (
	"strings"
	"testing"
	"testing/fstest"

	"obelus/host"
)

// folderOf makes a folder of files in memory.
func folderOf(files map[string]string) fstest.MapFS {
	folder := fstest.MapFS{}
	for name, text := range files {
		folder[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return folder
}

func openTestProject(t *testing.T, files map[string]string) *Tests {
	t.Helper()
	tests, err := Open(host.Config{FS: folderOf(files)})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

// failureIn runs the body of a test within a project, and gives how it failed.
func failureIn(t *testing.T, body string, files map[string]string) string {
	t.Helper()
	files["tests/a_test.lua"] = "local test = require 'test'\nit('is', function()\n" + body + "\nend)"
	tests := openTestProject(t, files)
	if err := tests.Run(t.Context(), Test{File: "tests/a_test.lua", Name: "is"}); err != nil {
		return strings.TrimPrefix(err.Error(), "tests/a_test.lua:3: ")
	}
	return ""
}

// TestModule_Mistakes holds that a mistake in a test is
// an error, where it would be a test of something else.
func TestModule_Mistakes(t *testing.T) {
	for body, want := range map[string]string{
		`test.plan("plans/p.lua", { inptu = {} })`:                                         `bad argument #2 to test.plan: unknown option "inptu" (did you mean "input"?)`,
		`test.plan("plans/p.lua", { "input" })`:                                            `bad argument #2 to test.plan: unknown option "1" (one of context, input, tools)`,
		`test.plan("plans/p.lua", { input = 5 })`:                                          `bad argument #2 to test.plan: input must be an object, not a number`,
		`test.plan("plans/p.lua", { input = { 5 } })`:                                      `bad argument #2 to test.plan: input must be an object, not an array`,
		`test.plan("plans/p.lua", { input = { f = print } })`:                              `bad argument #2 to test.plan: input.f: a function is not a JSON value`,
		`test.plan("plans/p.lua", { context = "state" })`:                                  `bad argument #2 to test.plan: context must be an object, not a string`,
		`test.plan("plans/p.lua", { tools = "add" })`:                                      `bad argument #2 to test.plan: tools must be a table of functions, not a string`,
		`test.plan("plans/p.lua", { tools = { ad = print } })`:                             `bad argument #2 to test.plan: unknown tool "ad" (did you mean "add"?)`,
		`test.plan("plans/p.lua", { tools = { print } })`:                                  `bad argument #2 to test.plan: unknown tool "1" (one of add, any, brought, bug, handed, told)`,
		`test.plan("plans/p.lua", { tools = { add = {} } })`:                               `tools.add must be a function`,
		`test.activity("add", { 1 })`:                                                      `bad argument #2 to test.activity: call must be an object, not an array`,
		`test.activity("add", {}, { 1 })`:                                                  `bad argument #3 to test.activity: context must be an object, not an array`,
		`test.clock(0/0)`:                                                                  `bad argument #1 to test.clock: must be a time in the years 0 to 9999, in seconds since 1970`,
		`test.activity("bug")`:                                                             `activities/a.lua:3: attempt to index call.x (a nil value), key "y"`,
		`local _, err = pcall(test.activity, "bug") error(err, 0)`:                         `activities/a.lua:3: attempt to index call.x (a nil value), key "y"`,
		`coroutine.wrap(test.activity)("bug")`:                                             `activities/a.lua:3: attempt to index call.x (a nil value), key "y"`,
		`assert.has_error(function() error("x") end, "y")`:                                 `expected a function that raises "y", got function: tests/a_test.lua:3 that raised "x"`,
		`assert.has_error(function() error({ a = 1 }) end, "y")`:                           `expected a function that raises "y", got function: tests/a_test.lua:3 that raised { a = 1, }`,
		`assert.has_no.errors(function() error("x") end)`:                                  `expected not a function that raises, got function: tests/a_test.lua:3 that raised "x"`,
		`assert.equal(1, 2, "why")`:                                                        `why: expected the same as 1, got 2`,
		`assert.matches("a", "b", 1, true, "why")`:                                         `why: expected matching "a", got "b"`,
		`assert.equal(1, 2, 42)`:                                                           `42: expected the same as 1, got 2`,
		`assert.equal(1, 2, "")`:                                                           `expected the same as 1, got 2`,
		`assert.is_nil(2, "why")`:                                                          `why: expected nil, got 2`,
		`assert.has_error(function() end, "x", "why")`:                                     `why: expected a function that raises "x", got function: tests/a_test.lua:3 that raised nothing`,
		`assert.has_error(function() end)`:                                                 `expected a function that raises, got function: tests/a_test.lua:3 that raised nothing`,
		`assert.equal("Total:  5 EUR", "Total: 5 EUR")`:                                    `expected the same as "Total:  5 EUR", got "Total: 5 EUR"`,
		`assert.same({ { "a  b" } }, { { "a b" } })`:                                       `expected like { [1] = { [1] = "a  b", }, }, got { [1] = { [1] = "a b", }, }`,
		`assert.has_error(function() error("a b", 0) end, "a  b")`:                         `expected a function that raises "a  b", got function: tests/a_test.lua:3 that raised "a b"`,
		`assert.equal(0.3, 0.1 + 0.2)`:                                                     `expected the same as 0.3, got 0.30000000000000004`,
		`assert.equal(1e300, 1e300 * (1 + 2^-52))`:                                         `expected the same as 1e+300, got 1.0000000000000002e+300`,
		`assert.equal(2, 0.1 + 0.2)`:                                                       `expected the same as 2, got 0.3`,
		`assert.near(0.3, 0.1 + 0.2, 0)`:                                                   `expected within 0 of 0.3, got 0.30000000000000004`,
		`assert.same({ n = 0.3 }, { n = 0.1 + 0.2 })`:                                      `expected like { n = 0.3, }, got { n = 0.30000000000000004, }`,
		`assert.equal(("x"):rep(100) .. "a", ("x"):rep(100) .. "b" .. ("y"):rep(100))`:     `expected the same as …` + strings.Repeat("x", 20) + `a", got …` + strings.Repeat("x", 20) + "b" + strings.Repeat("y", 38) + "…",
		`assert.same({ s = ("ä"):rep(100) .. "a" }, { s = ("ä"):rep(100) })`:               `expected like …` + strings.Repeat("ä", 20) + `a", }, got …` + strings.Repeat("ä", 20) + `", }`,
		`assert.equal("a" .. ("x"):rep(100), "b")`:                                         `expected the same as "a` + strings.Repeat("x", 57) + `…, got "b"`,
		`assert.equal(("x\n"):rep(50) .. "a  b\nc", ("x\n"):rep(50) .. "a b\nc")`:          `expected the same as "a  b" in line 51, got "a b"`,
		`assert.same(("x\n"):rep(50) .. "a", ("x\n"):rep(50) .. "a\n\n")`:                  `expected like no such line in line 52, got ""`,
		`assert.equal(("x\n"):rep(50) .. "a\nb\n", (("x\n"):rep(50) .. "a\nb\n"):upper())`: `expected the same as "x" in line 1, got "X"`,
		`assert.foo(1)`:                 `there is no assertion "foo"`,
		`assert.is_not.eqal(1, 2)`:      `there is no assertion "eqal" (did you mean "equal"?)`,
		`describe("x", function() end)`: `a test can't define tests`,
		`it("x", function() end)`:       `a test can't define tests`,
		`local f = function() return 1 end
			local run = test.plan("plans/p.lua", { input = {}, context = {}, tools = { add = f, brought = f, told = f, handed = f } })
			assert.same({ 1, 1, 1, 1, 1 }, run.output)`: "",
		`local f = function(call) return call.n end
			assert.same({ 1, 2, 3, 4 }, test.plan("plans/handed.lua", { tools = { fixed = f, any = f, named = f } }).output)`: "",
	} {
		got := failureIn(t, body, map[string]string{
			"activities/a.lua": `
				Activity.register("add", function() return 0 end)
				Activity.register("bug", function(call) return call.x.y end)
				Delegate.register("d", { tools = { handed = {} }, calls = { { _tool = "handed", _outputPath = "†r" } }, output = "†r" })`,
			"plans/p.lua": `return {
				tools = { brought = {} },
				context = { { type = "tool", tool = { told = {} } } },
				calls = {
					{ _tool = "add", _outputPath = "†a" }, { _tool = "brought", _outputPath = "†b" }, { _tool = "told", _outputPath = "†c" },
					{ _tool = "any", _delegate = "d", _outputPath = "†d" }, { _tool = "any", _delegate = "plans/inner.lua", _outputPath = "†e" },
				},
				output = { "†a", "†b", "†c", "†d", "†e" },
			}`,
			"plans/handed.lua": `
				Tool.register("fixed", { _delegate = "d" })
				return {
					tools = { named = { _activity = "add" } },
					calls = {
						{ _tool = "fixed", n = 1, _outputPath = "†a" }, { _tool = "any", _delegate = "plans/inner.lua", n = 2, _outputPath = "†b" },
						{ _tool = "named", n = 3, _outputPath = "†c" }, { _tool = "named", _delegate = "plans/inner.lua", n = 4, _outputPath = "†d" },
					},
					output = { "†a", "†b", "†c", "†d" },
				}`,
			"plans/inner.lua": `
				Tool.register("own", {})
				return { calls = { { _tool = "add", _outputPath = "†r" } }, output = "†r" }`,
		})
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", body, got, want)
		}
	}
}

// TestModule_Results holds what the vocabulary of tests gives, each in a test that
// passes, or ends with the error.
func TestModule_Results(t *testing.T) {
	for body, want := range map[string]string{
		`local run = test.plan("plans/asked.lua", { context = { state = { name = "†state.secret", secret = 1 } } })
			assert.same({ "done", { "†state.secret", 1 }, "†state.secret" }, { run.status, run.output, run.context.state.name })`: "",
		`local run = test.plan("plans/p.lua", { context = { state = { n = 5 } } })
			assert.same({ "done", 5, 5 }, { run.status, run.output, run.context.out })`: "",
		`local run = test.plan("plans/p.lua", { context = { state = { n = -1 } } })
			assert.same({ "failed", "negative", "skipped" }, { run.calls[1].status, run.calls[1].error.message, run.calls[2].status })
			assert(run.calls[2].reason, "it has no reason")`: "",
		`local run = test.plan("plans/p.lua", { context = { state = { n = 5 } }, tools = { own = function(call) return call.n + 1 end } })
			assert.equal(6, run.output)`: "",
		`test.http(function(r) assert.equal("PUT", r.method) return {} end) local r, err = require("http").get("https://api.example") assert.is_nil(r)`:                                        `expected the same as "PUT", got "GET"`,
		`test.http(function(r) error("no such page", 0) end) require("http").get("https://api.example")`:                                                                                       `no such page`,
		`test.http(function(r) return 5 end) require("http").get("https://api.example") error("later")`:                                                                                        `GET https://api.example: test.http: the function must return a table with status, headers and body`,
		`test.plan("plans/p.lua", { context = { state = { n = 5 } }, tools = { own = function(call) assert.equal(6, call.n) end } })`:                                                          `expected the same as 6, got 5`,
		`local run = test.plan("plans/p.lua", { context = { state = { n = 5 } }, tools = { own = function(call) assert(nil, "no") end } }) assert.equal("failed", run.status)`:                 "",
		`pcall(assert.equal, 1, 2) local run = test.plan("plans/p.lua", { context = { state = { n = 5 } }, tools = { own = function() error("no") end } }) assert.equal("failed", run.status)`: "",
		`test.http(function(request)
				assert.same({ "POST", "https://api.example/x", "7", "hello" }, { request.method, request.url, request.headers["x-key"], request.body })
				return { status = 201, headers = { ["Content-Type"] = "text/plain" }, body = "made" }
			end)
			local r = assert(require("http").post("https://api.example/x", { body = "hello", headers = { ["X-Key"] = "7" } }))
			assert.same({ 201, "made", "text/plain" }, { r.status, r.body, r.headers["content-type"] })`: "",
		`test.http(function() return nil, "the line is dead" end) local r, err = require("http").get("https://api.example") error(tostring(r) .. ": " .. err, 0)`: `nil: GET https://api.example: the line is dead`,
		`test.http(function() return nil, { message = "down" } end) assert(require("http").get("https://api.example"))`:                                           `GET https://api.example: down`,
		`test.http(function() return { headers = { a = { "1", 2 }, b = true, c = {} } } end) local r = assert(require("http").get("https://api.example"))
			assert.same({ "1, 2", "true" }, { r.headers.a, r.headers.b })`: `GET https://api.example: test.http: headers.c is text, a number, a boolean, or an array of them`,
		`test.http(function(r)
				assert.same({ "x, y", "a=1; b=2" }, { r.headers.list, r.headers.cookie })
				return { headers = { ["Set-Cookie"] = { "a=1, 2", "b=3" }, ["set-cookie"] = "c=4" } }
			end)
			local r = assert(require("http").get("https://api.example", { headers = { list = { "x", "y" }, Cookie = { "a=1", "b=2" } } }))
			assert.same({ "a=1, 2", "b=3", "c=4" }, r.cookies)
			assert.same("a=1, 2, b=3, c=4", r.headers["set-cookie"])`: "",
		`test.http(function() return { headers = { a = { "1", 2 }, b = true } } end) local r = assert(require("http").get("https://api.example"))
			assert.same({ "1, 2", "true" }, { r.headers.a, r.headers.b })`: "",
		`test.http(function() return { headers = "x" } end) assert(require("http").get("https://api.example"))`:                                    `GET https://api.example: test.http: headers is a table by name`,
		`test.http(function() return { statu = 404 } end) assert(require("http").get("https://api.example"))`:                                      `GET https://api.example: test.http: an answer has no "statu" (did you mean "status"?)`,
		`test.http(function() return { status = 99 } end) assert(require("http").get("https://api.example"))`:                                      `GET https://api.example: test.http: status is a number of three digits`,
		`test.http(function() return { body = json.null } end) assert.equal(json.null, assert(require("http").get("https://api.example")):json())`: "",
		`assert(nil, { message = "m" })`:                                `m`,
		`assert(nil, { code = 1 })`:                                     `{"code":1}`,
		`assert(test.activity("fails"))`:                                `it is banned`,
		`assert.equal(1, test.activity("fails"))`:                       `it is banned: expected the same as 1, got nil`,
		`assert.is_not_nil(test.activity("fails"))`:                     `it is banned: expected not nil, got nil`,
		`require("a") assert.equal("data", test.activity("says").type)`: "",
		`test.http(function() end) local r, err = require("http").get("https://api.example") error(tostring(r) .. ": " .. err, 0)`: `nil: GET https://api.example: no answer`,
		`test.clock(0) assert.equal(0, os.time()) test.clock() assert(os.time() > 1e9, "it stands still")`:                         "",
		`local v, err, to = test.activity("chooses") assert.same({ 1, "†state.b" }, { v, to }) assert.is_nil(err)`:                 "",
		`assert.same({ type = "data", kind = "note", data = { a = 1 } }, test.activity("says"))`:                                   "",
		`assert.same({ "†x", 3 }, test.activity("gives", { v = { "††x", "†input.n + 1" } }, { input = { n = 2 } }))`:               "",
		`test.activity("gives", { v = "†input.n" }, { input = { m = 2 } })`:                                                        `nothing is at †input.n: give it in the context`,
		`assert.equal("[]", test.activity("lines", { lines = {} }))`:                                                               "",
		`assert.equal("[]", test.plan("plans/lines.lua", { input = { lines = {} } }).output)`:                                      "",
		`assert.equal("[]", test.plan("plans/lines.lua", { context = { input = { lines = {} } } }).output)`:                        "",
		`test.plan("plans/lines.lua", { input = { lines = { a = 1 } } })`:                                                          `input: it breaks the schema declared for input: †input.lines: got object, want array`,
		`assert(1 == 2, "it is not so")`:              `it is not so`,
		`assert(nil)`:                                 `assertion failed!`,
		`assert.same({ 1, "m" }, { assert(1, "m") })`: "",
	} {
		got := failureIn(t, body, map[string]string{
			"activities/a.lua": `
				Activity.register("add", function(call) if call.n < 0 then return nil, "negative" end return call.n end)
				Activity.register("fails", function() return nil, "it is banned" end)
				Activity.register("chooses", function() return Output.to("†state.b", 1) end)
				Activity.register("says", function() return Message.data{ kind = "note", data = { a = 1 } } end)
				Activity.register("gives", function(call) return call.v end)
				Tool.register("own", { _activity = "add" })
				Tool.register("lines", { properties = { lines = { type = "array" } } })
				Activity.register("lines", function(call) return json.encode(call.lines) end)`,
			"plans/lines.lua": `return {
				context = { { type = "input", schema = { type = "object", properties = { lines = { type = "array" } } } } },
				calls = { { _tool = "lines", lines = "†input.lines", _outputPath = "†out" } },
				output = "†out",
			}`,
			"plans/asked.lua": `return function(context)
				if context.o then return { output = "†o" } end
				return { calls = { { _tool = "gives", v = { context.state.name, "†state.secret" }, _outputPath = "†o" } } }
			end`,
			"plans/p.lua": `return {
				calls = { { _tool = "own", n = "†state.n", _outputPath = "†out" }, { _tool = "add", n = "†out", _outputPath = "†more" } },
				output = "†out",
			}`,
		})
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", body, got, want)
		}
	}
}
