package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

// sleep works for as many seconds as the parameter "seconds" says.
func sleep(ctx context.Context, in plan.Invocation) (plan.Result, error) {
	seconds, ok := in.Call["seconds"].(interface{ Float64() (float64, error) })
	if !ok {
		return plan.Result{}, errors.New("no seconds")
	}
	f, _ := seconds.Float64()
	select {
	case <-time.After(time.Duration(f * float64(time.Second))):
		return value(ctx, in)
	case <-ctx.Done():
		return plan.Result{}, ctx.Err()
	}
}

// repeated is a plan of n calls alike; # stands for the number of each.
func repeated(n int, call string) string {
	calls := make([]string, n)
	for i := range calls {
		calls[i] = strings.ReplaceAll(call, "#", fmt.Sprint(i))
	}
	return "[" + strings.Join(calls, ",") + "]"
}

func between(t *testing.T, what string, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s took %s, not from %s to %s", what, got, least, most)
	}
}

func TestRetry_WithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []time.Duration
		began := time.Now()
		r := newRunner(memory.New(), map[string]activity{"flaky": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			if attempts = append(attempts, time.Since(began)); in.Attempt != len(attempts) || in.Key != "c/1.1" {
				t.Errorf("attempt %d of %s is called %d", len(attempts), in.Key, in.Attempt)
			}
			if len(attempts) < 4 {
				return plan.Result{}, plan.NewFailure("not yet")
			}
			return value(ctx, in)
		}})
		r.Registry.Activities["flaky"].Retries = 3
		r.Registry.Activities["flaky"].Backoff = 4 * time.Second
		outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "flaky", "value": 1, "_outputPath": "†state.a || †state.failed"}]`))
		expect(t, outcome, err, journal.RunDone, "1.1 flaky done → †state.a")
		if outcome.Calls[0].Attempts != 4 {
			t.Errorf("%d attempts are recorded", outcome.Calls[0].Attempts)
		}
		for i, backoff := range []time.Duration{4 * time.Second, 8 * time.Second, 16 * time.Second} {
			between(t, fmt.Sprint("backoff ", i+1), attempts[i+1]-attempts[i], backoff/2, backoff*3/2)
		}
	})
}

// TestRetry_FaultIsNotRetried holds that retries are for failures: a machine that
// broke down breaks down again.
func TestRetry_FaultIsNotRetried(t *testing.T) {
	for _, broken := range []activity{
		func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{}, errors.New("broken")
		},
		func(context.Context, plan.Invocation) (plan.Result, error) { panic("broken") },
	} {
		ran := &counter{}
		r := newRunner(memory.New(), map[string]activity{"broken": ran.of(broken), "value": value})
		r.Registry.Activities["broken"].Retries = 3
		outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "broken", "_outputPath": "†state.a || †state.failed"}, {"_tool": "value", "value": 1, "_outputPath": "†state.b"}]`))
		if err != nil || outcome.Calls[0].Status != journal.Failed || outcome.Calls[1].Status != journal.Done || ran.String() != "1.1×1" {
			t.Errorf("%v, %v, ran %s", outcome, err, ran)
		}
	}
}

// TestPanic_HasItsPlace: who wrote what panicked is told the line of it.
func TestPanic_HasItsPlace(t *testing.T) {
	var nobody *counter
	var nothing map[string]int
	for want, breakDown := range map[string]func(){
		`^the (activity value|activity model|planner) broke down at timing_test\.go:\d+: no$`:           func() { panic("no") },
		`^the (activity value|activity model|planner) broke down at timing_test\.go:\d+: runtime error`: func() { nobody.runs = nil },
		`^the (activity value|activity model|planner) broke down at timing_test\.go:\d+: assignment to`: func() { nothing["a"] = 1 },
	} {
		r := newRunner(memory.New(), map[string]activity{"value": func(context.Context, plan.Invocation) (plan.Result, error) {
			breakDown()
			return plan.Result{}, nil
		}})
		r.Registry.Model = plan.ModelFunc(func(context.Context, plan.Question) (any, error) {
			breakDown()
			return nil, nil
		})
		r.Registry.Tools["think"] = &plan.Tool{Name: "think"}
		var told []string
		for _, tool := range []string{"value", "think"} {
			outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "`+tool+`", "_outputPath": "†state"}]`))
			if err != nil {
				t.Fatal(err)
			}
			told = append(told, fmt.Sprint(outcome.Calls[0].Error["message"]))
		}
		asked, err := r.Run(t.Context(), engine.Start{Context: "p", Request: &plan.Request{Planner: plan.PlannerFunc(func(context.Context, plan.Ask) (*plan.Solution, error) {
			breakDown()
			return nil, nil
		})}})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range append(told, asked.Error) {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("%s, not %s", text, want)
			}
		}
	}
}

// TestTimeout_IsAFailure holds that a timeout is an outcome as any failure is:
// it is tried again, and then goes to the last alternative.
func TestTimeout_IsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, ran := memory.New(), &counter{}
		r := newRunner(log, map[string]activity{"sleep": ran.of(sleep)})
		a := r.Registry.Activities["sleep"]
		a.Timeout, a.Retries, a.Backoff = 2*time.Second, 1, time.Second
		began := time.Now()
		outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "sleep", "seconds": 60, "_outputPath": "†state.a || †state.failed"}]`))
		expect(t, outcome, err, journal.RunDone, "1.1 sleep done → †state.failed")
		between(t, "two attempts", time.Since(began), 4500*time.Millisecond, 5500*time.Millisecond)
		if got, want := get(t, log, "†state"), `{"failed":{"code":"timeout","message":"timed out after 2s"}}`; got != want || ran.String() != "1.1×2" {
			t.Errorf("wrote %s; ran %s", got, ran)
		}
	})
}

func TestTimeout_DeadlineOfTheRunIsNoOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(memory.New(), map[string]activity{"sleep": sleep})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := start(t, `[{"_tool": "sleep", "seconds": 10, "value": 1, "_outputPath": "†state.a || †state.failed"}]`)
		outcome, err := r.Run(ctx, s)
		expect(t, outcome, err, journal.RunInterrupted, "1.1 sleep interrupted")
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
		expect(t, outcome, err, journal.RunDone, "1.1 sleep done → †state.a")
	})
}

// peak counts how many calls run at once.
type peak struct{ now, most atomic.Int64 }

func (p *peak) of(f activity) activity {
	return func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		n := p.now.Add(1)
		defer p.now.Add(-1)
		for most := p.most.Load(); n > most && !p.most.CompareAndSwap(most, n); most = p.most.Load() {
		}
		return f(ctx, in)
	}
}

func TestParallel_IsALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peak{}
		r := newRunner(memory.New(), map[string]activity{"sleep": p.of(sleep)})
		r.Parallel = 3
		began := time.Now()
		outcome, err := r.Run(t.Context(), start(t, repeated(7, `{"_tool": "sleep", "seconds": 1, "_outputPath": "†state.a#"}`)))
		if err != nil || outcome.Status != journal.RunDone || p.most.Load() != 3 || time.Since(began) != 3*time.Second {
			t.Errorf("%v, %v: %d at once, in %s", outcome, err, p.most.Load(), time.Since(began))
		}
	})
}

func TestConcurrency_OfOneActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, quick := &peak{}, &peak{}
		r := newRunner(memory.New(), map[string]activity{"slow": slow.of(sleep), "quick": quick.of(sleep)})
		r.Registry.Activities["slow"].Concurrency = 2
		began := time.Now()
		text := repeated(6, `{"_tool": "slow", "seconds": 1, "_outputPath": "†state.a#"}, {"_tool": "quick", "seconds": 3, "_outputPath": "†state.b#"}`)
		outcome, err := r.Run(t.Context(), start(t, text))
		if err != nil || outcome.Status != journal.RunDone || slow.most.Load() != 2 || quick.most.Load() != 6 || time.Since(began) != 3*time.Second {
			t.Errorf("%v, %v: %d and %d at once, in %s", outcome, err, slow.most.Load(), quick.most.Load(), time.Since(began))
		}
	})
}

// TestFireAndForget_OutlivesTheOutput holds that such a call holds up nothing, that its run is told to
// be done at once, and that it is waited for as long as its own timeout allows, whatever drain says.
func TestFireAndForget_OutlivesTheOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, ran := memory.New(), &counter{}
		r := newRunner(log, map[string]activity{"sleep": ran.of(sleep), "value": value})
		r.Drain = time.Second
		var settled, concluded time.Duration
		began := time.Now()
		r.Observe = func(record journal.Record) {
			if record.Tool == "value" && record.Status == journal.Done {
				settled = time.Since(began)
			}
		}
		r.Concluded = func(o *journal.Outcome) {
			concluded = time.Since(began)
			standing, err := log.Info(t.Context(), "c")
			if o.Status != journal.RunDone || string(store.EncodeJSON(o.Output)) != "1" || o.Background != 2 || err != nil || standing.Standing.Background != 2 || standing.Standing.Status != "done" {
				t.Errorf("concluded with %+v, in lists %+v, %v", o, standing.Standing, err)
			}
			if _, err := newRunner(log, map[string]activity{"value": value}).Run(t.Context(), start(t, `[]`)); !errors.As(err, new(*engine.BusyError)) {
				t.Errorf("another run in the context: %v", err)
			}
		}
		outcome, err := r.Run(t.Context(), start(t, `{"calls": [
			{"_tool": "sleep", "seconds": 3}, {"_tool": "sleep", "seconds": 60},
			{"_tool": "value", "value": 1, "_outputPath": "†state.a"}], "output": "†state.a"}`))
		expect(t, outcome, err, journal.RunDone, "1.1 sleep done", "1.2 sleep failed ! timeout: timed out after 30s", "1.3 value done → †state.a")
		if settled != 0 || concluded != 0 || time.Since(began) != 30*time.Second || outcome.Background != 0 {
			t.Errorf("the plan was done after %s, and told so after %s, the run after %s; %d calls are left", settled, concluded, time.Since(began), outcome.Background)
		}
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
		if err != nil || outcome.Status != journal.RunDone || ran.String() != "1.1×1 1.2×1" {
			t.Errorf("%v, %v, ran %s", outcome, err, ran)
		}
		if got := get(t, log, "†error"); got != "missing" {
			t.Errorf("it left %s in the context", got)
		}
	})
}

// TestFireAndForget_Stopped tells a run to stop once it is done: the calls that it does not wait for
// have the time that drain gives, and those that are left are interrupted, or in doubt where they
// must not run twice. Resuming the run runs the former again.
func TestFireAndForget_Stopped(t *testing.T) {
	for _, cause := range []error{context.Canceled, engine.ErrStopped, engine.ErrCancelled} {
		synctest.Test(t, func(t *testing.T) {
			log, ran := memory.New(), &counter{}
			r := newRunner(log, map[string]activity{"sleep": ran.of(sleep), "once": ran.of(sleep), "value": value})
			r.Registry.Activities["once"].NotIdempotent = true
			r.Drain = 5 * time.Second
			ctx, stop := context.WithCancelCause(t.Context())
			r.Concluded = func(*journal.Outcome) { stop(cause) }
			began := time.Now()
			outcome, err := r.Run(ctx, start(t, `{"calls": [
				{"_tool": "sleep", "seconds": 3}, {"_tool": "sleep", "seconds": 10}, {"_tool": "once", "seconds": 10},
				{"_tool": "sleep", "seconds": 1, "_outputPath": "†state.a"}], "output": 1}`)) // the others have begun by then
			if err != nil || outcome.Status != journal.RunDone || time.Since(began) != 6*time.Second {
				t.Fatalf("%v: %+v, %v, after %s", cause, outcome, err, time.Since(began))
			}
			records, err := journal.In(log, "c").CurrentRecords(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want, left := []journal.Status{journal.Done, journal.Interrupted, journal.InDoubt, journal.Done}, 2
			if cause == engine.ErrCancelled {
				want[1], want[2], left = journal.Cancelled, journal.Cancelled, 0
			}
			for i, r := range records {
				if r.Status != want[i] {
					t.Errorf("%v: call %s is %s, not %s", cause, r.Call, r.Status, want[i])
				}
			}
			last, err := journal.In(log, "c").LastRun(t.Context())
			goesOn, wrong := last.LeftBehind(t.Context(), journal.In(log, "c"))
			if err != nil || wrong != nil || last.Status != journal.RunDone || outcome.Background != left || goesOn != (cause == engine.ErrStopped) {
				t.Errorf("%v: %+v, %d in the background, a server goes on: %t; %v, %v", cause, last, outcome.Background, goesOn, err, wrong)
			}
			r = newRunner(log, map[string]activity{"sleep": ran.of(sleep), "once": ran.of(sleep), "value": value})
			r.Registry.Activities["once"].NotIdempotent = true
			if cause != engine.ErrCancelled {
				if _, err := r.Run(t.Context(), start(t, `[]`)); !errors.As(err, new(*engine.UnfinishedError)) {
					t.Errorf("%v: another run: %v", cause, err)
				}
				outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
				if err != nil || outcome.Status != journal.RunDone || string(store.EncodeJSON(outcome.Output)) != "1" || ran.String() != "1.1×1 1.2×2 1.3×1 1.4×1" || outcome.Background != 1 {
					t.Errorf("%v: %+v, %v, ran %s", cause, outcome, err, ran)
				}
				if err := engine.Cancel(t.Context(), log, "c", journal.Who{}); err != nil {
					t.Errorf("%v: %v", cause, err)
				}
			}
			if outcome, err := r.Run(t.Context(), start(t, `[]`)); err != nil || outcome.Status != journal.RunDone {
				t.Errorf("%v: once they are cancelled: %+v, %v", cause, outcome, err)
			}
		})
	}
}

// TestFireAndForget_OfDelegate holds that the call of a delegate has its result before calls in the
// background of the delegate have ended, and that the run waits for these at its end.
func TestFireAndForget_OfDelegate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		r := newRunner(log, map[string]activity{"sleep": sleep, "value": value})
		r.Registry.Delegates["d"] = &plan.Delegate{Request: readPlan(t, `{"calls": [{"_tool": "sleep", "seconds": 9}, {"_tool": "value", "value": 1, "_outputPath": "†a"}], "output": "†a"}`)}
		began := time.Now()
		var concluded time.Duration
		r.Concluded = func(o *journal.Outcome) {
			if concluded = time.Since(began); string(store.EncodeJSON(o.Output)) != "1" {
				t.Errorf("concluded with %+v", o)
			}
		}
		outcome, err := r.Run(t.Context(), start(t, `{"calls": [{"_tool": "t", "_delegate": "d", "_outputPath": "†state.a"}], "output": "†state.a"}`))
		expect(t, outcome, err, journal.RunDone, "1.1 t done → †state.a")
		if concluded != 0 || time.Since(began) != 9*time.Second {
			t.Errorf("concluded after %s, ended after %s", concluded, time.Since(began))
		}
		records, err := journal.In(log, "c.1.1").Records(t.Context())
		if err != nil || records[0].Status != journal.Done {
			t.Errorf("%+v, %v", records, err)
		}
	})
}

// TestFireAndForget_ResumedAfterCrash ends the process while such a call runs.
func TestFireAndForget_ResumedAfterCrash(t *testing.T) {
	inner, ran, g := memory.New(), &counter{}, newGate()
	log := &crashing{Log: inner, left: 1}
	r := newRunner(log, map[string]activity{"gate": ran.of(g.run), "value": ran.of(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		<-g.begun
		return value(ctx, in)
	})})
	r.Parallel = 1
	if _, err := r.Run(t.Context(), start(t, `[{"_tool": "gate"}, {"_tool": "value", "value": 1, "_outputPath": "†state.a"}]`)); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	r.Log = inner
	r.Registry.Activities["gate"].Activity = plan.ActivityFunc(ran.of(value))
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"})
	expect(t, outcome, err, journal.RunDone, "1.1 gate done", "1.2 value done → †state.a")
	if ran.String() != "1.1×2 1.2×2" { // the crash took both outcomes
		t.Errorf("ran %s", ran)
	}
}

// TestPlan_UnorderedWriters holds the one thing that depends
// on timing.
func TestPlan_UnorderedWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		r := newRunner(log, map[string]activity{"sleep": sleep})
		outcome, err := r.Run(t.Context(), start(t, `[
			{"_tool": "sleep", "seconds": 3, "value": "a", "_outputPath": "†state.list", "_outputMethod": "push"},
			{"_tool": "sleep", "seconds": 1, "value": "b", "_outputPath": "†state.list", "_outputMethod": "push"},
			{"_tool": "sleep", "seconds": 2, "value": "c", "_outputPath": "†state.list", "_outputMethod": "push"}]`))
		if got := get(t, log, "†state.list"); err != nil || outcome.Status != journal.RunDone || got != `["b","c","a"]` {
			t.Errorf("%v, %v: %s", outcome, err, got)
		}
	})
}

// TestForeign_AppendWakesWhileOthersRun holds "whatever is appended
// unblocks others at once".
func TestForeign_AppendWakesWhileOthersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, ran := memory.New(), &counter{}
		r := newRunner(log, map[string]activity{"sleep": ran.of(sleep), "value": value})
		began := time.Now()
		var done time.Duration
		r.Observe = func(record journal.Record) {
			if record.Tool == "value" && record.Status == journal.Done {
				done = time.Since(began)
			}
		}
		go func() {
			<-time.After(2 * time.Second)
			messages, err := store.ParseMessages([]byte(`{"type": "input", "x": 1}`))
			if err == nil {
				_, err = engine.Append(t.Context(), log, "c", messages)
			}
			if err != nil {
				t.Error(err)
			}
		}()
		outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "sleep", "seconds": 20, "_outputPath": "†state.slept"},
			{"_tool": "value", "value": "†input.x", "_outputPath": "†state.x"}]`))
		expect(t, outcome, err, journal.RunDone, "1.1 sleep done → †state.slept", "1.2 value done → †state.x")
		if done > 3*time.Second {
			t.Errorf("it was woken after %s", done)
		}
	})
}

// TestTimeout_IgnoredByActivity holds that whatever comes after the deadline is
// a timeout, and tried again as one.
func TestTimeout_IgnoredByActivity(t *testing.T) {
	for name, late := range map[string]activity{
		"value": value,
		"failure": func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{}, plan.NewFailure("no")
		},
		"fault": func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{}, errors.New("interrupted")
		},
		"panic": func(context.Context, plan.Invocation) (plan.Result, error) { panic("interrupted") },
	} {
		synctest.Test(t, func(t *testing.T) {
			log, ran := memory.New(), &counter{}
			r := newRunner(log, map[string]activity{"late": ran.of(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
				time.Sleep(3 * time.Second)
				return late(ctx, in)
			})})
			a := r.Registry.Activities["late"]
			a.Timeout, a.Retries = 2*time.Second, 1
			outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "late", "value": 1, "_outputPath": "†state.a || †state.failed"}]`))
			expect(t, outcome, err, journal.RunDone, "1.1 late done → †state.failed")
			if got := get(t, log, "†state"); got != `{"failed":{"code":"timeout","message":"timed out after 2s"}}` || ran.String() != "1.1×2" {
				t.Errorf("%s: wrote %s; ran %s", name, got, ran)
			}
		})
	}
}

// leftInBackground runs a request until it is done, and interrupts it while its call of the activity
// late is at work in the background; once says that this must not run twice. Others run as value.
func leftInBackground(t *testing.T, request *plan.Request, once bool, delegates map[string]*plan.Delegate) (log *memory.Log, ran *counter, again *engine.Runner) {
	t.Helper()
	log, ran = memory.New(), &counter{}
	begun := make(chan struct{})
	r := newRunner(log, map[string]activity{"value": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		<-begun
		return value(ctx, in)
	}, "late": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		close(begun)
		return untilStopped(ctx, in)
	}})
	again = newRunner(log, map[string]activity{"value": value, "late": ran.of(value)})
	for _, r := range []*engine.Runner{r, again} {
		r.Registry.Activities["late"].NotIdempotent = once
		maps.Copy(r.Registry.Delegates, delegates)
	}
	ctx, stop := context.WithCancel(t.Context())
	r.Drain, r.Concluded = -1, func(o *journal.Outcome) {
		if info, err := log.Info(t.Context(), "c"); err != nil || o.Background != 1 || info.Standing.Background != 1 {
			t.Errorf("concluded with %+v, in lists %+v, %v", o, info.Standing, err)
		}
		stop()
	}
	if outcome, err := r.Run(ctx, engine.Start{Context: "c", Request: request}); err != nil || outcome.Status != journal.RunDone {
		t.Fatalf("%+v, %v", outcome, err)
	}
	return log, ran, again
}

// TestFireAndForget_InDoubtInEarlierTick decides about a call in the background of a tick that is over:
// it is tried again, or left out, and the run stays as it has ended.
func TestFireAndForget_InDoubtInEarlierTick(t *testing.T) {
	for _, decide := range []engine.Resume{{Context: "c", Retry: []string{"1.1"}}, {Context: "c", Skip: []string{"1.1"}}, {Context: "c", Result: map[string]any{"1.1": 2}}} {
		request := &plan.Request{Planner: plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
			if ask.Tick == 1 {
				return &plan.Solution{Calls: readPlan(t, `[{"_tool": "late", "value": 1}, {"_tool": "value", "value": 1, "_outputPath": "†state.a"}]`).Calls}, nil
			}
			return &plan.Solution{Output: ask.Tick}, nil
		})}
		log, ran, r := leftInBackground(t, request, true, nil)
		if outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Request: request}); err != nil || outcome.Background != 1 || ran.String() != "" {
			t.Errorf("resumed without a decision: %+v, %v, ran %s", outcome, err, ran)
		}
		decide.Request = request
		outcome, err := r.Resume(t.Context(), decide)
		if err != nil || outcome.Status != journal.RunDone || outcome.Background != 0 || string(store.EncodeJSON(outcome.Output)) != "2" {
			t.Errorf("%+v: %+v, %v", decide, outcome, err)
		}
		want, runs := journal.Done, ""
		if decide.Skip != nil {
			want = journal.Skipped
		}
		if decide.Retry != nil {
			runs = "1.1×1"
		}
		records, err := journal.In(log, "c").Records(t.Context())
		if err != nil || records[0].Status != want || ran.String() != runs {
			t.Errorf("%+v: %+v, %v, ran %s", decide, records[0], err, ran)
		}
		events := 0
		for e, err := range log.Journal(t.Context(), store.JournalFilter{Context: "c", Event: journal.EventRun}) {
			if events++; err != nil || strings.Contains(e.Data, `"running"`) {
				t.Errorf("%s, %v", e.Data, err)
			}
		}
	}
}

// TestFireAndForget_LeftByDelegate holds that what a delegate has left in the background counts as
// left by the run around it: nothing else runs there, resuming it goes on with the call, and
// cancelling it gives the call up.
func TestFireAndForget_LeftByDelegate(t *testing.T) {
	for _, cancels := range []bool{false, true} {
		inner := readPlan(t, `{"calls": [{"_tool": "late", "value": 1}, {"_tool": "value", "value": 1, "_outputPath": "†a"}], "output": "†a"}`)
		outer := readPlan(t, `{"calls": [{"_tool": "t", "_delegate": "d", "_outputPath": "†state.a"}], "output": "†state.a"}`)
		log, _, r := leftInBackground(t, outer, false, map[string]*plan.Delegate{"d": {Request: inner}})
		if _, err := r.Run(t.Context(), start(t, `[]`)); !errors.As(err, new(*engine.UnfinishedError)) {
			t.Errorf("another run: %v", err)
		}
		want := journal.Cancelled
		if cancels {
			if err := engine.Cancel(t.Context(), log, "c", journal.Who{}); err != nil {
				t.Error(err)
			}
		} else {
			want = journal.Done
			if outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"}); err != nil || outcome.Status != journal.RunDone {
				t.Errorf("%+v, %v", outcome, err)
			}
		}
		records, err := journal.In(log, "c.1.1").Records(t.Context())
		if err != nil || records[0].Status != want {
			t.Errorf("%+v, %v", records, err)
		}
		if outcome, err := r.Run(t.Context(), start(t, `[]`)); err != nil || outcome.Status != journal.RunDone {
			t.Errorf("the next run: %+v, %v", outcome, err)
		}
	}
}

// TestFireAndForget_InFork holds that a call that is in the background as its context is forked is the
// origin's: others run in the fork, and it does not run again with what is downstream of another.
func TestFireAndForget_InFork(t *testing.T) {
	request := readPlan(t, `{"calls": [{"_tool": "late", "value": 1}, {"_tool": "value", "value": 1, "_outputPath": "†state.a"}], "output": "†state.a"}`)
	log, ran, r := leftInBackground(t, request, false, nil)
	for _, fork := range []string{"f", "g"} {
		if _, err := journal.Fork(t.Context(), log, "c", 0, fork); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, `[]`)
	s.Context = "f"
	if outcome, err := r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunDone {
		t.Errorf("another run in a fork: %+v, %v", outcome, err)
	}
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "g", From: "1.2", Set: map[string]any{"value": 3}})
	if err != nil || outcome.Status != journal.RunDone || outcome.Background != 0 || ran.String() != "" {
		t.Errorf("run again in a fork: %+v, %v, ran %s", outcome, err, ran)
	}
	if replayed, err := replay.Run(t.Context(), r, "g", nil); err != nil || len(replayed.Differences) > 0 {
		t.Errorf("replayed: %+v, %v", replayed, err)
	}
}
