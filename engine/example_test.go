package engine_test

import (
	"context"
	"fmt"

	"obelus/engine"
	"obelus/store"
)

// Two calls, of which the second reads what the first writes.
func Example() {
	registry := engine.NewRegistry()
	registry.Activities["greet"] = &engine.Registered{
		Name: "greet",
		Activity: engine.ActivityFunc(func(_ context.Context, in engine.Invocation) (engine.Result, error) {
			return engine.Result{Value: fmt.Sprintf("Hello, %s", in.Call["name"])}, nil
		}),
	}
	request := &engine.Request{
		Calls: []engine.Source{
			{Call: map[string]any{"_tool": "greet", "name": `†input.name || "world"`, "_outputPath": "†state.first"}},
			{Call: map[string]any{"_tool": "greet", "name": "†state.first", "_outputPath": "†state.second"}},
		},
		Output: "†state.second", HasOutput: true,
	}
	runner := &engine.Runner{Log: store.NewMemory(), Registry: registry}
	outcome, err := runner.Run(context.Background(), engine.Start{Context: "c", Request: request})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome.Status, outcome.Output)
	// Output: done Hello, Hello, world
}
