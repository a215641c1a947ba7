package engine_test

import (
	"context"
	"errors"
	"testing"

	"obelus/engine"
	"obelus/store"
)

// forked runs a plan, makes a fork of its context under the name f, and gives a
// runner whose activities are counted from then on, and a switch that mends the
// tool "flaky".
func forked(t *testing.T, log store.Log, text string) (r *engine.Runner, ran *counter, mend func()) {
	t.Helper()
	ran, broken := &counter{}, true
	r = newRunner(log, map[string]activity{
		"value": ran.of(value),
		"see": ran.of(func(_ context.Context, in engine.Invocation) (engine.Result, error) {
			return engine.Result{Value: in.Context}, nil
		}),
		"flaky": ran.of(func(ctx context.Context, in engine.Invocation) (engine.Result, error) {
			if broken {
				return engine.Result{}, engine.NewFailure("not now")
			}
			return value(ctx, in)
		}),
	})
	r.Parallel = 1
	if _, err := r.Run(t.Context(), start(t, text)); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Fork(t.Context(), log, "c", 0, "f"); err != nil {
		t.Fatal(err)
	}
	clear(ran.runs)
	return r, ran, func() { broken = false }
}

// TestRetryGoesOnAfterACrash: a run that had failed, and of which a call is tried
// again, is under way until that has come to its end.
func TestRetryGoesOnAfterACrash(t *testing.T) {
	log := store.NewMemory()
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
	expect(t, outcome, err, engine.RunDone, "1.1 flaky done → †state.a", "1.2 value done → †state.b")
}
