package host

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"obelus/engine/plan"
	"obelus/store"
)

// TestIsolation runs a script that tampers, and then looks from the next call,
// from another script, and from a script that was loaded before.
func TestIsolation(t *testing.T) {
	tests := []struct{ name, tamper, look string }{
		{"global", `loadstring("leak = 1")()`, `return leak == nil`},
		{"_G", `_G.leak = 1; rawset(_G, "leak2", 1)`, `return leak == nil and leak2 == nil`},
		{"string", `string.trim = function() return "evil" end`, `return string.trim == nil and ("x").trim == nil`},
		{"string replaced", `string.upper = function() return "evil" end`, `return ("x"):upper() == "X" and string.upper("x") == "X"`},
		{"table", `table.insert = nil; table.concat = function() return "evil" end`, `return table.concat({1, 2}, ",") == "1,2" and table.insert ~= nil`},
		{"math", `math.pi = 3`, `return math.pi > 3.1`},
		{"base function", `tostring = function() return "evil" end; pairs = nil`, `return tostring(1) == "1" and pairs ~= nil`},
		{"json", `json.encode = nil; json.null = 1`, `return json.encode(json.null) == "null"`},
		{"vocabulary", `Activity.register = nil; Tool = nil; Output.to = nil`, `return Tool ~= nil and Output.to ~= nil`},
		{"string metatable", `local m = getmetatable(""); if m then m.__index = nil end`, `return getmetatable("") == nil and ("a"):rep(2) == "aa"`},
		{"environment metatable", `pcall(setmetatable, _G, {__index = function() return 1 end})`, `return undefined == nil`},
		{"module", `require("str").trim = nil`, `return require("str").trim(" a ") == "a"`},
		{"project module", `require("counter").n = 5`, `return require("counter").n == 0`},
		{"upvalue", `upvalue = (upvalue or 0) + 1`, `return upvalue == nil`},
		{"arrays", `local m = getmetatable(json.array()); if m then m.__index = {1} end`, `return json.array()[1] == nil`},
		{"replaced environment metatable", `setmetatable(_G, {__index = function() return 1 end})`, `return undefined == nil and type(print) == "function"`},
		{"environments of library functions", `for _, f in ipairs{print, string.rep, require, coroutine.wrap, getfenv} do pcall(setfenv, f, {leak = 1}); getfenv(f).leak = 1 end`,
			`return leak == nil and getfenv(print).leak == nil and getfenv(string.rep) == _G`},
		{"environments of levels", `for level = 0, 20 do pcall(setfenv, level, {leak = 1, pcall = pcall}); local ok, e = pcall(getfenv, level); if ok then e.leak = 1 end end`, `return leak == nil and getfenv(0) == _G`},
		{"loaded code", `local f = loadstring("string.leak = 1; leak = 2; function tostring() return 3 end"); f()`, `return string.leak == nil and leak == nil and tostring(1) == "1" and getfenv(loadstring("")) == _G`},
		{"package", `package.path = "x"; package.leak = 1; package.loaded.leak = 1; package.preload.leak = function() return 1 end; require "leak"; package.config = nil`,
			`return package.leak == nil and package.loaded.leak == nil and next(package.preload) == nil and not pcall(require, "leak") and package.config ~= nil`},
		{"package.loaded", `require("counter").n = 5; package.loaded.counter = {n = 7}; package.loaded.str = {trim = function() return "evil" end}; package.loaded.string = nil`,
			`return require("counter").n == 0 and require("str").trim(" a ") == "a" and package.loaded.string == string`},
		{"package.preload", `package.preload.str = function() return "evil" end; package.preload.counter = package.preload.str; require "counter"`, `return require("counter").n == 0 and require("str") ~= "evil"`},
		{"io", `io.write = nil; io.leak = 1; getmetatable(io.stdout).__index.leak = 1; getmetatable(io.stderr).leak = 1; io.stdin = nil`,
			`return io.write ~= nil and io.leak == nil and io.stdout.leak == nil and getmetatable(io.stdout).leak == nil and io.type(io.stdin) == "file"`},
		{"debug", `debug.traceback = nil; debug.leak = 1`, `return debug.traceback ~= nil and debug.leak == nil`},
		{"debug.setmetatable", `for _, v in ipairs{"", 0, true, print, io.stdout, _G} do pcall(debug.setmetatable, v, {__index = {leak = 1}}) end; debug.setmetatable("", nil)`,
			`return not pcall(function() return (0).leak end) and ("").leak == nil and io.stdout.leak == nil and leak == nil and ("a"):upper() == "A"`},
		{"coroutine", `coroutine.leak = 1; local co = coroutine.wrap(function() _G.leak = 1; pcall(coroutine.yield, 1); _G.leak2 = 1; coroutine.yield() end); co()`,
			`return coroutine.leak == nil and leak == nil and leak2 == nil and coroutine.running() == nil`},
		{"coroutine in a module", `require("generator").next(); require("generator").next()`, `return require("generator").next() == 1`},
		{"number metatable", `pcall(setmetatable, 0, {__index = {x = 1}})`, `return not pcall(function() return (0).x end)`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := open(t, map[string]string{
				"lib/counter.lua":       `return { n = 0 }`,
				"lib/generator.lua":     `return { next = coroutine.wrap(function() for i = 1, 9 do coroutine.yield(i) end end) }`,
				"activities/tamper.lua": `local upvalue; Activity.register("tamper", function() ` + test.tamper + ` return true end)`,
				"activities/look.lua":   `Activity.register("look", function() ` + test.look + ` end)`,
				"activities/both.lua":   `local upvalue; Activity.register("both", function(call) if call.tamper then ` + test.tamper + ` return true end ` + test.look + ` end)`,
			})
			for _, step := range []struct{ name, call string }{{"tamper", `{}`}, {"look", `{}`}, {"both", `{"tamper":true}`}, {"both", `{}`}, {"look", `{}`}} {
				r, err := call(g, step.name, plan.Invocation{Call: object(t, step.call)})
				if err != nil || r.Value != true {
					t.Fatalf("%s: got %v %v", step.name, r.Value, err)
				}
			}
		})
	}
}

func TestAbsent(t *testing.T) {
	for _, name := range []string{
		"loadfile", "dofile", "module", "newproxy", "collectgarbage", "_printregs", "string.dump", "os.execute", "os.remove", "os.rename", "os.tmpname",
		"channel", "io.popen", "package.loadlib", "package.cpath:match('.')", "debug.getlocal", "debug.setlocal", "debug.getupvalue", "debug.setupvalue",
		"debug.getregistry", "debug.getfenv", "debug.setfenv", "os.getenv('PATH')", "io.open('obelus.lua')", "io.read()", "io.stdin:read('*a')", "io.tmpfile()",
	} {
		if got, err := runA(one(t, "return "+name+" == nil"), plan.Invocation{}); got != "true" {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
}

func TestHiddenNames(t *testing.T) {
	got, err := runA(one(t, `local names = {}; for name in pairs(_G) do names[#names + 1] = name end; return table.concat(names, " ")`), plan.Invocation{})
	if err != nil || strings.Contains(got, `\u0000`) || !strings.Contains(got, "ipairs") || !strings.Contains(got, "string") {
		t.Errorf("%s %v", got, err)
	}
}

// TestDeadline: whatever a script is at, its time ends it.
func TestDeadline(t *testing.T) {
	for name, body := range map[string]string{
		"loop":            `while true do end`,
		"in pcall":        `while true do pcall(function() while true do end end) end`,
		"in xpcall":       `while true do xpcall(function() while true do end end, function() while true do end end) end`,
		"in a handler":    `while true do xpcall(error, function() while true do end end) end`,
		"recursion":       `local function f() pcall(f) f() end while true do pcall(f) end`,
		"pattern":         `return (("a"):rep(30000)):find(".-.-.-.-b")`,
		"trim":            `return ((" "):rep(300000) .. "x"):match("^(.-)%s*$")`,
		"gsub":            `return ((" "):rep(300000)):gsub("%s*x", "")`,
		"balanced":        `local s = ("("):rep(200000); while true do s:find("%b()") end`,
		"gmatch":          `for _ in ((" "):rep(200000)):gmatch("%s*x") do end`,
		"metamethod":      `local t = setmetatable({}, {__index = function(t, k) while true do end end}); return t.x`,
		"sort":            `local t = {}; for i = 1, 1000 do t[i] = i end; table.sort(t, function() while true do end end)`,
		"callback":        `return ("x"):gsub("x", function() while true do end end)`,
		"tostring":        `return tostring(setmetatable({}, {__tostring = function() while true do end end}))`,
		"concat":          `local t = {}; for i = 1, 1000 do t[i] = "x" end; while true do table.concat(t) end`,
		"sleep":           `require("time").sleep(3600)`,
		"sleep in pcall":  `while true do pcall(require("time").sleep, 3600) end`,
		"holes":           `local t = {}; while true do t = {}; t[1000000] = 1 end`,
		"insert in front": `local t = {}; while true do table.insert(t, 1, 1); if #t > 100000 then t = {} end end`,
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := runA(lasting(t, "200ms", body), plan.Invocation{})
			failure, ok := err.(*plan.Failure)
			if !ok || failure.Fields["code"] != "timeout" {
				t.Errorf("got %T %v", err, err)
			}
			if d := time.Since(start); d > time.Minute { // a bound for what never ends, and no measure
				t.Errorf("it took %v", d)
			}
		})
	}
}

func TestDeadline_TopLevel(t *testing.T) {
	_, err := Open(Config{FS: project(map[string]string{"activities/a.lua": "\nwhile true do end"}), LoadTimeout: 50 * time.Millisecond})
	if want := "activities/a.lua:2: timed out after 50ms"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestPcall_Nested(t *testing.T) {
	got, err := runA(one(t, `
		local innermost
		local function f()
		  local ok, err = pcall(f)
		  if not ok then innermost = innermost or err end
		end
		f()
		return innermost`), plan.Invocation{})
	if want := `"activities/a.lua:4: pcall is nested more than 100 deep"`; got != want {
		t.Errorf("got %s %v", got, err)
	}
}

// TestState_AfterErrors: a state in which something was raised is not used again,
// and the next call finds all in order.
func TestState_AfterErrors(t *testing.T) {
	g := one(t, `
		if call.how == "raise" then error("x") end
		if call.how == "overflow" then local function f() return f() end f() end
		return call.how`)
	for range 3 {
		for _, how := range []string{"raise", "fine", "overflow", "fine"} {
			got, err := runA(g, plan.Invocation{Call: map[string]any{"how": how}})
			if how == "fine" && (err != nil || got != `"fine"`) {
				t.Fatalf("got %s %v", got, err)
			}
			if how != "fine" && err == nil {
				t.Fatalf("%s: no error", how)
			}
		}
	}
}

func TestCall_Concurrent(t *testing.T) {
	g := open(t, map[string]string{
		"lib/m.lua":        `local m = {n = 0}; function m.next() m.n = m.n + 1; return m.n end; return m`,
		"activities/a.lua": `local m = require "m"; count = 0; Activity.register("a", function(call, context) count = count + m.next(); return {count, context.state.list[call.i + 1]} end)`,
	})
	list := mustJSON(t, "["+strings.Repeat("1,", 300)+"1]")
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 50 {
				in := plan.Invocation{Call: map[string]any{"i": i}, Context: map[string]any{"state": map[string]any{"list": list}}}
				if got, err := runA(g, in); got != "[1,1]" {
					t.Errorf("got %s %v", got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestRequire(t *testing.T) {
	files := map[string]string{
		"lib/a/b.lua":          `return {name = (...)}`,
		"lib/a/init.lua":       `return "init"`,
		"lib/str.lua":          `return "mine"`,
		"lib/nothing.lua":      `x = 1`,
		"lib/one.lua":          `return require "two"`,
		"lib/two.lua":          "\nreturn require 'one'",
		"lib/broken.lua":       "\n\nerror('not today')",
		"lib/nilled.lua":       "local t\nreturn t.x",
		"activities/util.lua":  `return "util"`,
		"lib/flaky.lua":        `tries = (tries or 0) + 1; if tries < 2 then error("again", 0) end; return tries`,
		"lib/globals.lua":      `shared = 7`,
		"activities/reg/x.lua": `return 1`,
	}
	tests := []struct{ name, body, want string }{
		{"dotted", `return require("a.b").name`, `"a.b"`},
		{"init", `return require "a"`, `"init"`},
		{"before the built-in", `return require "str"`, `"mine"`},
		{"nothing", `return require "nothing"`, `true`},
		{"activities", `return require "util"`, `"util"`},
		{"built in", `return require("json").encode({1})`, `"[1]"`},
		{"once", `return require "a.b" == require "a.b"`, `true`},
		{"again after failing", `return {pcall(require, "flaky"), require "flaky"}`, `[false,2]`},
		{"environment", `require "globals"; return shared`, `7`},
		{"missing", `return select(2, pcall(require, "no.such"))`, `"there is no module \"no.such\": no lib/no/such.lua, lib/no/such/init.lua, activities/no/such.lua, activities/no/such/init.lua, and none is built in"`},
		{"traceback from nowhere", `return select(2, pcall(debug.traceback, "x", -2^53)):match("^x\nstack traceback:") ~= nil`, `true`},
		{"argument of what pcall calls", `return select(2, pcall(string.rep))`, `"bad argument #1 to string.rep: string expected, got nil"`},
		{"near", `return select(2, pcall(require, "jsn"))`, `"there is no module \"jsn\": no lib/jsn.lua, lib/jsn/init.lua, activities/jsn.lua, activities/jsn/init.lua, and none is built in (did you mean \"json\"?)"`},
		{"circle", `return select(2, pcall(require, "one"))`, `"lib/two.lua:2: modules require each other in a circle: one → two → one"`},
		{"broken", `return select(2, pcall(require, "broken"))`, `"lib/broken.lua:3: not today"`},
		{"fault", `return select(2, pcall(require, "nilled"))`, `"lib/nilled.lua:2: attempt to index a nil value, key \"x\""`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			files["activities/a.lua"] = `Activity.register("a", function() ` + test.body + ` end)`
			got, err := runA(open(t, files), plan.Invocation{})
			if err != nil || got != test.want {
				t.Errorf("got  %s %v\nwant %s", got, err, test.want)
			}
		})
	}
}

// TestLibrary holds the library to what Lua 5.1 gives.
func TestLibrary(t *testing.T) {
	tests := []struct{ expr, want string }{
		{`tostring(1e15)`, `"1000000000000000"`},
		{`tostring(0.1 + 0.2)`, `"0.3"`},
		{`tostring(1/0) .. tostring(-1/0)`, `"inf-inf"`},
		{`tostring(1e100)`, `"1e+100"`},
		{`tostring(json.null)`, `"null"`},
		{`tonumber("1e3")`, `1000`},
		{`tonumber(" 0x10 ")`, `16`},
		{`tonumber("ff", 16)`, `255`},
		{`tonumber("1_000") == nil and tonumber("inf") == nil and tonumber("") == nil and tonumber("0x") == nil`, `true`},
		{`tonumber("10", 2)`, `2`},
		{`{tonumber("Zz", 36), tonumber("0xA", 16), tonumber("0x10", 8) == nil, tonumber("1 0", 2) == nil}`, `[1295,10,true,true]`},
		{`1 .. 2`, `"12"`},
		{`"a" .. 1.5 .. "b"`, `"a1.5b"`},
		{`setmetatable({}, {__concat = function(a, b) return "cat" end}) .. "x"`, `"cat"`},
		{`"x" .. "y" .. setmetatable({}, {__concat = function(a, b) return a .. "!" end})`, `"xy!"`},
		{`#"abc" + #{1, 2}`, `5`},
		{`select("#", 1, nil, nil)`, `3`},
		{`{select(2, "a", "b", "c")}`, `["b","c"]`},
		{`{select(-1, "a", "b", "c")}`, `["c"]`},
		{`{unpack({1, 2, 3}, 2)}`, `[2,3]`},
		{`select(2, pcall(unpack, {}, 1, 8001))`, `"too many results to unpack"`},
		{`(function() local seen; local function f(x) seen = x; return x end; local a = 1; a = 2, f(a); return {a, seen} end)()`, `[2,1]`},
		{`(function() local a = 1; local function f() return 2 end; a = f(), a; return a end)()`, `2`},
		{`math.huge == 1/0`, `true`},
		{`{math.modf(3.5)}`, `[3,0.5]`},
		{`tostring(math.modf(-1/0)) .. select(2, math.modf(1/0))`, `"-inf0"`},
		{`(function() for _ = 1, 100 do local r = math.random(); if not (r >= 0 and r < 1) then return r end end end)()`, `null`},
		{`(function() local seen = {}; for _ = 1, 500 do seen[math.random(3)] = true end; return #seen .. tostring(seen[0]) end)()`, `"3nil"`},
		{`(function() local n = 0; for _ = 1, 500 do local r = math.random(-1.5, 1); if r < -2 or r > 1 or r % 1 ~= 0 then return r end; n = math.min(n, r) end; return n end)()`, `-2`},
		{`{math.random(7, 7), (pcall(math.random, 0)), (pcall(math.random, 2, 1))}`, `[7,false,false]`},
		{`(function() math.randomseed(7); local a, b = math.random(), math.random(1e9); math.randomseed(7); return a == math.random() and b == math.random(1e9) end)()`, `true`},
		{`(function() math.randomseed(7); local a = math.random(1e9); math.randomseed(7); math.randomseed(); return a == math.random(1e9) end)()`, `false`},
		{`(function() math.randomseed(7); local a = math.random(1e9); math.randomseed(8); return a == math.random(1e9) end)()`, `false`},
		{`{("hello world"):find("o w")}`, `[5,7]`},
		{`{("hello"):find("l+")}`, `[3,4]`},
		{`{("key = value"):match("^(%w+)%s*=%s*(%w+)$")}`, `["key","value"]`},
		{`{("abc"):gsub("%w", "%0%0")}`, `["aabbcc",3]`},
		{`{("abc"):gsub("", "-")}`, `["-a-b-c-",4]`},
		{`{("hello world"):gsub("o", {o = "0"}, 1)}`, `["hell0 world",1]`},
		{`{("abc"):gsub("b", function() return nil end)}`, `["abc",1]`},
		{`("x(a(b)c)y"):match("%b()")`, `"(a(b)c)"`},
		{`("x)"):find("%b()") == nil and ("((x)"):match("%b()")`, `"(x)"`},
		{`{("aZ9_ ."):gsub("%l", "-")}`, `["-Z9_ .",1]`},
		{`{("aZ9_~ é."):gsub("%p", "-")}`, `["aZ9-- é-",3]`},
		{`{("az{Z"):gsub("%L", "-")}`, `["az--",2]`},
		{`("THE (quick) fox"):find("%((%a+)%)")`, `5`},
		{`("a]b"):match("[]]")`, `"]"`},
		{`("a-b"):match("[a%-]+")`, `"a-"`},
		{`("THE quick"):gsub("%f[%a]%a+", string.lower)`, `"the quick"`},
		{`("abab"):match("(ab)%1")`, `"ab"`},
		{`{("abc"):match("()b()")}`, `[2,3]`},
		{`("abc"):sub(-2)`, `"bc"`},
		{`("abc"):sub(2, -2)`, `"b"`},
		{`("abc"):sub(0) .. ("abc"):sub(5) .. ("abc"):sub(-10, 2)`, `"abcab"`},
		{`{("abc"):byte(1, -1)}`, `[97,98,99]`},
		{`string.char(72, 105)`, `"Hi"`},
		{`("abc"):reverse():upper():lower():rep(2)`, `"cbacba"`},
		{`string.format("%5d|%-5d|%05d|%+d", 42, 42, 42, 42)`, `"   42|42   |00042|+42"`},
		{`string.format("%x %X %#x %o", 255, 255, 255, 8)`, `"ff FF 0xff 10"`},
		{`string.format("%.3f %e %g %g %g", 1/3, 12345.678, 1e20, 0.1, 100000)`, `"0.333 1.234568e+04 1e+20 0.1 100000"`},
		{`string.format("%g %g %g %g %.0g", 0.0001, 0.00001, 999999, 1e6, 25)`, `"0.0001 1e-05 999999 1e+06 2e+01"`},
		{`string.format("%E %G %.3d %+.4d", 0.5, 1e-9, 7, -7)`, `"5.000000E-01 1E-09 007 -0007"`},
		{`string.format("%s %q %c %%", {} ~= nil, 'a"b\n', 65)`, `"true \"a\\\"b\\\n\" A %"`},
		{`string.format("%.2s|%5s|%-5s|", "abc", "ab", "ab")`, `"ab|   ab|ab   |"`},
		{`string.format("%d", -3.7)`, `-3`},
		{`(function() local t = {3, 1, 2}; table.sort(t, function(a, b) return a > b end); return t end)()`, `[3,2,1]`},
		{`(function() local t = {1, 2, 3}; table.remove(t, 1); table.insert(t, 1, 9); return t end)()`, `[9,2,3]`},
		{`table.remove({})`, `null`},
		{`table.concat({1, 2, 3}, ", ", 2)`, `"2, 3"`},
		{`pcall(error)`, `false`},
		{`select(2, pcall(error, " x", 0))`, `" x"`},
		{`select(2, pcall(error, {code = 1})).code`, `1`},
		{`select(2, xpcall(function() error("x", 0) end, function(m) return m .. "!" end))`, `"x!"`},
		{`{xpcall(function() error("a") end, function(e) return e.code .. "x" end)}`, `[false,"error in error handling: activities/a.lua:1: attempt to concatenate a nil value"]`},
		{`{xpcall(error, function() error("again", 0) end)}`, `[false,"error in error handling: again"]`},
		{`{xpcall(error, function() error({}) end)}`, `[false,"error in error handling: a table value was raised"]`},
		{`{pcall(xpcall, error, error)}`, `[true,false,"error in error handling: a nil value was raised"]`},
		{`select("#", xpcall(error, function() return 1, 2 end))`, `2`},
		{`select(2, pcall(setmetatable({}, {__call = function() return "called" end})))`, `"called"`},
		{`getmetatable(setmetatable({}, {__metatable = "mine"}))`, `"mine"`},
		{`os.date("%Y-%m-%d", 0)`, `"1970-01-01"`},
		{`os.time({year = 2000, month = 1, day = 1, hour = 0})`, `946684800`},
		{`os.date("*t", 0).year`, `1970`},
		{`select(2, pcall(os.time, {year = 2000, month = {}, day = 1}))`, `"field 'month' of the date table is not a number"`},
		{`select(2, pcall(os.time, {year = 2000, day = 1}))`, `"field 'month' missing in date table"`},
		{`string.format("%x %u %o", 2^64 - 2048, 2^63, 2^63)`, `"fffffffffffff800 9223372036854775808 1000000000000000000000"`},
		{`string.format("%E %G %#.0f %#.0e %#.1g", 1/0, 1/0, 3, 4, 5)`, `"INF INF 3. 4.e+00 5."`},
		{`pcall(setmetatable, {})`, `false`},
		{`select(2, pcall(function() return setmetatable({}, {__concat = function() error("no", 2) end}) .. "" end))`, `"activities/a.lua:1: no"`},
		{`rawequal("a", "a")`, `true`},
	}
	for _, test := range tests {
		got, err := runA(one(t, "return "+test.expr), plan.Invocation{})
		if test.expr == `string.format("%d", -3.7)` {
			got = strings.Trim(got, `"`)
		}
		if err != nil || got != test.want {
			t.Errorf("%s\ngot  %s %v\nwant %s", test.expr, got, err, test.want)
		}
	}
}

type account struct{ Balance int }

func (a *account) Deposit(n int) int { a.Balance += n; return a.Balance }

func TestObjects(t *testing.T) {
	h, err := Open(Config{
		FS:      project(map[string]string{"activities/a.lua": `Activity.register("a", function(call) return account:deposit(5) + account.balance end)`}),
		Objects: map[string]any{"account": &account{10}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := runA(h.Generation(), plan.Invocation{}); got != "30" {
		t.Errorf("got %s %v", got, err)
	}
}

type order struct {
	ID    float64
	Lines []map[string]string
}

// shelf is an object that takes tables, in each form.
type shelf struct {
	Kept map[string]any
	All  []*shelf
}

func (s *shelf) Put(v map[string]any) string { return fmt.Sprint(v) }

func (s *shelf) Any(v any) string { return fmt.Sprint(v) }

func (s *shelf) Lines(v []map[string]any) string { return fmt.Sprint(v) }

func (s *shelf) Order(o order) string { return fmt.Sprint(o) }

func (s *shelf) Same() *shelf { return s }

func (s *shelf) Ask(f func() order) string { return fmt.Sprint(f()) }

// TestObjects_GetTables: what a script was given reaches an object as it is, and not
// as a table that would fill itself if a script looked at it.
func TestObjects_GetTables(t *testing.T) {
	for body, want := range map[string]string{
		`return shelf:Put(call.order)`:                                     `"map[ID:7 Lines:map[1:map[a:x] 2:map[a:y]]]"`,
		`return shelf:Any(call.order.Lines)`:                               `"map[1:map[a:x] 2:map[a:y]]"`,
		`return shelf:Lines(call.order.Lines)`:                             `"[map[a:x] map[a:y]]"`,
		`return shelf:Order(call.order)`:                                   `"{7 [map[a:x] map[a:y]]}"`,
		`return shelf:Order({ ID = 8, Lines = call.order.Lines })`:         `"{8 [map[a:x] map[a:y]]}"`,
		`return shelf:Ask(function() return call.order end)`:               `"{7 [map[a:x] map[a:y]]}"`,
		`shelf.Kept = call.order; return shelf:Put({ n = shelf.Kept.ID })`: `"map[n:7]"`,
		`return keep(call.order.Lines)`:                                    `"[map[a:x] map[a:y]]"`,
		`return shelf:Same().Put(shelf, call.order)`:                       `"map[ID:7 Lines:map[1:map[a:x] 2:map[a:y]]]"`,
		`for _, s in shelf.All() do return s:Put(call.order) end`:          `"map[ID:7 Lines:map[1:map[a:x] 2:map[a:y]]]"`,
		`return shelf:Put(context.state)`:                                  `"map[s:map[deep:true]]"`,
		`return shelf:Put(tool.properties)`:                                `"map[order:map[type:object]]"`,
		`return shelf:Put(json.decode(json.encode(call.order)))`:           `"map[ID:7 Lines:map[1:map[a:x] 2:map[a:y]]]"`,
	} {
		h, err := Open(Config{
			FS:      project(map[string]string{"activities/a.lua": `Activity.register("a", function(call, context, tool) ` + body + ` end)`}),
			Objects: map[string]any{"shelf": &shelf{All: []*shelf{{}}}, "keep": func(v []map[string]string) string { return fmt.Sprint(v) }},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := runA(h.Generation(), plan.Invocation{
			Call:    object(t, `{"order":{"ID":7,"Lines":[{"a":"x"},{"a":"y"}]}}`),
			Context: object(t, `{"state":{"s":{"deep":true}}}`),
			Tool:    object(t, `{"properties":{"order":{"type":"object"}}}`),
		})
		if got != want {
			t.Errorf("%s\ngot  %s %v\nwant %s", body, got, err, want)
		}
	}
}

func (a *account) Withdraw(n int) (*account, error) {
	if n > a.Balance {
		return nil, fmt.Errorf("no more than %d\xff", a.Balance)
	}
	a.Balance -= n
	return a, nil
}

func (a *account) Close() { panic("it is closed\nalready") }

var nowhere map[int]int

func (a *account) Lose(n int) { nowhere[n] = a.Balance }

func (a *account) Pick(n int) string { return []string{"a"}[n] }

// TestObjects_Panic: where an object panics is told, beside the line of the script
// that called it.
func TestObjects_Panic(t *testing.T) {
	for body, want := range map[string]string{
		`account:close()`: `^activities/a\.lua:2: an object of the host failed at sandbox_test\.go:\d+: it is closed\nalready$`,
		`account:lose(1)`: `^activities/a\.lua:2: an object of the host failed at sandbox_test\.go:\d+: assignment to entry in nil map$`,
		`account:pick(7)`: `^activities/a\.lua:2: an object of the host failed at sandbox_test\.go:\d+: runtime error: index out of range \[7\] with length 1$`,
		`local function f() return f() + 1 end f()`:        `stack overflow`,
		`error(select(2, pcall(account.close, account)))`:  `an object of the host failed at sandbox_test\.go:\d+`,
		`coroutine.wrap(function() account:close() end)()`: `^an object of the host failed at sandbox_test\.go:\d+: it is closed\nalready$`,
	} {
		h, err := Open(Config{
			FS:      project(map[string]string{"activities/a.lua": "Activity.register('a', function(call)\n" + body + "\nend)"}),
			Objects: map[string]any{"account": &account{10}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := runA(h.Generation(), plan.Invocation{}); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: %v, not %s", body, err, want)
		}
	}
}

// bus is an object that calls functions of scripts, one of them when it is asked again.
type bus struct {
	kept func(int) int
	N    int
}

func (b *bus) Each(fn func(int) int) int { return fn(1) }

func (b *bus) On(fn func(int) int) { b.kept = fn }

func (b *bus) Emit(n int) int { return b.kept(n) }

func (b *bus) Add(n int, text string) {}

func (b *bus) Map(m map[string]func(int) int) int {
	b.kept = m["f"]
	return m["f"](1)
}

func (b *bus) Give() map[string]any { return map[string]any{"a": 1} }

func (b *bus) Want(text string) {}

// TestObjects_CallFunctions: what a script gives to an object is bound as the script
// is, and lives no longer; and what is said of either is said in words of Lua.
func TestObjects_CallFunctions(t *testing.T) {
	for body, want := range map[string]string{
		`return bus:each(function(x) return x + 1 end)`:                                                `^2 <nil>$`,
		`local function deep() return bus:each(function() return deep() end) end return deep()`:        `: stack overflow$`,
		`return bus:each(function() while true do end end)`:                                            `timed out after 100ms$`,
		`bus:each(function() while true do end end)`:                                                   `timed out after 100ms$`,
		`return bus:each(function() return pcall(function() while true do end end) and 1 end)`:         `timed out after 100ms$`,
		`return bus:each(function() return bus:each(function() error("no") end) end)`:                  `^ no$`,
		`return bus:each(function() end)`:                                                              `^ activities/a\.lua:2: results of a function that was given to an object: wanted 1, got 0$`,
		`return bus:each(function() return "x" end)`:                                                   `^ activities/a\.lua:2: a function that was given to an object returned a wrong value: number expected, got string$`,
		`return bus:map({ f = function(x) return x + 1 end })`:                                         `^2 <nil>$`,
		`return bus:map({ f = function() while true do end end })`:                                     `timed out after 100ms$`,
		`local function deep() return bus:map({ f = function() return deep() end }) end return deep()`: `: stack overflow$`,
		`local all = {} for i = 1, 250 do
			all[i] = coroutine.wrap(function() return bus:each(function(x) coroutine.yield() return x end) end)
			all[i]()
		end return #all`: `^250 <nil>$`,
		`bus:want(bus:give())`: `^ activities/a\.lua:2: bad argument #1 to want: string expected, got table$`,
		`local rep = string.rep return rep("x", {}) .. ("x"):rep(1)`: `bad argument #2 to rep: number expected, got table$`,
		`return bus:emit(1)`:                `the call that gave this function to an object has ended$`,
		`return bus:add("x", "y")`:          `^ activities/a\.lua:2: bad argument #1 to add: number expected, got string$`,
		`return bus:add(1, {})`:             `^ activities/a\.lua:2: bad argument #2 to add: string expected, got table$`,
		`return bus.add(1, 2, "x")`:         `^ activities/a\.lua:2: bad argument #1 to bus\.add: object expected, got number$`,
		`return bus.nope`:                   `^null <nil>$`,
		`bus.nope = 1`:                      `^ activities/a\.lua:2: the object has no field "nope"$`,
		`bus.n = "x"`:                       `^ activities/a\.lua:2: bad value: number expected, got string$`,
		`return ("x"):rep({})`:              `^ activities/a\.lua:2: bad argument #1 to rep: number expected, got table$`,
		`return string.rep("x", {})`:        `^ activities/a\.lua:2: bad argument #2 to string\.rep: number expected, got table$`,
		`local s = "x" return s.rep({}, 2)`: `^ activities/a\.lua:2: bad argument #1 to s\.rep: string expected, got table$`,
	} {
		b, timeout := &bus{}, 10.0
		if strings.Contains(want, "timed out") {
			timeout = 0.1
		}
		h, err := Open(Config{
			FS: project(map[string]string{
				"activities/a.lua":    fmt.Sprintf("Activity.register('a', { timeout = %g }, function(call)\n%s\nend)", timeout, body),
				"activities/keep.lua": "Activity.register('keep', function() bus:map({ f = coroutine.wrap(function(n) return n end) }) end)",
			}),
			Objects: map[string]any{"bus": b},
		})
		if err != nil {
			t.Fatal(err)
		}
		g := h.Generation()
		if _, err := g.Registry().Activities["keep"].Activity.Run(t.Context(), plan.Invocation{}); err != nil {
			t.Fatal(err)
		}
		got, err := runA(g, plan.Invocation{})
		if text := fmt.Sprint(got, " ", err); !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s: %q, not %s", body, text, want)
		}
	}
}

// TestObjects_Errors: an error of a method in Go is what it says, wherever a script
// has it.
func TestObjects_Errors(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{`return nil, err`, "failure no more than 10\ufffd"},
		{`error(err)`, "failure no more than 10\ufffd"},
		{`assert(account:Withdraw(20))`, "failure no more than 10\ufffd"},
		{`return nil, { message = err, code = "poor" }`, "failure no more than 10\ufffd"},
		{`return { why = err }`, "{\"why\":\"no more than 10\ufffd\"}"},
		{`return ("it is " .. err .. "!"):gsub("[\128-\255]", "")`, `"it is no more than 10!"`},
		{`return tostring(err):sub(1, 7)`, `"no more"`},
		{`local ok, none = account:Withdraw(3) return none == nil and ok.Balance`, `7`},
	} {
		h, err := Open(Config{
			FS: project(map[string]string{"activities/a.lua": `Activity.register("a", function(call)
				local none, err = account:Withdraw(20)
				` + test.body + `
			end)`}),
			Objects: map[string]any{"account": &account{10}},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := runA(h.Generation(), plan.Invocation{})
		if failure := (*plan.Failure)(nil); errors.As(err, &failure) {
			got = "failure " + failure.Error()
		} else if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.body, got, test.want)
		}
	}
}

func TestOutput_PrintAndLog(t *testing.T) {
	var out bytes.Buffer
	h, err := Open(Config{Stderr: &out, FS: fstest.MapFS{"activities/a.lua": {Data: []byte(`Activity.register("a", function(call)
		print("a", 1, nil, {} ~= nil)
		require("log").warn("careful", {b = 2, a = "x"})
	end)`)}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runA(h.Generation(), plan.Invocation{}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "a\t1\tnil\ttrue\n") || !strings.Contains(got, `level=WARN msg=careful a=x b=2`) {
		t.Errorf("got %s", got)
	}
}

func TestEffect_AtTopLevel(t *testing.T) {
	for _, effect := range []string{`require("time").sleep(1)`, `require("fs").write("x", "y")`, `require("fs").remove("x")`, `require("fs").mkdir("x")`, `require("fs").append("x", "y")`} {
		_, err := Open(Config{FS: project(map[string]string{"obelus.lua": "return {allow = true}", "activities/a.lua": effect})})
		if err == nil || !strings.Contains(err.Error(), "is refused at the top level of a script, which may run again for every call: do it in the activity") {
			t.Errorf("%s: %v", effect, err)
		}
	}
}

func TestLazyTable(t *testing.T) {
	list := make([]any, 500)
	for i := range list {
		list[i] = map[string]any{"n": i, "tags": []any{"a", fmt.Sprint(i)}}
	}
	big := map[string]any{"list": list, "empty": []any{}}
	tests := []struct{ body, want string }{
		{`return #c.list`, `500`},
		{`return c.list[500].tags[2]`, `"499"`},
		{`local n = 0; for i, v in ipairs(c.list) do n = n + v.n end; return n`, `124750`},
		{`local n = 0; for k, v in pairs(c.list) do n = n + 1 end; return n`, `500`},
		{`return next(c.list[100]) ~= nil`, `true`},
		{`return rawget(c.list, 3).n`, `2`},
		{`rawset(c.list, 501, 1); return #c.list`, `501`},
		{`c.list[501] = 1; return #c.list`, `501`},
		{`table.insert(c.list, 1, 0); return c.list[2].n`, `0`},
		{`return table.remove(c.list).n`, `499`},
		{`return select("#", unpack(c.list))`, `500`},
		{`table.sort(c.list, function(a, b) return a.n > b.n end); return c.list[1].n`, `499`},
		{`return getmetatable(c.list) == nil`, `true`},
		{`return setmetatable(c.list, {__index = function() return "x" end})[501]`, `"x"`},
		{`return c.list == c.list`, `true`},
		{`return table.maxn(c.list)`, `500`},
		{`return #table.concat(c.list[9].tags, ",")`, `3`},
		{`return c.empty`, `[]`},
		{`return json.encode(c.list[2])`, `"{\"n\":1,\"tags\":[\"a\",\"1\"]}"`},
	}
	for _, test := range tests {
		got, err := runA(one(t, "local c = context.state "+test.body), plan.Invocation{Context: map[string]any{"state": big}})
		if err != nil || got != test.want {
			t.Errorf("%s: got %s %v, want %s", test.body, got, err, test.want)
		}
	}
	got, err := call(one(t, "return context.state"), "a", plan.Invocation{Context: map[string]any{"state": big}})
	if err != nil || string(store.EncodeJSON(got.Value)) != string(store.EncodeJSON(big)) {
		t.Errorf("the whole did not come back: %v", err)
	}
}

// TestPcall_Upvalues: an error that is caught leaves the variables of the
// function that catches it to its closures.
func TestPcall_Upvalues(t *testing.T) {
	for body, want := range map[string]string{
		`local n = 0; local function inc() n = n + 1 end; inc(); pcall(error, "x"); inc(); return n`:                                                                                                            `2`,
		`local n = 0; local function inc() n = n + 1 end; inc(); xpcall(function() inc(); error("x") end, inc); inc(); return n`:                                                                                `4`,
		`local n = 0; local function inc() n = n + 1 end; pcall(function() pcall(error); inc(); local t = nil + 1 end); inc(); return n`:                                                                        `2`,
		`local fs = {}; pcall(function() for i = 1, 3 do local j = i * 10; fs[i] = function() j = j + 1; return j end end; error("x") end); local a, b = "p", "q"; return {fs[1](), fs[2](), fs[2](), fs[3]()}`: `[11,21,22,31]`,
		`local fs = {}; xpcall(function() local j = 5; fs[1] = function() j = j + 1; return j end; local z = nil + 1 end, tostring); local a, b = "p", "q"; return {fs[1](), fs[1]()}`:                          `[6,7]`,
	} {
		if got, err := runA(one(t, body), plan.Invocation{}); err != nil || got != want {
			t.Errorf("%s: got %s %v, want %s", body, got, err, want)
		}
	}
}

// TestPcall_DeepInGo nests metamethods and protected calls as deep as they go: each
// takes Go stack.
func TestPcall_DeepInGo(t *testing.T) {
	for _, body := range []string{
		`local function bomb()
			local n, t = 0, nil
			t = setmetatable({}, {__index = function(_, k)
				n = n + 1
				if n < 1900 then return t[k + 1] end
				return (pcall(bomb))
			end})
			return t[1]
		end
		return pcall(bomb) ~= nil`,
		`local function bomb()
			local n = 0
			local function f()
				n = n + 1
				if n < 900 then return (("x"):gsub("x", f)) end
				return tostring(pcall(bomb))
			end
			return f()
		end
		return pcall(bomb) ~= nil`,
		`local function bomb() table.sort({1, 2}, function() return bomb() end) end
		return pcall(bomb) ~= nil`,
	} {
		g := open(t, map[string]string{"activities/a.lua": `Activity.register("a", {timeout = 20}, function() ` + body + ` end)`})
		if got, err := runA(g, plan.Invocation{}); got != "true" {
			t.Errorf("got %s %v", got, err)
		}
	}
}
