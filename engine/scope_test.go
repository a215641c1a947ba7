package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

// TestDelegate_OwnNames: what a delegate's calls may name is its own also where
// somebody asks for its context by itself.
func TestDelegate_OwnNames(t *testing.T) {
	ctx := t.Context()
	for kind, log := range logs(t) {
		r := newRunner(log, nil)
		r.Registry.Tools["pay"] = tool(t, "pay", `{"properties": {"value": {"type": "string"}}}`)
		inner := newRunner(log, map[string]activity{"pay": value}).Registry
		inner.Tools["pay"] = tool(t, "pay", `{"properties": {"value": {"type": "integer", "maximum": 10}}}`)
		r.Registry.Delegates["d"] = &plan.Delegate{Registry: inner, Request: readPlan(t, `{"calls": [{"_tool": "pay", "value": 3, "_outputPath": "†a"}], "output": "†a"}`)}
		s := start(t, `{"calls": [{"_tool": "x", "_delegate": "d", "_outputPath": "†a"}], "output": "†a"}`)
		s.Approve = plan.Policy{Tools: []string{"pay"}}
		if outcome, err := r.Run(ctx, s); err != nil || outcome.Status != journal.RunWaiting {
			t.Fatal(kind, outcome, err)
		}
		var wrong *journal.CorrectionError
		for _, v := range []any{"lots", 11} {
			if err := r.Decide(ctx, journal.Decision{Context: "c.1.1", Call: "1.1", Arguments: map[string]any{"value": v}}); !errors.As(err, &wrong) {
				t.Errorf("%s: corrected to %v: %v", kind, v, err)
			}
		}
		if err := r.Decide(ctx, journal.Decision{Context: "c.1.1", Call: "1.1", Arguments: map[string]any{"value": 5}}); err != nil {
			t.Fatal(kind, err)
		}
		if _, err := journal.Fork(ctx, log, "c.1.1", 0, "fork"); err != nil {
			t.Fatal(kind, err)
		}
		if err := r.Decide(ctx, journal.Decision{Context: "fork", Call: "1.1", Arguments: map[string]any{"value": 5}}); err != nil {
			t.Fatal(kind, err)
		}
		for _, name := range []string{"c.1.1", "fork", "c"} {
			outcome, err := r.Resume(ctx, engine.Resume{Context: name})
			if err != nil || outcome.Status != journal.RunDone || string(store.EncodeJSON(outcome.Output)) != "5" {
				t.Errorf("%s: %s: %+v, %v", kind, name, outcome, err)
			}
			h, err := journal.ReadHistory(ctx, log, name)
			if err == nil {
				_, err = r.TicksOf(ctx, h)
			}
			if err != nil {
				t.Errorf("%s: recorded %s: %v", kind, name, err)
			}
			if replayed, err := replay.Run(ctx, r, name, nil); err != nil || len(replayed.Differences) > 0 {
				t.Errorf("%s: replayed %s: %+v, %v", kind, name, replayed, err)
			}
		}
	}
}

// TestDelegate_LostRunsNothingElse: where the delegate of a context can't be found, that
// is told, and nobody's planner but its own is asked there.
func TestDelegate_LostRunsNothingElse(t *testing.T) {
	asks := func(name string) plan.PlannerFunc {
		return func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
			if ask.Kinds["state"] != nil {
				return &plan.Solution{Output: name}, nil
			}
			return &plan.Solution{Calls: []plan.Source{{Call: map[string]any{"_tool": "value", "value": "†x.y", "_outputPath": "†state.a"}}}}, nil
		}
	}
	for kind, log := range logs(t) {
		r := newRunner(log, map[string]activity{"value": value})
		child := &plan.Delegate{Request: &plan.Request{Planner: asks("child")}}
		r.Registry.Delegates["child"] = child
		root := &plan.Request{Name: "root", Planner: plan.PlannerFunc(func(ctx context.Context, ask plan.Ask) (*plan.Solution, error) {
			return &plan.Solution{Calls: []plan.Source{{Call: map[string]any{"_tool": "z", "_delegate": "child", "_outputPath": "†state.a"}}}, Output: "root"}, nil
		})}
		if outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: root}); err != nil || outcome.Status != journal.RunWaiting {
			t.Fatal(kind, outcome, err)
		}
		if _, err := engine.Append(t.Context(), log, "c.1.1", messages(t, `{"type": "data", "kind": "x", "data": {"y": 1}}`)); err != nil {
			t.Fatal(err)
		}
		delete(r.Registry.Delegates, "child")
		var lost *engine.LostError
		outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c.1.1", Request: root})
		if !errors.As(err, &lost) || !strings.Contains(err.Error(), `"child" is neither a registered delegate nor`) {
			t.Errorf("%s: %+v, %v", kind, outcome, err)
		}
		r.Registry.Delegates["child"] = child
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c.1.1", Request: root})
		if err != nil || outcome.Status != journal.RunDone || outcome.Output != "child" {
			t.Errorf("%s: %+v, %v", kind, outcome, err)
		}
	}
}

// TestPlan_ByHandKeepsNames: a delegate's context in which somebody has run
// something else since is what it was for those that its run began.
func TestPlan_ByHandKeepsNames(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	inner := newRunner(log, map[string]activity{"pay": value}).Registry
	inner.Delegates["deep"] = &plan.Delegate{Request: readPlan(t, `{"calls": [{"_tool": "pay", "value": 3, "_outputPath": "†a"}], "output": "†a"}`)}
	r.Registry.Delegates["outer"] = &plan.Delegate{Registry: inner, Request: readPlan(t, `{"calls": [{"_tool": "x", "_delegate": "deep", "_outputPath": "†a"}], "output": "†a"}`)}
	if outcome, err := r.Run(t.Context(), start(t, `{"calls": [{"_tool": "x", "_delegate": "outer", "_outputPath": "†a"}], "output": "†a"}`)); err != nil || outcome.Status != journal.RunDone {
		t.Fatal(outcome, err)
	}
	byHand := start(t, `[{"_tool": "value", "value": 1, "_outputPath": "†b"}]`)
	byHand.Context, byHand.Request.Name = "c.1.1", "plans/by-hand.json"
	if outcome, err := r.Run(t.Context(), byHand); err != nil || outcome.Status != journal.RunDone {
		t.Fatal(outcome, err)
	}
	if replayed, err := replay.Run(t.Context(), r, "c.1.1.1.1", nil); err != nil || len(replayed.Differences) > 0 {
		t.Errorf("%+v, %v", replayed, err)
	}

	// What is run by hand is by whoever asks for it, its planner too.
	planner := plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
		if ask.Kinds["hand"] != nil {
			return &plan.Solution{Output: "by hand"}, nil
		}
		return &plan.Solution{Calls: []plan.Source{{Call: map[string]any{"_tool": "value", "value": "†x.y", "_outputPath": "†hand"}}}}, nil
	})
	byHand.Request = &plan.Request{Name: "mine", Planner: planner}
	if outcome, err := r.Run(t.Context(), byHand); err != nil || outcome.Status != journal.RunWaiting {
		t.Fatal(outcome, err)
	}
	if _, err := engine.Append(t.Context(), log, "c.1.1", messages(t, `{"type": "data", "kind": "x", "data": {"y": 1}}`)); err != nil {
		t.Fatal(err)
	}
	if name, err := journal.In(log, "c.1.1").RootPlan(t.Context()); name != "mine" || err != nil {
		t.Errorf("it runs %s, %v", name, err)
	}
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c.1.1", Request: byHand.Request})
	if err != nil || outcome.Output != "by hand" {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// TestCorrection_IsCheckedAgain: who records one may know the tool as another one than
// who runs the call.
func TestCorrection_IsCheckedAgain(t *testing.T) {
	log := memory.New()
	r, other := newRunner(log, map[string]activity{"pay": value}), newRunner(log, map[string]activity{"pay": value})
	tool, err := plan.NewTool("pay", map[string]any{"properties": map[string]any{"value": map[string]any{"type": "integer"}}})
	if err != nil {
		t.Fatal(err)
	}
	r.Registry.Tools["pay"] = tool
	s := start(t, `[{"_tool": "pay", "value": 3, "_outputPath": "†a"}]`)
	s.Approve = plan.Policy{Always: true}
	if _, err := r.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := other.Decide(t.Context(), journal.Decision{Context: "c", Call: "1.1", Arguments: map[string]any{"value": "lots"}}); err != nil {
		t.Fatal(err)
	}
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"})
	if err != nil || outcome.Status != journal.RunFailed {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if want := "as corrected: value: got string, want integer"; outcome.Calls[0].Error["message"] != want || outcome.Calls[0].Error["code"] != "schema" {
		t.Errorf("%v, not %s", outcome.Calls[0].Error, want)
	}
}
