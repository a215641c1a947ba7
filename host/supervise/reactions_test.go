package supervise

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	diff "github.com/google/go-cmp/cmp"

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
	if d := diff.Diff(want, reactions(t, log)); d != "" {
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
		const held = `held: {"call":"1.1","calls":[{"call":"1.1","context":"a","since":"2000-01-01T00:00:00.000Z","tool":"double"}],"context":"a","error":null,"labels":{},"plan":null,"plans":[],"status":"held"}`
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

// TestReactions_HeldSince holds that a plan is started for the calls that none was started for yet,
// those of delegates and lazy plans too, and that a call that is held once more counts anew.
func TestReactions_HeldSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		w := newWorkerOf(t, reacting(`held = "plans/note.lua"`), log, nil)
		newWorkerOf(t, reacting(`held = "plans/note.lua"`), log, nil)
		always, err := plan.ParsePolicy("always")
		if err != nil {
			t.Fatal(err)
		}
		call := func(tool, n, to string) plan.Source {
			return plan.Source{Call: map[string]any{"_tool": tool, "n": n, "_outputPath": to}}
		}
		several := &plan.Request{Calls: []plan.Source{
			call("double", "†input.n", "†state.a"), call("double", "†input.n", "†state.b"), call("double", "†state.a", "†state.c"), call("fail", "†state.b", "†state.d"),
		}}
		run, err := w.Start(t.Context(), Start{Start: engine.Start{Context: "a", Request: several, Input: store.Some(map[string]any{"n": 1}), Approve: always}})
		w.expect(run, journal.RunWaiting, "null")
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		// expect holds that the plans that were started since are for these calls.
		expect := func(want ...string) {
			t.Helper()
			sleepUntil(time.Now().Add(time.Minute).Format("15:04"))
			for info, err := range log.Contexts(t.Context(), store.ContextFilter{Prefix: "on-held-"}) {
				outcome, err2 := engine.ReadOutcome(t.Context(), log, info.Context)
				if err := cmp.Or(err, err2); err != nil {
					t.Fatal(err)
				}
				if slices.Contains(told, info.Context) {
					continue
				}
				told = append(told, info.Context)
				input := outcome.Output.(map[string]any)
				var calls []string
				for _, v := range input["calls"].([]any) {
					calls = append(calls, v.(map[string]any)["call"].(string))
				}
				if len(want) == 0 || want[0] != strings.Join(calls, " ") || input["call"] != calls[0] {
					t.Errorf("a plan was started with %s, and not for %q", store.EncodeJSON(input), want)
				} else {
					want = want[1:]
				}
			}
			if len(want) > 0 {
				t.Errorf("no plan was started for %q", want)
			}
		}
		decide := func(call string) {
			t.Helper()
			if err := w.Decide(t.Context(), journal.Decision{Context: "a", Call: call, Who: journal.Who{By: "me"}}); err != nil {
				t.Fatal(err)
			}
		}
		expect("1.1 1.2")
		decide("1.1")
		expect("1.3") // 1.2 is held as before
		decide("1.2")
		expect("1.4")
		decide("1.4") // which fails
		expect()
		decide("1.3")
		expect()
		if _, err := w.Resume(t.Context(), engine.Resume{Context: "a", Retry: []string{"1.4"}}); err != nil {
			t.Fatal(err)
		}
		expect("1.4")

		lazy := &plan.Request{Calls: several.Calls, Mode: plan.ModeLazy}
		run, err = w.Start(t.Context(), Start{Start: engine.Start{Context: "lazy", Request: lazy, Input: store.Some(map[string]any{"n": 1})}})
		if err != nil {
			t.Fatal(err)
		}
		w.expect(run, journal.RunWaiting, "null")
		sleepUntil("01:00")
		all := reactions(t, log)
		if n := len(all); n != 5 || !strings.Contains(all[n-1], `"plans":[{"context":"lazy","since":"2000-01-01T`) {
			t.Errorf("%d plans, the last is %s", n, all[n-1])
		}
	})
}

// TestReactions_HeldForged holds that a run of another plan, which says by its name and its label that
// it is for calls that are held, keeps no plan from being started for them.
func TestReactions_HeldForged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		before := newWorkerOf(t, reacting(``), log, nil)
		start := engine.Start{Context: "a", Request: request("double", 2), Approve: plan.Policy{Always: true}}
		run, err := before.Start(t.Context(), Start{Start: start})
		if err != nil {
			t.Fatal(err)
		}
		before.expect(run, journal.RunWaiting, "null")
		held, err := journal.In(log, "a").Holds(t.Context())
		if err != nil || len(held) != 1 {
			t.Fatal(held, err)
		}
		call := map[string]any{"context": "a", "call": "1.1", "tool": "double", "since": held[0].Hold.Since}
		forged := engine.Start{
			Context: "on-held-0", Request: &plan.Request{Name: "plans/mine.lua", Output: store.Some(1)}, Labels: map[string]string{onLabel: "a"},
			Input: store.Some(map[string]any{"calls": []any{call}, "plans": []any{}}),
		}
		if run, err = before.Start(t.Context(), Start{Start: forged}); err != nil {
			t.Fatal(err)
		}
		before.expect(run, journal.RunDone, "1")
		newWorkerOf(t, reacting(`held = "plans/note.lua"`), log, nil)
		sleepUntil("01:00")
		if all := reactions(t, log); len(all) != 2 {
			t.Errorf("started were %v", all)
		}
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
