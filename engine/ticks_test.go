package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// onAppend is a log that does something once it has appended.
type onAppend struct {
	store.Log
	do func(b store.Batch)
}

func (l *onAppend) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	appended, err := l.Log.Append(ctx, b)
	l.do(b)
	return appended, err
}

// ticksOf gives the ticks of which a log has plans, and how each has ended.
func ticksOf(t *testing.T, log store.Log) (ticks []int, ended map[int]string) {
	t.Helper()
	ended = map[int]string{}
	for e, err := range log.Journal(t.Context(), store.JournalFilter{Context: "c"}) {
		if err != nil {
			t.Fatal(err)
		}
		var data struct {
			Tick   int    `json:"tick"`
			Status string `json:"status"`
		}
		if e.Call != "" || json.Unmarshal([]byte(e.Data), &data) != nil {
			continue
		}
		if e.Event == "plan" {
			ticks = append(ticks, data.Tick)
		} else {
			ended[data.Tick] = data.Status
		}
	}
	return ticks, ended
}

// threeTicks is a run whose first tick leaves a call behind that ends when gate is
// closed. It asks before the third.
func threeTicks(t *testing.T, log store.Log, gate chan struct{}, ask func(ctx context.Context) error) (*engine.Runner, engine.Start) {
	r := newRunner(log, map[string]activity{"value": value, "late": gated(map[string]chan struct{}{"late": gate})})
	r.Drain = 0
	calls := readPlan(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}, {"_tool": "late", "gate": "late", "value": 1}]`).Calls
	planner := func(ctx context.Context, in plan.Ask) (*plan.Solution, error) {
		switch in.Tick {
		case 1:
			return &plan.Solution{Calls: calls}, nil
		case 2:
			return &plan.Solution{Calls: calls[:1]}, nil
		}
		return &plan.Solution{Output: in.Tick}, ask(ctx)
	}
	return r, engine.Start{Context: "c", Request: &plan.Request{Planner: plan.PlannerFunc(planner)}}
}

// TestTicks_CountOnPastDetachedCalls: also where what an earlier tick left behind ends between two.
func TestTicks_CountOnPastDetachedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		end := sync.OnceFunc(func() { close(gate) })
		log := &onAppend{Log: memory.New()}
		log.do = func(b store.Batch) {
			if slices.ContainsFunc(b.Journal, func(e store.Entry) bool { return e.Event == "run" && strings.Contains(e.Data, `"tick":2,`) }) {
				end()
				synctest.Wait() // until the call has ended, and its end is to be recorded next
			}
		}
		r, s := threeTicks(t, log, gate, func(context.Context) error { return nil })
		outcome, err := r.Run(t.Context(), s)
		if err != nil || outcome.Status != journal.RunDone {
			t.Fatalf("%+v, %v", outcome, err)
		}
		if ticks, _ := ticksOf(t, log); !slices.Equal(ticks, []int{1, 2, 3}) {
			t.Errorf("ticks %v", ticks)
		}
	})
}

// lateContext is one whose time is over before it ends.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

// A planner that notices by itself that the run's time is over does not fail the run.
func TestPlanner_NoticesTheRunsDeadline(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &engine.Runner{Log: memory.New(), Registry: activities(true)}
	request := &plan.Request{Planner: plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
		if ask.Tick == 1 {
			return &plan.Solution{Calls: readPlan(t, `{"calls": [{"_tool": "value", "value": 1, "_outputPath": "†a"}]}`).Calls}, nil
		}
		time.AfterFunc(time.Millisecond, cancel)
		return nil, errors.New("timed out")
	})}
	outcome, err := r.Run(lateContext{ctx}, engine.Start{Context: "c", Request: request})
	if err != nil || outcome.Status != journal.RunInterrupted {
		t.Errorf("%v, %+v", err, outcome)
	}
}

// TestStop_WhilePlannerIsAsked: it is the newest tick after which the run was
// stopped, whichever the calls are of that it left behind.
func TestStop_WhilePlannerIsAsked(t *testing.T) {
	gate, log := make(chan struct{}), memory.New()
	ctx, stop := context.WithCancel(t.Context())
	r, s := threeTicks(t, log, gate, func(ctx context.Context) error {
		close(gate)
		stop()
		return ctx.Err()
	})
	outcome, err := r.Run(ctx, s)
	if err != nil || outcome.Status != journal.RunInterrupted {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if _, ended := ticksOf(t, log); ended[1] != "continued" || ended[2] != "interrupted" {
		t.Errorf("ended %v", ended)
	}
}

// TestFireAndForget_BelongsToItsRun: what a run left behind, and is still at work, keeps
// another run out of its context; that does not take it for cut off.
func TestFireAndForget_BelongsToItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, gate := memory.New(), make(chan struct{})
		r := newRunner(log, map[string]activity{"late": gated(map[string]chan struct{}{"late": gate})})
		r.Drain = time.Hour
		ended := make(chan error)
		go func() {
			_, err := r.Run(context.Background(), start(t, `{"calls": [{"_tool": "late", "gate": "late", "value": 1}], "output": "x"}`))
			ended <- err
		}()
		synctest.Wait() // until nothing is left to do but for what is left behind
		asked := plan.PlannerFunc(func(context.Context, plan.Ask) (*plan.Solution, error) {
			t.Error("the planner is asked")
			return &plan.Solution{Output: 2}, nil
		})
		if _, err := r.Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{Planner: asked}}); !errors.As(err, new(*engine.BusyError)) {
			t.Errorf("another run: %v", err)
		}
		if outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"}); err != nil || outcome.Calls[0].Status != journal.Running {
			t.Errorf("resumed: %+v, %v", outcome, err)
		}
		close(gate)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if records, err := journal.In(log, "c").Records(t.Context()); err != nil || records[0].Status != journal.Done {
			t.Errorf("%+v, %v", records, err)
		}
	})
}

// TestLazy_DrainsDetachedCalls: while the next plan waits to be approved, what the one
// before left behind comes to its end.
func TestLazy_DrainsDetachedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		r := newRunner(log, map[string]activity{"sleep": sleep})
		r.Drain = 0
		calls := readPlan(t, `[{"_tool": "sleep", "seconds": 3, "value": 1}]`).Calls
		request := &plan.Request{Mode: "lazy", Planner: plan.PlannerFunc(func(context.Context, plan.Ask) (*plan.Solution, error) {
			return &plan.Solution{Calls: calls}, nil
		})}
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
		expect(t, outcome, err, journal.RunWaiting, "1.1 sleep blocked")
		if _, err := (&engine.Runner{Log: log}).DecidePlan(t.Context(), journal.PlanDecision{Context: "c"}); err != nil {
			t.Fatal(err)
		}
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Request: request})
		expect(t, outcome, err, journal.RunWaiting, "2.1 sleep blocked")
		if records, err := journal.In(log, "c").Records(t.Context()); err != nil || records[0].Status != journal.Done {
			t.Errorf("%+v, %v", records, err)
		}
	})
}

// TestPlanner_RefusedBesideAnAppend: a solution that was refused, but not recorded since something
// else was appended meanwhile, is not one that the planner was told of.
func TestPlanner_RefusedBesideAnAppend(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	bad := readPlan(t, `[{"_tool": "nobody", "value": 1, "_outputPath": "†state.a"}]`).Calls
	asked := 0
	planner := func(ctx context.Context, ask plan.Ask) (*plan.Solution, error) {
		if asked++; asked == 2 {
			note := []store.Message{{Type: store.TypeData, Kind: "note", Data: store.Some("new")}}
			if _, err := engine.Append(ctx, log, "c", note); err != nil {
				return nil, err
			}
		}
		if ask.Tick == 1 {
			return &plan.Solution{Calls: readPlan(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}]`).Calls}, nil
		}
		return &plan.Solution{Calls: bad}, nil
	}
	outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{Planner: plan.PlannerFunc(planner)}})
	if err != nil || outcome.Status != journal.RunFailed || !strings.Contains(outcome.Error, "the same solution again") {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if ticks, _ := ticksOf(t, log); !slices.Equal(ticks, []int{1, 2, 3}) || asked != 4 {
		t.Errorf("ticks %v, asked %d times", ticks, asked)
	}
}
