package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// TestActivity_ErrorOfItsOwnContext: where nobody stops the run, an activity
// that comes back with the error of a context has given up something of its own.
func TestActivity_ErrorOfItsOwnContext(t *testing.T) {
	for _, given := range []error{
		context.Canceled,
		fmt.Errorf("asking upstream: %w", context.Canceled),
		errors.Join(plan.NewFailure("no"), context.Canceled),
		context.DeadlineExceeded,
	} {
		r := newRunner(memory.New(), map[string]activity{"ask": func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{}, given
		}})
		r.Drain = 0 // what no output waits for has its time
		outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "ask", "_outputPath": "†state.a"}, {"_tool": "ask"}]`))
		if err != nil || outcome.Status != journal.RunFailed || len(outcome.Calls) != 2 {
			t.Errorf("%v: %+v, %v", given, outcome, err)
			continue
		}
		for _, call := range outcome.Calls {
			if call.Status != journal.Failed || call.Error["code"] == "cut-off" {
				t.Errorf("%v: call %s is %s: %v", given, call.Call, call.Status, call.Error)
			}
		}
	}
}

// crowd is a plan whose two delegates have two calls each, for which the run has
// but two places.
func crowd(t *testing.T, f activity) (*engine.Runner, engine.Start) {
	r := newRunner(memory.New(), map[string]activity{"work": f})
	r.Parallel = 2
	r.Registry.Delegates["pair"] = &plan.Delegate{Request: readPlan(t, `{"calls": [
		{"_tool": "work", "seconds": 3, "value": 1, "_outputPath": "†state.a"},
		{"_tool": "work", "seconds": 3, "value": 1, "_outputPath": "†state.b"}], "output": "†state.a + †state.b"}`)}
	return r, start(t, `{"calls": [{"_tool": "pair", "_delegate": "pair", "_outputPath": "†state.x"}, {"_tool": "pair", "_delegate": "pair", "_outputPath": "†state.y"}],
		"output": "†state.x + †state.y"}`)
}

// TestStop_NothingStarts: neither where what was under way is told to
// stop, nor where it may end in its time; and all of it is done when the run is
// resumed.
func TestStop_NothingStarts(t *testing.T) {
	for _, drain := range []time.Duration{-1, 5 * time.Second} {
		for range 50 { // chance has a say in who comes to a place that is free
			synctest.Test(t, func(t *testing.T) {
				ran, stopped, late := &counter{}, context.Background(), atomic.Int32{}
				r, s := crowd(t, ran.of(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
					if stopped.Err() != nil {
						late.Add(1)
					}
					return sleep(ctx, in)
				}))
				r.Drain = drain
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				stopped = ctx
				outcome, err := r.Run(ctx, s)
				if err != nil || outcome.Status != journal.RunInterrupted || late.Load() != 0 {
					t.Fatalf("drain %s: %+v, %v: %d calls began after it was stopped", drain, outcome, err, late.Load())
				}
				stopped = context.Background()
				outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
				if err != nil || outcome.Status != journal.RunDone || fmt.Sprint(outcome.Output) != "4" {
					t.Fatalf("drain %s: resumed, %+v, %v", drain, outcome, err)
				}
				if want := "c.1.1/1.1×1 c.1.1/1.2×1 c.1.2/1.1×1 c.1.2/1.2×1"; drain > 0 && ran.String() != want {
					t.Fatalf("ran %s, not %s", ran, want)
				}
			})
		}
	}
}

// TestStop_UnstartedCallsRunLater: it is neither lost, as what is cut off may be where no
// output waits for it, nor in doubt where it must not run twice.
func TestStop_UnstartedCallsRunLater(t *testing.T) {
	inner := readPlan(t, `{"calls": [{"_tool": "value", "value": 1, "_outputPath": "†state.a"}], "output": "†state.a"}`)
	for _, text := range []string{
		`{"calls": [{"_tool": "value", "value": 1}]}`,
		`{"calls": [{"_tool": "value", "value": 1, "_outputPath": "†state.a"}]}`,
		`{"calls": [{"_tool": "value", "value": 1}, {"_tool": "value", "value": 1, "_outputPath": "†state.a"}], "output": "†state.a"}`,
		`{"calls": [{"_tool": "value", "_delegate": "inner"}]}`,
	} {
		for _, drain := range []time.Duration{-1, 0} {
			ctx, cancel := context.WithCancel(t.Context())
			ran, log := &counter{}, &onAppend{memory.New(), func(b store.Batch) {
				if slices.ContainsFunc(b.Journal, func(e store.Entry) bool { return e.Event == string(journal.Running) }) {
					cancel()
				}
			}}
			r := newRunner(log, map[string]activity{"value": ran.of(value)})
			r.Registry.Activities["value"].NotIdempotent = true
			r.Registry.Delegates["inner"] = &plan.Delegate{Request: inner}
			r.Drain = drain
			outcome, err := r.Run(ctx, start(t, text))
			if err != nil || outcome.Status != journal.RunInterrupted || ran.String() != "" {
				t.Errorf("%s: %+v, %v, ran %s", text, outcome, err, ran)
				continue
			}
			r.Drain = 0 // or the end would cut off what no output waits for
			outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
			if err != nil || outcome.Status != journal.RunDone {
				t.Errorf("%s: resumed, %+v, %v", text, outcome, err)
				continue
			}
			for _, call := range outcome.Calls {
				if call.Status != journal.Done || call.Attempts != 1 {
					t.Errorf("%s: call %s is %s after %d attempts: %v", text, call.Call, call.Status, call.Attempts, call.Error)
				}
			}
		}
	}
}

// TestSchema_DeclaredMeanwhile: a run keeps the schema that it has compiled, until
// there is another.
func TestSchema_DeclaredMeanwhile(t *testing.T) {
	log := memory.New()
	declare := func(name string) string {
		return fmt.Sprintf(`[{"type": "state", "schema": {"properties": {"a": {"type": %[1]q}, "b": {"type": %[1]q}}}}]`, name)
	}
	r := newRunner(log, map[string]activity{"value": value, "declare": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		if _, err := engine.Append(ctx, log, "c", messages(t, declare(in.Call["type"].(string)))); err != nil {
			return plan.Result{}, err
		}
		return value(ctx, in)
	}})
	s := start(t, `[
		{"_tool": "value", "value": 1, "_outputPath": "†state.a"},
		{"_tool": "declare", "type": "string", "value": 2, "_outputPath": "†state.b", "after": "†state.a"},
		{"_tool": "declare", "type": "number", "value": 3, "_outputPath": "†state.c", "after": "†state.a"},
		{"_tool": "value", "value": 1, "_outputPath": "†state.a", "after": "†state.c"},
		{"_tool": "value", "value": "x", "_outputPath": "†state.b", "_instance": "①", "after": "†state.c"}]`)
	s.Request.Context = messages(t, declare("number"))
	r.Parallel = 1
	outcome, err := r.Run(t.Context(), s)
	expect(t, outcome, err, journal.RunFailed,
		"1.1 value done → †state.a",
		"1.2 declare failed ! schema: it breaks the schema declared for state: †state.b: got number, want string",
		"1.3 declare done → †state.c",
		"1.4 value done → †state.a",
		"1.5 value failed ! schema: it breaks the schema declared for state: †state.b: got string, want number")
}

// TestStop_PanicIsAnEnd: an activity that is told to stop may do so in any way.
func TestStop_PanicIsAnEnd(t *testing.T) {
	var ran atomic.Int32
	g := newGate()
	r := newRunner(memory.New(), map[string]activity{"gate": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		if ran.Add(1) == 1 {
			close(g.begun)
			<-ctx.Done()
			panic(ctx.Err())
		}
		return value(ctx, in)
	}})
	r.Drain = -1
	s := start(t, `[{"_tool": "gate", "value": 1, "_outputPath": "†state.a"}]`)
	outcome, err := interrupt(t, r, g, s)
	expect(t, outcome, err, journal.RunInterrupted, "1.1 gate interrupted")
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
	expect(t, outcome, err, journal.RunDone, "1.1 gate done → †state.a")
}

// TestPlan_UnrunnableIsReported: what an embedder has forgotten or mistaken is an error of
// the plan, or of the run, and no panic.
func TestPlan_UnrunnableIsReported(t *testing.T) {
	one := func(set func(*engine.Runner, *plan.Registered)) error {
		r := newRunner(memory.New(), map[string]activity{"value": value})
		r.Registry.Delegates["empty"] = &plan.Delegate{}
		set(r, r.Registry.Activities["value"])
		_, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}, {"_tool": "value", "_delegate": "empty", "_outputPath": "†state.b"}]`))
		if err == nil {
			t.Error("it runs")
		}
		return err
	}
	for _, c := range []struct {
		set  func(*engine.Runner, *plan.Registered)
		want string
	}{
		{func(*engine.Runner, *plan.Registered) {}, `_delegate: "empty" has nothing to run: give it a request`},
		{func(_ *engine.Runner, a *plan.Registered) { a.Activity = nil }, `its activity "value" can't be run: it has nothing to run: give it a function`},
		{func(_ *engine.Runner, a *plan.Registered) { a.Backoff = -1 }, "its backoff must not be negative: -1ns"},
		{func(_ *engine.Runner, a *plan.Registered) { a.Timeout = -time.Second }, "its timeout must not be negative: -1s"},
		{func(_ *engine.Runner, a *plan.Registered) { a.Retries = -1 }, "neither its retries nor its concurrency may be negative"},
		{func(_ *engine.Runner, a *plan.Registered) { a.Concurrency = -1 }, "neither its retries nor its concurrency may be negative"},
		{func(r *engine.Runner, _ *plan.Registered) { r.Registry.Activities["value"] = nil }, `its activity "value" can't be run: it has nothing to run: give it a function`},
		{func(r *engine.Runner, _ *plan.Registered) { r.Registry.Tools["value"] = nil }, `tool "value" can't be used: there is nothing under its name: make the tool by NewTool`},
		{func(r *engine.Runner, _ *plan.Registered) {
			r.Registry.Tools["value"] = &plan.Tool{Name: "value", Schema: map[string]any{"required": []any{"x"}}}
		}, `tool "value" can't be used: its schema has not been compiled: make the tool by NewTool`},
		{func(r *engine.Runner, _ *plan.Registered) { r.Registry.Delegates["empty"] = nil }, `_delegate: "empty" has nothing to run: give it a request`},
	} {
		if err := one(c.set); err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, not %q", err, c.want)
		}
	}
}

// TestStop_DelegateIsCutOffWithItsCall: its run is interrupted, and never ends as if it
// waited for something.
func TestStop_DelegateIsCutOffWithItsCall(t *testing.T) {
	for range 100 { // chance has a say in what is told first
		log, begun := memory.New(), make(chan struct{})
		r := newRunner(log, map[string]activity{
			"late": func(ctx context.Context, _ plan.Invocation) (plan.Result, error) {
				close(begun)
				<-ctx.Done()
				return plan.Result{}, ctx.Err()
			},
			"value": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
				<-begun
				return value(ctx, in)
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		r.Drain, r.Concluded = -1, func(*journal.Outcome) { stop() }
		outcome, err := r.Run(ctx, start(t, `{"calls": [{"_tool": "late", "_delegate": "anonymous"}, {"_tool": "value", "value": 1, "_outputPath": "†state.a"}], "output": "†state.a"}`))
		if err != nil || outcome.Status != journal.RunDone || outcome.Background != 1 {
			t.Fatalf("%+v, %v", outcome, err)
		}
		records, err := journal.In(log, "c").Records(t.Context())
		if err != nil || records[0].Status != journal.Interrupted {
			t.Fatalf("%+v, %v", records, err)
		}
		if last, err := journal.In(log, "c.1.1").LastRun(t.Context()); err != nil || last.Status != journal.RunInterrupted {
			t.Fatalf("%+v, %v", last, err)
		}
	}
}
