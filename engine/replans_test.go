package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store/memory"
)

// TestTicks_OfTheWholeTree: delegates that call delegates as deep as they may, and repeat the call
// whenever it fails, end, and the run says why; so do delegates side by side. What is asked once
// is free.
func TestTicks_OfTheWholeTree(t *testing.T) {
	defer engine.BoundNested(2000)()
	for name, test := range map[string]struct {
		calls, ticks int
		deep         bool
		asked        int64 // at most
		fails        bool
	}{
		"deep":                         {calls: 1, deep: true, asked: 130, fails: true},
		"deep and wide":                {calls: 3, deep: true, asked: 2500, fails: true},
		"deep, with fewer ticks":       {calls: 1, ticks: 5, deep: true, asked: 30, fails: true},
		"many that are asked once":     {calls: 300, ticks: 5, asked: 302},
		"many more than the first ask": {calls: 40, ticks: 500, asked: 42},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			r := newRunner(memory.New(), nil)
			r.Ticks = test.ticks
			planner := func(delegate string) plan.PlannerFunc {
				return func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
					asked.Add(1)
					if !test.deep && delegate == "" {
						return &plan.Solution{Output: 1}, nil
					}
					if !test.deep && ask.Tick > 1 {
						return &plan.Solution{Output: 1}, nil
					}
					var calls []plan.Source
					for range test.calls {
						calls = append(calls, plan.Source{Call: map[string]any{"_tool": "x", "_delegate": delegate, "_outputPath": "†a", "_outputMethod": "push"}})
					}
					return &plan.Solution{Calls: calls}, nil
				}
			}
			inside := ""
			if test.deep {
				inside = "d"
			}
			r.Registry.Delegates["d"] = &plan.Delegate{Request: &plan.Request{Planner: planner(inside)}}
			outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{Planner: planner("d")}})
			if err != nil || (outcome.Status == journal.RunFailed) != test.fails {
				t.Fatalf("%+v, %v", outcome, err)
			}
			if n := asked.Load(); n > test.asked {
				t.Errorf("planners were asked %d times", n)
			}
			if test.fails && !strings.Contains(outcome.Error, "the planners of the run and of its delegates have been asked again") {
				t.Errorf("it says %q", outcome.Error)
			}
		})
	}
}
