package replay_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
)

type activity = func(ctx context.Context, in plan.Invocation) (plan.Result, error)

// value gives back the parameter "value".
func value(_ context.Context, in plan.Invocation) (plan.Result, error) {
	return plan.Result{Value: in.Call["value"]}, nil
}

func addX(_ context.Context, in plan.Invocation) (plan.Result, error) {
	return plan.Result{Value: in.Call["value"].(string) + "x"}, nil
}

func fail(context.Context, plan.Invocation) (plan.Result, error) {
	return plan.Result{}, plan.NewFailure("no")
}

func newRunner(log store.Log, activities map[string]activity) *engine.Runner {
	registry := plan.NewRegistry()
	for name, f := range activities {
		registry.Activities[name] = &plan.Registered{Name: name, Activity: plan.ActivityFunc(f)}
	}
	return &engine.Runner{Log: log, Registry: registry, Drain: -1}
}

// readPlan reads a request: a list of calls, or an object with calls and an output.
func readPlan(t testing.TB, text string) *plan.Request {
	t.Helper()
	v, err := store.DecodeJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	request := &plan.Request{}
	if object, ok := v.(map[string]any); ok {
		v = object["calls"]
		request.Output.Value, request.Output.Set = object["output"]
	}
	for _, call := range v.([]any) {
		request.Calls = append(request.Calls, plan.Source{Call: call})
	}
	return request
}

func start(t testing.TB, text string) engine.Start {
	return engine.Start{Context: "c", Request: readPlan(t, text)}
}

func messages(t testing.TB, text string) []store.Message {
	t.Helper()
	all, err := store.ParseMessages([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// expect compares the status of a run, and its calls: their statuses, what they wrote, and why they
// failed.
func expect(t testing.TB, outcome *journal.Outcome, err error, status journal.RunStatus, calls ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range outcome.Calls {
		line := fmt.Sprintf("%s %s %s", r.Call, r.Tool, r.Status)
		for _, path := range r.Writes {
			line += " → " + path
		}
		if r.Error != nil {
			line += fmt.Sprintf(" ! %s", r.Error["message"])
		}
		got = append(got, line)
	}
	if outcome.Status != status || !slices.Equal(got, calls) {
		t.Errorf("the run is %s, not %s, with the calls %q, not %q", outcome.Status, status, got, calls)
	}
}

// same reports an error if a run does not come out as recorded.
func same(t testing.TB, r *engine.Runner, name string, request *plan.Request) {
	t.Helper()
	if replayed, err := replay.Run(t.Context(), r, name, request); err != nil || len(replayed.Differences) > 0 {
		t.Errorf("%s: %+v, %v", name, replayed, err)
	}
}
