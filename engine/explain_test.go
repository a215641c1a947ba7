package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

// mending is a runner with a delegate whose call fails as long as it is told to, and
// the plan that asks it.
func mending(t *testing.T, log store.Log, output string) (r *engine.Runner, broken *atomic.Bool, s engine.Start) {
	broken = &atomic.Bool{}
	broken.Store(true)
	r = newRunner(log, map[string]activity{"value": value, "flaky": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		if broken.Load() {
			return plan.Result{}, plan.NewFailure("no luck")
		}
		return value(ctx, in)
	}})
	r.Registry.Delegates["flak"] = &plan.Delegate{Request: readPlan(t, `{"calls": [
		{"_tool": "value", "value": 1, "_outputPath": "†work.x"},
		{"_tool": "flaky", "value": 5, "_outputPath": "†work.y"}], "output": "†work"}`)}
	return r, broken, start(t, `{"calls": [{"_tool": "ask", "_delegate": "flak", "_outputPath": "`+output+`"},
		{"_tool": "value", "value": 1, "_outputPath": "†state.o"}], "output": "†state.o"}`)
}

func same(t *testing.T, r *engine.Runner, name string) {
	t.Helper()
	if replayed, err := replay.Run(t.Context(), r, name, nil); err != nil || len(replayed.Differences) > 0 {
		t.Errorf("%s: %+v, %v", name, replayed, err)
	}
}

// TestReplay_DelegateAsItWas: what has become of a delegate's context since its call
// settled changes nothing of what the call came to.
func TestReplay_DelegateAsItWas(t *testing.T) {
	for kind, log := range logs(t) {
		r, broken, s := mending(t, log, "†state.r")
		if outcome, err := r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunFailed {
			t.Fatal(kind, outcome, err)
		}
		if _, err := journal.Fork(t.Context(), log, "c", 0, "fork"); err != nil {
			t.Fatal(err)
		}
		same(t, r, "fork")
		broken.Store(false)
		if outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Retry: []string{"1.1"}}); err != nil || outcome.Status != journal.RunDone {
			t.Fatal(kind, outcome, err)
		}
		same(t, r, "fork")
		same(t, r, "c")
		other := start(t, `[{"_tool": "value", "value": "alien", "_outputPath": "†work.y"}]`)
		other.Context = "c.1.1"
		if outcome, err := r.Run(t.Context(), other); err != nil || outcome.Status != journal.RunDone {
			t.Fatal(kind, outcome, err)
		}
		same(t, r, "c")
	}
}

// TestReplay_DelegateRerunByItself: the call took the branch of its failure.
func TestReplay_DelegateRerunByItself(t *testing.T) {
	r, broken, s := mending(t, memory.New(), "†state.r || †state.bad")
	if outcome, err := r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunDone {
		t.Fatal(outcome, err)
	}
	broken.Store(false)
	if outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c.1.1", Retry: []string{"1.2"}}); err != nil || outcome.Status != journal.RunDone {
		t.Fatal(outcome, err)
	}
	same(t, r, "c")
}

// explained is where the value of a reference comes from, as JSON.
func explained(t *testing.T, log store.Log, text string) string {
	t.Helper()
	ref, err := history.ParseRef(text)
	if err != nil {
		t.Fatal(err)
	}
	why, err := history.Explain(t.Context(), journal.In(log, "c"), ref, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	v, err := store.FromGo(why, "why")
	if err != nil {
		t.Fatal(err)
	}
	return string(store.EncodeJSON(v))
}

// TestWhy_DelegateAsItWas: what a value was made of does not change as the log grows.
func TestWhy_DelegateAsItWas(t *testing.T) {
	for kind, log := range logs(t) {
		r, broken, s := mending(t, log, "†state.r")
		r.Registry.Delegates["flak"].Request.Output = "†work.late || †work"
		broken.Store(false)
		if outcome, err := r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunDone {
			t.Fatal(kind, outcome, err)
		}
		before := explained(t, log, "state.r")
		if !strings.Contains(before, `"context":"c.1.1"`) || !strings.Contains(before, `"ref":"†work"`) {
			t.Errorf("%s: %s", kind, before)
		}
		if _, err := engine.Append(t.Context(), log, "c.1.1", messages(t, `{"type": "data", "kind": "work", "data": {"y": "changed later", "late": 1}}`)); err != nil {
			t.Fatal(err)
		}
		other := start(t, `{"calls": [{"_tool": "value", "value": "alien", "_outputPath": "†alien.v"}], "output": "†alien.v"}`)
		other.Context = "c.1.1"
		if outcome, err := r.Run(t.Context(), other); err != nil || outcome.Status != journal.RunDone {
			t.Fatal(kind, outcome, err)
		}
		if after := explained(t, log, "state.r"); after != before {
			t.Errorf("%s: now it says\n%s\nnot\n%s", kind, after, before)
		}
	}
}

// TestDelegate_LaterRunInItsContext: nobody takes the output of another run for a
// delegate's.
func TestDelegate_LaterRunInItsContext(t *testing.T) {
	log := memory.New()
	r, broken, s := mending(t, log, "†state.r")
	if outcome, err := r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunFailed {
		t.Fatal(outcome, err)
	}
	other := start(t, `{"calls": [{"_tool": "value", "value": "alien", "_outputPath": "†alien.v"}], "output": "†alien.v"}`)
	other.Context, other.Request.Name = "c.1.1", "plans/other.json"
	if outcome, err := r.Run(t.Context(), other); err != nil || outcome.Status != journal.RunDone {
		t.Fatal(outcome, err)
	}
	broken.Store(false)
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Retry: []string{"1.1"}})
	if err != nil || outcome.Status != journal.RunFailed {
		t.Fatal(outcome, err)
	}
	if want := "something else has run in the context c.1.1 of its delegate, so that it can't go on there: fork context c, and retry it in the fork"; outcome.Calls[0].Error["message"] != want {
		t.Errorf("%v, not %s", outcome.Calls[0].Error, want)
	}
	if _, err := journal.Fork(t.Context(), log, "c", 0, "fork"); err != nil {
		t.Fatal(err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "fork", Retry: []string{"1.1"}})
	if err != nil || outcome.Status != journal.RunDone {
		t.Errorf("in a fork: %+v, %v", outcome, err)
	}
}

// TestDelegate_Pruned: what a call came to is in its own context's log, and what
// is made of the same name since is nothing of it.
func TestDelegate_Pruned(t *testing.T) {
	for kind, log := range logs(t) {
		r, broken, s := mending(t, log, "†state.r")
		broken.Store(false)
		if outcome, err := r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunDone {
			t.Fatal(kind, outcome, err)
		}
		info, err := log.Info(t.Context(), "c.1.1")
		if err == nil {
			err = log.Prune(t.Context(), info)
		}
		if err != nil {
			t.Fatal(kind, err)
		}
		same(t, r, "c")
		other := start(t, `{"calls": [{"_tool": "value", "value": "alien", "_outputPath": "†alien.v"}], "output": "†alien.v"}`)
		other.Context = "c.1.1"
		if outcome, err := r.Run(t.Context(), other); err != nil || outcome.Status != journal.RunDone {
			t.Fatal(kind, outcome, err)
		}
		same(t, r, "c")
		if why := explained(t, log, "state.r"); strings.Contains(why, "alien") {
			t.Errorf("%s: %s", kind, why)
		}
	}
}

// TestDiff_SeesGlobalValues: an instance of which one side alone has something sees what
// is of all on both.
func TestDiff_SeesGlobalValues(t *testing.T) {
	for kind, log := range logs(t) {
		for _, of := range []struct{ name, text string }{
			{"a", `{"type": "state", "state": {"a": 1}}`}, {"b", `{"type": "state", "state": {"a": 1}}`}, {"a", `{"type": "state", "state": {"x": 2}, "_instance": "p"}`},
		} {
			if _, err := engine.Append(t.Context(), log, of.name, messages(t, of.text)); err != nil {
				t.Fatal(err)
			}
		}
		if changes, err := history.Diff(t.Context(), log, history.Moment{Context: "a", At: 1}, history.Moment{Context: "b"}); err != nil || len(changes) != 0 {
			t.Errorf("%s: %+v, %v", kind, changes, err)
		}
		changes, err := history.Diff(t.Context(), log, history.Moment{Context: "b"}, history.Moment{Context: "a"})
		if err != nil || len(changes) != 1 || changes[0].Path != "†state.x" || changes[0].Instance != "p" {
			t.Errorf("%s: %+v, %v", kind, changes, err)
		}

		// Nor does what was told of two moments change as the log grows.
		if _, err := engine.Append(t.Context(), log, "b", messages(t, `[{"type": "state", "a": 2}, {"type": "state", "x": 3, "_instance": "q"}]`)); err != nil {
			t.Fatal(err)
		}
		changes, err = history.Diff(t.Context(), log, history.Moment{Context: "b", At: 1}, history.Moment{Context: "b", At: 2})
		if err != nil || len(changes) != 1 || changes[0].Path != "†state.a" || changes[0].Instance != "" {
			t.Errorf("%s: %+v, %v", kind, changes, err)
		}
	}
}

// TestSkip_BehindTheOneBefore: where a writer stands before a call, those after it
// are no reason.
func TestSkip_BehindTheOneBefore(t *testing.T) {
	r := newRunner(memory.New(), map[string]activity{"value": value})
	outcome, err := r.Run(t.Context(), start(t, `[
		{"_tool": "value", "value": 1, "_outputPath": "†state.x || †audit.a"},
		{"_tool": "value", "value": "†audit.a", "_outputPath": "†state.y"},
		{"_tool": "value", "value": "v", "_outputPath": "†audit.a || †audit.c"}]`))
	if err != nil || outcome.Calls[1].Status != journal.Skipped {
		t.Fatal(outcome, err)
	}
	if want := "call 1.1 (value) took another branch than †audit.a"; outcome.Calls[1].Reason != want {
		t.Errorf("%q, not %q", outcome.Calls[1].Reason, want)
	}
}

// TestSkip_BehindMany: a reason names those that failed before those that were skipped
// themselves, and not all where there are many.
func TestSkip_BehindMany(t *testing.T) {
	r := newRunner(memory.New(), map[string]activity{"value": value, "fail": func(context.Context, plan.Invocation) (plan.Result, error) {
		return plan.Result{}, plan.NewFailure("no")
	}})
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "fail", "_outputPath": "†state.b"},`+
		strings.Repeat(`{"_tool": "value", "value": "†state.b", "_outputPath": "†state.a"},`, 100)+`
		{"_tool": "fail", "_outputPath": "†state.a"}, {"_tool": "value", "value": "†state.a", "_outputPath": "†out"}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := "call 1.102 (fail) failed, and so did not write †state.a; "
	for position := 2; position < 9; position++ {
		want += fmt.Sprintf("call 1.%d (value) was skipped, and so did not write †state.a; ", position)
	}
	if got := outcome.Calls[102].Reason; got != want+"and more" {
		t.Errorf("%q, not %q", got, want+"and more")
	}
}
