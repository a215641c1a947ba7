package supervise

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// reacting is a project with plans for ends of runs: note gives back its input, and the plan for
// failed runs fails itself if it is sour.
func reacting(on string) *changingFS {
	return &changingFS{files: fstest.MapFS{
		"obelus.lua":       {Data: []byte(`return { drain = "1s", timeout = "1000h", serve = { on = { ` + on + ` } } }`)},
		"activities/a.lua": {Data: []byte(`Activity.register("fail", function() return nil, "no luck" end) Tool.register("hand", { properties = {} })`)},
		"plans/note.lua":   {Data: []byte(`return { calls = {}, output = "†input" }`)},
		"plans/sour.lua":   {Data: []byte(`return { { _tool = "fail", _outputPath = "†state.x" } }`)},
		"plans/hands.lua":  {Data: []byte(`return { calls = { { _tool = "hand", _delegate = "plans/sour.lua", _outputPath = "†state.x || †error.x" } } }`)},
		"plans/broken.lua": {Data: []byte(`return { { _tool = "file", _outputPath = "†state.x" } }`)},
	}}
}

// reactions lists the outputs, or the statuses, of the plans that were started for ends of runs.
func reactions(t *testing.T, log store.Log) (all []string) {
	t.Helper()
	synctest.Wait()
	for info, err := range log.Contexts(t.Context(), store.ContextFilter{Prefix: "on-"}) {
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := engine.ReadOutcome(t.Context(), log, info.Context)
		if err != nil {
			t.Fatal(err)
		}
		text := string(outcome.Status)
		if outcome.Status == journal.RunDone {
			text = string(store.EncodeJSON(outcome.Output))
		}
		if outcome.Calls != nil && outcome.Calls[0].Tick > 1 {
			t.Errorf("%s has run twice", info.Context)
		}
		occasion, _, _ := strings.Cut(strings.TrimPrefix(info.Context, "on-"), "-")
		all = append(all, occasion+": "+text)
	}
	slices.Sort(all)
	return all
}

func expectReactions(t *testing.T, log store.Log, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, reactions(t, log)); d != "" {
		t.Errorf("reactions (-want +got):\n%s", d)
	}
}

const onAll = `done = "plans/note.lua", failed = "plans/note.lua", held = "plans/note.lua"`

// TestReactions holds that the ends of runs start plans, once for two servers, and that those start
// no others.
func TestReactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		var warned bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&warned, &slog.HandlerOptions{Level: slog.LevelWarn}))
		warns := func(c *Config) { c.Logger = logger }
		w := newWorkerOf(t, reacting(onAll), log, warns)
		newWorkerOf(t, reacting(onAll), log, warns)
		w.expect(w.start("a", "double", 2), journal.RunDone, "4")
		w.expect(w.start("b", "fail", nil), journal.RunFailed, "null")
		w.expect(w.start("c", "double", "†input.n"), journal.RunWaiting, "null") // for which there is no plan
		expectReactions(t, log,
			`done: {"call":null,"context":"a","error":null,"labels":{},"plan":null,"status":"done"}`,
			`failed: {"call":"1.1","context":"b","error":"call 1.1 (fail): no luck","labels":{},"plan":null,"status":"failed"}`)
		if _, err := w.Append(t.Context(), "c", input(3)); err != nil {
			t.Fatal(err)
		}
		sleepUntil("00:01")
		// A later run of a context ends anew.
		w.expect(w.start("a", "double", 3), journal.RunDone, "6")
		expectReactions(t, log,
			`done: {"call":null,"context":"a","error":null,"labels":{},"plan":null,"status":"done"}`,
			`done: {"call":null,"context":"a","error":null,"labels":{},"plan":null,"status":"done"}`,
			`done: {"call":null,"context":"c","error":null,"labels":{},"plan":null,"status":"done"}`,
			`failed: {"call":"1.1","context":"b","error":"call 1.1 (fail): no luck","labels":{},"plan":null,"status":"failed"}`)
		if warned.Len() > 0 {
			t.Errorf("that another has begun a plan is no warning: %s", &warned)
		}
	})
}

// TestReactions_Held holds that a run that waits for a person starts a plan once for each decision
// that it waits for, whatever else it goes on with meanwhile.
func TestReactions_Held(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkerOf(t, reacting(onAll), memory.New(), nil)
		always, err := plan.ParsePolicy("always")
		if err != nil {
			t.Fatal(err)
		}
		run, err := w.Start(t.Context(), Start{Start: engine.Start{Context: "a", Request: request("double", 2), Approve: always}})
		w.expect(run, journal.RunWaiting, "null")
		if err != nil {
			t.Fatal(err)
		}
		const held = `held: {"call":"1.1","context":"a","error":null,"labels":{},"plan":null,"status":"held"}`
		expectReactions(t, w.log, held)
		if _, err := w.Append(t.Context(), "a", unrelated()); err != nil {
			t.Fatal(err)
		}
		sleepUntil("00:01")
		expectReactions(t, w.log, held)
		if err := w.Decide(t.Context(), journal.Decision{Context: "a", Call: "1.1", Who: journal.Who{By: "me"}}); err != nil {
			t.Fatal(err)
		}
		sleepUntil("00:02")
		expectReactions(t, w.log, `done: {"call":null,"context":"a","error":null,"labels":{},"plan":null,"status":"done"}`, held)
	})
}

// TestReactions_OfItself holds that a plan that was started so starts no other when it fails.
func TestReactions_OfItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkerOf(t, reacting(`failed = "plans/sour.lua", done = "plans/broken.lua"`), memory.New(), nil)
		w.expect(w.start("b", "fail", nil), journal.RunFailed, "null")
		w.expect(w.start("a", "double", 2), journal.RunDone, "4") // whose plan is refused
		sleepUntil("01:00")
		expectReactions(t, w.log, "failed: failed")
	})
}

// TestReactions_ToOtherProcesses holds that ends that other processes record start plans too.
func TestReactions_ToOtherProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkerOf(t, reacting(onAll), memory.New(), nil)
		g := w.host.Generation()
		if _, err := g.Settings().Runner(w.log, g.Registry()).Run(t.Context(), engine.Start{Context: "other", Request: request("fail", nil)}); err != nil {
			t.Fatal(err)
		}
		sleepUntil("00:01")
		expectReactions(t, w.log, `failed: {"call":"1.1","context":"other","error":"call 1.1 (fail): no luck","labels":{},"plan":null,"status":"failed"}`)
	})
}

// TestReactions_OfDelegates holds that the end of a delegate's run, which is part of another,
// starts no plan.
func TestReactions_OfDelegates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		w := newWorkerOf(t, reacting(onAll), log, nil)
		newWorkerOf(t, reacting(onAll), log, nil)
		request, registry, err := w.host.Plan("plans/hands.lua")
		if err != nil {
			t.Fatal(err)
		}
		run, err := w.Start(t.Context(), Start{Start: engine.Start{Context: "a", Request: request}, Registry: registry})
		if err != nil {
			t.Fatal(err)
		}
		w.expect(run, journal.RunDone, "null")
		sleepUntil("00:01")
		expectReactions(t, log, `done: {"call":null,"context":"a","error":null,"labels":{},"plan":"plans/hands.lua","status":"done"}`)
		if names := runsOf(t, log); !slices.Contains(names, "a.1.1 failed") {
			t.Errorf("the delegate did not fail: %v", names)
		}
	})
}

// TestReactions_AfterRestart holds that an end that was recorded while no server followed the log
// starts its plan when one begins, if such plans were started before, and once.
func TestReactions_AfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		w := newWorkerOf(t, reacting(`failed = "plans/sour.lua"`), log, nil)
		w.expect(w.start("first", "fail", nil), journal.RunFailed, "null")
		expectReactions(t, log, "failed: failed")
		if err := w.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		run := func(name, tool string) {
			g := w.host.Generation()
			if _, err := g.Settings().Runner(log, g.Registry()).Run(t.Context(), engine.Start{Context: name, Request: request(tool, 1)}); err != nil {
				t.Fatal(err)
			}
		}
		run("early", "fail")
		sleepUntil("01:30")
		run("late", "fail")
		run("done", "double")
		for range 2 {
			next := newWorkerOf(t, reacting(onAll), log, nil)
			expectReactions(t, log,
				"failed: failed",
				`failed: {"call":"1.1","context":"late","error":"call 1.1 (fail): no luck","labels":{},"plan":null,"status":"failed"}`)
			if err := next.Shutdown(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestReactions_NotToOlderEnds holds that no server starts a plan for an end that is older than the
// first plan for its occasion, as one from before the setting.
func TestReactions_NotToOlderEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		for i, on := range []string{"", onAll, onAll} {
			sleepUntil(fmt.Sprintf("00:%d0", i))
			w := newWorkerOf(t, reacting(on), log, nil)
			if i < 2 {
				w.expect(w.start(fmt.Sprint("run", i), "fail", nil), journal.RunFailed, "null")
			}
			synctest.Wait()
			if i == 1 { // which makes the context of the older end a recent one
				if _, err := w.Append(t.Context(), "run0", unrelated()); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Shutdown(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		expectReactions(t, log, `failed: {"call":"1.1","context":"run1","error":"call 1.1 (fail): no luck","labels":{},"plan":null,"status":"failed"}`)
	})
}
