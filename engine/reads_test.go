package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// countedLog counts the entries of journals that are read.
type countedLog struct {
	store.Log
	read *int
}

func (l countedLog) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for entry, err := range l.Log.Journal(ctx, f) {
			*l.read++
			if !yield(entry, err) {
				return
			}
		}
	}
}

// TestJournal_ReadOnce holds that what is asked of a context reads its journal once at most, beside
// single entries.
func TestJournal_ReadOnce(t *testing.T) {
	const calls, single = 300, 20
	log := countedLog{memory.New(), new(int)}
	failing := true
	registry := plan.NewRegistry()
	registry.Activities["echo"] = &plan.Registered{Name: "echo", Activity: plan.ActivityFunc(func(_ context.Context, in plan.Invocation) (plan.Result, error) {
		if in.Call["value"] == "fails" && failing {
			return plan.Result{}, errors.New("no")
		}
		return plan.Result{Value: 1}, nil
	})}
	registry.Activities["pay"] = &plan.Registered{Name: "pay", Activity: registry.Activities["echo"].Activity}
	request := func(last map[string]any) *plan.Request {
		r := &plan.Request{}
		for i := range calls {
			r.Calls = append(r.Calls, plan.Source{Call: map[string]any{"_tool": "echo", "value": i, "_outputPath": fmt.Sprintf("†state.n%d", i)}})
		}
		r.Calls = append(r.Calls, plan.Source{Call: last})
		return r
	}
	waits := request(map[string]any{"_tool": "echo", "value": "†state.never", "_outputPath": "†state.last"})
	held := request(map[string]any{"_tool": "pay", "value": 1, "_outputPath": "†state.last"})
	fails := request(map[string]any{"_tool": "echo", "value": "fails", "_outputPath": "†state.last"})
	runner := &engine.Runner{Log: log, Registry: registry}
	ctx, last := t.Context(), fmt.Sprintf("1.%d", calls+1)
	append1 := func() error {
		messages, err := store.ParseMessages([]byte(`{"type":"state","never":1}`))
		if err == nil {
			_, err = engine.Append(ctx, log, "waits", messages)
		}
		return err
	}
	for _, step := range []struct {
		name, context string
		do            func() error
	}{
		{"run", "waits", func() error { _, err := runner.Run(ctx, engine.Start{Context: "waits", Request: waits}); return err }},
		{"input", "waits", func() error { _, err := journal.In(log, "waits").HasInput(ctx); return err }},
		{"outcome", "waits", func() error { _, err := engine.ReadOutcome(ctx, log, "waits"); return err }},
		{"calls", "waits", func() error { _, err := journal.In(log, "waits").CurrentRecords(ctx); return err }},
		{"append", "waits", append1},
		{"resume", "waits", func() error {
			_, err := runner.Resume(ctx, engine.Resume{Context: "waits", Request: waits})
			return err
		}},
		{"run", "held", func() error {
			_, err := runner.Run(ctx, engine.Start{Context: "held", Request: held, Approve: plan.Policy{Tools: []string{"pay"}}})
			return err
		}},
		{"held calls", "held", func() error { _, err := journal.In(log, "held").Holds(ctx); return err }},
		{"approve", "held", func() error { return runner.Decide(ctx, journal.Decision{Context: "held", Call: last}) }},
		{"resume", "held", func() error { _, err := runner.Resume(ctx, engine.Resume{Context: "held", Request: held}); return err }},
		{"run", "fails", func() error { _, err := runner.Run(ctx, engine.Start{Context: "fails", Request: fails}); return err }},
		{"outcome", "fails", func() error { _, err := engine.ReadOutcome(ctx, log, "fails"); return err }},
		{"fork", "fails", func() error { _, err := journal.Fork(ctx, log, "fails", 0, "fork"); return err }},
		{"run again", "fork", func() error {
			_, err := runner.Resume(ctx, engine.Resume{Context: "fork", Request: fails, From: last})
			return err
		}},
		{"retry", "fails", func() error {
			failing = false
			_, err := runner.Resume(ctx, engine.Resume{Context: "fails", Request: fails, Retry: []string{last}})
			return err
		}},
		{"cancel", "fails", func() error { _ = engine.Cancel(ctx, log, "fails", journal.Who{}); return nil }},
	} {
		*log.read = 0
		if err := step.do(); err != nil {
			t.Errorf("%s of %s: %v", step.name, step.context, err)
		}
		read, has := *log.read, 0
		for _, err := range log.Log.Journal(ctx, store.JournalFilter{Context: step.context}) {
			if err != nil {
				t.Fatal(err)
			}
			has++
		}
		t.Logf("%s of %s: %d of %d", step.name, step.context, read, has)
		if read > has+single {
			t.Errorf("%s of %s reads %d entries of a journal of %d", step.name, step.context, read, has)
		}
	}
}

func (l countedLog) Head(ctx context.Context, name string) (int64, error) {
	*l.read++
	return l.Log.Head(ctx, name)
}

// TestStart_New holds that nothing is looked up for a run in a new context, and that a context which
// exists all the same is taken as it is: its run may not have ended.
func TestStart_New(t *testing.T) {
	log := countedLog{memory.New(), new(int)}
	registry := plan.NewRegistry()
	registry.Activities["one"] = &plan.Registered{Name: "one", Activity: plan.ActivityFunc(func(context.Context, plan.Invocation) (plan.Result, error) {
		return plan.Result{Value: 1}, nil
	})}
	runner := &engine.Runner{Log: log, Registry: registry}
	start := engine.Start{Context: "c", New: true, Request: readPlan(t, `[{"_tool": "one", "_outputPath": "†state.a"}]`)}
	outcome, err := runner.Run(t.Context(), start)
	if err != nil || outcome.Status != journal.RunDone || *log.read != 0 {
		t.Errorf("%v, %v; %d reads", outcome, err, *log.read)
	}
	start.Request = readPlan(t, `[{"_tool": "one", "x": "†state.b", "_outputPath": "†state.a"}]`)
	if outcome, err := runner.Run(t.Context(), start); err != nil || outcome.Status != journal.RunWaiting {
		t.Errorf("a second run in it: %v, %v", outcome, err)
	}
	if _, err := runner.Run(t.Context(), start); !errors.As(err, new(*engine.UnfinishedError)) {
		t.Errorf("a third one, while the second waits: %v", err)
	}
}
