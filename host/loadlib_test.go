package host

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"obelus/engine/plan"
)

func TestLoad(t *testing.T) {
	tests := []struct{ body, want string }{
		{`return loadstring("return 1 + 1")()`, `2`},
		{`return loadstring("return ...")(7)`, `7`},
		{`local pieces = {"return ", "4", "2"}; local i = 0; return load(function() i = i + 1; return pieces[i] end)()`, `42`},
		{`return load("return x", "chunk", "t", {x = "mine"})()`, `"mine"`},
		{`loadstring("x = 5; function f() return x .. 1 end")(); return {_G.x, f()}`, `[5,"51"]`},
		{`local env = {}; setfenv(loadstring("x = #'abc' .. 'd'"), env)(); return {env.x, x == nil}`, `["3d",true]`},
		{`local function f() return y end; setfenv(f, {y = "there"}); return {f(), getfenv(f).y, getfenv(1) == _G}`, `["there","there",true]`},
		{`local function f() setfenv(2, setmetatable({z = 3}, {__index = _G})) end; local function g() f(); return z end; return g()`, `3`},
		{`return {getfenv() == _G, getfenv(0) == _G, getfenv(print) == _G, getfenv(string.rep) == _G, getfenv(function() end) == _G}`, `[true,true,true,true,true]`},
		{`return select(2, pcall(setfenv, print, {}))`, `"setfenv can't change the environment of a library function"`},
		{`return select(2, pcall(setfenv, 0, {}))`, `"setfenv can't change the environment of the whole script"`},
		{`return {pcall(function() return (getfenv(50)) end)}`, `[false,"activities/a.lua:1: bad argument #1 to getfenv: invalid level"]`},
		{`return {select(2, loadstring("x ="))}`, `["[string \"x =\"]:1: the file ends too early"]`},
		{`return {select(2, loadstring("\n\n x = = 1", "=mine"))}`, `["mine:3: syntax error at \"=\""]`},
		{`return {select(2, loadstring("local a = 'x\n", "@lib/y.lua"))}`, `["lib/y.lua:1: unterminated string: its end is missing"]`},
		{`return {select(2, loadstring(string.char(27) .. "Lua"))}`, `["attempt to load a binary chunk: scripts load text alone"]`},
		{`return {select(2, load("return 1", "x", "b"))}`, `["attempt to load a text chunk (mode is 'b')"]`},
		{`return {select(2, load(function() return {} end))}`, `["reader function must return a string"]`},
		{`return {select(2, loadstring(("x = 1 "):rep(50000))):match("300000 bytes") ~= nil}`, `[true]`},
		{`return {select(2, loadstring("return " .. ("{"):rep(10000) .. ("}"):rep(10000))):match("nested deeper than 200") ~= nil}`, `[true]`},
		{`return loadstring("return " .. ("("):rep(10000) .. "1" .. (")"):rep(10000)) == nil`, `false`}, // the parser drops them
		{`return {select(2, loadstring("return " .. ("not "):rep(6000) .. "1")):match("nested deeper than 200") ~= nil}`, `[true]`},
		{`return select(2, pcall(loadstring("\nlocal t; return t.x", "=mine")))`, `"mine:2: attempt to index a nil value, key \"x\""`},
		{`local s = "a"; return loadstring("local s = ...; s = s .. 'b'; s = 'c' .. s; return s")(s)`, `"cab"`},
		{`local function f(s) s = "<" .. s; s = s .. ">"; s = (tostring(s)); return s end; return f("x")`, `"<x>"`},
		{`local function f(a, s) s = tostring(s), a; return s end; return f(1, 2)`, `"2"`},
		{`local function f(s) local a; s, a = (select(1, s, 2)); return {s, a == nil} end; return f(1)`, `[1,true]`},
	}
	for _, test := range tests {
		if got, err := runA(one(t, test.body), plan.Invocation{}); err != nil || got != test.want {
			t.Errorf("%s\ngot  %s %v\nwant %s", test.body, got, err, test.want)
		}
	}
}

func TestDebugLibrary(t *testing.T) {
	tests := []struct{ body, want string }{
		{"\nlocal i = debug.getinfo(1); return {i.source, i.short_src, i.currentline, i.what, i.linedefined}", `["@activities/a.lua","activities/a.lua",2,"Lua",1]`},
		{`local function f() return debug.getinfo(2, "l").currentline end; return f()`, `1`},
		{`local i = debug.getinfo(print); return {i.what, i.source, i.func == nil}`, `["C","=[C]",true]`},
		{`local function f() end; local i = debug.getinfo(f, "S"); return {i.what, i.func == f, i.currentline}`, `["Lua",true,-1]`},
		{`return debug.getinfo(99) == nil and debug.getinfo(-1) == nil`, `true`},
		{`local i = loadstring("return debug.getinfo(1)", "=mine")(); return {i.what, i.short_src}`, `["main","mine"]`},
		{"local function f()\nreturn debug.traceback('m') end\nlocal s = f(); return s:gsub('<.->', 'F')",
			`"m\nstack traceback:\n\tactivities/a.lua:2: in function 'f'\n\tactivities/a.lua:3: in function F"`},
		{`local i = debug.getinfo(print); return {i.linedefined, i.lastlinedefined, i.currentline}`, `[-1,-1,-1]`},
		{`local a = debug.traceback("m"); xpcall(function() local t; return t.x end, tostring); local b = debug.traceback("m"); return a == b`, `true`},
		{`local a = debug.traceback("m"); xpcall(error, error); local b = debug.traceback("m"); return a == b`, `true`},
		{"local s\nlocal function inner() local t; return t.x end\nxpcall(inner, function()\ns = debug.traceback() end)\nreturn s:gsub('<.->', 'F')",
			`"stack traceback:\n\tactivities/a.lua:4: in function F\n\tactivities/a.lua:2: in main chunk\n\tactivities/a.lua:3: in function F"`},
		{`return debug.traceback({}) ~= nil and type(debug.traceback({}))`, `"table"`},
		{"local _, s = xpcall(function()\nlocal t; return t.x end, debug.traceback); return s:match('in function <activities/a.lua:1>') ~= nil and s:match('a.lua:2: in') ~= nil", `true`},
		{`debug.sethook(); return {debug.gethook() == nil, select(2, pcall(debug.sethook, print, "l"))}`, `[true,"debug.sethook is not available in scripts"]`},
		{`return select(2, pcall(debug.setmetatable, "", {}))`, `"the metatable of a string can't be changed"`},
		{`return select(2, pcall(os.exit, 1))`, `"os.exit is not available in scripts: return, or raise an error"`},
		{`return {select(2, io.open("x")), select(2, io.read()), select(2, pcall(io.lines, "x"))}`,
			`["io can't open files in scripts: use require \"fs\"","scripts have no standard input","io can't open files in scripts: use require \"fs\""]`},
		{`return {io.type(io.stdout), io.type(1) == nil, type(io.stdout), io.output() == io.stdout, io.stdout:write(""), io.stdin:read() == nil}`, `["file",true,"userdata",true,true,true]`},
		{`return {require("string") == string, require "_G" == _G, package.loaded.io == io, package.loaded["m"] == nil}`, `[true,true,true,true]`},
		{`package.preload.virtual = function(name) return {name = name} end; return require("virtual").name`, `"virtual"`},
		{`local m = require "selfloaded"; return m.x`, `9`},
		{`local n = require("counts"); package.loaded.counts = nil; return {n, require "counts", require "counts"}`, `[1,2,2]`},
	}
	for _, test := range tests {
		g := open(t, map[string]string{
			"lib/selfloaded.lua": `package.loaded[...] = {x = 9}`,
			"lib/counts.lua":     `n = (n or 0) + 1; return n`,
			"activities/a.lua":   `Activity.register("a", function() ` + test.body + "\nend)",
		})
		if got, err := runA(g, plan.Invocation{}); err != nil || got != test.want {
			t.Errorf("%s\ngot  %s %v\nwant %s", test.body, got, err, test.want)
		}
	}
}

// TestLoad_EndsWithCall holds that a call does not wait longer than it may
// for the compiler, which the many globals of this chunk keep busy for seconds.
func TestLoad_EndsWithCall(t *testing.T) {
	g := open(t, map[string]string{"activities/a.lua": `Activity.register("a", { timeout = 0.2 }, function()
		local numbers = {}
		for i = 1, 30000 do numbers[i] = "g" .. i end
		return type(loadstring("return {" .. table.concat(numbers, ",") .. "}"))
	end)`})
	endsAfter(t, "loadstring", 200*time.Millisecond, func() error {
		_, err := runA(g, plan.Invocation{})
		return err
	})
}

// writes keeps the texts that are written apart.
type writes struct{ texts []string }

func (w *writes) Write(text []byte) (int, error) {
	w.texts = append(w.texts, string(bytes.Clone(text)))
	return len(text), nil
}

func TestPrint_WholeLines(t *testing.T) {
	var out writes
	h, err := Open(Config{Stderr: &out, FS: project(map[string]string{"activities/a.lua": `Activity.register("a", function()
		io.write("a", 1); io.stderr:write("b\nc"); print("d"); io.write("e"); io.stdout:flush(); io.write("not ended")
	end)`})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runA(h.Generation(), plan.Invocation{}); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(out.texts, "|"), "a1b\n|cd\n|e|not ended"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
