package cmd

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"

	"obelus/engine/journal"
	"obelus/store"
)

// scenario is what a person does with a project, command after command, as the
// log stands: whatever has happened to the commands before, the next one
// follows from it. It gives none at the end.
type scenario struct {
	name   string
	stride int64 // in short: how many commits lie between those at which it is killed
	long   bool  // in short it is not killed at random
	next   func(*site) []string
}

// crashProject has what can be cut off in the middle: branches, fan-outs, a
// delegate with calls of its own, calls that a person approves, instances,
// retries, failures, what must not run twice, and what nobody waits for.
var crashProject = map[string]string{
	"obelus.lua":  `return { allow = { read = { "tried" }, write = { "tried" } }, drain = "1s" }`,
	"tried/.keep": "",
	"note.json":   `{"type":"data","kind":"note","data":"mended"}`,
	"activities/work.lua": `
		local fs = require("fs")
		Activity.register("double", function(call) return 2 * call.n end)
		Activity.register("pay", function(call) return { paid = call.n } end)
		Activity.register("once", { idempotent = false }, function(call) return call.n end)
		Activity.register("note", function() return "noted" end)
		Activity.register("no", function() return nil, { message = "sold out", code = "sold-out" } end)
		Activity.register("flaky", { retries = 2, backoff = "2ms" }, function(call)
			if fs.exists("tried/flaky") then return call.n end
			assert(fs.write("tried/flaky", "once"))
			error("not at first")
		end)
		Activity.register("sum", function(call)
			local sum = 0
			for _, n in ipairs(call.list) do sum = sum + n end
			return sum
		end)
		Delegate.register("inner", { calls = {
			{ _tool = "double", n = "†input.n", _outputPath = "†x" },
			{ _tool = "pay", n = "†x", _outputPath = "†y" },
			{ _tool = "double", n = "†y.paid", _outputPath = "†z && †log" },
			{ _tool = "no", n = "†z", _outputPath = "†never || †refused" },
		}, output = { z = "†z", refused = "†refused.code" } })
		Delegate.register("small", { calls = {
			{ _tool = "double", n = "†input.n", _outputPath = "†x" },
			{ _tool = "double", n = "†x", _outputPath = "†y" },
		}, output = "†y" })`,
	"plans/all.lua": `return {
		context = { { type = "state", _instance = "①", n = 1 }, { type = "state", _instance = "②", n = 2 } },
		calls = {
			{ _tool = "double", n = "†input.n", _outputPath = "†state.a" },
			{ _tool = "double", n = "†state.a", _outputPath = "†state.b && †log", _outputMethod = "push" },
			{ _tool = "flaky", n = "†state.a", _outputPath = "†state.flaky" },
			{ _tool = "no", n = "†state.a", _outputPath = "†state.bought || †state.refused" },
			{ _tool = "double", n = "†state.bought || 21", _outputPath = "†state.instead" },
			{ _tool = "double", n = "†state.bought", _outputPath = "†state.skipped" },
			{ _tool = "no", n = "†state.a", _outputPath = "†state.failed" },
			{ _tool = "ask", _delegate = "inner", n = "†state.a", _outputPath = "†state.inner" },
			{ _tool = "pay", n = "†state.flaky", _outputPath = "†state.paid" },
			{ _tool = "double", n = "†state.n", _instance = "*", _outputPath = "†state.twice" },
			{ _tool = "double", n = 1, _outputPath = "†log", _outputMethod = "push" },
			{ _tool = "double", n = 2, _outputPath = "†log", _outputMethod = "push" },
			{ _tool = "double", n = 3, _outputPath = "†log", _outputMethod = "push" },
			{ _tool = "once", n = "†state.paid.paid", _outputPath = "†state.once" },
			{ _tool = "note", n = "†state.a" },
			{ _tool = "sum", list = "†log", _outputPath = "†state.sum" },
		},
		output = "†state",
	}`,
	"plans/loop.lua": `return { calls = function(context)
		local n = context.state and context.state.n or 0
		if n > 2 then return { calls = {}, output = "†state" } end
		return { calls = {
			{ _tool = "double", n = n, _outputPath = "†log", _outputMethod = "push" },
			{ _tool = "ask", _delegate = "small", n = n, _outputPath = "†state.asked.n" .. n },
			{ _tool = "once", n = n, _outputPath = "†log", _outputMethod = "push" },
			{ _tool = "pay", n = n + 1, _outputPath = "†paid" },
			{ _tool = "sum", list = { "†paid.paid" }, _outputPath = "†state.n" },
		} }
	end }`,
}

// has tells whether there is a context.
func (s *site) has(name string) bool {
	if s.log == nil {
		return false
	}
	_, err := s.log.Head(s.t.Context(), name)
	if err != nil && !errors.Is(err, store.ErrNoContext) {
		s.t.Fatal(err)
	}
	return err == nil
}

// run is the newest run of a context.
func (s *site) run(name string) journal.Run {
	s.t.Helper()
	last, err := journal.In(s.log, name).LastRun(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return last
}

// goesOn is the command that goes on with a run in a context, nil once it has
// come to its end.
func (s *site) goesOn(name string) []string {
	s.t.Helper()
	held, err := journal.In(s.log, name).Holds(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	records, err := journal.In(s.log, name).Records(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	doubt := slices.IndexFunc(records, func(r journal.Record) bool { return r.Status == journal.InDoubt })
	switch last := s.run(name); {
	case last.Status.Finished():
		return nil
	case doubt >= 0:
		return []string{"resume", "--json", "-c", name, "--retry", records[doubt].Call}
	case len(held) > 0 && last.Status == journal.RunWaiting:
		return []string{"approve", held[0].Call, "-c", held[0].Context}
	}
	return []string{"resume", "--json", "-c", name}
}

// scenarios are a plan, a planner that is asked again and again, and forks of
// what is under way and of what has ended.
var scenarios = []scenario{
	{"plan", 31, false, func(s *site) []string {
		if !s.has("c") {
			return []string{"run", "--json", "plans/all.lua", "-c", "c", "-i", "n:=2", "--approve", "pay"}
		}
		return s.goesOn("c")
	}},
	{"planner", 31, false, func(s *site) []string {
		if !s.has("c") {
			return []string{"run", "--json", "plans/loop.lua", "-c", "c", "--approve", "pay"}
		}
		return s.goesOn("c")
	}},
	{"forks", 61, true, func(s *site) []string {
		if !s.has("c") {
			return []string{"run", "--json", "plans/all.lua", "-c", "c", "-i", "n:=2", "--approve", "pay"}
		}
		if next := s.goesOn("c"); !s.has("twin") && next[0] == "resume" {
			return next
		}
		if !s.has("twin") {
			return []string{"fork", "-c", "c", "twin"}
		}
		for _, name := range []string{"twin", "c"} {
			if next := s.goesOn(name); next != nil {
				return next
			}
		}
		if !s.has("again") {
			return []string{"fork", "-c", "twin", "again"}
		}
		if !s.holds("again", "†note") {
			return []string{"append", filepath.Join(s.dir, "note.json"), "-c", "again"}
		}
		if next := s.goesOn("again"); next != nil {
			return next
		}
		if !s.holds("again", "†state.a", 20) {
			return []string{"run", "--json", "--from", "1.1", "--set", "n:=10", "-c", "again"}
		}
		return nil
	}},
}

// holds tells whether there is a value at a path, and whether it is that one.
func (s *site) holds(name, path string, want ...int) bool {
	s.t.Helper()
	p, err := store.ParsePath(path)
	if err != nil {
		s.t.Fatal(err)
	}
	found, err := store.Resolver{Log: s.log, Context: name}.Resolve(s.t.Context(), p, "")
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := json.Marshal(want)
	return err == nil && found.Exists && (len(want) == 0 || "["+string(store.EncodeJSON(found.Value))+"]" == string(text))
}
