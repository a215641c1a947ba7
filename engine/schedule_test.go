package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store/memory"
)

// started returns how long after a time a call of an outcome started.
func started(t *testing.T, outcome *journal.Outcome, call int, since time.Time) time.Duration {
	t.Helper()
	at, err := time.Parse(time.RFC3339, outcome.Calls[call].Started)
	if err != nil {
		t.Fatal(err)
	}
	return at.Sub(since)
}

// waitsFor returns how long after a time the first call of an outcome is due that waits for one.
func waitsFor(t *testing.T, outcome *journal.Outcome, since time.Time) time.Duration {
	t.Helper()
	due, ok := journal.EarliestDue(outcome.Calls)
	if !ok {
		t.Fatal("no call waits for a time")
	}
	return due.Sub(since)
}

// replaysAtOnce holds that a run comes out again, and that nothing waits meanwhile.
func replaysAtOnce(t *testing.T, r *engine.Runner) {
	t.Helper()
	began := time.Now()
	replayed, err := replay.Run(t.Context(), r, "c", nil)
	if err != nil || len(replayed.Differences) > 0 || time.Since(began) > time.Second {
		t.Errorf("replayed: %v, %+v, within %s", err, replayed, time.Since(began))
	}
}

// TestSchedule_StartsWithinARun holds that a call starts when it is due while others run, counted
// from when the calls that it depends on have settled, whether or not there is room for it then.
func TestSchedule_StartsWithinARun(t *testing.T) {
	for name, tt := range map[string]struct {
		parallel int
		plan     string
		want     []time.Duration // from the start of the run to that of each call
	}{
		"alone": {8, `[{"_tool": "sleep", "seconds": 10, "_outputPath": "†a"},
			{"_tool": "value", "value": 1, "_in": "3s", "_outputPath": "†b"}]`,
			[]time.Duration{0, 3 * time.Second}},
		"after another": {8, `[{"_tool": "sleep", "seconds": 10, "_outputPath": "†a"}, {"_tool": "sleep", "seconds": 2, "_outputPath": "†b"},
			{"_tool": "value", "value": "†b", "_in": "3s", "_outputPath": "†c"}, {"_tool": "value", "value": 1, "_in": 5, "_after": "†b", "_outputPath": "†d"}]`,
			[]time.Duration{0, 0, 5 * time.Second, 7 * time.Second}},
		"no room": {1, `[{"_tool": "sleep", "seconds": 2, "value": 1, "_outputPath": "†a"}, {"_tool": "sleep", "seconds": 10, "_outputPath": "†b"},
			{"_tool": "value", "value": "†a", "_in": "3s", "_outputPath": "†c"}]`,
			[]time.Duration{0, 2 * time.Second, 12 * time.Second}},
		"one wakes the next": {8, `[{"_tool": "sleep", "seconds": 10, "_outputPath": "†a"},
			{"_tool": "value", "value": 1, "_in": "3s", "_outputPath": "†b"}, {"_tool": "value", "value": "†b", "_in": "4s", "_outputPath": "†c"},
			{"_tool": "value", "value": 1, "_in": "1s"}]`,
			[]time.Duration{0, 3 * time.Second, 7 * time.Second, time.Second}},
		"in a delegate": {8, `[{"_tool": "sleep", "seconds": 10, "_outputPath": "†a"}, {"_tool": "work", "_delegate": "room", "_outputPath": "†b"},
			{"_tool": "value", "value": "†b", "_outputPath": "†c"}]`,
			[]time.Duration{0, 3 * time.Second, 3 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRunner(memory.New(), map[string]activity{"sleep": sleep, "value": value})
				r.Parallel = tt.parallel
				r.Registry.Tools["work"] = &plan.Tool{Name: "work"}
				r.Registry.Delegates["room"] = &plan.Delegate{Request: readPlan(t, `{"calls": [{"_tool": "value", "value": 1, "_in": "3s", "_outputPath": "†x"}], "output": "†x"}`)}
				began := time.Now()
				outcome, err := r.Run(t.Context(), start(t, tt.plan))
				if err != nil || outcome.Status != journal.RunDone {
					t.Fatalf("%+v, %v", outcome, err)
				}
				for i, want := range tt.want {
					if got := started(t, outcome, i, began); got != want {
						t.Errorf("call %d started after %s, not %s", i+1, got, want)
					}
				}
				replaysAtOnce(t, r)
			})
		})
	}
}

// TestSchedule_RestsUntilItIsDue holds that a run with nothing else to do ends waiting, that the due
// time survives restarts, and that the call runs once the run is resumed after it.
func TestSchedule_RestsUntilItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := &counter{}
		r := newRunner(memory.New(), map[string]activity{"value": ran.of(value)})
		began := time.Now()
		day := 24 * time.Hour
		outcome, err := r.Run(t.Context(), start(t, `{"calls": [{"_tool": "value", "value": 1, "_in": "3d", "_outputPath": "†a"},
			{"_tool": "value", "value": "†a", "_at": "2000-01-05T00:00:00Z", "_outputPath": "†b"}], "output": "†b"}`))
		expect(t, outcome, err, journal.RunWaiting, "1.1 value waiting … until 2000-01-04T00:00:00.000Z", "1.2 value blocked")
		for passed := day; passed < 3*day; passed += day {
			time.Sleep(day)
			outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
			if err != nil || outcome.Status != journal.RunWaiting || waitsFor(t, outcome, began) != 3*day || time.Since(began) != passed {
				t.Fatalf("after %s: %+v, %v", time.Since(began), outcome, err)
			}
		}
		time.Sleep(day)
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
		expect(t, outcome, err, journal.RunWaiting, "1.1 value done → †a", "1.2 value waiting … until 2000-01-05T00:00:00.000Z")
		time.Sleep(2 * day)
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
		expect(t, outcome, err, journal.RunDone, "1.1 value done → †a", "1.2 value done → †b")
		if ran.String() != "1.1×1 1.2×1" {
			t.Errorf("ran %s", ran)
		}
		replaysAtOnce(t, r)
	})
}

// TestSchedule_DueTimeSurvivesAStop holds that a call which waits for its time while others run has
// the same due time after a stop, and runs at once where that has passed meanwhile.
func TestSchedule_DueTimeSurvivesAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(memory.New(), map[string]activity{"sleep": sleep, "value": value})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		request := `[{"_tool": "sleep", "seconds": 10, "_outputPath": "†a"}, {"_tool": "value", "value": 1, "_in": "8s", "_outputPath": "†b"},
			{"_tool": "value", "value": 1, "_in": "1h", "_outputPath": "†c"}]`
		outcome, err := r.Run(ctx, start(t, request))
		expect(t, outcome, err, journal.RunInterrupted, "1.1 sleep interrupted", "1.2 value waiting … until 2000-01-01T00:00:08.000Z", "1.3 value waiting … until 2000-01-01T01:00:00.000Z")
		time.Sleep(5 * time.Minute)
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
		expect(t, outcome, err, journal.RunWaiting, "1.1 sleep done → †a", "1.2 value done → †b", "1.3 value waiting … until 2000-01-01T01:00:00.000Z")
		if got := started(t, outcome, 1, began); got < 5*time.Minute || got > 5*time.Minute+10*time.Second {
			t.Errorf("it started after %s", got)
		}
	})
}

// TestSchedule_DelegateWaits holds that a run is due when a delegate inside is, and that resuming
// enters it then.
func TestSchedule_DelegateWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(memory.New(), map[string]activity{"value": value})
		r.Registry.Tools["work"] = &plan.Tool{Name: "work"}
		inner := readPlan(t, `{"calls": [{"_tool": "value", "value": 7, "_in": "2h", "_outputPath": "†x"}], "output": "†x"}`)
		r.Registry.Delegates["inner"] = &plan.Delegate{Request: inner}
		r.Registry.Delegates["outer"] = &plan.Delegate{Request: readPlan(t, `{"calls": [{"_tool": "work", "_delegate": "inner", "_outputPath": "†x"}], "output": "†x"}`)}
		began := time.Now()
		outcome, err := r.Run(t.Context(), start(t, `{"calls": [{"_tool": "work", "_delegate": "outer", "_in": "1h", "_outputPath": "†out"}], "output": "†out"}`))
		for _, want := range []time.Duration{time.Hour, 3 * time.Hour} {
			if err != nil || outcome.Status != journal.RunWaiting || waitsFor(t, outcome, began) != want {
				t.Fatalf("%+v, %v", outcome, err)
			}
			time.Sleep(want - time.Since(began) - time.Minute)
			if outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"}); err != nil || waitsFor(t, outcome, began) != want {
				t.Fatalf("a minute before: %+v, %v", outcome, err)
			}
			time.Sleep(time.Minute)
			outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
		}
		expect(t, outcome, err, journal.RunDone, "1.1 work done → †out")
		if outcome.Output == nil {
			t.Error("there is no output")
		}
		replaysAtOnce(t, r)
	})
}

// TestSchedule_ComesWhileCallsGoOnInBackground holds that a run that waits for a time is told so, and
// goes on as the time comes while background calls keep it in its process.
func TestSchedule_ComesWhileCallsGoOnInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(memory.New(), map[string]activity{"sleep": sleep, "value": value})
		var halted []journal.RunStatus
		r.Concluded = func(o *journal.Outcome) { halted = append(halted, o.Status) }
		began := time.Now()
		outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "sleep", "seconds": 5}, {"_tool": "value", "value": 1, "_in": "2s", "_outputPath": "†a"}]`))
		expect(t, outcome, err, journal.RunDone, "1.1 sleep done", "1.2 value done → †a")
		if !slices.Equal(halted, []journal.RunStatus{journal.RunWaiting, journal.RunDone}) || time.Since(began) != 5*time.Second {
			t.Errorf("concluded as %v, ended after %s", halted, time.Since(began))
		}
		replaysAtOnce(t, r)
	})
}
