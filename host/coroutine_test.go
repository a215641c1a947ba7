package host

import (
	"context"
	"runtime"
	"testing"
	"time"

	"obelus/engine/plan"
)

func TestCoroutine(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"values", `local co = coroutine.create(function(a, b) local c = coroutine.yield(a + b); local d, e = coroutine.yield(c * 2); return d + e, "end" end)
			return {select(2, coroutine.resume(co, 1, 2)), select(2, coroutine.resume(co, 10)), {coroutine.resume(co, 3, 4)}, {coroutine.resume(co)}}`,
			`[3,20,[true,7,"end"],[false,"cannot resume dead coroutine"]]`},
		{"status", `local co; co = coroutine.create(function()
				local inner = coroutine.create(function() return coroutine.status(co) end)
				coroutine.yield(coroutine.status(co), select(2, coroutine.resume(inner)))
			end)
			local before = coroutine.status(co)
			local _, running, normal = coroutine.resume(co)
			local waiting = coroutine.status(co); coroutine.resume(co)
			return {before, running, normal, waiting, coroutine.status(co), type(co)}`, `["suspended","running","normal","suspended","dead","thread"]`},
		{"generator", `local function each(list) return coroutine.wrap(function() for i, v in ipairs(list) do coroutine.yield(i, v) end end) end
			local out = {}; for i, v in each{"a", "b"} do out[#out + 1] = i .. v end; return out`, `["1a","2b"]`},
		{"recursion", `local function walk(t) for _, v in ipairs(t) do if type(v) == "table" then walk(v) else coroutine.yield(v) end end end
			local out = {}; for v in coroutine.wrap(function() walk{1, {2, {3}}, 4} end) do out[#out + 1] = v end; return out`, `[1,2,3,4]`},
		{"many yields", `local n = 0; for v in coroutine.wrap(function() for i = 1, 10000 do coroutine.yield(i) end end) do n = n + v end; return n`, `50005000`},
		{"running", `local inside; local co = coroutine.create(function() inside = coroutine.running() end); coroutine.resume(co)
			return {coroutine.running() == nil, inside == co, tostring(co):match("^thread: ") ~= nil}`, `[true,true,true]`},
		{"nil values", `local co = coroutine.wrap(function(...) return select("#", ...), select("#", coroutine.yield(nil, nil)) end)
			return {select("#", co(nil, nil)), {co(nil, nil, nil)}}`, `[2,[2,3]]`},
		{"yield in pcall", `local co = coroutine.wrap(function() local ok, err = pcall(function() coroutine.yield(1); error("x", 0) end); coroutine.yield(tostring(ok) .. err); return 3 end)
			local a = co(); pcall(pcall, error); return {a, co(), co()}`, `[1,"falsex",3]`},
		{"yield in xpcall", `local co = coroutine.wrap(function() return xpcall(function() coroutine.yield(1); local z = nil + 1 end, function(e) coroutine.yield(2); return 3 end) end)
			return {co(), co(), {co()}}`, `[1,2,[false,3]]`},
		{"yield in a metamethod", `local co = coroutine.wrap(function() return setmetatable({}, {__index = function(_, k) return coroutine.yield(k) end}).key end); return {co(), co(7)}`, `["key",7]`},
		{"yield in a callback", `local co = coroutine.wrap(function() return (("ab"):gsub(".", function(c) return coroutine.yield(c) end)) end); return {co(), co("x"), co("y")}`, `["a","b","xy"]`},
		{"yield in sort", `local co = coroutine.wrap(function() local t = {3, 1, 2}; table.sort(t, function(a, b) coroutine.yield(0); return a < b end); return t end)
			local v; repeat v = co() until v ~= 0; return v`, `[1,2,3]`},
		{"yield in an iterator", `local co = coroutine.wrap(function() for v in function() return coroutine.yield("next") end do coroutine.yield(v) end return "end" end); return {co(), co(5), co(), co(nil)}`, `["next",5,"next","end"]`},
		{"yield while a module loads", `local co = coroutine.wrap(function() return require("yields") end); local a = co(); return {a, require("other"), co("m"), require("yields")}`, `["loading","other","m","m"]`},
		{"error", `local co = coroutine.create(function() error({code = 1}) end); local ok, e = coroutine.resume(co); return {ok, e.code, coroutine.status(co)}`, `[false,1,"dead"]`},
		{"error with its place", "return select(2, coroutine.resume(coroutine.create(function()\nlocal t; return t.x end)))", `"activities/a.lua:2: attempt to index a nil value, key \"x\""`},
		{"error through wrap", `return select(2, pcall(coroutine.wrap(function() error("x", 0) end)))`, `"x"`},
		{"error is over", `coroutine.resume(coroutine.create(error)); return "fine"`, `"fine"`},
		{"upvalues after an error", `local n = 0; local function inc() n = n + 1 end; local co = coroutine.create(function() inc(); coroutine.yield(); inc(); error("x") end)
			coroutine.resume(co); inc(); coroutine.resume(co); inc(); return n`, `4`},
		{"closures of a dead one", `local f; coroutine.wrap(function() local j = 10; f = function() j = j + 1; return j end end)(); local a, b = "p", "q"; return {f(), f()}`, `[11,12]`},
		{"outside", `return select(2, pcall(coroutine.yield, 1))`, `"attempt to yield from outside a coroutine"`},
		{"itself", `local co; co = coroutine.create(function() return coroutine.resume(co) end); return {coroutine.resume(co)}`, `[true,false,"cannot resume running coroutine"]`},
		{"each other", `local a, b; a = coroutine.create(function() return coroutine.resume(b) end); b = coroutine.create(function() return coroutine.resume(a) end)
			return {coroutine.resume(a)}`, `[true,true,false,"cannot resume normal coroutine"]`},
		{"wraps of each other", `local a, b; a = coroutine.wrap(function() return b() end); b = coroutine.wrap(function() return a() end); return select(2, pcall(a))`, `"activities/a.lua:1: cannot resume normal coroutine"`},
		{"nested", `local function f(n) return coroutine.wrap(function() return n == 0 and "deep" or f(n - 1) end)() end; return f(90)`, `"deep"`},
		{"nested too deep", `local function f() return coroutine.wrap(f)() end; local ok, e = pcall(f); return e`, `"activities/a.lua:1: coroutines are nested more than 100 deep"`},
		{"resumes nested too deep", `local deepest; local function f() local ok, e = coroutine.resume(coroutine.create(f)); deepest = deepest or e; return deepest end; return f()`, `"coroutines are nested more than 100 deep"`},
		{"too many", `local kept = {}; local ok, e = pcall(function() for i = 1, 2000 do kept[i] = coroutine.wrap(coroutine.yield); kept[i]() end end); return {#kept, e}`,
			`[1001,"activities/a.lua:1: more than 1000 coroutines have begun and not ended"]`},
		{"many after one another", `local n = 0; for i = 1, 3000 do n = n + coroutine.wrap(function() coroutine.yield(1) end)(); if i > 900 then break end end
			for i = 1, 3000 do n = n + coroutine.wrap(function() return 1 end)() end; return n`, `3901`},
		{"recursion without end", `local co = coroutine.create(function() local function f() return 1 + f() end; return f() end); local ok, e = coroutine.resume(co); return {ok, e}`, `[false,"stack overflow"]`},
		{"pcalls without end", `local co = coroutine.create(function() local function f() local ok, e = pcall(f); return e end; return f() end); return (select(2, coroutine.resume(co)))`,
			`"activities/a.lua:1: pcall is nested more than 25 deep"`},
		{"metamethods without end", `local co = coroutine.create(function() local t; t = setmetatable({}, {__index = function(_, k) return t[k + 1] end}); return t[1] end); return (coroutine.resume(co))`, `false`},
		{"not a coroutine", `return select(2, pcall(function() coroutine.resume({}) end))`, `"activities/a.lua:1: bad argument #1 to resume: coroutine expected"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := open(t, map[string]string{
				"lib/yields.lua":   `return coroutine.yield("loading")`,
				"lib/other.lua":    `return "other"`,
				"activities/a.lua": `Activity.register("a", {timeout = 20}, function() ` + test.body + "\nend)",
			})
			if got, err := runA(g, plan.Invocation{}); err != nil || got != test.want {
				t.Errorf("got  %s %v\nwant %s", got, err, test.want)
			}
		})
	}
}

// TestCoroutine_Faults: what leaves an activity from within a coroutine is told
// like anything else.
func TestCoroutine_Faults(t *testing.T) {
	for body, want := range map[string]string{
		"coroutine.wrap(function()\nlocal order; return order.id end)()": `activities/a.lua:2: attempt to index order (a nil value), key "id"`,
		`return coroutine.create(print)`:                                 `activities/a.lua: activity a: result: a thread is not a JSON value`,
		`return io.stdout`:                                               `activities/a.lua: activity a: result: a userdata is not a JSON value`,
	} {
		if _, err := runA(one(t, body), plan.Invocation{}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
	_, err := runA(one(t, `coroutine.wrap(function() coroutine.wrap(function() error({code = "gone"}) end)() end)()`), plan.Invocation{})
	if failure, ok := err.(*plan.Failure); !ok || failure.Fields["code"] != "gone" {
		t.Errorf("got %T %v", err, err)
	}
}

func TestCoroutine_Deadline(t *testing.T) {
	for name, body := range map[string]string{
		"loop":              `coroutine.wrap(function() while true do end end)()`,
		"after a yield":     `local co = coroutine.wrap(function() coroutine.yield(); while true do end end); co(); co()`,
		"in pcall":          `coroutine.wrap(function() while true do pcall(function() while true do end end) end end)()`,
		"resume in a loop":  `while true do coroutine.resume(coroutine.create(function() while true do end end)) end`,
		"wrap in pcall":     `while true do pcall(coroutine.wrap(function() while true do end end)) end`,
		"yield in a loop":   `local co = coroutine.wrap(function() while true do coroutine.yield() end end); while true do co() end`,
		"yield in pcall":    `local co = coroutine.wrap(function() while true do pcall(coroutine.yield) end end); while true do co() end`,
		"created in a loop": `while true do coroutine.create(print) end`,
		"new in a loop":     `while true do coroutine.wrap(function() return 1 end)() end`,
		"nested":            `local function f() pcall(coroutine.wrap(f)); while true do end end f()`,
		"deep again":        `local function f() return coroutine.wrap(f)() end while true do pcall(f) end`,
		"made at top":       `left()`,
		"pattern":           `coroutine.wrap(function() return (("a"):rep(30000)):find(".-.-.-.-b") end)()`,
		"sleep":             `coroutine.wrap(function() require("time").sleep(3600) end)()`,
		"loaded":            `loadstring("while true do end")()`,
		"loaded in pcall":   `while true do pcall(loadstring("while true do end")) end`,
		"loads":             `local text = ("local a = {1, 2, 3} "):rep(5000); while true do loadstring(text) end`,
		"loads of nothing":  `while true do loadstring("") end`,
		"endless pieces":    `load(function() return " " end)()`,
		"pieces in a loop":  `load(function() while true do end end)`,
		"traceback":         `while true do debug.traceback() end`,
		"writes":            `while true do io.write("x") end`,
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, map[string]string{"activities/a.lua": `
				local left = coroutine.wrap(function() coroutine.yield(); while true do end end); left()
				Activity.register("a", {timeout = 0.2}, function() ` + body + ` end)`})
			_, err := runA(g, plan.Invocation{})
			if name == "endless pieces" && err != nil { // it comes to an end earlier
				return
			}
			if failure, ok := err.(*plan.Failure); !ok || failure.Fields["code"] != "timeout" {
				t.Errorf("got %T %v", err, err)
			}
		})
	}
}

// TestCoroutine_EndsWithCall: nothing of a coroutine outlives its run, however that ends.
func TestCoroutine_EndsWithCall(t *testing.T) {
	waits := `
		local kept = {}
		for i = 1, 50 do
			kept[i] = coroutine.wrap(function() pcall(function() pcall(coroutine.yield); coroutine.yield() end); caught = true end)
			kept[i]()
		end
		local nested = coroutine.wrap(function() local inner = coroutine.wrap(coroutine.yield); inner(); coroutine.yield(inner) end)
		nested() `
	files := map[string]string{
		"lib/waits.lua":    "return function()" + waits + "end",
		"activities/a.lua": `require("waits")(); Activity.register("a", {timeout = 0.2}, function(call) require("waits")(); if call.how == "raise" then error("x") end; if call.how == "hang" then while true do end end end)`,
		"plan.lua":         `require("waits")(); return {{ _tool = "a", how = "x", _outputPath = "†x" }}`,
		"bad.lua":          `require("waits")(); return 1`,
		"raises.lua":       `require("waits")(); error("x")`,
		"planner.lua":      `return function() require("waits")(); return 1 end`,
	}
	g := open(t, files)
	before := runtime.NumGoroutine()
	for _, how := range []string{"return", "raise", "hang", "return"} {
		_, _ = runA(g, plan.Invocation{Call: map[string]any{"how": how}})
	}
	for _, file := range []string{"plan.lua", "bad.lua", "raises.lua", "planner.lua"} {
		if request, _, err := g.Plan(file); err == nil && request.Planner != nil {
			_, _ = request.Planner.Plan(context.Background(), plan.Ask{})
		}
	}
	goroutinesEnd(t, before)
}

// goroutinesEnd fails the test if more goroutines are left than there were
// before, once those that are ending have had time to.
func goroutinesEnd(t *testing.T, before int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched() // the last of one is to return
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines are left", now-before)
	}
}
