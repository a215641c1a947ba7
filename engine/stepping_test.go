package engine_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// gated are activities that end when their gate opens, or when they are told to
// stop.
func gated(gates map[string]chan struct{}) activity {
	return func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		gate := gates[in.Call["gate"].(string)]
		select {
		case <-gate:
			return value(ctx, in)
		case <-ctx.Done():
			return plan.Result{}, ctx.Err()
		}
	}
}

// interrupted runs what opens its gates first and second: the interrupt comes
// when the call of the second has ended, while a worker is at the step that
// records that of the first, call 1.1.
func interrupted(t *testing.T, r *engine.Runner, s engine.Start, gates map[string]chan struct{}) (outcome *journal.Outcome, err error) {
	observing, observed, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r.Observe = func(record journal.Record) {
		if record.Call == "1.1" && record.Status == journal.Done {
			close(observing)
			<-observed
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		outcome, err = r.Run(ctx, s)
	}()
	synctest.Wait()
	close(gates["first"])
	<-observing
	close(gates["second"])
	synctest.Wait()
	interrupt()
	synctest.Wait()
	close(observed)
	<-ended
	return outcome, err
}

func gates() map[string]chan struct{} {
	return map[string]chan struct{}{"first": make(chan struct{}), "second": make(chan struct{}), "never": make(chan struct{})}
}

// TestInterrupted_WhileWorkerSteps: what comes while a worker has the turn, the
// last results and the interrupt, ends the run as interrupted.
func TestInterrupted_WhileWorkerSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, gates := memory.New(), gates()
		r := newRunner(log, map[string]activity{"wait": gated(gates)})
		r.Registry.Delegates["d"] = &plan.Delegate{Request: readPlan(t, `{"calls": [
			{"_tool": "wait", "gate": "never", "_outputPath": "†a"}
		], "output": "†a"}`)}
		outcome, err := interrupted(t, r, start(t, `[
			{"_tool": "wait", "gate": "first", "_outputPath": "†state.a"},
			{"_tool": "wait", "gate": "second", "_outputPath": "†state.b"},
			{"_tool": "hand", "_delegate": "d", "_outputPath": "†state.c"}
		]`), gates)
		if err != nil || outcome.Status != journal.RunInterrupted {
			t.Errorf("it ended as %v, %v", outcome, err)
		}
		last, err := journal.In(log, "c").LastRun(t.Context())
		if err != nil || last.Status != journal.RunInterrupted {
			t.Errorf("the log says that it is %s, %v", last.Status, err)
		}
	})
}

// TestInterrupted_BeforePlannerIsAskedAgain: a planner is not asked for a tick
// that begins after the interrupt.
func TestInterrupted_BeforePlannerIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates, asked := gates(), 0
		r := newRunner(memory.New(), map[string]activity{"wait": gated(gates)})
		calls := readPlan(t, `[
			{"_tool": "wait", "gate": "first", "_outputPath": "†state.a"},
			{"_tool": "wait", "gate": "second", "_outputPath": "†state.b"}
		]`).Calls
		planner := plan.PlannerFunc(func(context.Context, plan.Ask) (*plan.Solution, error) {
			asked++
			return &plan.Solution{Calls: calls}, nil
		})
		outcome, err := interrupted(t, r, engine.Start{Context: "c", Request: &plan.Request{Planner: planner}}, gates)
		if asked != 1 || err != nil || outcome.Status != journal.RunInterrupted {
			t.Errorf("the planner was asked %d times, and the run ended as %v, %v", asked, outcome, err)
		}
	})
}

// TestStop_InOrder: calls that are told to stop at once are recorded in the
// order of the plan, whichever ends first.
func TestStop_InOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		r := newRunner(log, map[string]activity{"linger": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			<-ctx.Done()
			if in.Call["long"] == true {
				time.Sleep(100 * time.Millisecond)
			}
			return plan.Result{}, ctx.Err()
		}})
		ctx, interrupt := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = r.Run(ctx, start(t, `[
				{"_tool": "linger", "long": true, "_outputPath": "†state.a"},
				{"_tool": "linger", "_outputPath": "†state.b"}
			]`))
		}()
		synctest.Wait()
		interrupt()
		<-ended
		var cut []string
		for entry, err := range log.Journal(t.Context(), store.JournalFilter{Context: "c"}) {
			if err != nil {
				t.Fatal(err)
			}
			if entry.Event == string(journal.Interrupted) {
				cut = append(cut, entry.Call)
			}
		}
		if got := strings.Join(cut, " "); got != "1.1 1.2" {
			t.Errorf("recorded in the order %s", got)
		}
	})
}

// TestObserve_Panics: a panic of an observer in a worker's step goes on
// where the run was begun, and one that ends its goroutine ends the run.
func TestObserve_Panics(t *testing.T) {
	for name, breakDown := range map[string]func(){"panics": func() { panic("no") }, "goes": runtime.Goexit} {
		synctest.Test(t, func(t *testing.T) {
			gates := gates()
			r := newRunner(memory.New(), map[string]activity{"wait": gated(gates)})
			r.Observe = func(record journal.Record) {
				if record.Status == journal.Done {
					breakDown()
				}
			}
			var panicked any
			var err error
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer func() { panicked = recover() }()
				_, err = r.Run(t.Context(), start(t, `[{"_tool": "wait", "gate": "first", "_outputPath": "†state.a"}]`))
			}()
			synctest.Wait() // so that the worker has the turn when it ends
			close(gates["first"])
			<-ended
			if good := map[string]bool{"panics": panicked == "no", "goes": panicked == nil && err != nil}; !good[name] {
				t.Errorf("it %s: %v, %v", name, panicked, err)
			}
		})
	}
}

// TestDelegate_Panics: what an observer does in a delegate's run is as if
// it were done in the run itself, wherever the delegate is at.
func TestDelegate_Panics(t *testing.T) {
	for _, on := range []journal.Status{journal.Running, journal.Done} {
		r := newRunner(memory.New(), map[string]activity{"echo": value})
		r.Registry.Delegates["d"] = &plan.Delegate{Request: readPlan(t, `{"calls": [{"_tool": "echo", "value": 1, "_outputPath": "†a"}], "output": "†a"}`)}
		r.Observe = func(record journal.Record) {
			if record.Status == on && record.Context != "c" {
				panic("no")
			}
		}
		func() {
			defer func() {
				if panicked := recover(); panicked != "no" {
					t.Errorf("%s: %v", on, panicked)
				}
			}()
			outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "x", "_delegate": "d", "_outputPath": "†state.a"}]`))
			t.Errorf("%s: the run goes on: %+v, %v", on, outcome, err)
		}()
	}
}

// TestActivity_EndsItsGoroutine, as one in Go does that calls t.Fatal, fails
// its call, and neither is waited for for ever nor takes others with it.
func TestActivity_EndsItsGoroutine(t *testing.T) {
	r := newRunner(memory.New(), map[string]activity{
		"echo": value,
		"go": func(context.Context, plan.Invocation) (plan.Result, error) {
			runtime.Goexit()
			return plan.Result{}, nil
		},
	})
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "go", "_outputPath": "†state.a"}, {"_tool": "echo", "value": 1, "_outputPath": "†state.b"}]`))
	if err != nil {
		t.Fatal(err)
	}
	gone, other := outcome.Calls[0], outcome.Calls[1]
	if gone.Status != journal.Failed || gone.Attempts != 1 || gone.Error["message"] != "it gave nothing back: its goroutine was ended" || other.Status != journal.Done {
		t.Errorf("%+v", outcome.Calls)
	}
}

// lastMoment is a log in which something happens just before it is asked who
// holds a context.
type lastMoment struct {
	store.Log
	happens func()
}

func (l *lastMoment) Holder(ctx context.Context, name string) (string, error) {
	l.happens()
	return l.Log.Holder(ctx, name)
}

// TestRun_JustEnded is neither in use nor unfinished, though it was seen to
// be under way.
func TestRun_JustEnded(t *testing.T) {
	gates := gates()
	log := memory.New()
	activities := map[string]activity{"wait": gated(gates), "echo": value}
	running, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s := start(t, `[{"_tool": "wait", "gate": "first", "_outputPath": "†state.a"}]`)
		s.Begun = func() { close(running) }
		if _, err := newRunner(log, activities).Run(t.Context(), s); err != nil {
			t.Error(err)
		}
	}()
	<-running
	r := newRunner(&lastMoment{log, func() { close(gates["first"]); <-ended }}, activities)
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "echo", "value": 1, "_outputPath": "†state.b"}]`))
	if err != nil || outcome.Calls[0].Call != "2.1" || outcome.Status != journal.RunDone {
		t.Errorf("%+v, %v", outcome, err)
	}
}
