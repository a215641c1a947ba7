package host

import (
	"strings"
	"testing"
)

// TestTheVocabularyOfTestsIsHeldToWhatThereIs holds that a mistake in a test is
// an error, where it would be a test of something else.
func TestTheVocabularyOfTestsIsHeldToWhatThereIs(t *testing.T) {
	for body, want := range map[string]string{
		`test.plan("plans/p.lua", { inptu = {} })`:                 `bad argument #2 to test.plan: unknown option "inptu" (did you mean "input"?)`,
		`test.plan("plans/p.lua", { "input" })`:                    `bad argument #2 to test.plan: unknown option "1" (one of context, input, tools)`,
		`test.plan("plans/p.lua", { input = 5 })`:                  `bad argument #2 to test.plan: input must be an object, not a number`,
		`test.plan("plans/p.lua", { input = { 5 } })`:              `bad argument #2 to test.plan: input must be an object, not an array`,
		`test.plan("plans/p.lua", { input = { f = print } })`:      `bad argument #2 to test.plan: input.f: a function is not a JSON value`,
		`test.plan("plans/p.lua", { context = "state" })`:          `bad argument #2 to test.plan: context must be an object, not a string`,
		`test.plan("plans/p.lua", { tools = "add" })`:              `bad argument #2 to test.plan: tools must be a table of functions, not a string`,
		`test.plan("plans/p.lua", { tools = { ad = print } })`:     `bad argument #2 to test.plan: unknown tool "ad" (did you mean "add"?)`,
		`test.plan("plans/p.lua", { tools = { print } })`:          `bad argument #2 to test.plan: unknown tool "1" (one of add, any, brought, bug, handed, told)`,
		`test.plan("plans/p.lua", { tools = { add = {} } })`:       `tools.add must be a function`,
		`test.activity("add", { 1 })`:                              `bad argument #2 to test.activity: call must be an object, not an array`,
		`test.activity("add", {}, { 1 })`:                          `bad argument #3 to test.activity: context must be an object, not an array`,
		`test.clock(0/0)`:                                          `bad argument #1 to test.clock: must be a time in the years 0 to 9999, in seconds since 1970`,
		`test.activity("bug")`:                                     `activities/a.lua:3: attempt to index call.x (a nil value), key "y"`,
		`local _, err = pcall(test.activity, "bug") error(err, 0)`: `activities/a.lua:3: attempt to index call.x (a nil value), key "y"`,
		`coroutine.wrap(test.activity)("bug")`:                     `activities/a.lua:3: attempt to index call.x (a nil value), key "y"`,
		`assert.has_error(function() error("x") end, "y")`:         `expected a function that raises "y", got function: tests/a_test.lua:3 that raised "x"`,
		`assert.has_error(function() error({ a = 1 }) end, "y")`:   `expected a function that raises "y", got function: tests/a_test.lua:3 that raised { a = 1, }`,
		`assert.has_no.errors(function() error("x") end)`:          `expected not a function that raises, got function: tests/a_test.lua:3 that raised "x"`,
		`assert.equal(1, 2, "why")`:                                `why: expected the same as 1, got 2`,
		`assert.is_nil(2, "why")`:                                  `why: expected nil, got 2`,
		`assert.has_error(function() end, "x", "why")`:             `why: expected a function that raises "x", got function: tests/a_test.lua:3 that raised nothing`,
		`assert.has_error(function() end)`:                         `expected a function that raises, got function: tests/a_test.lua:3 that raised nothing`,
		`assert.foo(1)`:                                            `there is no assertion "foo"`,
		`assert.is_not.eqal(1, 2)`:                                 `there is no assertion "eqal" (did you mean "equal"?)`,
		`describe("x", function() end)`:                            `a test can't define tests`,
		`it("x", function() end)`:                                  `a test can't define tests`,
		`local f = function() return 1 end
			local run = test.plan("plans/p.lua", { input = {}, context = {}, tools = { add = f, brought = f, told = f, handed = f } })
			assert.same({ 1, 1, 1, 1, 1 }, run.output)`: "",
	} {
		tests, err := OpenTests(Config{FS: project(map[string]string{
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
			"plans/inner.lua": `
				Tool.register("own", {})
				return { calls = { { _tool = "add", _outputPath = "†r" } }, output = "†r" }`,
			"tests/a_test.lua": "local test = require 'test'\nit('is', function()\n" + body + "\nend)",
		})})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := tests.Run(t.Context(), Test{File: "tests/a_test.lua", Name: "is"}); err != nil {
			got = strings.TrimPrefix(err.Error(), "tests/a_test.lua:3: ")
		}
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", body, got, want)
		}
	}
}
