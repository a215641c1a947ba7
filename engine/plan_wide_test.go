package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/engine/plan"
)

// TestPlan_TooWide holds that a plan is refused whose calls wait for each other in
// more ways than there is room for, whichever of them stand first, and one that has as many
// as there may be is not.
func TestPlan_TooWide(t *testing.T) {
	defer engine.BoundEdges(100)()
	for _, c := range []struct {
		n            int
		readersFirst bool
		refused      bool
	}{{10, false, false}, {10, true, false}, {11, false, true}, {11, true, true}} {
		var writers, readers []plan.Source
		for i := range c.n {
			writers = append(writers, plan.Source{Call: map[string]any{"_tool": "value", "value": true, "_outputPath": fmt.Sprintf("†a.k%d", i)}})
			readers = append(readers, plan.Source{Call: map[string]any{"_tool": "value", "value": "†a", "_outputPath": fmt.Sprintf("†b.k%d", i)}})
		}
		calls := append(writers, readers...)
		if c.readersFirst {
			calls = append(readers, writers...)
		}
		_, err := plan.Compile(&plan.Request{Calls: calls}, activities(false), plan.NothingExists)
		if refused := errors.As(err, new(*plan.PlanError)); refused != c.refused {
			t.Errorf("%d of each, readers first: %v: %v", c.n, c.readersFirst, err)
		}
	}
}

// TestPlan_TooManyWaysToWait holds that a short plan whose calls wait for each other in
// millions of ways is refused before they take the memory.
func TestPlan_TooManyWaysToWait(t *testing.T) {
	const n = 2000
	request := &plan.Request{}
	for i := range n {
		call := map[string]any{"_tool": "value", "value": "†state.x", "_outputPath": fmt.Sprintf("†r.v%d", i)}
		request.Calls = append(request.Calls, plan.Source{Call: call})
	}
	for range n {
		request.Calls = append(request.Calls, plan.Source{Call: map[string]any{"_tool": "value", "value": 1, "_outputPath": "†state.x"}})
	}
	_, err := plan.Compile(request, activities(false), plan.NothingExists)
	if err == nil || !strings.Contains(err.Error(), "in too many ways, more than a million") {
		t.Errorf("got %v", err)
	}
}
