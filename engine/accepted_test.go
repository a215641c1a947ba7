package engine_test

import (
	"context"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/engine/schema"
	"obelus/store/memory"
)

// TestMetaProperties_OfAcceptedPlan holds that a plan in the log is read as it was accepted:
// a meta-property that no tool declares any more, or that an older version let pass, keeps
// nobody from going on with the run, from running it again and from replaying it.
func TestMetaProperties_OfAcceptedPlan(t *testing.T) {
	r := newRunner(memory.New(), map[string]activity{"work": func(_ context.Context, in plan.Invocation) (plan.Result, error) {
		return plan.Result{Value: in.Call["x"]}, nil
	}})
	declaring, err := plan.NewTool("work", map[string]any{"properties": map[string]any{"_note": map[string]any{}}})
	if err != nil {
		t.Fatal(err)
	}
	r.Registry.Tools["work"] = declaring
	s := start(t, `{"calls": [{"_tool": "work", "x": "†input.x", "_note": "kept", "_outputPath": "†state.a"}], "output": "†state.a"}`)
	outcome, err := r.Run(t.Context(), s)
	if err != nil || outcome.Status != journal.RunWaiting {
		t.Fatalf("%+v, %v", outcome, err)
	}
	delete(r.Registry.Tools, "work")
	if _, err := r.Run(t.Context(), engine.Start{Context: "other", Request: s.Request}); err == nil {
		t.Error("the plan is accepted anew")
	}
	if _, err := engine.Append(t.Context(), r.Log, outcome.Context, messages(t, `{"type": "input", "x": 7}`)); err != nil {
		t.Fatal(err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: outcome.Context})
	if err != nil || outcome.Status != journal.RunDone {
		t.Fatalf("%+v, %v", outcome, err)
	}
	replayed, err := replay.Run(t.Context(), r, outcome.Context, nil)
	if err != nil || len(replayed.Differences) > 0 {
		t.Errorf("%+v, %v", replayed, err)
	}
}

// TestFormats_OfAcceptedPlan holds that a run goes on whose calls and data were taken while
// formats were notes, and that they are held to anew.
func TestFormats_OfAcceptedPlan(t *testing.T) {
	r := newRunner(memory.New(), map[string]activity{"work": func(_ context.Context, in plan.Invocation) (plan.Result, error) {
		return plan.Result{Value: in.Call["mail"]}, nil
	}})
	mail := map[string]any{"properties": map[string]any{"mail": map[string]any{"type": "string", "format": "email"}}}
	tool := func(options ...schema.Option) {
		made, err := plan.NewTool("work", mail, options...)
		if err != nil {
			t.Fatal(err)
		}
		r.Registry.Tools["work"], r.Registry.Schemas = made, options
	}
	tool(schema.IgnoreFormats)
	s := start(t, `{"calls": [{"_tool": "work", "mail": "none", "x": "†input.x", "_outputPath": "†state.a"}], "output": "†state.a"}`)
	s.Request.Context = messages(t, `[{"type": "state", "schema": {"properties": {"mail": {"format": "email"}}}}, {"type": "state", "mail": "none"}]`)
	outcome, err := r.Run(t.Context(), s)
	if err != nil || outcome.Status != journal.RunWaiting {
		t.Fatalf("%+v, %v", outcome, err)
	}
	tool()
	if _, err := engine.Append(t.Context(), r.Log, outcome.Context, messages(t, `[{"type": "input", "x": 7}, {"type": "state", "more": 1}]`)); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Append(t.Context(), r.Log, "new", messages(t, `[{"type": "state", "schema": {"properties": {"mail": {"format": "email"}}}}, {"type": "state", "mail": "none"}]`)); err == nil {
		t.Error("a new context takes what breaks a format")
	}
	if _, err := r.Run(t.Context(), engine.Start{Context: "other", Request: s.Request}); err == nil {
		t.Error("a new run takes what breaks a format")
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: outcome.Context})
	if err != nil || outcome.Status != journal.RunDone {
		t.Fatalf("%+v, %v", outcome, err)
	}
}
