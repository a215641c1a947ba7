package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

// crashing is a log whose appends fail from a point on: the process has ended.
type crashing struct {
	store.Log
	mu    sync.Mutex
	left  int  // how many appends still succeed
	after bool // the one that fails has been committed all the same
}

var errCrash = errors.New("the process has ended")

func (l *crashing) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left--
	if b.Lease != nil && b.Lease.For > 0 { // whoever dies holds nothing
		b.Lease = &store.Lease{Epoch: b.Lease.Epoch, For: 1}
	}
	if l.left == -1 && l.after {
		if _, err := l.Log.Append(ctx, b); err != nil {
			return store.Appended{}, err
		}
	}
	if l.left < 0 {
		return store.Appended{}, errCrash
	}
	return l.Log.Append(ctx, b)
}

// TestCrash_AtEveryAppend ends the process before and after each append of a
// run, and resumes: the values are those of a run that nothing disturbed, and
// what has a recorded outcome does not run again.
func TestCrash_AtEveryAppend(t *testing.T) {
	const text = `{"calls": [
		{"_tool": "value", "value": 1, "_outputPath": "†state.a"},
		{"_tool": "value", "value": "†state.a + 1", "_outputPath": "†state.b && †state.log", "_outputMethod": "push"},
		{"_tool": "fail", "_outputPath": "†state.x"},
		{"_tool": "value", "value": "†state.x", "_outputPath": "†state.y"},
		{"_tool": "value", "value": ["†state.b", "†state.x || 0"], "_outputPath": "†state.c"}
	], "output": "†state"}`
	for n, crashed := 0, true; crashed; n++ {
		for _, after := range []bool{false, true} {
			inner, ran := memory.New(), &counter{}
			log := &crashing{Log: inner, left: n, after: after}
			r := newRunner(log, map[string]activity{
				"value": ran.of(value),
				"fail": ran.of(func(context.Context, plan.Invocation) (plan.Result, error) {
					return plan.Result{}, plan.NewFailure("no")
				}),
			})
			r.Parallel = 1
			_, err := r.Run(t.Context(), start(t, text))
			if crashed = err != nil; crashed && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			recorded, err := journal.In(inner, "c").Records(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r.Log = inner
			outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"})
			if errors.As(err, new(*journal.NoSuchCallError)) {
				if len(recorded) > 0 || ran.String() != "" {
					t.Errorf("crash %d: nothing to resume, but %s ran", n, ran)
				}
				outcome, err = r.Run(t.Context(), start(t, text))
			}
			if err != nil {
				t.Fatal(err)
			}
			const want = `{"a":1,"b":[2],"c":[[2],0],"log":[2]}`
			if got := string(store.EncodeJSON(outcome.Output)); got != want || outcome.Status != journal.RunFailed {
				t.Errorf("crash %d, after %v: %s, %s", n, after, outcome.Status, got)
			}
			for _, r := range recorded {
				if r.Status.Settled() && ran.runs["c/"+r.Call] > 1 {
					t.Errorf("crash %d, after %v: %s was %s, and ran again", n, after, r.Call, r.Status)
				}
			}
			if got := strings.Count(printed(t, inner), `"kind":"error"`); got != 1 {
				t.Errorf("crash %d, after %v: %d error messages", n, after, got)
			}
		}
	}
}

// inDoubt brings a context to where a call that must not run twice had started
// when the process ended: killed, or told to stop.
func inDoubt(t *testing.T, killed bool) (r *engine.Runner, ran *counter) {
	inner, ran, g := memory.New(), &counter{}, newGate()
	log := &crashing{Log: inner, left: 1000}
	r = newRunner(log, map[string]activity{"value": ran.of(value), "gate": ran.of(g.run)})
	r.Registry.Activities["gate"].NotIdempotent = true
	r.Parallel = 1
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-g.begun
		log.mu.Lock()
		if killed {
			log.left = 0
		}
		log.mu.Unlock()
		cancel()
	}()
	if _, err := r.Run(ctx, start(t, chained)); killed != errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	r.Log = inner
	return r, ran
}

func TestInDoubt_NeedsDecision(t *testing.T) {
	for _, killed := range []bool{true, false} {
		r, ran := inDoubt(t, killed)
		for range 2 {
			outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"})
			expect(t, outcome, err, journal.RunWaiting,
				"1.1 value done → †state.a", "1.2 gate in-doubt", "1.3 value blocked", "1.4 value done → †state.d")
			if n := outcome.Calls[1].Attempts; n != 1 {
				t.Errorf("killed %v: %d attempts", killed, n)
			}
		}
		outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Retry: []string{"1.2"}})
		if n := outcome.Calls[1].Attempts; n != 2 {
			t.Errorf("killed %v: %d attempts in the end", killed, n)
		}
		expect(t, outcome, err, journal.RunDone,
			"1.1 value done → †state.a", "1.2 gate done → †state.b", "1.3 value done → †state.c", "1.4 value done → †state.d")
		if got, want := ran.String(), "1.1×1 1.2×2 1.3×1 1.4×1"; got != want {
			t.Errorf("killed %v: ran %s, not %s", killed, got, want)
		}
	}
}

// TestDelegate_EndsWithItsProcess ends the process at each append of a run that
// leaves a delegate behind, or a call while it waits: where it is resumed, or cancelled,
// nothing stays as if it were at work.
func TestDelegate_EndsWithItsProcess(t *testing.T) {
	for name, request := range map[string]*plan.Request{
		"delegate": readPlan(t, `{"calls": [{"_tool": "late", "_delegate": "outer"}, {"_tool": "value", "value": 1, "_outputPath": "†state.a"}], "output": "†state.a"}`),
		"waiting":  readPlan(t, `[{"_tool": "late"}, {"_tool": "value", "value": "†input.z", "_outputPath": "†state.a"}]`),
	} {
		for n, crashed := 1, true; crashed; n++ {
			inner := memory.New()
			r := newRunner(&crashing{Log: inner, left: n}, map[string]activity{"value": value, "late": untilStopped})
			r.Registry.Delegates["outer"] = &plan.Delegate{Request: readPlan(t, `[{"_tool": "late", "_delegate": "anonymous", "_outputPath": "†a"}]`)}
			ctx, stop := context.WithCancelCause(t.Context())
			r.Drain, r.Concluded = -1, func(*journal.Outcome) { stop(engine.ErrStopped) }
			_, err := r.Run(ctx, engine.Start{Context: "c", Request: request})
			crashed = errors.Is(err, errCrash)
			if name == "waiting" {
				err = engine.Cancel(t.Context(), inner, "c", journal.Who{})
			} else {
				r = newRunner(inner, map[string]activity{"value": value, "late": value})
				r.Registry.Delegates["outer"] = &plan.Delegate{Request: readPlan(t, `[{"_tool": "late", "_delegate": "anonymous", "_outputPath": "†a"}]`)}
				_, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
			}
			if err != nil && !errors.As(err, new(*journal.NoSuchCallError)) {
				t.Fatalf("%s, %d: %v", name, n, err)
			}
			for info, err := range inner.Contexts(t.Context(), store.ContextFilter{}) {
				if err != nil {
					t.Fatal(err)
				}
				last, err := journal.In(inner, info.Context).LastRun(t.Context())
				if err != nil || last.Status == journal.RunRunning {
					t.Errorf("%s, %d: context %s: %+v, %v", name, n, info.Context, last, err)
				}
				if behind, err := last.LeftBehind(t.Context(), journal.In(inner, info.Context)); behind || err != nil {
					t.Errorf("%s, %d: context %s has left something behind, %v", name, n, info.Context, err)
				}
			}
		}
	}
}

// TestDelegate_ResumedOnItsOwn: what a call left behind that somebody has
// resumed by itself goes on, and is in nobody's way.
func TestDelegate_ResumedOnItsOwn(t *testing.T) {
	inner, at := memory.New(), make(chan struct{})
	crashed := &crashing{Log: inner, left: 1000}
	r := newRunner(crashed, map[string]activity{
		"late": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			crashed.mu.Lock()
			crashed.left = 0
			crashed.mu.Unlock()
			close(at)
			return untilStopped(ctx, in)
		},
		"value": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			<-at
			return value(ctx, in)
		},
	})
	_, err := r.Run(t.Context(), start(t, `{"calls": [{"_tool": "late", "_delegate": "anonymous"}, {"_tool": "value", "value": 1, "_outputPath": "†state.a"}], "output": "†state.a"}`))
	if last, wrong := journal.In(inner, "c.1.1").LastRun(t.Context()); !errors.Is(err, errCrash) || wrong != nil || last.Status != journal.RunRunning {
		t.Fatal(err, wrong, last)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan struct{})
	r = newRunner(inner, map[string]activity{"value": value, "late": untilStopped})
	go func() {
		defer close(ended)
		other := newRunner(inner, map[string]activity{"value": value, "late": untilStopped})
		if _, err := other.Resume(ctx, engine.Resume{Context: "c.1.1", Begun: func() { close(begun) }}); err != nil {
			t.Error(err)
		}
	}()
	<-begun
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"})
	if err != nil || outcome.Status != journal.RunDone {
		t.Errorf("%+v, %v", outcome, err)
	}
	cancel()
	<-ended
}

// TestFireAndForget_LeftByACrash ends the process at each append of a run, of one tick or two, that
// leaves a fire-and-forget call in the background. Resuming the run has the call come to its end,
// another run in the context waits for that, and before and after the run is replayed as far as it
// came.
func TestFireAndForget_LeftByACrash(t *testing.T) {
	late := `{"_tool": "late", "value": 1}, {"_tool": "value", "value": 1, "_outputPath": "†state.a"}`
	for _, request := range []*plan.Request{
		readPlan(t, `{"calls": [`+late+`], "output": "†state.a"}`),
		{Planner: plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
			if ask.Tick == 1 {
				return &plan.Solution{Calls: readPlan(t, `[`+late+`]`).Calls}, nil
			}
			return &plan.Solution{Output: ask.Tick}, nil
		})},
	} {
		again, refused := 0, 0
		for n, crashed := 1, true; crashed; n++ {
			inner := memory.New()
			r := newRunner(&crashing{Log: inner, left: n}, map[string]activity{"value": value, "late": untilStopped})
			ctx, stop := context.WithCancelCause(t.Context())
			r.Drain, r.Concluded = -1, func(*journal.Outcome) { stop(engine.ErrStopped) }
			_, err := r.Run(ctx, engine.Start{Context: "c", Request: request})
			crashed = errors.Is(err, errCrash)
			r = newRunner(inner, map[string]activity{"value": value, "late": value})
			last, err := journal.In(inner, "c").LastRun(t.Context())
			if err == nil && last.Status == journal.RunDone {
				if replayed, err := replay.Run(t.Context(), r, "c", request); err != nil || len(replayed.Differences) > 0 {
					t.Fatalf("%d: replayed while it is left, %+v, %v", n, replayed, err)
				}
				if _, err := r.Run(t.Context(), start(t, `[]`)); errors.As(err, new(*engine.UnfinishedError)) {
					refused++
				} else if err != nil {
					t.Fatalf("%d: another run: %v", n, err)
				}
			}
			outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Request: request})
			if errors.As(err, new(*journal.NoSuchCallError)) { // nothing of it is in the log
				continue
			}
			if err != nil || outcome.Status != journal.RunDone || outcome.Background != 0 {
				t.Fatalf("%d: %+v, %v", n, outcome, err)
			}
			records, err := journal.In(inner, "c").Records(t.Context())
			if err != nil || records[0].Status != journal.Done || records[0].Attempts > 2 {
				t.Fatalf("%d: %+v, %v", n, records[0], err)
			}
			if records[0].Attempts == 2 {
				again++
			}
			if replayed, err := replay.Run(t.Context(), r, "c", request); err != nil || len(replayed.Differences) > 0 {
				t.Fatalf("%d: replayed, %+v, %v", n, replayed, err)
			}
		}
		if again < 2 || refused == 0 {
			t.Errorf("it ran again %d times, and another run was refused %d times", again, refused)
		}
	}
}

// TestRetry_InTickThatWasOver ends the process at each append of a run in which calls of
// a tick that was over run again: they come to their end before the planner is asked.
func TestRetry_InTickThatWasOver(t *testing.T) {
	request := &plan.Request{Planner: plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
		if ask.Tick == 1 {
			return &plan.Solution{Calls: readPlan(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}, {"_tool": "value", "value": "†state.a", "_outputPath": "†state.b"}]`).Calls}, nil
		}
		return &plan.Solution{Output: "†state.b"}, nil
	})}
	for n, crashed := 1, true; crashed; n++ { // the lease is taken first
		inner := memory.New()
		r := newRunner(inner, map[string]activity{"value": value})
		if _, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request}); err != nil {
			t.Fatal(err)
		}
		if _, err := journal.Fork(t.Context(), inner, "c", 3, "f"); err != nil { // where the first tick had ended
			t.Fatal(err)
		}
		r.Log = &crashing{Log: inner, left: n}
		_, err := r.Resume(t.Context(), engine.Resume{Context: "f", Request: request, From: "1.1"})
		if crashed = err != nil; crashed && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		r.Log = inner
		outcome, err := r.Resume(t.Context(), engine.Resume{Context: "f", Request: request})
		if err != nil || outcome.Status != journal.RunDone || fmt.Sprint(outcome.Output) != "1" {
			t.Fatalf("%d: %+v, %v", n, outcome, err)
		}
		records, err := journal.In(inner, "f").Records(t.Context())
		for _, record := range records {
			if record.Status != journal.Done {
				t.Errorf("%d: call %s is %s", n, record.Call, record.Status)
			}
		}
		if replayed, wrong := replay.Run(t.Context(), r, "f", request); err != nil || wrong != nil || len(replayed.Differences) > 0 {
			t.Errorf("%d: replayed, %+v, %v, %v", n, replayed, err, wrong)
		}
	}
}

// TestInDoubt_KeepsItsArguments holds that a call that was approved and cut
// off runs again with what was shown, and is not shown again, whatever was written
// since it began.
func TestInDoubt_KeepsItsArguments(t *testing.T) {
	inner, ran, g := memory.New(), &counter{}, newGate()
	log := &crashing{Log: inner, left: 1000}
	r := newRunner(log, map[string]activity{"value": value, "pay": ran.of(value), "gate": g.run})
	r.Registry.Activities["pay"].NotIdempotent = true
	r.Registry.Activities["pay"].Activity = plan.ActivityFunc(untilStopped)
	s := start(t, `[{"_tool": "pay", "value": "†state.n", "_outputPath": "†state.paid"},
		{"_tool": "value", "value": "new", "_outputPath": "†state.n"},
		{"_tool": "gate", "value": "†state.n", "_outputPath": "†state.seen"}]`)
	s.Request.Context = messages(t, `{"type": "state", "n": "old"}`)
	s.Approve = plan.Policy{Tools: []string{"pay"}}
	if outcome, err := r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunWaiting {
		t.Fatal(outcome, err)
	}
	if err := r.Decide(t.Context(), journal.Decision{Context: "c", Call: "1.1"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // once the third call runs, n is new, and the first is under way
		<-g.begun
		log.mu.Lock()
		defer log.mu.Unlock()
		log.left = 0
		cancel()
	}()
	if _, err := r.Resume(ctx, engine.Resume{Context: "c"}); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	r.Log = inner
	r.Registry.Activities["pay"].Activity = plan.ActivityFunc(ran.of(value))
	r.Registry.Activities["gate"].Activity = plan.ActivityFunc(value)
	if outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"}); err != nil || outcome.Status != journal.RunWaiting {
		t.Fatal(outcome, err)
	}
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Retry: []string{"1.1"}})
	if err != nil || outcome.Status != journal.RunDone {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if got := get(t, inner, "†state.paid"); got != `"old"` {
		t.Errorf("it was paid for %s", got)
	}
}

func TestInDoubt_Skipped(t *testing.T) {
	r, ran := inDoubt(t, true)
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Skip: []string{"1.2"}})
	expect(t, outcome, err, journal.RunDone,
		"1.1 value done → †state.a", "1.2 gate skipped … skipped by a person",
		"1.3 value skipped … call 1.2 (gate) was skipped, and so did not write †state.b", "1.4 value done → †state.d")
	if got, want := ran.String(), "1.1×1 1.2×1 1.4×1"; got != want {
		t.Errorf("ran %s, not %s", got, want)
	}
}

// everything is a run of all that can be cut off in the middle: a planner, a
// delegate with calls of its own, a call that is held, one for each instance.
func everything(t *testing.T, log store.Log, ran *counter) (*engine.Runner, engine.Start) {
	r := newRunner(log, map[string]activity{"value": ran.of(value)})
	r.Parallel = 1
	inside := readPlan(t, `{"calls": [
		{"_tool": "value", "value": "†input.n + 1", "_outputPath": "†x"},
		{"_tool": "value", "value": "†x * 10", "_outputPath": "†y"}
	], "output": "†y"}`)
	r.Registry.Delegates["tenfold"] = &plan.Delegate{Request: inside}
	first := readPlan(t, `[
		{"_tool": "value", "value": 1, "_outputPath": "†state.a"},
		{"_tool": "hand", "_delegate": "tenfold", "n": "†state.a", "_outputPath": "†state.b"},
		{"_tool": "pay", "value": "†state.b", "_outputPath": "†state.paid"},
		{"_tool": "value", "value": "†state.n", "_instance": "*", "_outputPath": "†state.m"},
		{"_tool": "value", "value": "†state.paid", "_outputPath": "†state.a"}
	]`)
	second := readPlan(t, `[{"_tool": "value", "value": ["†state.a", "†state.b"], "_outputPath": "†out"}]`)
	r.Registry.Activities["pay"] = r.Registry.Activities["value"]
	request := &plan.Request{
		Context: messages(t, `[{"type": "state", "_instance": "①", "n": 1}, {"type": "state", "_instance": "②", "n": 2}]`),
		Planner: plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
			state, _ := ask.Kinds["state"].(map[string]any)
			if _, ok := state["paid"]; !ok {
				return &plan.Solution{Calls: first.Calls}, nil
			}
			return &plan.Solution{Calls: second.Calls, Output: "†out"}, nil
		}),
	}
	return r, engine.Start{Context: "c", Request: request, Approve: plan.Policy{Tools: []string{"pay"}}}
}

// drive carries a run to its end: it begins or resumes it, and approves what is
// held.
func drive(t *testing.T, r *engine.Runner, s engine.Start) (*journal.Outcome, error) {
	for {
		last, err := journal.In(r.Log, "c").LastRun(t.Context())
		if err != nil {
			return nil, err
		}
		var outcome *journal.Outcome
		if last.Tick == 0 {
			outcome, err = r.Run(t.Context(), s)
		} else {
			outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Request: s.Request})
		}
		if err != nil || outcome.Status != journal.RunWaiting {
			return outcome, err
		}
		held, err := journal.In(r.Log, "c").Holds(t.Context())
		if err != nil {
			return nil, err
		}
		for _, record := range held {
			if err := r.Decide(t.Context(), journal.Decision{Context: record.Context, Call: record.Call}); err != nil {
				return nil, err
			}
		}
	}
}

// TestCrash_OfEverything ends the process before and after each append of such
// a run, and goes on with it: it comes to the same values, and what has a
// recorded outcome does not run again.
func TestCrash_OfEverything(t *testing.T) {
	for n, crashed := 0, true; crashed; n++ {
		for _, after := range []bool{false, true} {
			inner, ran := memory.New(), &counter{}
			r, s := everything(t, &crashing{Log: inner, left: n, after: after}, ran)
			_, err := drive(t, r, s)
			if crashed = err != nil; crashed && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			var done []string
			for _, name := range []string{"c", "c.1.2"} {
				recorded, err := journal.In(inner, name).Records(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, record := range recorded {
					if record.Status.Settled() {
						done = append(done, name+"/"+record.Call)
					}
				}
			}
			r.Log = inner
			outcome, err := drive(t, r, s)
			if err != nil {
				t.Fatal(err)
			}
			const want = `done [20,20] {"a":20,"b":20,"paid":20}`
			if got := fmt.Sprint(outcome.Status, " ", string(store.EncodeJSON(outcome.Output)), " ", get(t, inner, "†state")); got != want {
				t.Errorf("crash %d, after %v: %s, not %s", n, after, got, want)
			}
			for _, key := range done {
				if ran.runs[key] > 1 {
					t.Errorf("crash %d, after %v: %s had its outcome, and ran again", n, after, key)
				}
			}
			if got := strings.Count(printed(t, inner), `"type":"plan"`); got != 2 {
				t.Errorf("crash %d, after %v: %d plans", n, after, got)
			}
		}
	}
}

// TestResume_IsUnderWay: a run that goes on after a halt is under way, so that
// whoever finds it after a crash goes on with it.
func TestResume_IsUnderWay(t *testing.T) {
	log, g := memory.New(), newGate()
	r := newRunner(log, map[string]activity{"gate": g.run})
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "gate", "value": "†input.x", "_outputPath": "†a"}]`))
	expect(t, outcome, err, journal.RunWaiting, "1.1 gate waiting … †input.x")
	if _, err := engine.Append(t.Context(), log, "c", messages(t, `{"type": "input", "x": 1}`)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	resumed := make(chan error)
	go func() {
		_, err := r.Resume(ctx, engine.Resume{Context: "c"})
		resumed <- err
	}()
	<-g.begun
	last, err := journal.In(log, "c").LastRun(t.Context())
	if err != nil || last.Status != journal.RunRunning {
		t.Errorf("the run is %s, %v", last.Status, err)
	}
	cancel()
	if err := <-resumed; err != nil {
		t.Error(err)
	}
}

// TestInDoubt_KeepsItsReads: also where nobody approved it, and something was
// appended since; and it is in doubt though its script says no more that it must not run twice.
func TestInDoubt_KeepsItsReads(t *testing.T) {
	inner := memory.New()
	log := &crashing{Log: inner, left: 1000}
	r := newRunner(log, map[string]activity{"value": value})
	begun := make(chan struct{})
	r.Registry.Activities["pay"] = &plan.Registered{Name: "pay", NotIdempotent: true, Activity: plan.ActivityFunc(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		close(begun)
		<-ctx.Done()
		return plan.Result{}, ctx.Err()
	})}
	s := start(t, `[{"_tool": "pay", "value": "†state.n", "_outputPath": "†state.paid"}]`)
	s.Request.Context = messages(t, `{"type": "state", "n": "old"}`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		log.mu.Lock()
		defer log.mu.Unlock()
		log.left = 0
		cancel()
	}()
	if _, err := r.Run(ctx, s); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	r.Log = inner
	r.Registry.Activities["pay"] = &plan.Registered{Name: "pay", Activity: plan.ActivityFunc(value)}
	if outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"}); err != nil || outcome.Status != journal.RunWaiting {
		t.Fatal(outcome, err)
	}
	if _, err := engine.Append(t.Context(), inner, "c", messages(t, `{"type": "state", "n": "new"}`)); err != nil {
		t.Fatal(err)
	}
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Retry: []string{"1.1"}})
	if got := get(t, inner, "†state.paid"); err != nil || outcome.Status != journal.RunDone || got != `"old"` {
		t.Errorf("it was paid for %s, %+v, %v", got, outcome, err)
	}
}
