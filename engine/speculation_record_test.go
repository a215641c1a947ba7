package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Beside another a call would hold up that one's result within the step: what it reads is
// written while it runs, if not before, and then the log has its outcome, and no start.
func TestSpeculation_BesideAnotherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		r := &engine.Runner{Log: log, Registry: plan.NewRegistry()}
		r.Registry.Activities["slow"] = &plan.Registered{Name: "slow", Activity: plan.ActivityFunc(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			time.Sleep(time.Second)
			return addX(ctx, in)
		})}
		reads := map[string]string{"c/1.1": "1  plan", "c/1.2": "2 1.1 done"} // as of the last of these
		r.Registry.Activities["x"] = &plan.Registered{Name: "x", Activity: able{run: addX, ahead: func(_ context.Context, in plan.Invocation) bool {
			time.Sleep(aMoment)
			if entry, beside := reads[in.Key]; beside != slices.Contains(entriesOf(t, log), entry) {
				t.Errorf("%s has run as the log has %q", in.Key, entriesOf(t, log))
			}
			return true
		}}}
		request := chainOf("x", "x", "slow", "x")
		request.Calls[2].Call.(map[string]any)["value"] = "beside"
		var told []string
		r.Observe = func(record journal.Record) { told = append(told, fmt.Sprint(record.Call, " ", record.Status)) }
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
		if err != nil || outcome.Output != "besidexx" {
			t.Error(err, outcome)
		}
		want := []string{"1  plan", "1 1.3 running", "2 1.1 done", "3 1.2 done", "4 1.3 done", "5 1.4 done", "5  run"}
		if got := entriesOf(t, log); !slices.Equal(got, want) {
			t.Errorf("the journal holds\n%s", strings.Join(got, "\n"))
		}
		want = []string{"1.3 running", "1.1 running", "1.1 done", "1.2 running", "1.2 done", "1.3 done", "1.4 running", "1.4 done"}
		if !slices.Equal(told, want) {
			t.Errorf("it was told\n%s", strings.Join(told, "\n"))
		}
	})
}

// Side by side, too, the log has the start of a call before anything of it can be seen.
func TestSpeculation_SideBySideNothingIsSeenBeforeStart(t *testing.T) {
	log := memory.New()
	r := &engine.Runner{Log: log, Registry: plan.NewRegistry()}
	seen := func(in plan.Invocation) bool { return in.Call["value"] == "seen" }
	started := func(entries []string, key string) bool {
		_, call, _ := strings.Cut(key, "/")
		return slices.ContainsFunc(entries, func(e string) bool { return strings.HasSuffix(e, " "+call+" running") })
	}
	r.Registry.Activities["x"] = &plan.Registered{Name: "x", Activity: able{
		ahead: func(_ context.Context, in plan.Invocation) bool { return !seen(in) },
		run: func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			if seen(in) && !started(entriesOf(t, log), in.Key) {
				t.Errorf("%s runs, and the log does not have that", in.Key)
			}
			return addX(ctx, in)
		},
	}}
	outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: sideBySide("x", "a", "seen", "b", "seen", "seen", "c")})
	if err != nil || outcome.Status != journal.RunDone {
		t.Fatal(err, outcome)
	}
	for _, record := range outcome.Calls {
		if record.Status != journal.Done || record.Attempts != 1 {
			t.Errorf("%+v", record)
		}
	}
}

// A call that writes where another is to have read before begins when the log has that it
// has: if the process died then, the other would read what was written since.
func TestSpeculation_ReadBeforeWriteIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		r := &engine.Runner{Log: log, Registry: plan.NewRegistry()}
		r.Registry.Activities["reads"] = &plan.Registered{Name: "reads", Activity: able{run: func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			time.Sleep(aMoment)
			return addX(ctx, in)
		}}}
		r.Registry.Activities["writes"] = &plan.Registered{Name: "writes", Activity: plan.ActivityFunc(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			if entries := entriesOf(t, log); !slices.Contains(entries, "2 1.1 running") {
				t.Errorf("it writes, and the log has %q", entries)
			}
			return addX(ctx, in)
		})}
		if outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{
			Context: messages(t, `{"type": "state", "a": "old"}`),
			Calls: []plan.Source{
				{Call: map[string]any{"_tool": "reads", "value": "†state.a", "_outputPath": "†out"}},
				{Call: map[string]any{"_tool": "writes", "value": "new", "_outputPath": "†state.a"}},
			},
			Output: "†out", HasOutput: true,
		}}); err != nil || outcome.Output != "oldx" {
			t.Error(err, outcome)
		}
	})
}

// What a call read of which the log has the outcome alone is what there was when it began,
// though others began since on what somebody appended: so it comes out when it is replayed.
func TestReplay_SpeculatedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		r := &engine.Runner{Log: log, Registry: plan.NewRegistry()}
		appended, over := make(chan struct{}), make(chan struct{})
		tell := func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			return plan.Result{Value: fmt.Sprint(in.Call["value"], in.Call["late"])}, nil
		}
		r.Registry.Activities["unseen"] = &plan.Registered{Name: "unseen", Activity: able{run: tell, ahead: func(context.Context, plan.Invocation) bool {
			strangerAppends(t, log, `{"type": "state", "n": "new"}`)
			close(appended)
			<-over
			return true
		}}}
		r.Registry.Activities["first"] = &plan.Registered{Name: "first", Activity: plan.ActivityFunc(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			<-appended
			return tell(ctx, in)
		})}
		r.Registry.Activities["second"] = &plan.Registered{Name: "second", Activity: plan.ActivityFunc(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			close(over)
			return tell(ctx, in)
		})}
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{
			Context: messages(t, `{"type": "state", "n": 1}`),
			Calls: []plan.Source{
				{Call: map[string]any{"_tool": "first", "_outputPath": "†out.a"}},
				{Call: map[string]any{"_tool": "second", "value": "†out.a", "late": "†state.n", "_outputPath": "†out.b"}},
				{Call: map[string]any{"_tool": "unseen", "value": "†state.n * 2", "_outputPath": "†out.c"}},
			},
			Output: "†out", HasOutput: true,
		}})
		if err != nil || outcome.Calls[1].Reads["†state.n"] != 3 || outcome.Calls[2].Reads["†state.n"] != 1 {
			t.Fatal(err, outcome)
		}
		if entries := entriesOf(t, log); slices.ContainsFunc(entries, func(e string) bool { return strings.HasSuffix(e, "1.3 running") }) {
			t.Fatalf("it was seen: %q", entries)
		}
		if replayed, err := replay.Run(t.Context(), r, "c", nil); err != nil || len(replayed.Differences) > 0 {
			t.Errorf("%v, %+v", err, replayed)
		}
	})
}

// The log has the source of what a call ran also where nothing was to be recorded as it
// began: here a run goes on, with other scripts, whose process died.
func TestSpeculation_KeepsScripts(t *testing.T) {
	log := &appends{Log: memory.New()}
	r := &engine.Runner{Log: &crashing{Log: log, left: 1}, Registry: plan.NewRegistry()}
	register := func(source string) *store.Code {
		code := &store.Code{Digest: "of " + source, Scripts: []store.Script{{Path: "activities/x.lua", SHA256: source, Source: []byte(source)}}}
		r.Registry.Activities["x"] = &plan.Registered{Name: "x", Activity: able{run: addX}, Script: "activities/x.lua", SHA256: source, Code: code}
		return code
	}
	register("old")
	request := sideBySide("x", "a", "b")
	if _, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request}); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	code := register("new")
	log.code, r.Log = nil, log
	if outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Request: request}); err != nil || outcome.Calls[0].Generation != code.Digest {
		t.Fatal(err, outcome)
	}
	if !slices.Contains(log.code, code) {
		t.Errorf("the log has %v", log.code)
	}
}

// aMoment is less than calls may run ahead.
const aMoment = 100 * time.Microsecond

// A call that gives up as the run is stopped has not begun, and its turn comes when the run
// goes on.
func TestSpeculation_GivenUpAtStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		r := &engine.Runner{Log: log, Registry: plan.NewRegistry()}
		r.Registry.Activities["long"] = &plan.Registered{Name: "long", Activity: able{run: addX, ahead: func(ctx context.Context, _ plan.Invocation) bool {
			<-ctx.Done()
			return false
		}}}
		run, stop := context.WithTimeout(t.Context(), aMoment)
		defer stop()
		request := sideBySide("long", "a", "b")
		outcome, err := r.Run(run, engine.Start{Context: "c", Request: request})
		if err != nil || outcome.Status != journal.RunInterrupted {
			t.Fatal(err, outcome)
		}
		entries := entriesOf(t, log)
		slices.Sort(entries[2:4]) // either may be first
		if want := []string{"1  plan", "1  run", "1 1.1 blocked", "1 1.2 blocked", "1  run"}; !slices.Equal(entries, want) {
			t.Errorf("the journal holds %q", entries)
		}
		outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Request: request})
		if err != nil || outcome.Status != journal.RunDone || outcome.Calls[0].Attempts != 1 {
			t.Error(err, outcome)
		}
	})
}
