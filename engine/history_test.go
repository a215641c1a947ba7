package engine_test

import (
	"context"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/engine/expr"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// numbers is a registry of activities that give what they are asked for.
func numbers() *plan.Registry {
	r := plan.NewRegistry()
	for name, f := range map[string]plan.ActivityFunc{
		"value": func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			return plan.Result{Value: in.Call["value"]}, nil
		},
		"long": func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{Value: map[string]any{"text": strings.Repeat("x", 1000)}}, nil
		},
		"either": func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			if in.Call["value"] == "no" {
				return plan.Result{}, plan.NewFailure("no")
			}
			return plan.Result{Value: in.Call["value"]}, nil
		},
	} {
		r.Activities[name] = &plan.Registered{Name: name, Activity: f}
	}
	return r
}

func request(t *testing.T, calls string) *plan.Request {
	t.Helper()
	v, err := store.DecodeJSON([]byte(calls))
	if err != nil {
		t.Fatal(err)
	}
	r := &plan.Request{}
	for _, call := range v.([]any) {
		r.Calls = append(r.Calls, plan.Source{Call: call})
	}
	return r
}

// TestLargeValues: a value that is too large is a failure that names where it was
// to go.
func TestLargeValues(t *testing.T) {
	r := &engine.Runner{Log: memory.New(), Registry: numbers(), Result: 1000}
	outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request(t, `[{"_tool": "long", "_outputPath": "†state.a && †state.b"}]`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := outcome.Calls[0].Error["message"]; got != "the result at †state.a has 1012 bytes, and may have 1000: the setting limits.result allows no more" {
		t.Errorf("%v: %v", outcome.Status, got)
	}
}

// TestRerun: what runs again reads what it read before, unless that runs again
// too; a branch that is not taken this time leaves nothing to read.
func TestRerun(t *testing.T) {
	log := memory.New()
	r := &engine.Runner{Log: log, Registry: numbers()}
	plan := request(t, `[
		{"_tool": "value", "value": 1, "_outputPath": "†s.a"},
		{"_tool": "value", "value": "†s.a * 10", "_outputPath": "†s.b"},
		{"_tool": "value", "value": 2, "_outputPath": "†s.a"},
		{"_tool": "either", "value": "†s.b", "_outputPath": "†s.yes || †s.no"},
		{"_tool": "value", "value": "†s.yes", "_outputPath": "†s.went"},
		{"_tool": "value", "value": "†s.no.message", "_outputPath": "†s.stayed"},
		{"_tool": "value", "value": "†s.a", "_outputPath": "†s.last"}]`)
	if _, err := r.Run(t.Context(), engine.Start{Context: "c", Request: plan}); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Fork(t.Context(), log, "c", 0, "f"); err != nil {
		t.Fatal(err)
	}
	again := func(call string, set map[string]any) string {
		t.Helper()
		outcome, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: call, Set: set})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, record := range outcome.Calls {
			b.WriteString(record.Call[2:] + string(record.Status[0]) + string(rune('0'+record.Attempts)) + " ")
		}
		values, err := history.Get(t.Context(), journal.In(log, "f"), mustExpr(t, "†s"), 0, "")
		if err != nil {
			t.Fatal(err)
		}
		return b.String() + string(store.EncodeJSON(values))
	}
	// Call 2 reads what call 1 wrote, though call 3 has written over it since.
	if got, want := again("1.2", nil), `1d1 2d2 3d1 4d2 5d2 6s0 7d1 {"a":2,"b":10,"last":2,"went":10,"yes":10}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// The other branch: what the first one wrote is there, and read by nobody.
	if got, want := again("1.4", map[string]any{"value": "no"}), `1d1 2d2 3d1 4d3 5s2 6d1 7d1 {"a":2,"b":10,"last":2,"no":{"message":"no"},"stayed":"no","went":10,"yes":10}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := again("1.3", map[string]any{"value": 5}), `1d1 2d2 3d2 4d3 5s2 6d1 7d2 {"a":5,"b":10,"last":5,"no":{"message":"no"},"stayed":"no","went":10,"yes":10}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	records, err := journal.In(log, "c").Records(t.Context())
	if err != nil || records[1].Attempts != 1 {
		t.Errorf("the context that was forked: %v %+v", err, records)
	}
}

func mustExpr(t *testing.T, text string) *expr.Expr {
	t.Helper()
	e, err := expr.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestDiff: paths as deep as both sides have objects, null told from missing.
func TestDiff(t *testing.T) {
	log := memory.New()
	for _, text := range []string{
		`{"type":"data","kind":"s","data":{"a":1,"b":{"c":1,"d":[1]},"n":null,"o":{},"x":{"y":1}}}`,
		`[{"type":"data","kind":"s","data":{"a":2,"b":{"c":1,"d":[1,2]},"o":{"p":1},"x":7,"new":{"q":{"r":null}}}},{"type":"data","kind":"t","_instance":"①","data":{"v":1}}]`,
	} {
		messages, err := store.ParseMessages([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := engine.Append(t.Context(), log, "c", messages); err != nil {
			t.Fatal(err)
		}
	}
	changes, err := history.Diff(t.Context(), log, history.Moment{Context: "c", At: 1}, history.Moment{Context: "c"})
	if err != nil {
		t.Fatal(err)
	}
	got := string(store.EncodeJSON(changes))
	const want = `[{"new":2,"old":1,"path":"†s.a"},{"new":[1,2],"old":[1],"path":"†s.b.d"},{"new":null,"path":"†s.new.q.r"},` +
		`{"new":1,"path":"†s.o.p"},{"new":7,"old":{"y":1},"path":"†s.x"},{"instance":"①","new":1,"path":"†t.v"}]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
