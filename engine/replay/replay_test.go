package replay_test

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

// TestRun_ForeignMessagesInPlace: what came while a call was at work
// stands before what that wrote, and an error of a person's is there too.
func TestRun_ForeignMessagesInPlace(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	r.Registry.Activities["slow"] = &plan.Registered{Name: "slow", Activity: plan.ActivityFunc(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		_, err := engine.Append(ctx, log, "c", messages(t, `[{"type": "state", "x": 5}, {"type": "data", "kind": "error", "data": {"message": "by hand"}}]`))
		if err != nil {
			t.Error(err)
		}
		return value(ctx, in)
	})}
	outcome, err := r.Run(t.Context(), start(t, `{"calls": [
		{"_tool": "slow", "value": 1, "_outputPath": "†state.x"},
		{"_tool": "value", "value": "†state.x", "_outputPath": "†state.y"}], "output": "†state"}`))
	expect(t, outcome, err, journal.RunDone, "1.1 slow done → †state.x", "1.2 value done → †state.y")
	replayed, err := replay.Run(t.Context(), r, "c", nil)
	if err != nil || len(replayed.Differences) > 0 {
		t.Errorf("%+v, %v", replayed, err)
	}
}

// TestRun_RetryThatFailsAgain: of the errors of one call the last comes out
// where it came; those before it stand where they stood.
func TestRun_RetryThatFailsAgain(t *testing.T) {
	for _, retry := range [][]string{{"1.1"}, {"1.2"}, {"1.2", "1.1"}} {
		r := newRunner(memory.New(), map[string]activity{"refuse": func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{}, plan.NewFailure("no")
		}})
		outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "refuse", "_outputPath": "†state.x"}, {"_tool": "refuse", "_outputPath": "†state.y"}]`))
		for range 3 {
			expect(t, outcome, err, journal.RunFailed, "1.1 refuse failed ! no", "1.2 refuse failed ! no")
			if replayed, err := replay.Run(t.Context(), r, "c", nil); err != nil || len(replayed.Differences) > 0 {
				t.Errorf("retried %v: %+v, %v", retry, replayed, err)
			}
			outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Retry: retry})
		}
	}
}

// firstLog is a log as the first version wrote it: its plans don't say which tick
// their run began with.
type firstLog struct{ store.Log }

func (l firstLog) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for entry, err := range l.Log.Journal(ctx, f) {
			if entry.Event == "plan" {
				entry.Data = regexp.MustCompile(`"first":\d+,`).ReplaceAllString(entry.Data, "")
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

// TestRun_OfTheFirstLogs: the newest alone, whatever ran in its context before.
func TestRun_OfTheFirstLogs(t *testing.T) {
	r := newRunner(firstLog{memory.New()}, map[string]activity{"value": value})
	for i := range 3 {
		outcome, err := r.Run(t.Context(), start(t, fmt.Sprintf(`{"calls": [{"_tool": "value", "value": %d, "_outputPath": "†state.a"}], "output": "†state.a"}`, i)))
		expect(t, outcome, err, journal.RunDone, fmt.Sprintf("%d.1 value done → †state.a", i+1))
	}
	if replayed, err := replay.Run(t.Context(), r, "c", nil); err != nil || len(replayed.Differences) > 0 {
		t.Errorf("%+v, %v", replayed, err)
	}
}

// What a held call writes comes out, when it is replayed, where it was decided, and not where
// it was held.
func TestRun_HeldCalls(t *testing.T) {
	for name, reject := range map[string]bool{"rejected": true, "approved": false} {
		for _, method := range []string{"push", "set"} {
			r := &engine.Runner{Log: memory.New(), Registry: plan.NewRegistry(), Approve: plan.Policy{Tools: []string{"held"}}}
			r.Registry.Activities["x"] = &plan.Registered{Name: "x", Activity: plan.ActivityFunc(addX)}
			held := map[string]any{"_tool": "held", "_outputPath": "†fine || †out.list", "_outputMethod": method}
			if reject {
				r.Registry.Activities["held"] = &plan.Registered{Name: "held", Activity: plan.ActivityFunc(addX)}
				held["value"] = "held"
			} else { // it brings its own result
				tool, err := plan.NewTool("held", map[string]any{})
				if err != nil {
					t.Fatal(err)
				}
				r.Registry.Tools["held"], held["_output"], held["_outputPath"] = tool, "held", "†out.list"
			}
			request := &plan.Request{Output: store.Some("†out"), Calls: []plan.Source{
				{Call: held},
				{Call: map[string]any{"_tool": "x", "value": "other", "_outputPath": "†out.list", "_outputMethod": method}},
			}}
			_, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
			if err == nil {
				err = r.Decide(t.Context(), journal.Decision{Context: "c", Call: "1.1", Reject: reject, Reason: "no"})
			}
			if err != nil {
				t.Fatal(err)
			}
			outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Request: request})
			if err != nil || !outcome.Status.Finished() {
				t.Fatal(err, outcome)
			}
			if replayed, err := replay.Run(t.Context(), r, "c", nil); err != nil || len(replayed.Differences) > 0 {
				t.Errorf("%s, %s: %v, %+v", name, method, err, replayed)
			}
		}
	}
}

// Who rests gives its place among those of its activity to others, also as it is replayed.
func TestRun_OrderDuringPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(memory.New(), map[string]activity{"flaky": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			if in.Call["fails"] == true && in.Attempt == 1 {
				return plan.Result{}, plan.NewFailure("down")
			}
			return value(ctx, in)
		}})
		flaky := r.Registry.Activities["flaky"]
		flaky.Retries, flaky.Backoff, flaky.Concurrency = 1, 10*time.Second, 1
		outcome, err := r.Run(t.Context(), start(t, `{"calls": [
			{"_tool": "flaky", "fails": true, "value": 1, "_outputPath": "†state.all", "_outputMethod": "push"},
			{"_tool": "flaky", "value": 2, "_outputPath": "†state.all", "_outputMethod": "push"}], "output": "†state.all"}`))
		if err != nil || fmt.Sprint(outcome.Output) != "[2 1]" {
			t.Fatal(err, outcome)
		}
		replayed, err := replay.Run(t.Context(), r, "c", nil)
		if err != nil || len(replayed.Differences) > 0 {
			t.Errorf("replayed: %v, %+v", err, replayed)
		}
	})
}
