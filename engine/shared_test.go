package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

// most counts how many calls run at once, at most.
type most struct {
	mu       sync.Mutex
	now, top int
}

func (m *most) of(f activity) activity {
	return func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		m.mu.Lock()
		m.now++
		m.top = max(m.top, m.now)
		m.mu.Unlock()
		defer func() {
			m.mu.Lock()
			m.now--
			m.mu.Unlock()
		}()
		return f(ctx, in)
	}
}

// TestLimits_AcrossDelegates holds that the bounds on what runs at once go
// for a run with all its delegates.
func TestLimits_AcrossDelegates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, one := &most{}, &most{}
		r := newRunner(memory.New(), map[string]activity{"sleep": all.of(sleep), "alone": one.of(sleep)})
		r.Registry.Activities["alone"].Concurrency = 1
		r.Parallel = 3
		r.Registry.Delegates["d"] = &plan.Delegate{Request: readPlan(t, `{"calls": [
			{"_tool": "sleep", "seconds": 1, "value": 1, "_outputPath": "†a"}, {"_tool": "sleep", "seconds": 1, "value": 1, "_outputPath": "†b"},
			{"_tool": "alone", "seconds": 1, "value": 1, "_outputPath": "†c"}], "output": "†c"}`)}
		outcome, err := r.Run(t.Context(), start(t, repeated(3, `{"_tool": "t", "_delegate": "d", "_outputPath": "†o#"}`)))
		if err != nil || outcome.Status != journal.RunDone {
			t.Fatal(outcome, err)
		}
		if all.top > 3 || one.top != 1 {
			t.Errorf("at most %d ran at once, and %d of the one that runs alone", all.top, one.top)
		}
	})
}

// TestFireAndForget_BoundedAcrossTicks holds the same for what earlier ticks
// leave behind, and that its outcome is recorded while later ticks run.
func TestFireAndForget_BoundedAcrossTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loose, log := &most{}, memory.New()
		r := newRunner(log, map[string]activity{"loose": loose.of(sleep), "sleep": sleep})
		r.Parallel, r.Drain = 2, time.Minute
		asked := 0
		request := &plan.Request{Planner: plan.PlannerFunc(func(context.Context, plan.Ask) (*plan.Solution, error) {
			if asked++; asked == 6 {
				records, err := journal.In(log, "c").Records(context.Background())
				if err != nil || records[0].Status != journal.Done {
					t.Errorf("the first call is %v, %v", records[0].Status, err)
				}
				return &plan.Solution{Output: "end"}, nil
			}
			return &plan.Solution{Calls: readPlan(t, `[{"_tool": "loose", "seconds": 2, "value": 1}, {"_tool": "sleep", "seconds": 1, "value": 1, "_outputPath": "†a"}]`).Calls}, nil
		})}
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
		if err != nil || outcome.Output != "end" || loose.top > 2 {
			t.Errorf("%v, %v; %d ran at once", outcome, err, loose.top)
		}
		records, err := journal.In(log, "c").Records(t.Context())
		for _, record := range records {
			if err != nil || record.Status != journal.Done {
				t.Errorf("%s %s is %s, %v", record.Call, record.Tool, record.Status, err)
			}
		}
	})
}

// TestLease_IsRenewed holds that a run keeps its context while its planner
// thinks, and while it drains.
func TestLease_IsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		r := newRunner(log, map[string]activity{"sleep": sleep})
		r.Drain = time.Hour
		r.Registry.Activities["sleep"].Timeout = time.Hour
		thought := false
		request := &plan.Request{Planner: plan.PlannerFunc(func(context.Context, plan.Ask) (*plan.Solution, error) {
			if thought {
				time.Sleep(5 * time.Minute)
			}
			thought = true
			return &plan.Solution{Calls: readPlan(t, `[{"_tool": "sleep", "seconds": 600, "value": 1, "_outputPath": "†a"}]`).Calls}, nil
		})}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := r.Run(ctx, engine.Start{Context: "c", Request: request})
			ended <- err
		}()
		refused := func(what string, after time.Duration) {
			time.Sleep(after)
			if _, err := r.Resume(t.Context(), engine.Resume{Context: "c"}); !errors.As(err, new(*engine.BusyError)) {
				t.Errorf("while it %s: %v", what, err)
			}
		}
		refused("works", 5*time.Minute)
		refused("thinks", 9*time.Minute)
		refused("works again", 5*time.Minute)
		cancel()
		refused("drains", 5*time.Minute)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if holder, err := log.Holder(t.Context(), "c"); holder != "" || err != nil {
			t.Errorf("it is still held by %s, %v", holder, err)
		}
	})
}

// lostResult is a log that refuses a context from an append on, for its lease is another's, or
// nobody's any more.
type lostResult struct {
	store.Log
	holder              string
	from, appends, anew int // anew is how many asked for the lease again
}

func (l *lostResult) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if l.appends++; l.appends >= l.from {
		if l.from > 1 && b.Lease != nil && b.Lease.Epoch == 0 {
			l.anew++
		}
		return store.Appended{}, &store.HeldError{Context: b.Context, Holder: l.holder}
	}
	return l.Log.Append(ctx, b)
}

// TestLease_Lost holds that a run whose context another has taken over ends
// there, says who has it, and appends nothing more; also where that one has ended since.
func TestLease_Lost(t *testing.T) {
	for _, log := range []*lostResult{
		{holder: "another", from: 1}, {holder: "another", from: 2}, {holder: "another", from: 3}, {from: 2}, {from: 3},
	} {
		log.Log = memory.New()
		r := newRunner(log, map[string]activity{"value": value})
		_, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": 1, "_outputPath": "†a"},
			{"_tool": "value", "value": "†a", "_outputPath": "†b"}, {"_tool": "value", "value": "†b", "_outputPath": "†c"}]`))
		var busy *engine.BusyError
		if !errors.As(err, &busy) || busy.Holder != log.holder || log.appends != log.from || log.anew > 0 {
			t.Errorf("refused at append %d for %q, it ends after %d with %v", log.from, log.holder, log.appends, err)
		}
	}
}

// TestApproval_InDelegateOfRunningRun approves a call that a delegate holds,
// while its parent has other work: the run goes on with it by itself.
func TestApproval_InDelegateOfRunningRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		r := newRunner(log, map[string]activity{"sleep": sleep, "value": value})
		r.Registry.Delegates["inner"] = &plan.Delegate{Request: readPlan(t, `{"calls": [{"_tool": "value", "value": "†input.n", "_outputPath": "†a"}], "output": "†a"}`)}
		r.Registry.Delegates["outer"] = &plan.Delegate{Request: readPlan(t, `{"calls": [{"_tool": "x", "_delegate": "inner", "n": 5, "_outputPath": "†b"}], "output": "†b"}`)}
		s := start(t, `{"calls": [{"_tool": "x", "_delegate": "outer", "_outputPath": "†c"}, {"_tool": "sleep", "seconds": 5, "value": 1, "_outputPath": "†d"}], "output": "†c"}`)
		s.Approve = plan.Policy{Tools: []string{"value"}}
		go func() {
			time.Sleep(time.Second)
			if err := r.Decide(context.Background(), journal.Decision{Context: "c.1.1.1.1", Call: "1.1"}); err != nil {
				t.Error(err)
			}
		}()
		outcome, err := r.Run(t.Context(), s)
		if err != nil || outcome.Status != journal.RunDone || string(store.EncodeJSON(outcome.Output)) != "5" {
			t.Errorf("%+v, %v", outcome, err)
		}
	})
}

// TestApproval_ApprovedCallQueues approves a call that writes what another one,
// which runs again, reads first: before the run goes on, and while it does.
func TestApproval_ApprovedCallQueues(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			log, broken := memory.New(), true
			r := newRunner(log, map[string]activity{"value": value, "flaky": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
				if broken {
					return plan.Result{}, plan.NewFailure("not now")
				}
				return sleep(ctx, in)
			}})
			r.Registry.Activities["flaky"].Concurrency = 1
			s := start(t, `{"calls": [{"_tool": "flaky", "seconds": 5, "value": 1, "_outputPath": "†out.a"},
				{"_tool": "flaky", "seconds": 5, "value": "†state.x", "_outputPath": "†out.b"}, {"_tool": "value", "value": "new", "_outputPath": "†state.x"}], "output": "†out.b"}`)
			s.Request.Context = messages(t, `[{"type": "state", "x": "old"}]`)
			s.Approve = plan.Policy{Tools: []string{"value"}}
			outcome, err := r.Run(t.Context(), s)
			expect(t, outcome, err, journal.RunWaiting, "1.1 flaky failed ! not now", "1.2 flaky failed ! not now", "1.3 value held")
			broken = false
			approve := func() {
				if err := r.Decide(context.Background(), journal.Decision{Context: "c", Call: "1.3"}); err != nil {
					t.Error(err)
				}
			}
			if after == 0 {
				approve()
			} else {
				go func() {
					time.Sleep(after)
					approve()
				}()
			}
			outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Retry: []string{"1.1", "1.2"}})
			expect(t, outcome, err, journal.RunDone, "1.1 flaky done → †out.a", "1.2 flaky done → †out.b", "1.3 value done → †state.x")
			if outcome.Output != "old" {
				t.Errorf("it read %v", outcome.Output)
			}
		})
	}
}

// TestRetry_InsideDelegate holds that retrying a delegate's call runs again
// what failed in it, and not what was done; in a fork it begins anew.
func TestRetry_InsideDelegate(t *testing.T) {
	log, ran, broken := memory.New(), &counter{}, true
	r := newRunner(log, map[string]activity{"value": ran.of(value), "flaky": ran.of(func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		if broken {
			return plan.Result{}, plan.NewFailure("not now")
		}
		return value(ctx, in)
	})})
	r.Registry.Delegates["inner"] = &plan.Delegate{Request: readPlan(t, `{"calls": [
		{"_tool": "value", "value": 1, "_outputPath": "†a"}, {"_tool": "flaky", "value": "†a", "_outputPath": "†b"}], "output": "†b"}`)}
	r.Registry.Delegates["outer"] = &plan.Delegate{Request: readPlan(t, `{"calls": [{"_tool": "x", "_delegate": "inner", "_outputPath": "†b"}], "output": "†b"}`)}
	outcome, err := r.Run(t.Context(), start(t, `{"calls": [{"_tool": "x", "_delegate": "outer", "_outputPath": "†c"}], "output": "†c"}`))
	expect(t, outcome, err, journal.RunFailed,
		"1.1 x failed ! delegate: delegate outer (context c.1.1) failed: call 1.2 (flaky) in context c.1.1.1.1: not now")
	broken = false
	if _, err := journal.Fork(t.Context(), log, "c", 0, "f"); err != nil {
		t.Fatal(err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Retry: []string{"1.1"}})
	expect(t, outcome, err, journal.RunDone, "1.1 x done → †c")
	if got, want := ran.String(), ".1.1.1.1/1.1×1 .1.1.1.1/1.2×2"; strings.ReplaceAll(got, "c.1", ".1") != want {
		t.Errorf("ran %s, not %s", got, want)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "f", Retry: []string{"1.1"}})
	expect(t, outcome, err, journal.RunDone, "1.1 x done → †c")
	if child := outcome.Calls[0].Child; !strings.HasPrefix(child, "f.1.1") {
		t.Errorf("the fork's delegate runs in %s", child)
	}
}

// TestRetry_DelegateKeepsItsReads: what goes on inside has been given what
// there was when its call began, and so the record says.
func TestRetry_DelegateKeepsItsReads(t *testing.T) {
	log, broken := memory.New(), true
	r := newRunner(log, map[string]activity{"value": value, "flaky": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		if broken {
			return plan.Result{}, plan.NewFailure("not now")
		}
		return value(ctx, in)
	}})
	r.Registry.Delegates["inner"] = &plan.Delegate{Request: readPlan(t, `{"calls": [
		{"_tool": "flaky", "value": ["†state.x", "†input.y"], "_outputPath": "†o"}], "output": "†o"}`)}
	s := start(t, `[
		{"_tool": "x", "_delegate": "inner", "y": "†state.y", "_scopes": ["state.x"], "_outputPath": "†r"},
		{"_tool": "value", "value": 7, "_outputPath": "†state.x"},
		{"_tool": "value", "value": 8, "_outputPath": "†state.y"}]`)
	s.Request.Context = messages(t, `{"type": "state", "x": 1, "y": 2}`)
	if outcome, err := r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunFailed {
		t.Fatal(outcome, err)
	}
	broken = false
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Retry: []string{"1.1"}})
	expect(t, outcome, err, journal.RunDone, "1.1 x done → †r", "1.2 value done → †state.x", "1.3 value done → †state.y")
	if got, want := get(t, log, "†r"), "[1,2]"; got != want {
		t.Errorf("it gives %s, not %s", got, want)
	}
	if got, want := fmt.Sprint(outcome.Calls[0].Reads), "map[†state.x:1 †state.y:1]"; got != want {
		t.Errorf("it has read %s, not %s", got, want)
	}
}

// TestModel_AnswersInDelegates: also in one that brings a registry of its own.
func TestModel_AnswersInDelegates(t *testing.T) {
	r := newRunner(memory.New(), nil)
	r.Registry.Model = plan.ModelFunc(func(context.Context, plan.Question) (any, error) { return "thought", nil })
	own := plan.NewRegistry()
	tool, err := plan.NewTool("ask", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	own.Tools["ask"] = tool
	r.Registry.Delegates["inner"] = &plan.Delegate{Registry: own, Request: readPlan(t, `{"calls": [{"_tool": "ask", "_outputPath": "†o"}], "output": "†o"}`)}
	outcome, err := r.Run(t.Context(), start(t, `{"calls": [{"_tool": "x", "_delegate": "inner", "_outputPath": "†c"}], "output": "†c"}`))
	expect(t, outcome, err, journal.RunDone, "1.1 x done → †c")
	if outcome.Output != "thought" {
		t.Error(outcome.Output)
	}
}

// TestModel_GetsTheToolsSchema holds what stands beside the messages of a question.
func TestModel_GetsTheToolsSchema(t *testing.T) {
	r := newRunner(memory.New(), nil)
	tool, err := plan.NewTool("judge", map[string]any{"description": "is it so?", "_output": map[string]any{"type": "boolean"}})
	if err != nil {
		t.Fatal(err)
	}
	r.Registry.Tools["judge"] = tool
	r.Registry.Model = plan.ModelFunc(func(_ context.Context, q plan.Question) (any, error) {
		got := string(store.EncodeJSON([]any{q.Tool, q.Schema, q.Call, q.Key}))
		if want := `[{"_output":{"type":"boolean"},"description":"is it so?"},{"type":"boolean"},{"_tool":"judge","x":1},"c/1.1"]`; got != want {
			t.Errorf("it is asked %s, not %s", got, want)
		}
		return true, nil
	})
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "judge", "x": 1, "_outputPath": "†out"}]`))
	expect(t, outcome, err, journal.RunDone, "1.1 judge done → †out")
}

// TestModel_SeesNoSupersededMessages: of calls that run again it is shown what they come to now.
func TestModel_SeesNoSupersededMessages(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	tool, err := plan.NewTool("judge", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	r.Registry.Tools["judge"] = tool
	var seen string
	r.Registry.Model = plan.ModelFunc(func(_ context.Context, q plan.Question) (any, error) {
		seen = string(store.EncodeJSON(q.Messages[len(q.Messages)-1]))
		for _, m := range q.Messages[:len(q.Messages)-1] {
			if m["kind"] == "state" {
				t.Errorf("it is shown %v, and %s", m, seen)
			}
		}
		return "so", nil
	})
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}, {"_tool": "judge", "x": "†state.a", "_outputPath": "†out"}]`))
	expect(t, outcome, err, journal.RunDone, "1.1 value done → †state.a", "1.2 judge done → †out")
	if _, err := journal.Fork(t.Context(), log, "c", 0, "f"); err != nil {
		t.Fatal(err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "f", From: "1.1", Set: map[string]any{"value": json.Number("2")}})
	expect(t, outcome, err, journal.RunDone, "1.1 value done → †state.a", "1.2 judge done → †out")
	if want := `{"data":{"a":2},"kind":"state","type":"data"}`; seen != want {
		t.Errorf("it is shown %s, not %s", seen, want)
	}
}
