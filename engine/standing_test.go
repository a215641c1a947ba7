package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// standingLog is a log that compares the standing of a context with its journal after each append.
type standingLog struct {
	store.Log
	t *testing.T
}

func (l standingLog) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	appended, err := l.Log.Append(ctx, b)
	if err == nil && len(b.Journal) > 0 {
		checkStanding(l.t, l.Log, b.Context)
	}
	return appended, err
}

// checkStanding holds the standing of a context to its journal. Numbers of calls of a run that is
// under way may differ: calls that waited before it was resumed are looked at one after another, and
// decisions are read after they are recorded. Where its process dies it is due, and read anew.
func checkStanding(t *testing.T, log store.Log, name string) {
	t.Helper()
	info, err := log.Info(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	want, err := journal.ReadStanding(context.Background(), journal.In(log, name))
	if errors.As(err, new(*journal.DamagedError)) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	got := info.Standing
	if got.Due.IsZero() && want.Status == string(journal.RunRunning) { // a fork that nobody has resumed
		want.Status, want.Due = string(journal.RunInterrupted), time.Time{}
	}
	due := func(s *store.Standing) bool { return !s.Due.IsZero() }
	switch {
	case info.Holder != "" || info.Lapsed || got.Wakes: // it is under way, its process has died, or something has come
	case info.Origin.Parent != "" && due(&got): // the call that it belongs to may go on with its end
	case due(&want) != due(&got):
		t.Errorf("%s is %s: due at %s, not at %s", name, got.Status, got.Due, want.Due)
	}
	if info.Origin.Fork != "" && got.Calls == 0 { // of an ended run, whose calls are not counted
		want.Calls, want.Done, want.Failed = 0, 0, 0
	}
	unread := info.Holder != "" || due(&got)
	got.Due, want.Due = time.Time{}, time.Time{}
	if unread || got.Status == string(journal.RunRunning) || got.Status == string(journal.RunInterrupted) {
		got.Waiting, got.Held, got.Done, got.Failed = want.Waiting, want.Held, want.Done, want.Failed
		got.Retrying, got.WaitingOn = want.Retrying, want.WaitingOn
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the standing of %s is not that of its journal:\n%s", name, diff)
	}
}

// TestStanding_DetachedOfTwoTicks: a run whose fire-and-forget calls go on is due as long as one does,
// whichever tick it is of.
func TestStanding_DetachedOfTwoTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		first, second := make(chan struct{}), make(chan struct{})
		r := newRunner(log, map[string]activity{"value": value, "late": gated(map[string]chan struct{}{"first": first, "second": second})})
		r.Drain = time.Hour
		planner := func(ctx context.Context, in plan.Ask) (*plan.Solution, error) {
			switch in.Tick {
			case 1:
				return &plan.Solution{Calls: readPlan(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}, {"_tool": "late", "gate": "first", "value": 1}]`).Calls}, nil
			}
			return &plan.Solution{Calls: readPlan(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.b"}, {"_tool": "late", "gate": "second", "value": 1}]`).Calls, Output: "†state.b"}, nil
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{Planner: plan.PlannerFunc(planner)}})
			if err != nil || outcome.Status != journal.RunDone {
				t.Error(outcome, err)
			}
		}()
		synctest.Wait()
		close(first)
		synctest.Wait()
		if info, err := log.Info(t.Context(), "c"); err != nil || info.Standing.Due.IsZero() {
			t.Error("it is due no more, and a call is at work", err)
		}
		close(second)
		<-done
	})
}

// TestStanding_WhileDraining: lists and counts agree while a run that was interrupted drains.
func TestStanding_WhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		gate := make(chan struct{})
		r := newRunner(log, map[string]activity{"late": func(ctx context.Context, in plan.Invocation) (plan.Result, error) { <-gate; return value(ctx, in) }})
		r.Drain = time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = r.Run(ctx, start(t, `[{"_tool": "late", "value": 1, "_outputPath": "†a"}]`))
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		counts, err := history.Count(t.Context(), log, store.ContextFilter{})
		if err != nil || counts[journal.RunRunning] != 1 {
			t.Errorf("counted are %v, %v", counts, err)
		}
		for info, err := range history.List(t.Context(), log, store.ContextFilter{}, []journal.RunStatus{journal.RunInterrupted}) {
			t.Errorf("%s is listed as interrupted, %v", info.Context, err)
		}
		close(gate)
		<-done
	})
}

// TestDecide_WhileBusy: a decision is recorded while its run takes one step after the other, without
// waiting for the end of that.
func TestDecide_WhileBusy(t *testing.T) {
	log := memory.New()
	decided := make(chan struct{})
	r := newRunner(log, map[string]activity{"value": value, "pay": value, "late": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		select {
		case <-decided:
		default:
			if in.Key == "c/1.502" { // the run is at work until the decision is there
				<-decided
			}
		}
		return value(ctx, in)
	}})
	calls := `[{"_tool": "pay", "value": 1, "_outputPath": "†pay"}, {"_tool": "late", "n": 0, "value": 1, "_outputPath": "†s0"}`
	for i := 1; i <= 1000; i++ {
		calls += fmt.Sprintf(`, {"_tool": "late", "n": %d, "value": "†s%d", "_outputPath": "†s%d"}`, i, i-1, i)
	}
	s := start(t, calls+`]`)
	s.Approve = plan.Policy{Tools: []string{"pay"}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := r.Run(t.Context(), s); err != nil {
			t.Error(err)
		}
	}()
	for held := 0; held == 0; {
		holds, err := journal.In(log, "c").Holds(t.Context())
		if err != nil && !errors.Is(err, store.ErrNoContext) {
			t.Fatal(err)
		}
		held = len(holds)
	}
	err := r.Decide(t.Context(), journal.Decision{Context: "c", Call: "1.1"})
	close(decided)
	if <-done; err != nil {
		t.Error(err)
	}
}
