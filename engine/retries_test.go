package engine_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
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

// TestRetry_LongPauseRests: a run with nothing to do but such a pause ends, and holds nothing. Over
// any number of resumptions the call has the attempts, the pauses, the key and the arguments that it
// would have had in one run.
func TestRetry_LongPauseRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, tried := memory.New(), []string{}
		r := newRunner(log, map[string]activity{"flaky": func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			tried = append(tried, fmt.Sprint(in.Attempt, " ", in.Key, " ", in.Call["value"]))
			return plan.Result{}, plan.NewFailure("down")
		}}).WithoutChance()
		r.Rest = 10 * time.Second
		flaky := r.Registry.Activities["flaky"]
		flaky.Retries, flaky.Backoff = 3, 20*time.Second
		s := start(t, `[{"_tool": "flaky", "value": "†input.v", "_outputPath": "†state.a"}]`)
		s.Input = store.Some(map[string]any{"v": "first"})
		outcome, err := r.Run(t.Context(), s)
		if _, err := engine.Append(t.Context(), log, "c", messages(t, `{"type": "input", "v": "another"}`)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for n, pause := range []time.Duration{20 * time.Second, 40 * time.Second, 80 * time.Second} {
			call := outcome.Calls[0]
			expect(t, outcome, err, journal.RunWaiting, "1.1 flaky waiting ! down … until "+call.RetryAt)
			due, ok := call.WaitsUntil()
			if !ok || !call.Rests || call.Attempts != n+1 || call.MaxTries != 4 || call.Failures != n+1 || call.Started == "" {
				t.Errorf("rest %d: %+v", n, call)
			}
			between(t, fmt.Sprint("pause ", n), due.Sub(began), pause-time.Millisecond, pause)
			holder, err := log.Holder(t.Context(), "c")
			standing, wrong := journal.ReadStanding(t.Context(), journal.In(log, "c"))
			if err != nil || wrong != nil || holder != "" || !standing.Due.Equal(due) || standing.Status != "waiting" || standing.Waiting != 1 {
				t.Errorf("rest %d: held by %q, %+v, %v, %v", n, holder, standing, err, wrong)
			}
			time.Sleep(pause - 5*time.Second)
			if early, err := journal.In(log, "c").HasInput(t.Context()); early && n > 0 || err != nil {
				t.Errorf("rest %d: it goes on before it is due: %v", n, err)
			}
			time.Sleep(5 * time.Second)
			if goesOn, err := journal.In(log, "c").HasInput(t.Context()); !goesOn || err != nil {
				t.Errorf("rest %d: it does not go on when it is due: %v", n, err)
			}
			began = time.Now()
			outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Unasked: true})
			if err != nil {
				t.Fatal(err)
			}
		}
		expect(t, outcome, err, journal.RunFailed, "1.1 flaky failed ! down")
		if call := outcome.Calls[0]; call.Attempts != 4 || call.Rests || call.RetryAt != "" || call.Failures != 0 {
			t.Errorf("in the end: %+v", call)
		}
		if want := []string{"1 c/1.1 first", "2 c/1.1 first", "3 c/1.1 first", "4 c/1.1 first"}; !slices.Equal(tried, want) {
			t.Errorf("tried %q", tried)
		}
		replayed, err := replay.Run(t.Context(), r, "c", nil)
		if err != nil || len(replayed.Differences) > 0 {
			t.Errorf("replayed: %v, %+v", err, replayed)
		}
	})
}

// TestRetry_RestCancelled: a call of a run that is cancelled while it rests is not going to be tried
// again; if the run is resumed, the call rests as before.
func TestRetry_RestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		r := newRunner(log, map[string]activity{"flaky": failingFirst(1, sleep)}).WithoutChance()
		r.Rest = 10 * time.Second
		r.Registry.Activities["flaky"].Retries, r.Registry.Activities["flaky"].Backoff = 1, 20*time.Second
		outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "flaky", "seconds": 1, "_outputPath": "†state.a"}]`))
		due := outcome.Calls[0].RetryAt
		expect(t, outcome, err, journal.RunWaiting, "1.1 flaky waiting ! down … until "+due)
		if err := engine.Cancel(t.Context(), log, "c", journal.Who{}); err != nil {
			t.Fatal(err)
		}
		c := journal.In(log, "c")
		info, err := log.Info(t.Context(), "c")
		calls, wrong := c.CurrentRecords(t.Context())
		if err != nil || wrong != nil || info.Standing.Retrying != 0 || calls[0].Status != journal.Cancelled || calls[0].RetryAt != "" {
			t.Errorf("cancelled: %+v, %v, %+v, %v", info.Standing, err, calls, wrong)
		}
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
		expect(t, outcome, err, journal.RunWaiting, "1.1 flaky waiting ! down … until "+due)
		time.Sleep(20 * time.Second)
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
		expect(t, outcome, err, journal.RunDone, "1.1 flaky done → †state.a")
	})
}

// TestRetry_RestResumedEarly: a resumption before the time leaves the call as it is, or, where runs
// wait by themselves, waits for the rest of the pause.
func TestRetry_RestResumedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, began := memory.New(), time.Now()
		var tried []time.Duration
		r := newRunner(log, map[string]activity{"flaky": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			if tried = append(tried, time.Since(began)); in.Attempt <= 2 {
				return plan.Result{}, plan.NewFailure("down")
			}
			return value(ctx, in)
		}}).WithoutChance()
		r.Rest = 10 * time.Second
		r.Registry.Activities["flaky"].Retries, r.Registry.Activities["flaky"].Backoff = 2, time.Minute
		outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "flaky", "value": 1, "_outputPath": "†state.a"}]`))
		expect(t, outcome, err, journal.RunWaiting, "1.1 flaky waiting ! down … until 2000-01-01T00:01:00.000Z")
		time.Sleep(20 * time.Second)
		again, err := r.Resume(t.Context(), engine.Resume{Context: "c"})
		expect(t, again, err, journal.RunWaiting, "1.1 flaky waiting ! down … until 2000-01-01T00:01:00.000Z")
		if again.Calls[0].RetryAt != outcome.Calls[0].RetryAt || again.Calls[0].Failures != 1 {
			t.Errorf("it was to be tried again at %s, and is at %s", outcome.Calls[0].RetryAt, again.Calls[0].RetryAt)
		}
		r.Rest = 0
		var pauses []string
		r.Observe = func(record journal.Record) {
			if record.Rests {
				pauses = append(pauses, fmt.Sprint(record.Status, " ", record.Attempts, " of ", record.MaxTries, " ", record.Error["message"]))
			}
		}
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
		expect(t, outcome, err, journal.RunDone, "1.1 flaky done → †state.a")
		if want := []time.Duration{0, time.Minute, 3 * time.Minute}; !slices.Equal(tried, want) {
			t.Errorf("tried at %s", tried)
		}
		if want := []string{"running 1 of 3 down", "running 2 of 3 down"}; !slices.Equal(pauses, want) {
			t.Errorf("observed %q", pauses)
		}
	})
}

// TestRetry_RestTakenOver: a call that rests in the log rests on where a run that waits for it by
// itself is stopped, or its process dies.
func TestRetry_RestTakenOver(t *testing.T) {
	for name, end := range map[string]func(r *engine.Runner, stop func()){
		"stopped": func(_ *engine.Runner, stop func()) { time.Sleep(5 * time.Second); stop() },
		"died":    func(r *engine.Runner, _ func()) { time.Sleep(5 * time.Second); r.Log.(*dyingLog).dead.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, began := memory.New(), time.Now()
				var tried []string
				r := newRunner(log, map[string]activity{"flaky": func(_ context.Context, in plan.Invocation) (plan.Result, error) {
					tried = append(tried, fmt.Sprint(in.Attempt, " after ", time.Since(began)))
					return plan.Result{}, plan.NewFailure("down")
				}}).WithoutChance()
				r.Rest = 10 * time.Second
				r.Registry.Activities["flaky"].Retries, r.Registry.Activities["flaky"].Backoff = 1, 2*time.Minute
				outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "flaky", "value": 1, "_outputPath": "†state.a"}]`))
				expect(t, outcome, err, journal.RunWaiting, "1.1 flaky waiting ! down … until 2000-01-01T00:02:00.000Z")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				other := *r
				other.Log, other.Rest = &dyingLog{Log: log}, 0
				go func() {
					if outcome, err := other.Resume(ctx, engine.Resume{Context: "c"}); err == nil {
						expect(t, outcome, err, journal.RunInterrupted, "1.1 flaky blocked ! down")
					}
				}()
				end(&other, cancel)
				time.Sleep(time.Minute)
				outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
				expect(t, outcome, err, journal.RunWaiting, "1.1 flaky waiting ! down … until 2000-01-01T00:02:00.000Z")
				time.Sleep(time.Until(began.Add(2 * time.Minute)))
				outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
				expect(t, outcome, err, journal.RunFailed, "1.1 flaky failed ! down")
				if want := []string{"1 after 0s", "2 after 2m0s"}; !slices.Equal(tried, want) {
					t.Errorf("tried %q", tried)
				}
			})
		})
	}
}

// dyingLog is the log of a process that dies: it takes no more appends then.
type dyingLog struct {
	store.Log
	dead atomic.Bool
}

func (l *dyingLog) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if l.dead.Load() {
		return store.Appended{}, store.ErrClosed
	}
	return l.Log.Append(ctx, b)
}

// TestRetry_RestBesideOthers: while other calls run, a call that rests is tried again as soon as it
// is due, also where the run has been cut off meanwhile; one in a delegate has the whole run rest;
// a short pause does not rest, nor does a fire-and-forget call.
func TestRetry_RestBesideOthers(t *testing.T) {
	setUp := func(t *testing.T, log store.Log) *engine.Runner {
		r := newRunner(log, map[string]activity{"flaky": failingFirst(1, value), "sleep": sleep}).WithoutChance()
		r.Rest, r.Drain = 10*time.Second, -1
		r.Registry.Activities["flaky"].Retries, r.Registry.Activities["flaky"].Backoff = 1, 10*time.Second
		r.Registry.Activities["sleep"].Timeout = time.Hour
		r.Registry.Delegates["room"] = &plan.Delegate{Request: readPlan(t, `{"calls": [{"_tool": "flaky", "value": 7, "_outputPath": "†state.x"}], "output": "†state.x"}`)}
		r.Registry.Tools["work"] = &plan.Tool{Name: "work"}
		return r
	}
	const flaky, long = `{"_tool": "flaky", "value": 1, "_outputPath": "†state.a"}`, `{"_tool": "sleep", "seconds": 25, "value": 2, "_outputPath": "†state.b"}`
	t.Run("in one run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began, ended := time.Now(), time.Duration(0)
			r := setUp(t, memory.New())
			r.Observe = func(record journal.Record) {
				if record.Status == journal.Done && record.Call == "1.1" {
					ended = time.Since(began)
				}
			}
			outcome, err := r.Run(t.Context(), start(t, `[`+flaky+`, `+long+`]`))
			expect(t, outcome, err, journal.RunDone, "1.1 flaky done → †state.a", "1.2 sleep done → †state.b")
			between(t, "the retry", ended, 10*time.Second, 10*time.Second+time.Millisecond)
		})
	})
	t.Run("cut off", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			log := memory.New()
			r := setUp(t, log)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			outcome, err := r.Run(ctx, start(t, `[`+flaky+`, `+long+`]`))
			expect(t, outcome, err, journal.RunInterrupted, "1.1 flaky waiting ! down … until 2000-01-01T00:00:10.000Z", "1.2 sleep interrupted")
			due, began := outcome.Calls[0].RetryAt, time.Now()
			r.Observe = func(record journal.Record) {
				if record.Call == "1.1" && record.Status == journal.Running && !record.Rests {
					at, _ := time.Parse(time.RFC3339, due)
					between(t, "the retry", time.Since(at), 0, time.Millisecond)
				}
			}
			outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
			expect(t, outcome, err, journal.RunDone, "1.1 flaky done → †state.a", "1.2 sleep done → †state.b")
			between(t, "all", time.Since(began), 25*time.Second, 26*time.Second)
		})
	})
	t.Run("in a delegate", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			log := memory.New()
			r := setUp(t, log)
			outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "work", "_delegate": "room", "_outputPath": "†state.a"}]`))
			if err != nil || outcome.Status != journal.RunWaiting {
				t.Fatal(outcome, err)
			}
			if due, ok := outcome.Calls[0].WaitsUntil(); !ok || time.Until(due) > 10*time.Second {
				t.Errorf("the call waits until %s: %+v", due, outcome.Calls[0])
			}
			time.Sleep(10 * time.Second)
			outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Unasked: true})
			expect(t, outcome, err, journal.RunDone, "1.1 work done → †state.a")
		})
	})
	t.Run("not at all", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := setUp(t, memory.New())
			r.Registry.Activities["flaky"].Backoff, r.Drain = 9*time.Second, time.Minute
			outcome, err := r.Run(t.Context(), start(t, `[`+flaky+`, {"_tool": "flaky", "value": 3, "_backoff": "20s"}]`))
			expect(t, outcome, err, journal.RunDone, "1.1 flaky done → †state.a", "1.2 flaky done")
		})
	})
}
