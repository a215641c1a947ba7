package host

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"obelus/engine/plan"
)

// bombs are what has ended or hung a process that runs scripts, class by class:
// native functions that never look at the clock, Go stacks that overflow, memory
// that runs out, errors that unwind for ever.
var bombs = map[string]string{
	"endless loop":              `while true do end`,
	"endless loop in pcall":     `while true do pcall(function() while true do end end) end`,
	"endless in a callback":     `(("x"):rep(10)):gsub(".", function() while true do end end)`,
	"endless in a metamethod":   `return setmetatable({}, { __index = function(t, k) while true do end end }).x`,
	"pattern with many stars":   `return ("x"):rep(30000):find(("x*"):rep(30) .. "y")`,
	"an innocent trim":          `return (" "):rep(200000):match("^%s*(.-)%s*$")`,
	"pattern of brackets":       `return ("x"):find(("("):rep(1000000))`,
	"pattern of balances":       `return ("("):rep(100000):find(("%b()"):rep(1000))`,
	"gsub that grows":           `return (("x"):rep(1000000):gsub("x", ("y"):rep(1000)))`,
	"gsub by a function":        `return (("x"):rep(1000000):gsub("x", function() return ("y"):rep(1000) end))`,
	"rep":                       `return ("x"):rep(1e10)`,
	"rep of rep":                `local s = "x" while true do s = s:rep(10) end`,
	"format of a wide number":   `return ("%1000000000d"):format(1)`,
	"doubled strings":           `local s = "x" while true do s = s .. s end`,
	"concat of long strings":    `local t = {} for i = 1, 100000 do t[i] = ("x"):rep(100000) end return table.concat(t)`,
	"concat of one string":      `local t, s = {}, ("x"):rep(100000) for i = 1, 100000 do t[i] = s end return table.concat(t)`,
	"a far index":               `local t = {} t[67108863] = 1 t[2^53] = 1 t[-1] = 1 return #t`,
	"a growing table":           `local t = {} while true do t[#t + 1] = {} end`,
	"a growing table of keys":   `local t, i = {}, 0 while true do i = i + 1 t["k" .. i] = { i } end`,
	"growing strings":           `local t = {} while true do t[#t % 100000 + 1] = ("x"):rep(1000000) .. #t end`,
	"closures":                  `local t = {} while true do local x = {} t[#t + 1] = function() return x end end`,
	"recursion":                 `local function f() return 1 + f() end return f()`,
	"recursion in tail calls":   `local function f() return f() end return f()`,
	"recursion by pcall":        `local function f() return pcall(f) end return f()`,
	"recursion by xpcall":       `local function f() return xpcall(f, f) end return f()`,
	"recursion by a metamethod": `local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k .. "x"] end return t.x`,
	"recursion by tostring":     `local t = setmetatable({}, {}) getmetatable(t).__tostring = function(t) return tostring(t) end return tostring(t)`,
	"recursion by sort":         `local function f() table.sort({ 3, 2, 1 }, function(a, b) f() return a < b end) end f()`,
	"recursion by gsub":         `local function f() return (("x"):gsub(".", f)) end return f()`,
	"sort that lies":            `local t = {} for i = 1, 100000 do t[i] = i end table.sort(t, function() return true end)`,
	"unpack of many":            `return select("#", unpack({}, 1, 1e8))`,
	"bytes of a long string":    `return select("#", ("x"):rep(10000000):byte(1, -1))`,
	"char of many":              `local t = {} for i = 1, 1000000 do t[i] = 65 end return #string.char(unpack(t))`,
	"an error that is long":     `local s = ("x"):rep(10000000) while true do pcall(error, s .. #s) end`,
	"errors that nest":          `local function f(e) error({ e }) end local e = "x" for i = 1, 1e6 do local _; _, e = pcall(f, e) end`,
	"a table in itself":         `local t = {} t.t = t return json.encode(t)`,
	"a result in itself":        `local t = {} t.t = t return t`,
	"a table in two places":     `local t = {} for i = 1, 60 do t = { t, t } end return t`,
	"JSON of brackets":          `return json.decode(("["):rep(1000000))`,
	"JSON that is long":         `return json.decode("[" .. ("1,"):rep(5000000) .. "1]")`,
	"a source of braces":        `return (loadstring or load or function() end)("return " .. ("{"):rep(1000000))`,
	"a source of nots":          `return (loadstring or load or function() end)("return " .. ("not "):rep(1000000) .. "1")`,
	"coroutines that resume each other": `
		if not coroutine then return end
		local a, b
		a = coroutine.wrap(function() b() end)
		b = coroutine.wrap(function() a() end)
		a()`,
	"coroutines in coroutines": `local function f() return coroutine.wrap(f)() end if coroutine then f() end`,
	"coroutines without end":   `while coroutine do local c = coroutine.create(function() coroutine.yield() end) coroutine.resume(c) end`,
	"a loop in a coroutine":    `if coroutine then coroutine.wrap(function() while true do end end)() end`,
	"numbers of strings":       `for i = 1, math.huge do local _ = tostring(i) .. i end`,
	"date of nonsense":         `return os.date(("%c"):rep(1000000))`,
}

// TestBombs holds that none of them harms the host, or keeps others from being
// answered. Where the system lets it, it runs under a bound on the address
// space, so that what takes memory without end is noticed.
func TestBombs(t *testing.T) {
	if os.Getenv("OBELUS_TEST_BOUND") == "" && !raceEnabled {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command("sh", "-c", `ulimit -v 4000000 && exec "$0" -test.run 'TestBombs$'`, self)
		c.Env = append(os.Environ(), "OBELUS_TEST_BOUND=1")
		if out, err := c.CombinedOutput(); err != nil {
			text := string(out)
			t.Errorf("%v\n%s", err, text[:min(len(text), 4000)])
		}
		return
	}
	var script strings.Builder
	for _, name := range slices.Sorted(maps.Keys(bombs)) {
		script.WriteString("Activity.register([[" + name + "]], function() " + bombs[name] + " end)\n")
	}
	g := open(t, map[string]string{
		"obelus.lua":         `return { timeout = 0.5, limits = { memory = "256MB" } }`,
		"activities/b.lua":   script.String(),
		"activities/one.lua": `Activity.register("honest", { timeout = 20 }, function(call) return call.n + 1 end)`,
	})
	run := func(name string) (any, error) {
		result, err := g.Registry().Activities[name].Activity.Run(context.Background(), plan.Invocation{Call: map[string]any{"n": 1}, Attempt: 1})
		return result.Value, err
	}
	for _, name := range slices.Sorted(maps.Keys(bombs)) {
		t.Run(name, func(t *testing.T) {
			ended := make(chan time.Duration)
			began := time.Now()
			go func() {
				_, _ = run(name)
				ended <- time.Since(began)
			}()
			answers, slowest := 0, time.Duration(0)
			for {
				at := time.Now()
				if v, err := run("honest"); err != nil && !strings.Contains(err.Error(), "limits.memory") || err == nil && v == nil {
					t.Fatalf("an honest call gives %v, %v", v, err)
				}
				answers, slowest = answers+1, max(slowest, time.Since(at))
				select {
				case took := <-ended:
					if took > 20*time.Second || slowest > 10*time.Second {
						t.Errorf("it took %s, and the slowest of %d other calls %s", took, answers, slowest)
					}
					t.Logf("%s; %d others, the slowest %s", took, answers, slowest)
					return
				default:
				}
			}
		})
	}
}
