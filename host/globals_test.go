package host

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"obelus/host/internal/luacall"
	"obelus/host/internal/sandbox"
)

func TestGlobals_Accidental(t *testing.T) {
	const message = ", which this file does not declare: make it local, or give it a value at the top level"
	tests := []struct{ name, file, source, want string }{
		{"in a function", "activities/a.lua", "local function f()\n  local x = 1\n  total = x\nend", "activities/a.lua:3: a function assigns the global total" + message},
		{"function", "activities/a.lua", "local function f()\n function helper() end\nend", "activities/a.lua:2: a function assigns the global helper" + message},
		{"deep", "activities/b/c.lua", "local t = {f = function() return function()\n\n count = (count or 0) + 1 end end}", "activities/b/c.lua:3: a function assigns the global count" + message},
		{"the first", "activities/a.lua", "local function f()\n a = 1\n b = 2\nend\nlocal function g() c = 3 end", "activities/a.lua:2: a function assigns the global a" + message},
		{"several at once", "activities/a.lua", "local a\nlocal function f() a, b = 1, 2 end", "activities/a.lua:2: a function assigns the global b" + message},
		{"settings", "obelus.lua", "return (function() x = 1; return {} end)()", "obelus.lua:1: a function assigns the global x" + message},
		{"declared", "activities/a.lua", "count = 0\nlocal function f() count = count + 1 end", ""},
		{"declared later", "activities/a.lua", "local function f() count = 1 end\nif f then count = 0 end", ""},
		{"function at the top level", "activities/a.lua", "function f() f = nil end", ""},
		{"top level", "activities/a.lua", "x = 1; do y = 2 end; for i = 1, 2 do z = i end", ""},
		{"of the library", "activities/a.lua", "local function f() print = nil; string = nil; coroutine = nil end", ""},
		{"on purpose", "activities/a.lua", "local function f() _G.x = 1; rawset(_G, 'y', 2) end", ""},
		{"parameter and upvalue", "activities/a.lua", "local u\nlocal function f(p) p = 1; u = 2; for i = 1, 2 do i = 3 end end", ""},
		{"library", "lib/a.lua", "local function f() total = 1 end", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Open(Config{FS: project(map[string]string{test.file: test.source})})
			if got := errorText(err); got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
		})
	}
	g := open(t, map[string]string{"plan.lua": "return function()\n calls = {} return {calls = calls} end"})
	_, _, err := g.Plan("plan.lua")
	var script *ScriptError
	if want := "plan.lua:2: a function assigns the global calls" + message; !errors.As(err, &script) || script.Error() != want || script.Source != " calls = {} return {calls = calls} end" {
		t.Errorf("got %v", err)
	}
}

func TestGlobals_Known(t *testing.T) {
	s := bareSession()
	for _, name := range append(slices.Collect(maps.Keys(s.Globals)), slices.Collect(maps.Keys(s.Libs))...) {
		// A function that assigns text has forgotten a local, as it did before there was such a
		// global.
		ours := slices.ContainsFunc(luacall.ReferenceFuncs, func(f sandbox.StateEntry) bool { return f.Name == name })
		if name[0] != 0 && sandbox.KnownGlobals()[name] == ours {
			t.Errorf("%s: known is %t", name, !ours)
		}
	}
}

// TestLint_OfGlobals: a check warns of a global that nothing gives a value, where it is hardly
// another name.
func TestLint_OfGlobals(t *testing.T) {
	h, err := Open(Config{
		FS: project(map[string]string{
			"lib/shared.lua": `shared_limit = 5`,
			"activities/a.lua": `limit = 1
				Activity.register("sum", function(call)
					local total = limit + shared_limit + stock
					local unlike = foo
					return { total = totl, text = tostirng(total), id = function() return call.id, cal end }
				end)`,
		}),
		Objects: map[string]any{"stock": 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range h.Generation().Lint() {
		got = append(got, fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message))
	}
	want := []string{
		`activities/a.lua:5: nothing gives the global totl a value (did you mean "total"?)`,
		`activities/a.lua:5: nothing gives the global tostirng a value (did you mean "tostring"?)`,
		`activities/a.lua:5: nothing gives the global cal a value (did you mean "call"?)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
