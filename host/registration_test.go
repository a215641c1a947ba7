package host

import (
	"testing"

	"obelus/engine/plan"
	"obelus/store"
)

// TestRegistrations_OfTheNextRun: a file runs again for each call, and registers nothing then; a
// script that has put something of its own in the place of Tool sees that called, as at first.
func TestRegistrations_OfTheNextRun(t *testing.T) {
	for name, source := range map[string]string{
		"a function in its library": `
			local n, register = 0, Tool.register
			Tool.register = function(...) n = n + 1 return register(...) end
			Tool.register("a", { description = "a" })
			Activity.register("a", function() return n end)`,
		"a global": `
			local n, register = 0, Tool.register
			Tool = { register = function(...) n = n + 1 return register(...) end }
			Tool.register("a", { description = "a" })
			Activity.register("a", function() return n end)`,
		"a local": `
			local n, host = 0, Tool
			local Tool = { register = function(...) n = n + 1 return host.register(...) end }
			Tool.register("a", { description = "a" })
			Activity.register("a", function() return n end)`,
		"another environment": `
			local n, register = 0, Tool.register
			local mine = { register = function(...) n = n + 1 return register(...) end }
			setfenv(1, setmetatable({ Tool = mine }, { __index = getfenv(1) }))
			Tool.register("a", { description = "a" })
			Activity.register("a", function() return n end)`,
		"without its name": `
			local n = 0
			rawset(_G, "To" .. "ol", { register = function() n = n + 1 end })
			Tool.register("b", { description = "b" })
			Activity.register("a", function() return n end)`,
		"a module's doing": `
			local n = 0
			require("meddle")(function() n = n + 1 end)
			Tool.register("b", { description = "b" })
			Activity.register("a", function() return n end)`,
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, map[string]string{
				"activities/a.lua": source,
				"lib/meddle.lua":   `return function(f) rawset(_G, "Tool", { register = f }) end`,
			})
			for range 2 {
				result, err := call(g, "a", plan.Invocation{})
				if err != nil || string(store.EncodeJSON(result.Value)) != "1" {
					t.Fatal(string(store.EncodeJSON(result.Value)), err)
				}
			}
		})
	}
}

// TestRegistrations_LeaveTheEnvironment: a global that nothing has read is listed all the same.
func TestRegistrations_LeaveTheEnvironment(t *testing.T) {
	g := open(t, map[string]string{"activities/a.lua": `
		Tool.register("a", { description = "a" })
		Activity.register("a", function()
			local n = 0
			for name in pairs(_G) do if name == "Tool" then n = n + 1 end end
			return n
		end)`})
	if result, err := call(g, "a", plan.Invocation{}); err != nil || string(store.EncodeJSON(result.Value)) != "1" {
		t.Fatal(string(store.EncodeJSON(result.Value)), err)
	}
}
