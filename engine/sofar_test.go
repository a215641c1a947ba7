package engine_test

import (
	"context"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// told is a model that plans by given solutions, and keeps what it is told.
type told struct {
	plan.Model
	solutions []string
	asked     []plan.Proposal
	checked   []string // what was wrong with each output before its tick began
}

func (m *told) Propose(_ context.Context, p plan.Proposal) (*plan.Solution, error) {
	given := decoded(m.solutions[len(m.asked)]).(map[string]any)
	m.asked = append(m.asked, p)
	solution := &plan.Solution{Output: given["output"]}
	calls, _ := given["calls"].([]any)
	for _, call := range calls {
		solution.Calls = append(solution.Calls, plan.Source{Call: call})
	}
	problem, err := p.CheckOutput(solution)
	if err != nil {
		return nil, err
	}
	text := ""
	if problem != nil {
		text = problem.Error()
	}
	m.checked = append(m.checked, text)
	return solution, nil
}

func decoded(text string) any {
	v, err := store.DecodeJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	return v
}

func tell(t *testing.T, request *plan.Request, solutions ...string) (*told, *journal.Outcome) {
	t.Helper()
	r := newRunner(memory.New(), nil)
	tool, err := plan.NewTool("write", map[string]any{"properties": map[string]any{"value": map[string]any{}}})
	if err != nil {
		t.Fatal(err)
	}
	r.Registry.Tools["write"] = tool
	r.Registry.Activities["write"] = &plan.Registered{Name: "write", Activity: plan.ActivityFunc(func(_ context.Context, in plan.Invocation) (plan.Result, error) {
		if in.Call["value"] == "fail" {
			return plan.Result{}, plan.NewFailure("it failed")
		}
		return plan.Result{Value: in.Call["value"]}, nil
	})}
	m := &told{Model: plan.ModelFunc(nil), solutions: solutions}
	r.Registry.Model, r.Ticks = m, len(solutions)
	request.Planner = &plan.Planning{Offer: []string{"write"}}
	outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
	if err != nil {
		t.Fatal(err)
	}
	return m, outcome
}

// TestSoFar_OfAllTicks: a model that plans is told of the calls of all ticks, with the values that its
// scopes grant, and of an output that was refused.
func TestSoFar_OfAllTicks(t *testing.T) {
	m, _ := tell(t, &plan.Request{Scopes: []store.Path{store.KindPath("open")}, Schema: map[string]any{"type": "string"}},
		`{"calls": [{"_tool": "write", "value": 7, "_outputPath": "†open.x"}, {"_tool": "write", "value": "secret", "_outputPath": "†closed.x"}]}`,
		`{"calls": [{"_tool": "write", "value": "fail", "_outputPath": "†open.y"}], "output": "†open.x"}`,
		`{"calls": [{"_tool": "write", "value": 8, "_outputPath": "†open.z"}]}`,
		`{"calls": [], "output": "done"}`)
	var lines []string
	for _, past := range m.asked[3].SoFar {
		line := past.Call + " " + past.Tool + " " + past.Status
		if past.Value.Set {
			line += " " + string(store.EncodeJSON(past.Value.Value))
		}
		lines = append(lines, line+" "+past.Reason)
	}
	want := []string{"1.1 write done 7 ", "1.2 write done ", "2.1 write failed it failed", "2 the output refused the final output breaks its schema: output: got number, want string", "3.1 write done 8 "}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("%s", got)
	}
	if last := m.asked[2]; last.SoFar[3].Reason != "" || len(last.Errors) != 2 {
		t.Errorf("what was wrong with the newest output is told in its errors: %+v, %+v", last.SoFar[3], last.Errors)
	}
}

// TestSoFar_OutputOfNull: an output that is null by its references goes on, and is none that was refused.
func TestSoFar_OutputOfNull(t *testing.T) {
	m, outcome := tell(t, &plan.Request{Context: []store.Message{{Type: store.TypeData, Kind: "state", Data: store.Some(map[string]any{"none": nil})}}},
		`{"calls": [], "output": "†state.none"}`, `{"calls": [], "output": 1}`)
	if len(m.asked) != 2 || len(m.asked[1].SoFar) != 0 || outcome.Status != journal.RunDone {
		t.Errorf("%+v, %+v", m.asked, outcome)
	}
}

// TestCheckOutput: what is wrong with an output that no call bears on is said before its tick begins.
func TestCheckOutput(t *testing.T) {
	m, _ := tell(t, &plan.Request{Schema: map[string]any{"type": "integer"}, Context: []store.Message{{Type: store.TypeData, Kind: "state", Data: store.Some(map[string]any{"text": "x", "n": 1})}}},
		`{"calls": [{"_tool": "write", "value": 1, "_outputPath": "†state.a"}], "output": "†state.text"}`,
		`{"calls": [{"_tool": "write", "value": 1, "_outputPath": "†state.b"}], "output": "text"}`,
		`{"calls": [], "output": "†state.text"}`,
		`{"calls": [], "output": "†(1 +"}`,
		`{"calls": [], "output": "†state.n"}`)
	want := []string{"", "the final output breaks its schema: output: got string, want integer", "the final output breaks its schema: output: got string, want integer", "output: ", ""}
	for i, text := range m.checked {
		if !strings.HasPrefix(text, want[i]) || want[i] == "" && text != "" {
			t.Errorf("output %d: %q, want %q", i+1, text, want[i])
		}
	}
	if len(m.checked) != len(want) {
		t.Errorf("%q", m.checked)
	}
}
