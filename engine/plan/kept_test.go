package plan_test

import (
	"context"
	"sync"
	"testing"

	"obelus/engine/plan"
	"obelus/store"
)

// TestKeep: a kept request is compiled again only where something that its plan depends on is
// another one.
func TestKeep(t *testing.T) {
	registry := func() *plan.Registry {
		r := plan.NewRegistry()
		r.Activities["a"] = &plan.Registered{Name: "a", Activity: plan.ActivityFunc(func(context.Context, plan.Invocation) (plan.Result, error) { return plan.Result{}, nil })}
		return r
	}
	request, err := (&plan.Request{Calls: []plan.Source{
		{Call: map[string]any{"_tool": "a", "x": "†state.x"}}, {Call: map[string]any{"_tool": "a", "_outputPath": "†state.x"}},
	}}).Keep()
	if err != nil {
		t.Fatal(err)
	}
	known := registry()
	compile := func(request *plan.Request, registry *plan.Registry, exists plan.Exists) *plan.Plan {
		p, err := plan.CompileRequest(request, registry, exists)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := compile(request, known, plan.NothingExists)
	again, err := request.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	again.Name, again.Mode = "plans/other.lua", plan.ModeLazy
	if compile(again, known, plan.NothingExists) != first {
		t.Error("a copy for another run was compiled again")
	}
	if there := compile(request, known, plan.EverythingExists); there == first || len(there.Graph.Into[0]) == len(first.Graph.Into[0]) {
		t.Error("the wiring is that of another context")
	}
	if compile(request, registry(), plan.EverythingExists) == compile(request, known, plan.EverythingExists) {
		t.Error("the plan is that of another registry")
	}
	instances := *request
	instances.Calls = plan.ExpandInstances(request.Calls, []string{"i"})
	if compile(&instances, known, plan.NothingExists) == compile(request, known, plan.NothingExists) {
		t.Error("the plan is that of other calls")
	}
	messages := *request
	messages.Context = []store.Message{{Type: store.TypeTool, Data: store.Some(map[string]any{"b": map[string]any{}})}}
	if compile(&messages, known, plan.NothingExists) == compile(request, known, plan.NothingExists) {
		t.Error("the plan is that of another context")
	}
	var runs sync.WaitGroup
	for i := range 8 {
		runs.Go(func() {
			for range 100 {
				exists := plan.NothingExists
				if i%2 == 0 {
					exists = plan.EverythingExists
				}
				if _, err := plan.CompileRequest(request, known, exists); err != nil {
					t.Error(err)
				}
			}
		})
	}
	runs.Wait()
}
