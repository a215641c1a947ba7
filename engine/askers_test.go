package engine_test

import (
	"context"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// TestModels_OfCalls holds that a call is handed models only where its run has one, and that what it
// uses is in its record, in a delegate too.
func TestModels_OfCalls(t *testing.T) {
	for _, has := range []bool{false, true} {
		r := plan.NewRegistry()
		r.Activities["a"] = &plan.Registered{Name: "a", Activity: plan.ActivityFunc(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			if has != (in.Models != nil) {
				t.Errorf("a run with models: %v, and a call of it has %v", has, in.Models)
			}
			if has {
				settle, err := in.Models.Meter.Reserve(ctx, plan.Usage{Model: "m"})
				if err != nil {
					return plan.Result{}, err
				}
				settle(plan.Usage{Model: "m", Requests: 1, Input: 5})
			}
			return plan.Result{Value: 1}, nil
		})}
		calls := []plan.Source{{Call: map[string]any{"_tool": "a", "_outputPath": "†state.a"}}}
		r.Delegates["d"] = &plan.Delegate{Request: &plan.Request{Name: "d", Calls: calls, Output: store.Some(any("†state.a"))}}
		if has {
			r.Model = plan.ModelFunc(func(context.Context, plan.Question) (any, error) { return nil, nil })
		}
		log := memory.New()
		runner := &engine.Runner{Log: log, Registry: r, Budget: plan.Budget{Requests: 2}}
		request := &plan.Request{Calls: append(calls, plan.Source{Call: map[string]any{"_tool": "d", "_delegate": "d", "_outputPath": "†state.d"}},
			plan.Source{Call: map[string]any{"_tool": "a", "after": "†state.d", "and": "†state.a", "_outputPath": "†state.b"}})}
		if _, err := runner.Run(t.Context(), engine.Start{Context: "c", Request: request}); err != nil {
			t.Fatal(err)
		}
		records, err := journal.In(log, "c").Records(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if has != (records[0].Model != nil) || records[1].Model != nil || has && (records[0].Model.Input != 5 || records[2].Error["code"] != plan.CodeBudget) {
			t.Errorf("%+v", records)
		}
		spent, err := journal.SpentOn(t.Context(), journal.In(log, "c"), 1)
		if want := map[bool]int{true: 2}[has]; err != nil || spent.Requests != want {
			t.Errorf("%+v, not %d requests, %v", spent, want, err)
		}
	}
}
