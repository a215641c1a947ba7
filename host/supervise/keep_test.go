package supervise

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// TestKeep_ByAServer: contexts go once the time has passed that the project keeps them, and the
// others stay.
func TestKeep_ByAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkerOf(t, fstest.MapFS{"obelus.lua": {Data: []byte(`return { keep = { done = "3h" } }`)}}, memory.New(), nil)
		w.expect(w.start("done", "double", 2), journal.RunDone, "4")
		w.expect(w.start("waits", "double", "†input.n"), journal.RunWaiting, "null")
		time.Sleep(2 * time.Hour) // of the bubble's clock
		if _, err := w.log.Head(t.Context(), "done"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*time.Hour + removalInterval)
		if _, err := w.log.Head(t.Context(), "done"); !errors.Is(err, store.ErrNoContext) {
			t.Errorf("it stays, %v", err)
		}
		if _, err := w.log.Head(t.Context(), "waits"); err != nil {
			t.Error(err)
		}
	})
}

// TestTimes_DueWhileNothingRan: a run that waits for a time goes on by itself then, also if the time
// came while no server was there, and once.
func TestTimes_DueWhileNothingRan(t *testing.T) {
	for name, away := range map[string]time.Duration{"there": 0, "away": 4 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, w *worker) {
				later := request("double", 4)
				call := later.Calls[0].Call.(map[string]any)
				call["_in"] = "3h"
				run, err := w.Start(t.Context(), Start{Start: engine.Start{Context: "a", Request: &plan.Request{Calls: []plan.Source{{Call: call}}, Output: later.Output}}})
				if err != nil {
					t.Fatal(err)
				}
				w.expect(run, journal.RunWaiting, "null")
				began := time.Now()
				if away > 0 {
					if err := w.Shutdown(t.Context()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(away)
					w.open(nil)
				}
				outcome, err := w.Wait(t.Context(), "a")
				if took := time.Since(began); err != nil || outcome.Status != journal.RunDone || took < 3*time.Hour || took > max(3*time.Hour, away)+2*DefaultPoll {
					t.Fatal(outcome, err, took)
				}
				time.Sleep(time.Hour)
				ends := 0
				for entry, err := range w.log.Journal(t.Context(), store.JournalFilter{Context: "a", Event: journal.EventRun}) {
					if err != nil {
						t.Fatal(err)
					}
					if strings.Contains(entry.Data, `"status":"done"`) {
						ends++
					}
				}
				if ends != 1 {
					t.Errorf("it has ended %d times", ends)
				}
			})
		})
	}
}

// TestRetries_RestInTheLog: between two attempts of a call with a long pause its run is not at work,
// holds nothing and goes on by itself when the call is due, also by a server that begins later.
func TestRetries_RestInTheLog(t *testing.T) {
	for name, away := range map[string]time.Duration{"there": 0, "away": 4 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, w *worker) {
				run := w.start("a", "flaky", nil)
				w.expect(run, journal.RunWaiting, "null")
				due := w.expectRest("a", 1)
				if away > 0 {
					if err := w.Shutdown(t.Context()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(away)
					w.open(nil)
				}
				for {
					time.Sleep(time.Second)
					if records, err := journal.In(w.log, "a").Records(t.Context()); err != nil {
						t.Fatal(err)
					} else if records[0].Attempts == 2 {
						break
					}
				}
				if late := time.Since(due) - away; late > 2*DefaultPoll {
					t.Errorf("it is tried again %s after it was due", late)
				}
				w.expectRest("a", 2)
				outcome, err := w.Wait(t.Context(), "a")
				if err != nil || outcome.Status != journal.RunDone || outcome.Output != "attempt 3" {
					t.Errorf("%+v, %v", outcome, err)
				}
			})
		})
	}
}

// expectRest checks that the only call of a run rests after some attempts, and returns when it is
// due.
func (w *worker) expectRest(name string, attempts int) time.Time {
	w.t.Helper()
	synctest.Wait()
	records, err := journal.In(w.log, name).CurrentRecords(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	call := records[0]
	due, ok := call.WaitsUntil()
	if !ok || !call.Rests || call.Status != journal.Waiting || call.Attempts != attempts || call.MaxTries != 3 || call.Error["message"] != "down" {
		w.t.Fatalf("it does not rest: %+v", call)
	}
	holder, err := w.log.Holder(w.t.Context(), name)
	if err != nil || holder != "" || len(w.Runs()) != 0 {
		w.t.Errorf("it is held by %q, and %d runs are at work: %v", holder, len(w.Runs()), err)
	}
	for info, err := range w.log.Contexts(w.t.Context(), store.ContextFilter{}) {
		if err != nil || info.Standing.Status != string(journal.RunWaiting) || info.Standing.Waiting != 1 || !info.Standing.Due.Equal(due) {
			w.t.Errorf("in lists: %+v, %v, not due at %s", info.Standing, err, due)
		}
	}
	return due
}

// handedOver returns a closed worker of a run whose delegate has been resumed by itself, with what it
// waited for. These are the delegate's calls and output, and the status that it comes to have.
func handedOver(t *testing.T, inner string, status journal.RunStatus) *worker {
	t.Helper()
	files := fstest.MapFS{
		"obelus.lua":       {Data: []byte(`return { drain = "1s" }`)},
		"activities/a.lua": {Data: []byte(`Tool.register("hand", { properties = {} })`)},
		"plans/inner.lua":  {Data: []byte("return { " + inner + " }")},
		"plans/outer.lua":  {Data: []byte(`return { calls = { { _tool = "hand", _delegate = "plans/inner.lua", _outputPath = "†state.y" } }, output = "†state.y" }`)},
	}
	w := newWorkerOf(t, files, memory.New(), nil)
	request, registry, err := w.host.Plan("plans/outer.lua")
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), Start{Start: engine.Start{Context: "a", Request: request}, Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	w.expect(run, journal.RunWaiting, "null")
	if err := w.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Append(t.Context(), w.log, "a.1.1", input(4)); err != nil {
		t.Fatal(err)
	}
	alone := &engine.Runner{Log: w.log, Registry: registry}
	if outcome, err := alone.Resume(t.Context(), engine.Resume{Context: "a.1.1"}); err != nil || outcome.Status != status {
		t.Fatal(outcome, err)
	}
	return w
}

// TestOrphans_ParentOfAnEndedDelegate: a delegate's run that was resumed by itself, and ended while no
// server was there, has the run go on that waits for it.
func TestOrphans_ParentOfAnEndedDelegate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := handedOver(t, `calls = { { _tool = "double", n = "†input.n", _outputPath = "†state.x" } }, output = "†state.x"`, journal.RunDone)
		w.open(nil)
		if outcome, err := w.Wait(t.Context(), "a"); err != nil || outcome.Status != journal.RunDone {
			t.Fatal(outcome, err)
		}
		time.Sleep(time.Minute) // of the bubble's clock
		for info, err := range w.log.Contexts(t.Context(), store.ContextFilter{Due: time.Now()}) {
			t.Errorf("%s is still due, %v", info.Context, err)
		}
	})
}

// TestTimes_OfADelegate: a delegate that was resumed by itself and waits for a time goes on then, with
// the run that waits for it.
func TestTimes_OfADelegate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := handedOver(t, `calls = { { _tool = "double", n = "†input.n", _outputPath = "†state.x" },
			{ _tool = "double", n = "†state.x", _in = "1h", _outputPath = "†state.z" } }, output = "†state.z"`, journal.RunWaiting)
		w.open(nil)
		time.Sleep(30 * time.Minute)
		time.Sleep(6 * time.Hour)
		if o, err := engine.ReadOutcome(t.Context(), w.log, "a"); err != nil || o.Status != journal.RunDone {
			t.Error(o.Status, err)
		}
	})
}

// TestTimes_WithoutResuming: a run that waits for a time goes on then, though the runs of processes
// that have died are left alone.
func TestTimes_WithoutResuming(t *testing.T) {
	inBubble(t, func(c *Config) { c.NoResume = true }, func(t *testing.T, w *worker) {
		later := request("double", 4)
		call := later.Calls[0].Call.(map[string]any)
		call["_in"] = "3h"
		run, err := w.Start(t.Context(), Start{Start: engine.Start{Context: "a", Request: &plan.Request{Calls: []plan.Source{{Call: call}}, Output: later.Output}}})
		if err != nil {
			t.Fatal(err)
		}
		w.expect(run, journal.RunWaiting, "null")
		time.Sleep(4 * time.Hour)
		o, err := engine.ReadOutcome(t.Context(), w.log, "a")
		if err != nil || o.Status != journal.RunDone {
			t.Error("its time came and it did not go on")
		}
	})
}
