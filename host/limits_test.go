package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"obelus/engine/plan"
	"obelus/host/internal/setting"
)

// TestLimits holds that each limit is a setting, and that what goes over it
// fails with an error that names the setting.
func TestLimits(t *testing.T) {
	for _, test := range []struct{ name, limit, body, want string }{
		{"instructions", "instructions = 100000", `while true do end`,
			"activities/a.lua:1: the script has run too many instructions: limits.instructions in obelus.lua allows 100000"},
		{"instructions in native code", "instructions = 100000", `for i = 1, 1000 do string.rep("x", 100000) end`,
			"activities/a.lua:1: the script has run too many instructions: limits.instructions in obelus.lua allows 100000"},
		{"instructions within pcall", "instructions = 100000", `while true do pcall(function() while true do end end) end`,
			"activities/a.lua:1: the script has run too many instructions: limits.instructions in obelus.lua allows 100000"},
		{"memory in tables", `memory = "32MB"`, `local t = {} while true do t[#t + 1] = { {}, {}, {} }; if #t > 100000 then t = { t } end end`,
			"activities/a.lua:1: the process has grown too much while the script ran: limits.memory in obelus.lua allows 32 MB"},
		{"memory in strings", `memory = "32MB"`, `local t = {} while true do t[#t + 1] = ("x"):rep(1000000) .. #t end`,
			"activities/a.lua:1: the process has grown too much while the script ran: limits.memory in obelus.lua allows 32 MB"},
		{"result of control characters", `result = "1KB"`, `return { text = ("\1"):rep(200) }`,
			"activities/a.lua: activity a: result: it is too long: limits.result in obelus.lua allows 1 KB"},
		{"result of a key", `result = "1KB"`, `return { [("\1"):rep(200)] = 1 }`,
			"activities/a.lua: activity a: result: it is too long: limits.result in obelus.lua allows 1 KB"},
		{"result that was given", `result = "1KB"`, `return json.decode('{"a":"' .. ("\\u0001"):rep(200) .. '","b":{"c":{}}}')`,
			"activities/a.lua: activity a: result: it is too long: limits.result in obelus.lua allows 1 KB"},
		{"result", `result = "1KB"`, `return { text = ("x"):rep(2000) }`,
			"activities/a.lua: activity a: result: it is too long: limits.result in obelus.lua allows 1 KB"},
		{"depth", "depth = 3", `return { { { { 1 } } } }`,
			"activities/a.lua: activity a: result[1][1][1]: it is nested too deep: limits.depth in obelus.lua allows 3"},
		{"pattern", "pattern = 100", `return ("x"):find(("x?"):rep(51))`,
			"activities/a.lua:1: the pattern has 102 bytes: limits.pattern in obelus.lua allows 100 bytes"},
		{"string", `string = "1KB"`, `return ("x"):rep(2000)`,
			"activities/a.lua:1: the string is too long: limits.string in obelus.lua allows 1 KB"},
		{"joined string", `string = 1000`, `local s = "" while true do s = s .. "xxxxxxxx" end`,
			"activities/a.lua:1: the string is too long: limits.string in obelus.lua allows 1000 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := open(t, map[string]string{
				"obelus.lua":       "return { limits = { " + test.limit + " } }",
				"activities/a.lua": `Activity.register("a", { timeout = 60 }, function() ` + test.body + ` end)`,
			})
			_, err := g.Registry().Activities["a"].Activity.Run(context.Background(), plan.Invocation{Attempt: 1})
			var failure *plan.Failure
			if err == nil || err.Error() != test.want || errors.As(err, &failure) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
	_, err := Open(Config{FS: project(map[string]string{"obelus.lua": "return { limits = { source = 100 } }", "activities/a.lua": strings.Repeat(" ", 101)})})
	if want := "activities/a.lua:1: the script has 101 bytes: limits.source in obelus.lua allows 100 bytes"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	for setting, want := range map[string]string{
		"memory = 'much'":    `limits.memory must be a size: a number of bytes or text like "64MB", not "much"`,
		"memory = 0":         `limits.memory must be a size: a number of bytes or text like "64MB", not 0`,
		"instructions = 'x'": `limits.instructions must be a whole number above 0, not "x"`,
		"depth = 201":        `limits.depth must be at most 200, not 201`,
		"stings = 1":         `unknown setting limits.stings (did you mean "string"?)`,
	} {
		_, err := Open(Config{FS: project(map[string]string{"obelus.lua": "return { limits = { " + setting + " } }"})})
		if err == nil || err.Error() != "obelus.lua:1: "+want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	for text, want := range map[string]int{"64MB": 64 << 20, "1 GiB": 1 << 30, "3k": 3 << 10, "12": 12, "7b": 7} {
		if got, err := setting.Size.Read(text); got != want || err != nil {
			t.Errorf("%s is %d, %v", text, got, err)
		}
	}
}

// TestReuse holds that a warm state goes on where the call before left it, that
// one in which something was raised is thrown away, and that without the option
// nothing outlives a call.
func TestReuse(t *testing.T) {
	g := open(t, map[string]string{"activities/a.lua": `
		local n = 0
		local function count(call)
			n = n + 1
			if call.fail then error("no") end
			if call.refuse then return nil, "no" end
			return n
		end
		Activity.register("warm", { reuse = true }, count)
		Activity.register("fresh", count)
		Activity.register("slow", { reuse = true, timeout = 0.05 }, function(call) n = n + 1 while call.loop do end return n end)`})
	run := func(name string, call map[string]any) string {
		result, err := g.Registry().Activities[name].Activity.Run(context.Background(), plan.Invocation{Call: call, Attempt: 1})
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(result.Value)
	}
	for _, step := range []struct {
		name, want string
		call       map[string]any
	}{
		{"fresh", "1", nil}, {"fresh", "1", nil},
		{"warm", "1", nil}, {"warm", "2", nil}, {"warm", "no", map[string]any{"refuse": true}}, {"warm", "4", nil},
		{"warm", "no", map[string]any{"fail": true}}, {"warm", "1", nil}, {"warm", "2", nil},
		{"slow", "1", nil}, {"slow", "timed out after 50ms", map[string]any{"loop": true}}, {"slow", "1", nil},
	} {
		if got := run(step.name, step.call); got != step.want {
			t.Errorf("%s gives %s, not %s", step.name, got, step.want)
		}
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { run("warm", nil) })
	}
	all.Wait()
}

// TestReuse_Coroutines holds that a module that was still being loaded
// by a coroutine when a call ended does not make a top level of the next call.
func TestReuse_Coroutines(t *testing.T) {
	g := open(t, map[string]string{
		"lib/outer.lua": `local co = coroutine.create(function() require "inner" end) coroutine.resume(co) return { co = co }`,
		"lib/inner.lua": `coroutine.yield()`,
		"activities/a.lua": `Activity.register("a", { reuse = true }, function()
			require "outer"
			require("time").sleep(0)
		end)`,
	})
	for range 2 {
		if _, err := g.Registry().Activities["a"].Activity.Run(context.Background(), plan.Invocation{Attempt: 1}); err != nil {
			t.Error(err)
		}
	}
}

// TestReuse_AfterFault holds that a call ends its coroutines
// even where what it returns can't be read.
func TestReuse_AfterFault(t *testing.T) {
	g := open(t, map[string]string{"activities/a.lua": `Activity.register("a", { reuse = true }, function(call)
		coroutine.wrap(function() coroutine.yield() end)()
		return call.n and json.decode("[" .. ("1,"):rep(call.n) .. "1]")
	end)`})
	before := runtime.NumGoroutine()
	for _, n := range []any{nil, 1_100_000} {
		_, err := g.Registry().Activities["a"].Activity.Run(context.Background(), plan.Invocation{Call: map[string]any{"n": n}, Attempt: 1})
		if (err != nil) != (n != nil) {
			t.Error(n, err)
		}
	}
	goroutinesEnd(t, before)
}

// TestMemory_LongStrings holds that memory is looked at as often as it is
// taken, and not once in so many steps, of which each may take 16 MB.
func TestMemory_LongStrings(t *testing.T) {
	var printed strings.Builder
	h, err := Open(Config{Stderr: &printed, FS: project(map[string]string{
		"obelus.lua":       `return { limits = { memory = "64MB" } }`,
		"activities/a.lua": `Activity.register("a", function() local t = {} while true do print(#t) t[#t + 1] = ("x"):rep(16 * 1024 * 1024) end end)`,
	})})
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC() // what others left and is collected meanwhile would count for it
	_, err = h.Generation().Registry().Activities["a"].Activity.Run(context.Background(), plan.Invocation{Attempt: 1})
	if err == nil || !strings.Contains(err.Error(), "limits.memory") {
		t.Error(err)
	}
	if n := strings.Count(printed.String(), "\n"); n > 20 {
		t.Errorf("it had %d strings of 16 MB", n)
	}
}

// TestMemory_Garbage holds that a script may make as much garbage as it
// likes, beside much that it keeps.
func TestMemory_Garbage(t *testing.T) {
	g := open(t, map[string]string{
		"obelus.lua": `return { limits = { memory = "128MB" } }`,
		"activities/a.lua": `Activity.register("a", { timeout = 600 }, function()
			local kept = {}
			for i = 1, 6 do kept[i] = ("x"):rep(10000000) .. i end
			for i = 1, 100 do local _ = ("x"):rep(10000000) .. i end
			return #kept
		end)`})
	if _, err := g.Registry().Activities["a"].Activity.Run(context.Background(), plan.Invocation{Attempt: 1}); err != nil {
		t.Error(err)
	}
}

// TestMemory_OtherCalls runs a call that takes all the memory that it may,
// and one that is honest beside it.
func TestMemory_OtherCalls(t *testing.T) {
	g := open(t, map[string]string{
		"obelus.lua": `return { limits = { memory = "64MB" } }`,
		"activities/a.lua": `
			Activity.register("bomb", function() local t = {} while true do t[#t + 1] = ("x"):rep(100000) .. #t end end)
			Activity.register("honest", function(call) return call.n end)`})
	ended := make(chan error)
	go func() {
		_, err := g.Registry().Activities["bomb"].Activity.Run(context.Background(), plan.Invocation{Attempt: 1})
		ended <- err
	}()
	slowest := time.Duration(0)
	for n := 0; ; n++ {
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "limits.memory") {
				t.Errorf("the bomb: %v", err)
			}
			t.Logf("%d honest calls meanwhile, the slowest %s", n, slowest)
			return
		default:
		}
		began := time.Now()
		result, err := g.Registry().Activities["honest"].Activity.Run(context.Background(), plan.Invocation{Call: map[string]any{"n": "x"}, Attempt: 1})
		if err != nil || result.Value != "x" {
			t.Fatal(result, err)
		}
		slowest = max(slowest, time.Since(began))
	}
}

// TestInstructions_CountedOnce: what goes through a text piece by piece counts each piece, not all
// that there is at each.
func TestInstructions_CountedOnce(t *testing.T) {
	for _, body := range []string{
		`return #(text:gsub("\n", "\r\n"))`,
		`return #require("re").gsub(text, "\n", "\r\n")`,
		`local n, at = 0, 1; while true do local i = text:find("\n", at, true); if not i then return n end; n, at = n + 1, i + 1 end`,
		`local parts = {}; for line in text:gmatch("[^\n]+") do parts[#parts + 1] = line end; return #table.concat(parts, ", ")`,
		`return #(("%d"):rep(7000)):format(unpack((function() local t = {}; for i = 1, 7000 do t[i] = 1e9 end; return t end)()))`,
	} {
		g := open(t, map[string]string{
			"obelus.lua":       `return { limits = { instructions = 100000000 } }`,
			"activities/a.lua": `Activity.register("a", function() local text = (("x"):rep(9) .. "\n"):rep(100000); ` + body + ` end)`,
		})
		if _, err := runA(g, plan.Invocation{}); err != nil {
			t.Errorf("%v in %s", err, body)
		}
	}
}
