package luatest

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"obelus/host"
)

// TestStandIn_DoesNotYield holds that a coroutine which runs a plan can't be left
// in the middle of it, where the engine would wait for ever.
func TestStandIn_DoesNotYield(t *testing.T) {
	tests, err := Open(host.Config{FS: folderOf(map[string]string{
		"activities/a.lua": `Activity.register("a", function() return { err = select(2, require("http").get("http://x")) } end)`,
		"plans/p.lua":      `return { calls = { { _tool = "a", _outputPath = "†r" } } }`,
		"tests/a_test.lua": `
			local test = require "test"
			it("yields", function()
				local ran = coroutine.wrap(function()
					local run = test.plan("plans/p.lua", { tools = { a = coroutine.yield } })
					coroutine.yield("a run, " .. run.calls[1].error.message)
				end)()
				assert.truthy(ran:find("^a run, .*attempt to yield from outside a coroutine"))
			end)
			it("yields in an answer", function()
				local ran = coroutine.wrap(function()
					test.http(coroutine.yield)
					coroutine.yield(test.activity("a").err)
				end)()
				assert.truthy(ran:find("attempt to yield from outside a coroutine"))
				assert.truthy(false, "though what it answers with is at fault")
			end)
			it("has coroutines of its own", function()
				local run = coroutine.wrap(function()
					return test.plan("plans/p.lua", { tools = { a = function() return coroutine.wrap(function() coroutine.yield(7) end)() end } })
				end)()
				assert.equal(7, run.context.r)
			end)`,
	})})
	if err != nil {
		t.Fatal(err)
	}
	found, err := tests.List(t.Context(), "tests/a_test.lua")
	if err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent()
	for _, test := range found {
		err := tests.Run(t.Context(), test)
		if fails := test.Name == "yields in an answer"; fails != (err != nil) || fails && !strings.HasSuffix(err.Error(), "attempt to yield from outside a coroutine") {
			t.Errorf("%s: %v", test.Name, err)
		}
	}
	goleak.VerifyNone(t, before)
}

// TestTests_ListEndsWithContext: whoever lists the tests of a file does not wait for one that
// never ends.
func TestTests_ListEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tests, err := Open(host.Config{
		FS:     folderOf(map[string]string{"tests/a_test.lua": `print("here") while true do end`}),
		Stderr: cancels(cancel),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tests.List(ctx, "tests/a_test.lua"); err == nil || strings.Contains(err.Error(), "timed out") {
		t.Error(err)
	}
}

// cancels is a writer that cancels once something is written.
type cancels context.CancelFunc

func (c cancels) Write(p []byte) (int, error) {
	c()
	return len(p), nil
}
