package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

// forked runs a plan, makes a fork of its context under the name f, and gives a
// runner whose activities are counted from then on, and a switch that mends the
// tool "flaky".
func forked(t *testing.T, log store.Log, text string) (r *engine.Runner, ran *counter, mend func()) {
	t.Helper()
	ran, broken := &counter{}, true
	r = newRunner(log, map[string]activity{
		"value": ran.of(value),
		"see": ran.of(func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			return plan.Result{Value: in.Context}, nil
		}),
		"flaky": ran.of(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			if broken {
				return plan.Result{}, plan.NewFailure("not now")
			}
			return value(ctx, in)
		}),
	})
	r.Parallel = 1
	if _, err := r.Run(t.Context(), start(t, text)); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Fork(t.Context(), log, "c", 0, "f"); err != nil {
		t.Fatal(err)
	}
	clear(ran.runs)
	return r, ran, func() { broken = false }
}

// TestRerun_RunsAllReaders: a call that looked for what was not there is as
// much downstream as one that found something, and so is one that has it in its
// scopes, or that was refused what was there.
func TestRerun_RunsAllReaders(t *testing.T) {
	log := memory.New()
	r, ran, mend := forked(t, log, `[
		{"_tool": "flaky", "value": 1, "_outputPath": "†state.a"},
		{"_tool": "value", "value": "†state.a || 0", "_outputPath": "†out.fallback"},
		{"_tool": "value", "value": "†out.fallback", "_outputPath": "†out.after"},
		{"_tool": "see", "_scopes": ["state"], "_outputPath": "†out.scope"},
		{"_tool": "value", "value": "x", "_outputPath": "†state2.b"},
		{"_tool": "value", "value": "†state2.b || †state.a", "_outputPath": "†out.aside"},
		{"_tool": "see", "_scopes": ["state2"], "_outputPath": "†out.aside2"},
		{"_tool": "value", "value": {}, "_outputPath": "†state2.c"},
		{"_tool": "value", "value": "†state2.c.d", "_outputPath": "†out.refused"}]`)
	mend()
	if _, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: "1.1"}); err != nil {
		t.Fatal(err)
	}
	if got, want := ran.String(), "f/1.1×1 f/1.2×1 f/1.3×1 f/1.4×1"; got != want {
		t.Errorf("ran %s, not %s", got, want)
	}
	clear(ran.runs)
	set := map[string]any{"value": map[string]any{"d": 7}}
	if _, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: "1.8", Set: set}); err != nil {
		t.Fatal(err)
	}
	if got, want := ran.String(), "f/1.8×1 f/1.9×1"; got != want {
		t.Errorf("ran %s, not %s", got, want)
	}
}

// TestRerun_ReadsAsBefore: what does not run again is read as it was, also by a
// call that is cut off and resumed, or that fails and is tried once more.
func TestRerun_ReadsAsBefore(t *testing.T) {
	const text = `[
		{"_tool": "value", "value": "old", "_outputPath": "†state.x"},
		{"_tool": "value", "value": "a", "_outputPath": "†state.a"},
		{"_tool": "value", "value": ["†state.a", "†state.x"], "_outputPath": "†out.b"},
		{"_tool": "see", "_scopes": ["state.a", "state.x"], "_outputPath": "†out.seen"},
		{"_tool": "flaky", "value": ["†state.a", "†state.x"], "_outputPath": "†out.flaky"},
		{"_tool": "value", "value": ["†out.flaky", "†state.x"], "_outputPath": "†out.skipped"},
		{"_tool": "value", "value": "new", "_outputPath": "†state.x"}]`
	for n, crashed := 1, true; crashed; n++ { // the lease is taken first
		inner := memory.New()
		r, _, mend := forked(t, inner, text)
		r.Log = &crashing{Log: inner, left: n}
		_, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: "1.2"})
		if crashed = err != nil; crashed && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		if r.Log = inner; n == 1 {
			continue // nothing of it is in the log
		}
		if _, err := r.Resume(t.Context(), engine.Resume{Context: "f"}); err != nil {
			t.Fatal(err)
		}
		mend()
		if _, err := r.Resume(t.Context(), engine.Resume{Context: "f", Retry: []string{"1.5"}}); err != nil {
			t.Fatal(err)
		}
		resolved, err := store.Resolver{Log: inner, Context: "f"}.Resolve(t.Context(), store.MustParsePath("†out"), "")
		if err != nil {
			t.Fatal(err)
		}
		want := `{"b":["a","old"],"flaky":["a","old"],"seen":{"state":{"a":"a","x":"old"}},"skipped":[["a","old"],"old"]}`
		if got := string(store.EncodeJSON(resolved.Value)); got != want {
			t.Errorf("crash %d: %s, not %s", n, got, want)
		}
	}
}

// TestRerun_ReadsPastItsOwnWrites: what a call wrote itself, and what was written over what
// it read, is not what it reads when it runs again, nor when that is replayed; nor
// where a call that runs again before it might have written there, and did not.
func TestRerun_ReadsPastItsOwnWrites(t *testing.T) {
	for from, text := range map[string]string{
		"1.1": `[{"_tool": "value", "value": {"y": "†state.a.x"}, "_outputPath": "†state.a"}]`,
		"1.3": `[{"_tool": "value", "value": 2, "_outputPath": "†state.b"},
			{"_tool": "value", "value": {"x": 1}, "_outputPath": "†state.a"},
			{"_tool": "value", "value": "†state.a.x", "_outputPath": "†out.ok || †state.a.x"},
			{"_tool": "value", "value": {"y": "†state.a.x"}, "_outputPath": "†state.a"}]`,
	} {
		log := memory.New()
		if _, err := engine.Append(t.Context(), log, "c", messages(t, `[{"type": "state", "a": {"x": 1}}]`)); err != nil {
			t.Fatal(err)
		}
		r, _, _ := forked(t, log, `{"calls": `+text+`, "output": "†state.a"}`)
		for range 2 { // the second time it reads as it did at first
			outcome, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: from})
			if err != nil || outcome.Status != journal.RunDone || string(store.EncodeJSON(outcome.Output)) != `{"y":1}` {
				t.Errorf("from %s: %+v, %v", from, outcome, err)
			}
			if replayed, err := replay.Run(t.Context(), r, "f", nil); err != nil || len(replayed.Differences) > 0 {
				t.Errorf("from %s: replayed, %+v, %v", from, replayed, err)
			}
		}
	}
}

// TestRerun_SkippedAsBefore: what was skipped is so again, also where a later call has
// written there by now; and in a replay.
func TestRerun_SkippedAsBefore(t *testing.T) {
	log := memory.New()
	r, _, _ := forked(t, log, `[{"_tool": "flaky", "_outputPath": "†data.q"}, {"_tool": "value", "value": "†data.q", "_outputPath": "†k.a"},
		{"_tool": "value", "value": 5, "_outputPath": "†data.q"}]`)
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: "1.2"})
	if err != nil || outcome.Calls[1].Status != journal.Skipped {
		t.Errorf("%+v, %v", outcome, err)
	}
	if replayed, err := replay.Run(t.Context(), r, "f", nil); err != nil || len(replayed.Differences) > 0 {
		t.Errorf("replayed, %+v, %v", replayed, err)
	}
}

// TestFork_BeforeRefusedPlan: where a tick has ended, the next is not there, nor what was
// wrong with it; that stays together.
func TestFork_BeforeRefusedPlan(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	request := &plan.Request{Planner: plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
		switch ask.Tick {
		case 1:
			return &plan.Solution{Calls: readPlan(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}]`).Calls}, nil
		case 2:
			return &plan.Solution{Calls: readPlan(t, `[{"_tool": "none"}, {"_tool": "neither"}]`).Calls}, nil
		}
		return &plan.Solution{Output: ask.Tick}, nil
	})}
	if outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request}); err != nil || outcome.Status != journal.RunDone {
		t.Fatalf("%+v, %v", outcome, err)
	}
	for at, refused := range map[int64]bool{2: false, 3: true, 4: false} {
		name := fmt.Sprint("f", at)
		if _, err := journal.Fork(t.Context(), log, "c", at, name); (err != nil) != refused {
			t.Errorf("at %d: %v", at, err)
		}
		if refused {
			continue
		}
		outcome, err := r.Resume(t.Context(), engine.Resume{Context: name, Request: request})
		if err != nil || fmt.Sprint(outcome.Output) != "3" {
			t.Errorf("at %d: %+v, %v", at, outcome, err)
		}
		if replayed, err := replay.Run(t.Context(), r, name, nil); err != nil || len(replayed.Differences) > 0 {
			t.Errorf("at %d: replayed, %+v, %v", at, replayed, err)
		}
	}
}

// TestFork_Anywhere: also what was recorded together can be parted, call by call, and a
// fork of what a run begins with is as if it had not begun.
func TestFork_Anywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		open := sync.OnceFunc(func() { close(gate) })
		log := &onAppend{Log: memory.New()}
		log.do = func(b store.Batch) {
			if slices.ContainsFunc(b.Messages, func(m store.Message) bool { return m.Call == "1.1" }) {
				open()
				synctest.Wait() // until the others have ended, to be recorded together
			}
			if b.Context == "c" && slices.ContainsFunc(b.Messages, func(m store.Message) bool { return m.Call == "1.2" }) && len(b.Messages) != 2 {
				t.Errorf("%d messages are recorded at once", len(b.Messages))
			}
		}
		r := newRunner(log, map[string]activity{"value": value, "late": gated(map[string]chan struct{}{"late": gate})})
		s := start(t, `{"calls": [{"_tool": "value", "value": 1, "_outputPath": "†state.a"},
			{"_tool": "late", "gate": "late", "value": 2, "_outputPath": "†state.b"}, {"_tool": "late", "gate": "late", "value": 3, "_outputPath": "†state.c"}], "output": "†state"}`)
		s.Request.Context = messages(t, `[{"type": "state", "x": 0}]`)
		s.Input = store.Some("in")
		if outcome, err := r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunDone {
			t.Fatalf("%+v, %v", outcome, err)
		}
		for at := int64(1); at <= 6; at++ {
			name := fmt.Sprint("f", at)
			if _, err := journal.Fork(t.Context(), log, "c", at, name); err != nil {
				t.Errorf("at %d: %v", at, err)
				continue
			}
			again := func() (*journal.Outcome, error) { return r.Resume(t.Context(), engine.Resume{Context: name}) }
			if at < 3 { // the plan is not there
				again = func() (*journal.Outcome, error) {
					s := s
					s.Context = name
					return r.Run(t.Context(), s)
				}
			}
			outcome, err := again()
			if err != nil || outcome.Status != journal.RunDone || string(store.EncodeJSON(outcome.Output)) != `{"a":1,"b":2,"c":3,"x":0}` {
				t.Errorf("at %d: %+v, %v", at, outcome, err)
			}
		}
	})
}

// TestRetry_GoesOnAfterCrash: a run that had failed, and of which a call is tried
// again, is under way until that has come to its end.
func TestRetry_GoesOnAfterCrash(t *testing.T) {
	log := memory.New()
	r, _, mend := forked(t, log, `{"calls": [
		{"_tool": "flaky", "value": 1, "_outputPath": "†state.a"},
		{"_tool": "value", "value": "†state.a + 1", "_outputPath": "†state.b"}], "output": "†state.b"}`)
	mend()
	r.Log = &crashing{Log: log, left: 2}
	if _, err := r.Resume(t.Context(), engine.Resume{Context: "c", Retry: []string{"1.1"}}); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	r.Log = log
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"})
	expect(t, outcome, err, journal.RunDone, "1.1 flaky done → †state.a", "1.2 value done → †state.b")
}

// TestFork_DelegateBeginsAnew holds that where the fork's call has a delegate that
// had begun in the other context, it begins anew, with what the fork holds by then.
func TestFork_DelegateBeginsAnew(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	r.Registry.Delegates["later"] = &plan.Delegate{Request: readPlan(t, `{"calls": [
		{"_tool": "value", "value": ["†input.n", "†data.late"], "_outputPath": "†out"}
	], "output": "†out"}`)}
	s := start(t, `[{"_tool": "hand", "_delegate": "later", "n": "†state.n", "_outputPath": "†state.done"}]`)
	s.Request.Context = messages(t, `{"type": "state", "n": 1}`)
	if outcome, err := r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunWaiting {
		t.Fatal(outcome, err)
	}
	if _, err := journal.Fork(t.Context(), log, "c", 0, "f"); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Append(t.Context(), log, "f", messages(t, `{"type": "state", "n": 2}`)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"c": "1", "f": "2"} {
		outcome, err := r.Resume(t.Context(), engine.Resume{Context: name})
		if err != nil {
			t.Fatal(err)
		}
		resolved, err := store.Resolver{Log: log, Context: outcome.Calls[0].Child}.Resolve(t.Context(), store.MustParsePath("†input.n"), "")
		if got := string(store.EncodeJSON(resolved.Value)); err != nil || got != want {
			t.Errorf("the delegate of %s begins with %s, not %s: %v", name, got, want, err)
		}
	}
}

// TestFork_DelegateIsInDoubt: where the delegate has begun what must not run twice,
// the fork's call does not begin it anew unless a person says so.
func TestFork_DelegateIsInDoubt(t *testing.T) {
	log, ran := memory.New(), &counter{}
	r := newRunner(log, map[string]activity{"value": value, "pay": ran.of(value)})
	r.Registry.Activities["pay"].NotIdempotent = true
	r.Registry.Delegates["paying"] = &plan.Delegate{Request: readPlan(t, `{"calls": [
		{"_tool": "pay", "value": "†input.n", "_outputPath": "†paid"},
		{"_tool": "value", "value": "†data.late", "_outputPath": "†out"}
	], "output": ["†paid", "†out"]}`)}
	r.Registry.Delegates["outer"] = &plan.Delegate{Request: readPlan(t, `{"calls": [
		{"_tool": "hand", "_delegate": "paying", "n": "†input.n", "_outputPath": "†out"}], "output": "†out"}`)}
	outcome, err := r.Run(t.Context(), start(t, `{"calls": [{"_tool": "hand", "_delegate": "outer", "n": 1, "_outputPath": "†state.done"}], "output": "†state"}`))
	expect(t, outcome, err, journal.RunWaiting, "1.1 hand waiting … its delegate waits, in context c.1.1 … †data.late")
	if _, err := journal.Fork(t.Context(), log, "c", 0, "f"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "f"})
		expect(t, outcome, err, journal.RunWaiting, "1.1 hand in-doubt … its delegate, in context c.1.1, has begun what must not run twice")
	}
	if got, want := ran.String(), "c.1.1.1.1/1.1×1"; got != want {
		t.Errorf("ran %s, not %s", got, want)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "f", Retry: []string{"1.1"}})
	if err != nil || outcome.Status != journal.RunWaiting || outcome.Calls[0].Child == "c.1.1" {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if len(ran.runs) != 2 {
		t.Errorf("ran %s", ran)
	}
}

// TestFork_FailedDelegateIsInDoubt: to try it again would run again what was done
// inside, so a person is asked first.
func TestFork_FailedDelegateIsInDoubt(t *testing.T) {
	log, ran := memory.New(), &counter{}
	r := newRunner(log, map[string]activity{"pay": ran.of(value), "fail": func(context.Context, plan.Invocation) (plan.Result, error) {
		return plan.Result{}, plan.NewFailure("not now")
	}})
	r.Registry.Activities["pay"].NotIdempotent = true
	r.Registry.Delegates["paying"] = &plan.Delegate{Request: readPlan(t, `{"calls": [
		{"_tool": "pay", "value": "†input.n", "_outputPath": "†paid"}, {"_tool": "fail", "after": "†paid", "_outputPath": "†out"}], "output": "†out"}`)}
	s := start(t, `{"calls": [{"_tool": "hand", "_delegate": "paying", "n": "†state.n", "_outputPath": "†state.done"}], "output": "†state"}`)
	s.Request.Context = messages(t, `{"type": "state", "n": 1}`)
	if _, err := r.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Fork(t.Context(), log, "c", 0, "f"); err != nil {
		t.Fatal(err)
	}
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "f", Retry: []string{"1.1"}})
	if err != nil || outcome.Status != journal.RunWaiting || outcome.Calls[0].Status != journal.InDoubt || len(ran.runs) != 1 {
		t.Fatalf("%+v, %v; ran %s", outcome, err, ran)
	}
	if _, err := engine.Append(t.Context(), log, "f", messages(t, `{"type": "state", "n": 2}`)); err != nil {
		t.Fatal(err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "f", Retry: []string{"1.1"}})
	if err != nil || outcome.Status != journal.RunFailed || len(ran.runs) != 2 {
		t.Errorf("%+v, %v; ran %s", outcome, err, ran)
	}
	paid, err := store.Resolver{Log: log, Context: outcome.Calls[0].Child}.Resolve(t.Context(), store.MustParsePath("†paid"), "")
	if got := string(store.EncodeJSON(paid.Value)); err != nil || got != "2" {
		t.Errorf("it paid %s, %v", got, err)
	}
}

// TestRerun_WithMissingValue: a correction takes the place of what the call could
// not read, and what it still lacks is named.
func TestRerun_WithMissingValue(t *testing.T) {
	r, _, _ := forked(t, memory.New(), `[
		{"_tool": "flaky", "value": 1, "_outputPath": "†state.b"},
		{"_tool": "value", "value": "†state.b", "other": "†(†state.b + 1)", "_outputPath": "†state.c"}]`)
	var refused *journal.NoSuchCallError
	_, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: "1.2", Set: map[string]any{"value": "x"}})
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "call 1.2 can't run again as it stands: nothing is at †state.b; correct the parameter that reads it") {
		t.Error(err)
	}
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: "1.2", Set: map[string]any{"value": "x", "other": 2}})
	expect(t, outcome, err, journal.RunFailed, "1.1 flaky failed ! not now", "1.2 value done → †state.c")
	if got := string(store.EncodeJSON(outcome.Calls[1].Hold.Arguments["value"])); got != `"x"` {
		t.Errorf("it ran with %s", got)
	}
}

// TestRerun_KeepsUncorrectedArguments: of a parameter that is corrected in part, and
// of which the rest can't be known, nothing is thrown away; one that is corrected as a
// whole needs nothing of it.
func TestRerun_KeepsUncorrectedArguments(t *testing.T) {
	r, _, _ := forked(t, memory.New(), `[
		{"_tool": "flaky", "value": 1, "_outputPath": "†state.b"},
		{"_tool": "value", "value": {"b": "†state.b", "c": 7}, "_outputPath": "†state.c"}]`)
	var refused *journal.NoSuchCallError
	_, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: "1.2", Set: map[string]any{"value.b": 1}})
	if !errors.As(err, &refused) {
		t.Error(err)
	}
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: "1.2", Set: map[string]any{"value": map[string]any{}, "value.c": 8}})
	expect(t, outcome, err, journal.RunFailed, "1.1 flaky failed ! not now", "1.2 value done → †state.c")
	if got := string(store.EncodeJSON(outcome.Calls[1].Hold.Arguments["value"])); got != `{"c":8}` {
		t.Errorf("it ran with %s", got)
	}
}

// TestRerun_AsAtFirst: what runs once more reads neither what later calls wrote, nor what
// was written before by those that run again too; and it waits for all that it waits for
// when it runs first.
func TestRerun_AsAtFirst(t *testing.T) {
	many := func(call string) string { // that write to a path or elsewhere, and look there
		var b strings.Builder
		for i := range 64 {
			fmt.Fprintf(&b, call+",", i)
		}
		return b.String()
	}
	const from, retry = "from", "retry"
	for what, test := range map[string]struct{ how, call, text, want string }{
		"a branch that is not taken this time": {from, "1.2", `[{"_tool": "value", "value": "†state.order", "_outputPath": "†out.a"},
			{"_tool": "value", "value": 1, "_outputPath": "†state.order"}, {"_tool": "flaky", "value": "†state.order", "_outputPath": "†out.b || †state.refusal"}]`, `{"a":2,"b":2}`},
		"before a writer that fails this time": {from, "1.2", `[{"_tool": "value", "value": "†state.order || \"none\"", "_outputPath": "†out.a"},
			{"_tool": "fallible", "value": 1, "_outputPath": "†state.order || †state.refusal"}]`, `{"a":"none"}`},
		"behind many writers": {from, "1.1", `[{"_tool": "value", "value": 1, "_outputPath": "†state.x"},` +
			many(`{"_tool": "fail", "value": "†state.x", "_outputPath": "†state.x || †notes.n%d"}`) + `
			{"_tool": "value", "value": "†state.x", "_outputPath": "†out.a"}]`, `{"a":2}`},
		"behind many that have settled": {retry, "1.1", `[{"_tool": "flaky", "value": 1, "_outputPath": "†state.x"},` +
			many(`{"_tool": "fail", "value": "†state.x || 0", "_outputPath": "†state.x || †notes.n%d"}`) + `
			{"_tool": "value", "value": "†state.x", "_outputPath": "†out.a"}]`, `{"a":1}`},
		"over its own, for an instance": {from, "1.1", `{"calls": [{"_tool": "value", "value": 1, "_outputPath": "†state.x"},
			{"_tool": "value", "value": ["†state.x"], "_instance": "①", "_outputPath": "†state.x"},
			{"_tool": "value", "value": "†state.x", "_instance": "①", "_outputPath": "†out.a"}]}`, `{"a":[2]}`},
		"onto its own": {from, "1.1", `[{"_tool": "value", "value": 1, "_outputPath": "†state.x"},
			{"_tool": "value", "value": "†(†state.x == 1 ? \"text\" : [†state.x])", "_outputMethod": "concat", "_outputPath": "†out.a"}]`, `{"a":[2]}`},
		"beside a later write, a failed one": {retry, "1.1", `{"calls": [
			{"_tool": "flaky", "value": "†state.b", "_outputPath": "†out.a"}, {"_tool": "value", "value": "after", "_outputPath": "†state.b"}]}`, `{"a":"before"}`},
		"beside a later write, a skipped one": {retry, "1.1", `{"calls": [
			{"_tool": "flaky", "value": 1, "_outputPath": "†state.q"}, {"_tool": "value", "value": ["†state.q", "†state.b"], "_outputPath": "†out.a"},
			{"_tool": "value", "value": "after", "_outputPath": "†state.b"}]}`, `{"a":[1,"before"]}`},
		"beside a later write, of all": {from, "1.1", `{"calls": [
			{"_tool": "value", "value": 1, "_outputPath": "†state.q"}, {"_tool": "see", "_scopes": ["state"], "_outputPath": "†out.a"},
			{"_tool": "value", "value": "after", "_outputPath": "†state.b"}]}`, `{"a":{"state":{"b":"before","q":2}}}`},
		"behind a writer that stands after it": {from, "1.2", `[
			{"_tool": "see", "_scopes": ["state"], "x": "†late.z", "_outputPath": "†out.a"}, {"_tool": "value", "value": 1, "_outputPath": "†state.q"},
			{"_tool": "value", "value": "†(†state.b || †state.q)", "_outputPath": "†late.z"}]`, `{"a":{"state":{"b":"before","q":2}}}`},
	} {
		log := memory.New()
		mended := false
		r := newRunner(log, map[string]activity{
			"value": value,
			"see": func(_ context.Context, in plan.Invocation) (plan.Result, error) {
				return plan.Result{Value: in.Context}, nil
			},
			"fail": func(context.Context, plan.Invocation) (plan.Result, error) {
				return plan.Result{}, plan.NewFailure("no")
			},
			"flaky": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
				if !mended && test.how == retry {
					return plan.Result{}, plan.NewFailure("not now")
				}
				return value(ctx, in)
			},
			"fallible": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
				if mended {
					return plan.Result{}, plan.NewFailure("not now")
				}
				return value(ctx, in)
			},
		})
		if _, err := engine.Append(t.Context(), log, "c", messages(t, `[{"type": "state", "b": "before"}]`)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Run(t.Context(), start(t, test.text)); err != nil {
			t.Fatal(what, err)
		}
		mended = true
		again := engine.Resume{Context: "c", Retry: []string{test.call}}
		if test.how == from {
			if _, err := journal.Fork(t.Context(), log, "c", 0, "f"); err != nil {
				t.Fatal(err)
			}
			again = engine.Resume{Context: "f", From: test.call, Set: map[string]any{"value": json.Number("2")}}
		}
		outcome, err := r.Resume(t.Context(), again)
		if err != nil || !outcome.Status.Finished() {
			t.Fatalf("%s: %+v, %v", what, outcome, err)
		}
		out, err := store.Resolver{Log: log, Context: again.Context}.Resolve(t.Context(), store.MustParsePath("†out"), "①")
		if got := string(store.EncodeJSON(out.Value)); err != nil || got != test.want {
			t.Errorf("%s: %s, not %s, %v", what, got, test.want, err)
		}
		if replayed, err := replay.Run(t.Context(), r, again.Context, nil); err != nil || len(replayed.Differences) > 0 {
			t.Errorf("%s: replayed, %+v, %v", what, replayed, err)
		}
	}
}

// TestRerun_OfAnOverwriter: a call that was cut off and ran again has written to what a call after it
// had made of the value, which a replay knows once that has run again too.
func TestRerun_OfAnOverwriter(t *testing.T) {
	log := memory.New()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := make(chan struct{})
	r := newRunner(log, map[string]activity{"value": value, "slow": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		close(began)
		<-ctx.Done()
		return plan.Result{}, ctx.Err()
	}})
	r.Drain = -1
	r.Observe = func(record journal.Record) {
		if record.Call == "1.3" && record.Status == journal.Done {
			<-began
			cancel()
		}
	}
	s := start(t, `{"calls": [
		{"_tool": "slow", "value": "†state.x", "_outputPath": "†out.d.y"},
		{"_tool": "value", "value": 3, "_outputPath": "†state.x"},
		{"_tool": "value", "value": ["†state.x"], "_outputPath": "†out.d"}]}`)
	s.Request.Context = messages(t, `{"type": "state", "x": 2}`)
	outcome, err := r.Run(ctx, s)
	expect(t, outcome, err, journal.RunInterrupted, "1.1 slow interrupted", "1.2 value done → †state.x", "1.3 value done → †out.d")
	r.Observe, r.Registry.Activities["slow"] = nil, r.Registry.Activities["value"]
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
	expect(t, outcome, err, journal.RunDone, "1.1 slow done → †out.d.y", "1.2 value done → †state.x", "1.3 value done → †out.d")
	if _, err := journal.Fork(t.Context(), log, "c", 0, "f"); err != nil {
		t.Fatal(err)
	}
	for _, again := range []engine.Resume{{Context: "f"}, {Context: "f", From: "1.3"}} {
		if again.From != "" {
			outcome, err = r.Resume(t.Context(), again)
			expect(t, outcome, err, journal.RunDone, "1.1 slow done → †out.d.y", "1.2 value done → †state.x", "1.3 value done → †out.d")
		}
		replayed, err := replay.Run(t.Context(), r, "f", nil)
		if err != nil || len(replayed.Differences) > 0 {
			t.Errorf("from %q: replayed, %+v, %v", again.From, replayed, err)
		}
	}
}

// TestRetry_AfterItsOverwriter: a retry that is cut off reads what it does where it is not.
func TestRetry_AfterItsOverwriter(t *testing.T) {
	for n, crashed := 1, true; crashed; n++ {
		log := memory.New()
		r, _, mend := forked(t, log, `[
			{"_tool": "value", "value": "old", "_outputPath": "†state.x"},
			{"_tool": "flaky", "value": "†state.x", "_outputPath": "†out.a"},
			{"_tool": "value", "value": "new", "_outputPath": "†state.x"}]`)
		mend()
		r.Log = &crashing{Log: log, left: n}
		_, err := r.Resume(t.Context(), engine.Resume{Context: "c", Retry: []string{"1.2"}})
		if crashed = err != nil; crashed && n == 1 {
			continue // nothing of it is in the log
		}
		r.Log = log
		if _, err := r.Resume(t.Context(), engine.Resume{Context: "c"}); err != nil {
			t.Fatal(err)
		}
		out, err := store.Resolver{Log: log, Context: "c"}.Resolve(t.Context(), store.MustParsePath("†out.a"), "")
		if err != nil || out.Value != "old" {
			t.Errorf("crash %d: %v, %v", n, out.Value, err)
		}
	}
}

// TestCorrection_AfterCrash: a correction holds where the process dies before the call begins.
func TestCorrection_AfterCrash(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	r.Parallel = 1
	if _, err := r.Run(t.Context(), start(t, `{"calls": [{"_tool": "value", "value": "†input.z", "_outputPath": "†out.a"},
		{"_tool": "value", "value": "as planned", "_outputPath": "†out.b"}]}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Fork(t.Context(), log, "c", 0, "f"); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Append(t.Context(), log, "f", messages(t, `{"type": "input", "z": 1}`)); err != nil {
		t.Fatal(err)
	}
	r.Log = &crashing{Log: log, left: 2} // the lease, and the first step, in which 1.1 begins
	if _, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: "1.2", Set: map[string]any{"value": "corrected"}}); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	r.Log = log
	if _, err := r.Resume(t.Context(), engine.Resume{Context: "f"}); err != nil {
		t.Fatal(err)
	}
	out, err := store.Resolver{Log: log, Context: "f"}.Resolve(t.Context(), store.MustParsePath("†out.b"), "")
	if err != nil || out.Value != "corrected" {
		t.Errorf("%v, %v", out.Value, err)
	}
}
