package host

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/host/internal/limits"
	"obelus/host/internal/sandbox"
	"obelus/luastd"
	"obelus/store"
	"obelus/store/sqlite"
)

// planter is granted the secret, and leaves it wherever a script can write.
const planter = `
local kept = {}
local shared = require("shared")
Activity.register("plant", function(call, context, tool)
  local secret = context.state.secret
  assert(secret == "the secret" and call.param == "the secret")
  kept[1], shared.kept = secret, secret
  local function put(t) pcall(function() t.planted = secret; t[1] = secret; t[secret] = true end) end
  for _, t in ipairs({ _G, string, table, math, os, json, Tool, Activity, Delegate, Output, Message, call, context, context.state, tool, tool.properties,
      io, debug, coroutine, package, package.loaded, package.preload, package.loaders, getmetatable(io.stdout), getmetatable(io.stdout).__index }) do
    put(t)
    put(getmetatable(t) or {})
  end
  put(getmetatable("") or {})
  for _, name in ipairs({ "json", "time", "log", "fs", "csv", "str", "shared" }) do put(require(name)) end
  pcall(function() string.rep = function() return secret end end)
  pcall(function() Activity.register("stolen", function() return secret end) end)
  pcall(function() setmetatable(_G, { __index = function() return secret end }) end)
  pcall(function() getmetatable("").__index = { planted = secret } end)
  for _, f in ipairs({ print, require, string.rep, load, coroutine.yield, getfenv }) do
    pcall(setfenv, f, { planted = secret })
    put(getfenv(f))
  end
  for level = 0, 20 do pcall(setfenv, level, { planted = secret }) end
  for _, v in ipairs({ "", 0, true, print, io.stdout, _G }) do pcall(debug.setmetatable, v, { __index = { planted = secret } }) end
  pcall(function() package.preload.planted = function() return secret end; package.path = secret; require("planted") end)
  pcall(loadstring("planted = ...; string.planted = ..."), secret)
  local waits = coroutine.wrap(function(...) _G.planted_in_coroutine = ...; pcall(coroutine.yield, ...); coroutine.yield(...) end)
  waits(secret)
  pcall(coroutine.wrap(function() error(secret) end))
  xpcall(function() error(secret) end, debug.traceback)
  io.write(secret)
  pcall(error, secret)
  print = function() return secret end
  _G.planted = secret
  return "planted"
end)
`

// seeker is granted nothing, and looks for the secret wherever it can read.
const seeker = `
local shared = require("shared")
Activity.register("seek", function(call, context, tool)
  local seen, found = {}, {}
  local function look(v, where)
    if type(v) == "string" and v:find("the secret", 1, true) then found[#found + 1] = where end
    if type(v) == "function" then
      look(getfenv(v), where .. ".env")
      return
    end
    if type(v) == "userdata" then look(getmetatable(v), where .. ".meta") end
    if type(v) ~= "table" or seen[v] then return end
    seen[v] = true
    look(getmetatable(v), where .. ".meta")
    for key, e in pairs(v) do
      look(key, where .. " key")
      look(e, where .. "." .. tostring(key))
    end
  end
  look(_G, "_G")
  look(getmetatable(""), "string meta")
  look({ call, context, tool }, "arguments")
  look(shared, "shared")
  for _, name in ipairs({ "json", "time", "log", "fs", "csv", "str", "shared" }) do look(require(name), name) end
  for _, name in ipairs({ "planted", "planted_in_coroutine", "dofile", "loadfile", "newproxy", "collectgarbage" }) do
    if rawget(_G, name) ~= nil or _G[name] ~= nil then found[#found + 1] = "global " .. name end
  end
  for _, name in ipairs({ "package", "debug", "io", "coroutine", "load", "loadstring", "setfenv", "os" }) do look(_G[name], name) end
  for name in pairs(package.loaded) do look(require(name), "loaded " .. name) end
  if pcall(require, "planted") then found[#found + 1] = "preloaded" end
  look(loadstring("return _G")(), "loaded code")
  look(getfenv(load(function() end)), "the environment of loaded code")
  look(debug.traceback(), "traceback")
  look({ io.read(), io.stdin:read("*a"), tostring(io.stdout) }, "io")
  if coroutine.running() then found[#found + 1] = "a coroutine that runs" end
  coroutine.wrap(function()
    look({ _G = getfenv(1), outer = getfenv(0), thread = tostring(coroutine.running()), trace = debug.traceback() }, "in a coroutine")
  end)()
  for level = 0, 20 do
    look(debug.getinfo(level), "getinfo " .. level)
  end
  for level = 0, 20 do
    local ok, env = pcall(getfenv, level)
    if ok then look(env, "level " .. level) end
  end
  for _, f in ipairs({ function() return call.missing.x end, function() return nil + 1 end, function() error() end }) do
    local _, err = pcall(f)
    look(err, "an error")
  end
  for _, path in ipairs({ ".obelus/log.db", "/proc/self/environ", "../secret.txt", "secret.txt" }) do
    local content = require("fs").read(path)
    look(content or "", "file " .. path)
  end
  look(string.rep("x", 2), "string.rep")
  look(tostring(call) .. tostring(context), "addresses")
  return found
end)
`

// TestState_LeaksNothing holds protocol §6: "Nothing else of the parent is reachable
// from a script: no global, no upvalue shared between calls, no other call's
// parameters." One call is granted a secret and plants it wherever it can;
// others, in the same context, in an instance, and in a delegate, look for it.
func TestState_LeaksNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret.txt"), []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := open(t, map[string]string{
		"lib/shared.lua":     "return { list = {} }",
		"activities/p.lua":   planter,
		"activities/s.lua":   seeker,
		"activities/del.lua": `Delegate.register("inside", { calls = { { _tool = "seek", _scopes = { "state", "input", "out", "error" }, _outputPath = "†r" } }, output = "†r" })`,
		"p.lua": `return {
			context = { Message.state { secret = "the secret", open = 1 }, { type = "input", _instance = "①", mine = "the secret" },
				Tool and Message.tool { plant = { properties = { param = { type = "string" } }, _scopes = { const = { "state" } } } } },
			calls = {
				{ _tool = "plant", param = "†state.secret", _outputPath = "†done" },
				{ _tool = "seek", after = "†done", _outputPath = "†out.plain" },
				{ _tool = "seek", after = "†done", _scopes = { "state.open", "done" }, _outputPath = "†out.scoped" },
				{ _tool = "seek", after = "†done", _scopes = { "state" }, _outputPath = "†out.granted" },
				{ _tool = "seek", after = "†done", _instance = "②", _scopes = { "input" }, _outputPath = "†out.other" },
				{ _tool = "hand", _delegate = "inside", after = "†done", _scopes = { "state.open" }, _outputPath = "†out.delegate" },
				{ _tool = "seek", _delegate = "anonymous", after = "†done", _outputPath = "†out.anonymous" },
			},
		}`,
	})
	request, registry, err := g.Plan("p.lua")
	if err != nil {
		t.Fatal(err)
	}
	log, err := sqlite.Open(filepath.Join(dir, "log.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	t.Setenv("SECRET", "the secret")
	for _, parallel := range []int{1, 8} { // the same states from the pool, and others
		name := "c" + string(rune('0'+parallel))
		outcome, err := (&engine.Runner{Log: log, Registry: registry, Parallel: parallel}).Run(context.Background(), engine.Start{Context: name, Request: request})
		if err != nil || outcome.Status != journal.RunDone {
			t.Fatal(outcome, err)
		}
		for path, instance := range map[string]string{"granted": "", "plain": "", "scoped": "", "other": "②", "delegate": "", "anonymous": ""} {
			resolved, err := store.Resolver{Log: log, Context: name}.Resolve(context.Background(), store.MustParsePath("†out."+path), instance)
			if err != nil || !resolved.Exists {
				t.Fatal(path, err)
			}
			found := string(store.EncodeJSON(resolved.Value))
			if path == "granted" { // it finds what there is
				if found != `["arguments.2.state.secret"]` {
					t.Errorf("parallel %d: what is granted is found in %s", parallel, found)
				}
			} else if found != "{}" && found != "[]" {
				t.Errorf("parallel %d: the call that writes out.%s finds it in %s", parallel, path, strings.ReplaceAll(found, `","`, "\n"))
			}
		}
	}
}

// TestState_KeepsNoRun holds that what a state opens during a run, and keeps, does
// not keep the run's environment.
func TestState_KeepsNoRun(t *testing.T) {
	s := newSession(open(t, nil))
	s.Env.HTTP = func(context.Context, luastd.HTTPRequest) (luastd.HTTPResponse, error) {
		return luastd.HTTPResponse{}, nil
	}
	sc, err := sandbox.NewScript("a.lua", []byte(`return require("str").trim, require("http").get("http://x").json`), limits.Defaults.Source)
	if err != nil {
		t.Fatal(err)
	}
	s.begin(t.Context(), time.Minute, sc, nil)
	proto, _ := sc.Compile()
	kept, err := s.Call(s.L.NewFunctionFromProto(proto))
	if err != nil || len(kept) != 2 {
		t.Fatal(kept, err)
	}
	for i, v := range kept {
		if v.(*lua.LFunction).Env == s.Run.Env {
			t.Errorf("function %d has the run's environment", i+1)
		}
	}
}
