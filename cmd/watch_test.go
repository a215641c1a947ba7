package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWatch_RunsAgain: a plan is run again after each change that loads, in a context
// of its own.
func TestWatch_RunsAgain(t *testing.T) {
	const plan = `return { calls = { { _tool = "say", _outputPath = "†state.said" } }, output = "†state.said" }`
	say := func(text string) string { return `Activity.register("say", function() return "` + text + `" end)` }
	dir := project(t, map[string]string{"obelus.lua": "", "activities/say.lua": say("one"), "plans/p.lua": plan})
	p := start(t, dir, "run", "plans/p.lua", "--watch")
	p.says("watching")

	write(t, filepath.Join(dir, "activities/say.lua"), "this is no Lua")
	p.says("activities/say.lua:1:")
	p.says("stay as they were (generation 1)")
	write(t, filepath.Join(dir, "activities/say.lua"), say("two"))
	p.says("generation 2: changed activities/say.lua")
	p.says("watching")
	write(t, filepath.Join(dir, "plans/p.lua"), strings.Replace(plan, `output = "†state.said"`, `output = "†missing"`, 1))
	p.says("changed plans/p.lua")
	p.says("†missing")
	p.says("watching")
	write(t, filepath.Join(dir, "plans/p.lua"), "return {")
	p.says("plans/p.lua:1:")
	p.says("watching")
	write(t, filepath.Join(dir, "plans/p.lua"), plan)
	p.says("watching")
	if status := p.ends(os.Interrupt); status != exitInterrupted {
		t.Errorf("exit status %d", status)
	}
	if got, want := p.stdout.String(), "\"one\"\n\"two\"\nnull\n\"two\"\n"; got != want {
		t.Errorf("it prints %s, not %s", got, want)
	}
	if n := strings.Count(obelusOutput(t, exitDone, "-C", dir, "contexts", "--json"), `"plan":"plans/p.lua"`); n != 4 {
		t.Errorf("%d contexts", n)
	}
}

// TestWatch_Interrupted: one that is interrupted in the midst of its plan is
// interrupted, and watches no more.
func TestWatch_Interrupted(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":          "return { drain = '500ms' }", // so that the folder is left alone before the run has ended
		"activities/slow.lua": `Activity.register("slow", function() require("time").sleep(20) end)`,
		"plans/p.lua":         `return { { _tool = "slow", _outputPath = "†state" } }`,
	})
	p := start(t, dir, "run", "plans/p.lua", "--watch")
	p.says("slow running")
	if status := p.ends(os.Interrupt); status != exitInterrupted {
		t.Errorf("exit status %d", status)
	}
	if strings.Contains(p.said.String(), "watching") {
		t.Error(p.said.String())
	}
}

// TestWatch_TestsRunAgain: tests run again after each change of a script, a plan or a test, a new
// file of tests included, but not after one that does not load.
func TestWatch_TestsRunAgain(t *testing.T) {
	say := func(text string) string { return `Activity.register("say", function() return "` + text + `" end)` }
	dir := project(t, map[string]string{
		"obelus.lua": "", "activities/say.lua": `print("loaded") ` + say("one"),
		"tests/say_test.lua": `it("says one", function() assert.equal("one", require("test").activity("say")) end)`,
	})
	p := start(t, dir, "test", "--watch")
	p.says("1 passed, 0 failed")
	p.says("watching")
	write(t, filepath.Join(dir, "activities/say.lua"), "this is no Lua")
	p.says("stay as they were (generation 1)")
	write(t, filepath.Join(dir, "activities/say.lua"), say("two"))
	p.says("generation 2: changed activities/say.lua")
	p.says("0 passed, 1 failed")
	p.says("watching")
	write(t, filepath.Join(dir, "tests/say_test.lua"), `it("says two", function() assert.equal("two", require("test").activity("say")) end)`)
	p.says("changed tests/say_test.lua")
	p.says("1 passed, 0 failed")
	p.says("watching")
	write(t, filepath.Join(dir, "tests/more_test.lua"), `it("is new", function() end)`)
	p.says("added tests/more_test.lua")
	p.says("2 passed, 0 failed")
	p.says("watching")
	if status := p.ends(os.Interrupt); status != exitInterrupted {
		t.Errorf("exit status %d", status)
	}
	if n := strings.Count(p.said.String(), "loaded\n"); n != 2 { // as the tests load it, and for the call
		t.Errorf("what a script prints as it is loaded is shown %d times", n)
	}
	obelusOutput(t, exitUsage, "-C", dir, "test", "--watch", "--output", "tap")
}
