package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// TestReadOutcome_OfRuns: how a run stands is read from its last tick on, into which a call of an
// earlier one may have lasted, and is what who ran it was told.
func TestReadOutcome_OfRuns(t *testing.T) {
	gate, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	log := &onAppend{memory.New(), func(b store.Batch) {
		if slices.ContainsFunc(b.Journal, func(e store.Entry) bool { return e.Call == "1.2" && e.Event == string(journal.Done) }) {
			once.Do(func() { close(ended) })
		}
	}}
	r := newRunner(log, map[string]activity{"value": value, "late": gated(map[string]chan struct{}{"late": gate}),
		"fail": func(context.Context, plan.Invocation) (plan.Result, error) {
			close(gate)
			<-ended
			return plan.Result{}, plan.NewFailure("no luck")
		}})
	r.Drain = 0
	calls := readPlan(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}, {"_tool": "late", "gate": "late", "value": 1}]`).Calls
	last := readPlan(t, `[{"_tool": "fail", "_outputPath": "†state.b"}]`).Calls
	planner := func(_ context.Context, in plan.Ask) (*plan.Solution, error) {
		if in.Tick == 1 {
			return &plan.Solution{Calls: calls}, nil
		}
		return &plan.Solution{Calls: last, Output: 7}, nil
	}
	told, err := r.Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{Planner: plan.PlannerFunc(planner)}})
	if err != nil {
		t.Fatal(err)
	}
	stands, err := engine.ReadOutcome(t.Context(), log, "c")
	if err != nil {
		t.Fatal(err)
	}
	if stands.Status != journal.RunFailed || stands.Status != told.Status || string(store.EncodeJSON(stands.Output)) != "7" || len(stands.Calls) != 1 || stands.Calls[0].Call != "2.1" {
		t.Errorf("%+v, and who ran it was told %+v", stands, told)
	}
	if nothing, err := engine.ReadOutcome(t.Context(), log, "none"); err != nil || nothing.Status != "" {
		t.Errorf("%+v %v", nothing, err)
	}
}
