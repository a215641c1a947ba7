package luatest

import (
	"strings"
	"testing"
)

// asking is a project whose activity asks a model.
func asking() map[string]string {
	return map[string]string{
		"obelus.lua": `return { model = "fast", models = { fast = { provider = "openai", model = "gpt-5-mini" } }, allow = { model = true } }`,
		"activities/a.lua": `Activity.register("sort", function(call)
			local team, err = require("model").ask { prompt = "Which team?", data = { mail = call.mail }, schema = { enum = { "sales", "support" } } }
			if not team then return nil, { message = err } end
			return { team = team }
		end)`,
		"plans/p.lua": `return { calls = { { _tool = "sort", mail = "hello", _outputPath = "†state.x" } }, output = "†state.x" }`,
	}
}

// TestModel_AnswersScripts holds that the function of test.model answers what activities ask, in a
// plan and alone.
func TestModel_AnswersScripts(t *testing.T) {
	answer := `test.model(function(q) assert(q.ask and q.prompt == "Which team?" and q.data.mail == "hello" and q.schema.enum[1] == "sales") return "support" end) `
	for body, want := range map[string]string{
		answer + `local run = test.plan("plans/p.lua") assert.are.same({ team = "support" }, run.output)`:                                                            "",
		answer + `assert.are.same({ team = "support" }, test.activity("sort", { mail = "hello" }))`:                                                                  "",
		`test.model(function() return "nobody" end) local _, err = test.activity("sort", { mail = "" }) error(err.message, 0)`:                                       "the answer",
		`test.model(function() return nil, "no idea" end) local _, err = test.activity("sort", { mail = "" }) error(err.message, 0)`:                                 "no idea",
		`test.model(function() error("in the test") end) test.activity("sort", { mail = "" })`:                                                                       "in the test",
		`local _, err = test.activity("sort", { mail = "" }) error(err.message, 0)`:                                                                                  "a test asks no model: answer fast by test.model(fn) or test.cassette(name)",
		`local run = test.plan("plans/p.lua") error(run.calls[1].error.message, 0)`:                                                                                  "a test asks no model: answer fast by test.model(fn) or test.cassette(name)",
		`local v, err = require("model").ask { prompt = "x" } error(err, 0)`:                                                                                         "a model can be asked only by an activity that a run calls",
		`local run = test.plan("plans/p.lua", { tools = { sort = function() return (select(2, require("model").ask { prompt = "x" })) end } }) error(run.output, 0)`: "a model can be asked only by an activity that a run calls",
	} {
		got := failureIn(t, body, asking())
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %s, not %s", body, got, want)
		}
	}
}
