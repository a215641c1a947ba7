package engine_test

import (
	"context"
	"fmt"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// Two calls, of which the second reads what the first writes.
func Example() {
	registry := plan.NewRegistry()
	registry.Activities["greet"] = &plan.Registered{
		Name: "greet",
		Activity: plan.ActivityFunc(func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			return plan.Result{Value: fmt.Sprintf("Hello, %s", in.Call["name"])}, nil
		}),
	}
	request := &plan.Request{
		Calls: []plan.Source{
			{Call: map[string]any{"_tool": "greet", "name": `†input.name || "world"`, "_outputPath": "†state.first"}},
			{Call: map[string]any{"_tool": "greet", "name": "†state.first", "_outputPath": "†state.second"}},
		},
		Output: store.Some("†state.second"),
	}
	runner := &engine.Runner{Log: memory.New(), Registry: registry}
	outcome, err := runner.Run(context.Background(), engine.Start{Context: "c", Request: request})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome.Status, outcome.Output)
	// Output: done Hello, Hello, world
}

// A planner is asked until it gives an output. It sees what the context holds by
// then.
func ExamplePlanner() {
	registry := plan.NewRegistry()
	registry.Activities["double"] = &plan.Registered{
		Name: "double",
		Activity: plan.ActivityFunc(func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			return plan.Result{Value: in.Call["text"].(string) + in.Call["text"].(string)}, nil
		}),
	}
	planner := plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
		text, ok := ask.Kinds["text"].(string)
		switch {
		case !ok:
			text = "ab"
		case len(text) > 8:
			return &plan.Solution{Output: "†text"}, nil
		}
		call := map[string]any{"_tool": "double", "text": text, "_outputPath": "†text"}
		return &plan.Solution{Calls: []plan.Source{{Call: call}}}, nil
	})
	runner := &engine.Runner{Log: memory.New(), Registry: registry}
	outcome, err := runner.Run(context.Background(), engine.Start{Context: "c", Request: &plan.Request{Planner: planner}})
	fmt.Println(outcome.Status, outcome.Output, err)
	// Output: done abababababababab <nil>
}

// A call that is held runs once a person has approved it, with what the person
// was shown.
func ExampleRunner_Decide() {
	ctx := context.Background()
	registry := plan.NewRegistry()
	registry.Activities["pay"] = &plan.Registered{
		Name: "pay",
		Activity: plan.ActivityFunc(func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			return plan.Result{Value: fmt.Sprintf("paid %s", in.Call["amount"])}, nil
		}),
	}
	request := &plan.Request{
		Calls:  []plan.Source{{Call: map[string]any{"_tool": "pay", "amount": "twelve", "_outputPath": "†receipt"}}},
		Output: store.Some("†receipt"),
	}
	runner := &engine.Runner{Log: memory.New(), Registry: registry}
	outcome, err := runner.Run(ctx, engine.Start{Context: "c", Request: request, Approve: plan.Policy{Tools: []string{"pay"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome.Status)

	held, _ := journal.In(runner.Log, "c").Holds(ctx)
	fmt.Println(held[0].Call, held[0].Tool, held[0].Hold.Arguments["amount"])
	if err := runner.Decide(ctx, journal.Decision{Context: "c", Call: held[0].Call}); err != nil {
		fmt.Println(err)
		return
	}
	outcome, err = runner.Resume(ctx, engine.Resume{Context: "c"})
	fmt.Println(outcome.Status, outcome.Output, err)
	// Output:
	// waiting
	// 1.1 pay twelve
	// done paid twelve <nil>
}
