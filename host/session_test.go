package host

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"obelus/engine/plan"
	"obelus/luastd"
	"obelus/store"
)

// TestMake_Anew: a call sees what the top level of its script has made, and nothing that
// another call has set there.
func TestMake_Anew(t *testing.T) {
	for name, c := range map[string]struct{ top, body, want string }{
		"no variables":             {``, `return 1`, `1`},
		"a counter":                {`local n = 0`, `n = n + 1 return n`, `1`},
		"a shared counter":         {`local n = 0 local function up() n = n + 1 end`, `up() up() return n`, `2`},
		"a table as default":       {`local defaults = { tags = { "a" } }`, `table.insert(defaults.tags, "b") defaults.x = 1 return #defaults.tags`, `2`},
		"a list with a hole":       {`local t = { 1, nil, 3 }`, `t[4] = 4 return { #t, t[3], t[2] == nil }`, `[4,3,true]`},
		"one table twice":          {`local inner = {} local outer = { inner, inner }`, `inner.x = 1 return outer[1] == outer[2] and outer[2].x`, `1`},
		"a table in itself":        {`local t = {} t.t = t`, `t.n = (t.n or 0) + 1 return t.t.t.n`, `1`},
		"a key that is a table":    {`local key = {} local t = { [key] = 1 }`, `t[key] = t[key] + 1 return t[key]`, `2`},
		"a function twice":         {`local function f() end local t = { f = f }`, `return t.f == f`, `true`},
		"recursion":                {`local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end`, `return f(3)`, `3`},
		"a class":                  {`local C = {} C.__index = C function C.new() return setmetatable({ n = 0 }, C) end function C:up() self.n = self.n + 1 return self.n end local one = C.new()`, `C.extra = (C.extra or 0) + 1 one:up() return { one:up(), one.extra, getmetatable(one) == C }`, `[2,1,true]`},
		"a metatable":              {`local t = setmetatable({}, { __index = function(_, key) return key end, __len = 1 })`, `return t.x`, `"x"`},
		"a global":                 {`_G.shared = { n = 0 }`, `shared.n = shared.n + 1 return shared.n`, `1`},
		"a library":                {`function string.twice(s) return s .. s end`, `string.count = (string.count or 0) + 1 return ("a"):twice() .. string.count`, `"aa1"`},
		"a library by two names":   {`local text = string`, `text.count = (text.count or 0) + 1 return string.count`, `1`},
		"a function of a library":  {`local insert, floor = table.insert, math.floor`, `local t = {} insert(t, floor(1.5)) return t`, `[1]`},
		"a module":                 {`local m = require "m"`, `m.n = m.n + 1 return { m.n, require("m").n }`, `[1,1]`},
		"a module with a variable": {`local m = require "m"`, `m.up() return { m.up(), require("m").count() }`, `[2,2]`},
		"a built-in module":        {`local json = require "json"`, `json.n = (json.n or 0) + 1 return { json.n, json.decode("[7]")[1] }`, `[1,7]`},
		"package.loaded":           {`local m = require "m"`, `package.loaded.m = nil return require("m") ~= m`, `true`},
		"package.preload":          {`package.preload.p = function() return { n = 0 } end`, `local p = require "p" p.n = p.n + 1 return p.n`, `1`},
		"an environment":           {`local function f() return x end`, `local before = f() setfenv(f, { x = 1 }) return { before == nil, f() }`, `[true,1]`},
		"an environment at the top": {`local function f() rawset(getfenv(1), "n", (n or 0) + 1) return n end setfenv(f, setmetatable({}, { __index = _G }))`,
			`f() return f()`, `2`},
		"an iterator":       {`local next_word = ("a b c"):gmatch("%a")`, `return next_word()`, `"a"`},
		"a coroutine":       {`local next_number = coroutine.wrap(function() for i = 1, 9 do coroutine.yield(i) end end)`, `return next_number()`, `1`},
		"a seed":            {`math.randomseed(7) local first = math.random(1000000)`, `math.randomseed(7) return math.random(1000000) == first`, `true`},
		"an array":          {`local list = json.array()`, `list[#list + 1] = 1 return list`, `[1]`},
		"an empty array":    {`local list = json.array()`, `return list`, `[]`},
		"null":              {`local null = json.null`, `return { null }`, `[null]`},
		"a message":         {`local m = Message.data { kind = "state", data = { n = 0 } }`, `m.data.n = m.data.n + 1 return m.data.n`, `1`},
		"a weak table":      {`local t = setmetatable({}, { __mode = "k" })`, `t.n = (t.n or 0) + 1 return t.n`, `1`},
		"registrations":     {strings.Repeat(`Tool.register("t" .. #names, {}) names[#names + 1] = 1 `, 12), `return #names`, `12`},
		"pairs in order":    {`local t = { b = 1, a = 2, c = 3 } t.d = 4`, `local keys = "" for key in pairs(t) do keys = keys .. key end return keys == order()`, `true`},
		"all globals":       {`local a = 1`, `local n = 0 for name in pairs(_G) do if name == "_G" or name == "string" then n = n + 1 end end return { n, _G._G == _G }`, `[2,true]`},
		"a global of a lib": {`require "sets"`, `given.n = given.n + 1 return given.n`, `1`},
	} {
		files := map[string]string{
			"lib/m.lua":    `local n = 0 return { n = 0, up = function() n = n + 1 return n end, count = function() return n end }`,
			"lib/sets.lua": `given = { n = 0 }`,
			"activities/a.lua": `local names = {} local function order() local t = { b = 1, a = 2, c = 3 } t.d = 4 local keys = "" for key in pairs(t) do keys = keys .. key end return keys end ` +
				c.top + ` Activity.register("a", function(call) ` + c.body + ` end)`,
		}
		t.Run(name, func(t *testing.T) {
			g := open(t, files)
			for range 3 {
				if got, err := runA(g, plan.Invocation{}); err != nil || got != c.want {
					t.Fatalf("%s %v, want %s", got, err, c.want)
				}
			}
			var calls sync.WaitGroup
			for range 4 {
				calls.Go(func() {
					if got, err := runA(g, plan.Invocation{}); err != nil || got != c.want {
						t.Errorf("beside others: %s %v, want %s", got, err, c.want)
					}
				})
			}
			calls.Wait()
		})
		t.Run(name+" in a worker", func(t *testing.T) {
			files["obelus.lua"] = `return { isolate = "process" }`
			g := open(t, files)
			defer g.workers.Close()
			for range 2 {
				if got, err := runA(g, plan.Invocation{}); err != nil || got != c.want {
					t.Fatalf("%s %v, want %s", got, err, c.want)
				}
			}
		})
	}
}

// tickingClock tells a later second each time.
type tickingClock struct {
	luastd.SystemClock
	seconds *int64
}

func (c tickingClock) Now() time.Time { *c.seconds++; return time.Unix(*c.seconds, 0) }

// TestMake_Varying: what depends on the time, on chance, on a module or on an object of the
// program is asked again for each call.
func TestMake_Varying(t *testing.T) {
	for name, top := range map[string]string{
		"os.time":                        `local v = os.time()`,
		"os.date":                        `local v = os.date("%s")`,
		"time.now":                       `local v = require("time").now()`,
		"in a module":                    `local v = require("now")`,
		"math.random":                    `local v = math.random()`,
		"random":                         `local v = require("random").float()`,
		"uuid":                           `local v = require("uuid").v4()`,
		"an object":                      `local v = count()`,
		"in a function":                  `local function now() return os.time() end local v = now()`,
		"in a protected call":            `local _, v = pcall(os.time)`,
		"in a coroutine":                 `local v = coroutine.wrap(function() return os.time() end)()`,
		"an object, in a library's name": `local c = _G["count"] local v = c()`,
	} {
		t.Run(name, func(t *testing.T) {
			var now, counted int64
			h, err := Open(Config{
				FS: project(map[string]string{
					"lib/now.lua":      `return os.time()`,
					"activities/a.lua": top + ` Activity.register("a", function() return tostring(v) end)`,
				}),
				Clock: tickingClock{seconds: &now}, Objects: map[string]any{"count": func() int64 { counted++; return counted }},
			})
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for range 3 {
				got, err := runA(h.Generation(), plan.Invocation{})
				if err != nil || seen[got] {
					t.Fatalf("%s again, %v", got, err)
				}
				seen[got] = true
			}
		})
	}
}

// TestMake_Planner: the function of a plan, and one of a delegate, begin anew at each tick.
func TestMake_Planner(t *testing.T) {
	const counting = `local n = 0 local function solve() n = n + 1 return { output = n } end `
	g := open(t, map[string]string{
		"plans/p.lua":      counting + `return { calls = solve }`,
		"plans/f.lua":      counting + `return solve`,
		"activities/d.lua": counting + `Delegate.register("d", solve) Delegate.register("e", { calls = solve })`,
	})
	for _, name := range []string{"plans/p.lua", "plans/f.lua", "d", "e"} {
		request, _, err := g.PlanOf(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			solution, err := request.Planner.Plan(context.Background(), plan.Ask{})
			if err != nil || string(store.EncodeJSON(solution.Output)) != "1" {
				t.Errorf("%s: %v %v", name, solution, err)
			}
		}
	}
}

// layers is a text that registers a hundred tools, and a delegate for each.
func layers() string {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "Tool.register('t%d', { properties = { x = { type = 'string' } } })\n", i)
		fmt.Fprintf(&text, "Delegate.register('d%d', { { _tool = 't%d', x = 'y', _outputPath = '†state.x' } })\n", i, i)
	}
	return text.String()
}

// TestMake_Registrations: what else a file registers costs its calls nothing.
func TestMake_Registrations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	price := func(top string) float64 {
		g := open(t, map[string]string{"activities/a.lua": top + ` Activity.register("a", function() return 1 end)`})
		return testing.AllocsPerRun(200, func() {
			if _, err := call(g, "a", plan.Invocation{}); err != nil {
				t.Fatal(err)
			}
		})
	}
	if alone, beside := price(""), price(layers()); beside > alone+2 {
		t.Errorf("%v allocations a call beside 100 tools and delegates, %v alone", beside, alone)
	}
}
