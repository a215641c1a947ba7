package engine_test

import (
	"context"
	"errors"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// TestInDoubt_GivenItsResult: whoever knows what it came to says so, and it never runs
// again; what does not fit decides nothing.
func TestInDoubt_GivenItsResult(t *testing.T) {
	for _, killed := range []bool{true, false} {
		r, ran := inDoubt(t, killed)
		if _, err := engine.Append(t.Context(), r.Log, "c", messages(t, `{"type": "state", "schema": {"properties": {"b": {"type": "number"}}}}`)); err != nil {
			t.Fatal(err)
		}
		for _, misfit := range []any{"nine", map[string]any{}, func() {}} {
			outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Result: map[string]any{"1.2": misfit}})
			var refused *journal.CorrectionError
			if !errors.As(err, &refused) || refused.Call != "1.2" {
				t.Errorf("%v: %+v, %v", misfit, outcome, err)
			}
		}
		outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"})
		expect(t, outcome, err, journal.RunWaiting,
			"1.1 value done → †state.a", "1.2 gate in-doubt", "1.3 value blocked", "1.4 value done → †state.d")
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Result: map[string]any{"1.2": 9}})
		expect(t, outcome, err, journal.RunDone,
			"1.1 value done → †state.a", "1.2 gate done → †state.b … its result was given by a person", "1.3 value done → †state.c", "1.4 value done → †state.d")
		if got := outcome.Calls[1]; !got.NotIdempotent || got.Attempts != 1 || ran.String() != "1.1×1 1.2×1 1.3×1 1.4×1" || get(t, r.Log, "†state.c") != "10" {
			t.Errorf("killed %v: ran %s, %+v", killed, ran, got)
		}
		replays(t, r, "c", outcome, &plan.Request{})
	}
}

// tool is a tool of a schema, as JSON.
func tool(t *testing.T, name, schema string) *plan.Tool {
	t.Helper()
	v, err := store.DecodeJSON([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	made, err := plan.NewTool(name, v)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// failing fails, and says no more.
func failing(context.Context, plan.Invocation) (plan.Result, error) {
	return plan.Result{}, plan.NewFailure("no")
}

// TestGiven_InDelegate: what has begun and must not run twice stays so for forks, also
// where a person knows what it came to.
func TestGiven_InDelegate(t *testing.T) {
	log, ran := memory.New(), &counter{}
	r := newRunner(log, map[string]activity{"pay": ran.of(failing), "fail": failing, "value": value})
	r.Registry.Activities["pay"].NotIdempotent = true
	r.Registry.Delegates["paying"] = &plan.Delegate{Request: readPlan(t, `{"calls": [
		{"_tool": "pay", "_outputPath": "†paid"}, {"_tool": "fail", "after": "†paid", "_outputPath": "†out"}], "output": "†out"}`)}
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "hand", "_delegate": "paying", "_outputPath": "†state.done"}, {"_tool": "value", "value": "†state.done", "_outputPath": "†state.seen"}]`))
	if err != nil || outcome.Status != journal.RunFailed {
		t.Fatal(outcome, err)
	}
	if _, err := r.Resume(t.Context(), engine.Resume{Context: "c.1.1", Result: map[string]any{"1.1": 5}}); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Fork(t.Context(), log, "c", 0, "f"); err != nil {
		t.Fatal(err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "f", Retry: []string{"1.1"}})
	if err != nil || outcome.Calls[0].Status != journal.InDoubt || ran.String() != "c.1.1/1.1×1" && ran.String() != "1.1×1" {
		t.Errorf("%+v, %v, ran %s", outcome, err, ran)
	}
	// Nor does the delegate go on where its call has been given a result.
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Result: map[string]any{"1.1": "by hand"}})
	expect(t, outcome, err, journal.RunDone, "1.1 hand done → †state.done … its result was given by a person", "1.2 value done → †state.seen")
	replays(t, r, "c", outcome, &plan.Request{})
}

// TestGiven_ToCallThatNeverBegan: a call that failed before it ran can be given a result too,
// and a replay knows.
func TestGiven_ToCallThatNeverBegan(t *testing.T) {
	r := newRunner(memory.New(), map[string]activity{"value": value})
	r.Registry.Tools["value"] = tool(t, "value", `{"properties": {"value": {"type": "number"}}}`)
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": "†input.n", "_outputPath": "†state.a || †state.b"}, {"_tool": "value", "value": "†state.a", "_outputPath": "†state.c"}]`))
	if err != nil || outcome.Status != journal.RunWaiting {
		t.Fatal(outcome, err)
	}
	if _, err := engine.Append(t.Context(), r.Log, "c", messages(t, `{"type": "input", "n": "text"}`)); err != nil {
		t.Fatal(err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
	if err != nil || outcome.Status != journal.RunFailed {
		t.Fatal(outcome, err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Result: map[string]any{"1.1": 5}})
	expect(t, outcome, err, journal.RunDone, "1.1 value done → †state.a … its result was given by a person", "1.2 value done → †state.c")
	replays(t, r, "c", outcome, &plan.Request{})
}

// TestGiven_Thought: what a person says that a latent call thought is shown to those after it.
func TestGiven_Thought(t *testing.T) {
	r, shown := newRunner(memory.New(), map[string]activity{"value": value}), 0
	down := true
	r.Registry.Tools["think"] = tool(t, "think", `{"properties": {"_output": {"type": "string"}}}`)
	r.Registry.Model = plan.ModelFunc(func(_ context.Context, q plan.Question) (any, error) {
		if shown = len(q.Thoughts); down {
			return nil, plan.NewFailure("down")
		}
		return "thought", nil
	})
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "think"}, {"_tool": "think", "_outputPath": "†state.a"}]`))
	if err != nil || outcome.Status != journal.RunFailed {
		t.Fatal(outcome, err)
	}
	down = false
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Result: map[string]any{"1.1": "known"}, Retry: []string{"1.2"}})
	expect(t, outcome, err, journal.RunDone, "1.1 think done … its result was given by a person", "1.2 think done → †state.a")
	if thought := outcome.Calls[0].Thought; shown != 1 || thought["output"] != "known" {
		t.Errorf("%d were shown, of %v", shown, thought)
	}
	replays(t, r, "c", outcome, &plan.Request{})
}

// TestSlot_Gone: what was written there is not held to a schema any more, once
// something has taken the place of what held it.
func TestSlot_Gone(t *testing.T) {
	log := memory.New()
	exported := messages(t, `[{"type": "state", "schema": {"properties": {"a": {"properties": {"b": {"type": "number"}}}}}},
		{"type": "data", "kind": "state", "data": {"a": {"b": 1}}, "path": "†state.a.b", "_call": {"_tool": "x", "_outputPath": "†state.a.b"}},
		{"type": "data", "kind": "state", "data": {"a": {"c": 1}}, "path": "†state.a", "_call": {"_tool": "x", "_outputPath": "†state.a"}}]`)
	if _, err := engine.Append(t.Context(), log, "c", exported); err != nil {
		t.Error(err)
	}
	if got := get(t, log, "†state"); got != `{"a":{"c":1}}` {
		t.Error(got)
	}
}

// TestGiven_Together: results that don't fit together decide nothing.
func TestGiven_Together(t *testing.T) {
	r := newRunner(memory.New(), map[string]activity{"fail": failing})
	s := start(t, `[{"_tool": "fail", "_outputPath": "†state.x"}, {"_tool": "fail", "_outputPath": "†state.y"}]`)
	s.Request.Context = messages(t, `{"type": "state", "schema": {"maxProperties": 1}}`)
	if outcome, err := r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunFailed {
		t.Fatal(outcome, err)
	}
	var refused *journal.CorrectionError
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Result: map[string]any{"1.1": 5, "1.2": 6}})
	if !errors.As(err, &refused) || refused.Call != "1.2" {
		t.Fatalf("%+v, %v", outcome, err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Result: map[string]any{"1.2": 6}})
	expect(t, outcome, err, journal.RunFailed, "1.1 fail failed ! no", "1.2 fail done → †state.y … its result was given by a person")
}
