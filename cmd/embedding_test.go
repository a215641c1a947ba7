package cmd

import (
	"context"
	"os"
	"strings"
	"testing"

	"obelus/engine/plan"
	"obelus/host"
)

// asEmbedding in the environment makes the test binary a program that brings an activity in Go.
const asEmbedding = "OBELUS_TEST_AS_EMBEDDING"

// programConfig is the configuration of the program that the test binary is.
func programConfig() Config {
	if os.Getenv(asEmbedding) == "" {
		return Config{}
	}
	greet := func(_ context.Context, in plan.Invocation) (plan.Result, error) {
		return plan.Result{Value: "Hello, " + in.Call["name"].(string)}, nil
	}
	return Config{Host: host.Config{
		Activities: []plan.Registered{{Name: "greet", Activity: plan.ActivityFunc(greet)}},
		Tools:      map[string]any{"greet": map[string]any{"properties": map[string]any{"name": map[string]any{"type": "string"}}}},
	}}
}

// TestMain_ProgramWithActivities holds that a program that embeds Obelus has the command with its
// own activities in Go, in every command that runs or checks calls, and that its own binary serves
// as worker process.
func TestMain_ProgramWithActivities(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":       `return { isolate = "process" }`,
		"activities/a.lua": `Activity.register("louder", function(call) return call.text .. "!" end)`,
		"plans/p.lua": `return { calls = {
			{ _tool = "greet", name = "Ada", _outputPath = "†state.greeting" },
			{ _tool = "louder", text = "†state.greeting", _outputPath = "†state.louder" } },
			output = "†state.louder" }`,
		"tests/p_test.lua": `local test = require "test"
			it("greets", function() assert.equal("Hello, Ada!", test.plan("plans/p.lua").output) end)`,
	})
	for _, one := range []struct {
		args   []string
		stdout string // within what it prints
	}{
		{[]string{"check"}, ""},
		{[]string{"run", "plans/p.lua", "-c", "one"}, `"Hello, Ada!"`},
		{[]string{"call", "greet", "name=Bo"}, `"Hello, Bo"`},
		{[]string{"replay", "one"}, ""},
		{[]string{"test"}, ""},
		{[]string{"__complete", "call", "gr"}, "greet"},
	} {
		c := program(t, dir, one.args...)
		c.Env = append(c.Env, asEmbedding+"=1")
		var stderr strings.Builder
		c.Stderr = &stderr
		if out, err := c.Output(); err != nil || !strings.Contains(string(out), one.stdout) {
			t.Errorf("%v: %v, prints %q\n%s", one.args, err, out, stderr.String())
		}
	}
}
