package engine_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

// failingFirst fails in its first tries, and then works as another does.
func failingFirst(n int, f activity) activity {
	return func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		if in.Attempt <= n {
			return plan.Result{}, plan.NewFailure("down")
		}
		return f(ctx, in)
	}
}

// TestRetry_PauseTakesNoSlot: until it is tried again a call takes the place of no
// other, neither of all that run nor of those of its activity; as it is, there are no
// more of either than there may be.
func TestRetry_PauseTakesNoSlot(t *testing.T) {
	for name, tt := range map[string]struct {
		parallel, concurrency int
		others                int // calls of flaky, which fail first, and of sleep
		plan                  string
	}{
		"parallel":      {1, 0, 2, `[{"_tool": "flaky", "seconds": 1, "_outputPath": "†state.a"}, {"_tool": "sleep", "seconds": 2, "_outputPath": "†state.b"}]`},
		"all of them":   {2, 0, 3, `[{"_tool": "flaky", "seconds": 1, "_outputPath": "†state.a"}, {"_tool": "flaky", "seconds": 1, "_outputPath": "†state.b"}, {"_tool": "sleep", "seconds": 2, "_outputPath": "†state.c"}]`},
		"concurrency":   {8, 1, 2, `[{"_tool": "flaky", "seconds": 1, "_outputPath": "†state.a"}, {"_tool": "flaky", "seconds": 1, "_outputPath": "†state.b"}]`},
		"in a delegate": {2, 0, 3, `[{"_tool": "work", "_delegate": "room", "_outputPath": "†state.a"}, {"_tool": "sleep", "seconds": 2, "_outputPath": "†state.b"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &peak{}
				r := newRunner(memory.New(), map[string]activity{"flaky": p.of(failingFirst(2, sleep)), "sleep": p.of(sleep)})
				r.Parallel, r.Drain = tt.parallel, time.Hour
				r.Registry.Activities["flaky"].Retries, r.Registry.Activities["flaky"].Backoff = 2, 10*time.Second
				r.Registry.Activities["flaky"].Concurrency = tt.concurrency
				r.Registry.Delegates["room"] = &plan.Delegate{Request: readPlan(t, `{"calls": [{"_tool": "flaky", "seconds": 1, "_outputPath": "†state.x"}, {"_tool": "flaky", "seconds": 1, "_outputPath": "†state.y"}], "output": 1}`)}
				r.Registry.Tools["work"] = &plan.Tool{Name: "work"}
				began, failed := time.Now(), 0
				var first time.Duration // after which the last call had failed once, or another was done
				var mu sync.Mutex
				working := map[string]bool{}
				r.Observe = func(record journal.Record) {
					mu.Lock()
					defer mu.Unlock()
					working[record.Call] = record.Status == journal.Running && !record.Rests
					if n := len(slices.DeleteFunc(slices.Collect(maps.Values(working)), func(is bool) bool { return !is })); name != "in a delegate" && n > tt.parallel {
						t.Errorf("%d are recorded as at work", n)
					}
					if record.Rests && record.Attempts == 1 || record.Tool == "sleep" && record.Status == journal.Done {
						failed, first = failed+1, time.Since(began)
					}
				}
				outcome, err := r.Run(t.Context(), start(t, tt.plan))
				if err != nil || outcome.Status != journal.RunDone || failed != tt.others {
					t.Fatalf("%v, %v", outcome, err)
				}
				between(t, "the others", first, 0, 2*time.Second)
				between(t, "all", time.Since(began), 16*time.Second, 50*time.Second)
				if most := int64(tt.parallel); p.most.Load() > most {
					t.Errorf("%d ran at once", p.most.Load())
				}
				for _, record := range outcome.Calls {
					if record.Tool == "flaky" && (record.Attempts != 3 || record.Error != nil) {
						t.Errorf("%+v", record)
					}
				}
			})
		})
	}
}

// TestRetry_EveryAttemptIsRecorded: that a call failed is in the log before it is tried again,
// once, also where somebody else appends meanwhile; and of one that is stopped before, what has
// been tried.
func TestRetry_EveryAttemptIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, ran := memory.New(), &counter{}
		r := newRunner(log, map[string]activity{"flaky": ran.of(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			if in.Attempt == 1 {
				if _, err := engine.Append(ctx, log, "c", messages(t, `{"type": "state", "n": 1}`)); err != nil {
					t.Error(err)
				}
			}
			return plan.Result{}, plan.NewFailure("down")
		})})
		r.Registry.Activities["flaky"].Retries, r.Registry.Activities["flaky"].Backoff = 1, 10*time.Second
		tell := func() (told []string) {
			for entry, err := range log.Journal(t.Context(), store.JournalFilter{Context: "c"}) {
				if err != nil {
					t.Fatal(err)
				}
				if e, err := journal.ReadEntry(entry); err != nil {
					t.Fatal(err)
				} else if record, ok := e.(journal.Record); ok {
					told = append(told, fmt.Sprint(record.Status, " ", record.Attempts, " ", record.Error["message"]))
				}
			}
			return told
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		outcome, err := r.Run(ctx, start(t, `[{"_tool": "flaky", "_outputPath": "†state.a"}]`))
		expect(t, outcome, err, journal.RunInterrupted, "1.1 flaky blocked ! down")
		want := []string{"running 0 <nil>", "running 1 down", "blocked 1 down"}
		if diff := cmp.Diff(want, tell()); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
		expect(t, outcome, err, journal.RunFailed, "1.1 flaky failed ! down")
		want = append(want, "running 1 <nil>", "running 2 down", "running 2 down", "failed 3 down")
		if diff := cmp.Diff(want, tell()); diff != "" || ran.String() != "1.1×3" {
			t.Errorf("ran %s; told (-want +got):\n%s", ran, diff)
		}
	})
}

// TestRetry_NotIdempotentAfterTimeout: what it had done by then nobody knows;
// a failure that it told of is another thing.
func TestRetry_NotIdempotentAfterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			once, slow bool
			want       string
		}{{true, true, "1.1×1"}, {false, true, "1.1×3"}, {true, false, "1.1×3"}} {
			ran := &counter{}
			r := newRunner(memory.New(), map[string]activity{"pay": ran.of(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
				if c.slow {
					<-ctx.Done()
					return plan.Result{}, ctx.Err()
				}
				return plan.Result{}, plan.NewFailure("down")
			})})
			pay := r.Registry.Activities["pay"]
			pay.NotIdempotent, pay.Retries, pay.Timeout = c.once, 2, time.Second
			outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "pay", "_outputPath": "†state.a"}]`))
			if err != nil || outcome.Status != journal.RunFailed || ran.String() != c.want {
				t.Errorf("%+v: it ran %s: %+v, %v", c, ran, outcome, err)
			}
		}
	})
}

// TestRetry_FailureMayBeFinal: an activity can tell that to try again is of no use.
func TestRetry_FailureMayBeFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for last, want := range map[any]string{false: "1.1×1", true: "1.1×3", "false": "1.1×3", nil: "1.1×3"} {
			log, ran := memory.New(), &counter{}
			r := newRunner(log, map[string]activity{"pay": ran.of(func(context.Context, plan.Invocation) (plan.Result, error) {
				return plan.Result{}, &plan.Failure{Fields: map[string]any{"message": "no such card", "retry": last}}
			})})
			r.Registry.Activities["pay"].Retries = 2
			outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "pay", "_outputPath": "†state.a || †state.refused"}]`))
			expect(t, outcome, err, journal.RunDone, "1.1 pay done → †state.refused")
			if ran.String() != want {
				t.Errorf("with retry %v it ran %s, not %s", last, ran, want)
			}
		}
	})
}

// Who rests gives its place among those of its activity to others, also as it is replayed.
func TestReplay_OrderDuringPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(memory.New(), map[string]activity{"flaky": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			if in.Call["fails"] == true && in.Attempt == 1 {
				return plan.Result{}, plan.NewFailure("down")
			}
			return value(ctx, in)
		}})
		flaky := r.Registry.Activities["flaky"]
		flaky.Retries, flaky.Backoff, flaky.Concurrency = 1, 10*time.Second, 1
		outcome, err := r.Run(t.Context(), start(t, `{"calls": [
			{"_tool": "flaky", "fails": true, "value": 1, "_outputPath": "†state.all", "_outputMethod": "push"},
			{"_tool": "flaky", "value": 2, "_outputPath": "†state.all", "_outputMethod": "push"}], "output": "†state.all"}`))
		if err != nil || fmt.Sprint(outcome.Output) != "[2 1]" {
			t.Fatal(err, outcome)
		}
		replayed, err := replay.Run(t.Context(), r, "c", nil)
		if err != nil || len(replayed.Differences) > 0 {
			t.Errorf("replayed: %v, %+v", err, replayed)
		}
	})
}

// TestRetry_StopWhileActivityIsFull: a call that is due again, and for which its activity has no
// room, is left to the next resume if the run is stopped.
func TestRetry_StopWhileActivityIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(memory.New(), map[string]activity{"flaky": failingFirst(1, sleep)})
		flaky := r.Registry.Activities["flaky"]
		flaky.Retries, flaky.Backoff, flaky.Concurrency = 1, 10*time.Second, 1
		flaky.Timeout, r.Drain = 2*time.Hour, 2*time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the retry of one of the two is at work
		defer cancel()
		outcome, err := r.Run(ctx, start(t, `[{"_tool": "flaky", "seconds": 3600, "_outputPath": "†state.a"}, {"_tool": "flaky", "seconds": 3600, "_outputPath": "†state.b"}]`))
		if err != nil || outcome.Status != journal.RunInterrupted {
			t.Fatalf("%+v, %v", outcome, err)
		}
		var statuses []journal.Status
		for _, call := range outcome.Calls {
			statuses = append(statuses, call.Status)
			if call.Rests || call.RetryAt != "" {
				t.Errorf("%+v", call)
			}
		}
		slices.Sort(statuses)
		if !slices.Equal(statuses, []journal.Status{journal.Blocked, journal.Done}) {
			t.Errorf("the calls are %v", statuses)
		}
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
		if err != nil || outcome.Status != journal.RunDone {
			t.Fatalf("%+v, %v", outcome, err)
		}
	})
}
