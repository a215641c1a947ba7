package host

import (
	"testing"

	"obelus/engine/plan"
)

// TestReturnsNothing_OfActivities holds which activities give no value on any way.
func TestReturnsNothing_OfActivities(t *testing.T) {
	for body, want := range map[string]bool{
		`function() end`:        true,
		`function() return end`: true,
		`function(c) if c.x then return end local y = 1 end`:                          true,
		`function(c) if c.x then return nil, "no x" end end`:                          true,
		`function(c) return nil, "no " .. tostring(c.x) end`:                          false,
		`function() error("no") end`:                                                  false,
		`function(c) if c.x then error("no") end end`:                                 true,
		`function(c) while c.x do c.x = c.y end end`:                                  true,
		`function(c) for i = 1, 3 do if i == c.x then return end end error("no") end`: true,
		`function() return function() return 1 end end`:                               false,
		`function() local f = function() return 1 end f() end`:                        true,
		`function() return nil end`:                                                   false,
		`function() return 1 end`:                                                     false,
		`function() return 1, 2 end`:                                                  false,
		`function(c) if c.x then return nil, "no" end return c end`:                   false,
		`function(c) return print(c) end`:                                             false,
		`function(c) return c.x or nil, 1 end`:                                        false,
		`function(...) return ... end`:                                                false,
		`tostring`:                                                                    false,
	} {
		g := open(t, map[string]string{"activities/a.lua": `Activity.register("a", ` + body + `)`})
		if got := g.Registry().Activities["a"].ReturnsNothing; got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
	g := open(t, map[string]string{"activities/a.lua": `local function f() end Activity.register("a", f)`})
	var registered *plan.Registered = g.Registry().Activities["a"]
	if !registered.ReturnsNothing {
		t.Error("a function with a name is not looked at")
	}
}
