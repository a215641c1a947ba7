package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
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

// foreign is a log to which others append right before the run does.
type foreign struct {
	store.Log
	t      *testing.T
	count  int
	inject func(n int) string // messages before the run's nth append, from 1; or ""
}

func (l *foreign) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	l.count++
	if text := l.inject(l.count); text != "" {
		if _, err := engine.Append(ctx, l.Log, b.Context, messages(l.t, text)); err != nil {
			l.t.Error(err)
		}
	}
	return l.Log.Append(ctx, b)
}

// TestForeign_ReadBeforeStart changes what a call reads between
// the moment that it is found ready and the append of its start.
func TestForeign_ReadBeforeStart(t *testing.T) {
	log := memory.New()
	r := newRunner(&foreign{Log: log, t: t, inject: func(n int) string {
		if n == 2 {
			return `{"type": "state", "n": "new"}`
		}
		return ""
	}}, map[string]activity{"value": value})
	r.Parallel = 1
	s := start(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"},
		{"_tool": "value", "value": ["†state.a", "†state.n"], "_outputPath": "†out"}]`)
	s.Request.Context = messages(t, `{"type": "state", "n": "old"}`)
	outcome, err := r.Run(t.Context(), s)
	expect(t, outcome, err, journal.RunDone, "1.1 value done → †state.a", "1.2 value done → †out")
	if got := get(t, log, "†out"); got != `[1,"new"]` {
		t.Errorf("read %s", got)
	}
	holdReads(t, log, outcome)
}

// holdReads holds that each reference's recorded seq is that of the newest
// message that its value is made of, as of when the call's start was recorded, or, of one
// that had ended by then, as of when it read.
func holdReads(t *testing.T, log store.Log, outcome *journal.Outcome) {
	t.Helper()
	for _, record := range outcome.Calls {
		began := record.At
		for entry, err := range log.Journal(t.Context(), store.JournalFilter{Context: "c", Call: record.Call, Event: string(journal.Running)}) {
			if err != nil {
				t.Fatal(err)
			}
			began = entry.Seq
		}
		for ref, seq := range record.Reads {
			resolved, err := store.Resolver{Log: log, Context: "c", At: began}.Resolve(t.Context(), store.MustParsePath(ref), record.Instance)
			if err != nil || len(resolved.From) == 0 || slices.Max(resolved.From) != seq {
				t.Errorf("call %s, started at %d, is said to have read %s of %d, which came from %v", record.Call, began, ref, seq, resolved.From)
			}
		}
	}
}

// TestForeign_BetweenAllSteps appends before every append of the run.
// Nothing is lost, and reads are recorded as they were.
func TestForeign_BetweenAllSteps(t *testing.T) {
	log, injected := memory.New(), 0
	ran := &counter{}
	r := newRunner(&foreign{Log: log, t: t, inject: func(n int) string {
		if n%2 == 0 {
			return ""
		}
		injected++
		return fmt.Sprintf(`{"type": "data", "kind": "others", "data": {"n": %d, "seen%d": true}}`, injected, injected)
	}}, map[string]activity{"value": ran.of(value)})
	s := start(t, `[{"_tool": "value", "value": 0, "_outputPath": "†state.a"},
		{"_tool": "value", "value": ["†state.a", "†others.n"], "_outputPath": "†state.b"},
		{"_tool": "value", "value": ["†state.b", "†others.n"], "_outputPath": "†state.c"},
		{"_tool": "value", "value": ["†state.c", "†others.n"], "_outputPath": "†state.d"}]`)
	s.Request.Context = messages(t, `{"type": "data", "kind": "others", "data": {"n": 0}}`)
	outcome, err := r.Run(t.Context(), s)
	if err != nil || outcome.Status != journal.RunDone || ran.String() != "1.1×1 1.2×1 1.3×1 1.4×1" {
		t.Fatal(outcome, err, ran)
	}
	holdReads(t, log, outcome)
	for i := 1; i <= injected; i++ {
		if got := get(t, log, fmt.Sprintf("†others.seen%d", i)); got != "true" {
			t.Errorf("append %d is lost", i)
		}
	}
	if injected < 3 {
		t.Errorf("only %d appends got in between", injected)
	}
}

// TestForeign_CheckedAgain makes a result that fitted fit no longer.
func TestForeign_CheckedAgain(t *testing.T) {
	for _, c := range []struct{ name, inject, code string }{
		{"method", `{"type": "state", "list": "text"}`, "method"},
		{"schema", `{"type": "state", "schema": {"properties": {"list": {"maxItems": 1}}}}`, "schema"},
	} {
		log := memory.New()
		r := newRunner(&foreign{Log: log, t: t, inject: func(n int) string {
			if n == 2 {
				return c.inject
			}
			return ""
		}}, map[string]activity{"value": value})
		s := start(t, `[{"_tool": "value", "value": 2, "_outputPath": "†state.list", "_outputMethod": "push"}]`)
		s.Request.Context = messages(t, `{"type": "state", "list": [1]}`)
		outcome, err := r.Run(t.Context(), s)
		if err != nil || outcome.Calls[0].Status != journal.Failed || outcome.Calls[0].Error["code"] != c.code {
			t.Errorf("%s: %v, %v", c.name, outcome, err)
		}
	}
}

// TestForeign_WakesWaitingCalls appends what a call waits for at the very
// end, and while others run.
func TestForeign_WakesWaitingCalls(t *testing.T) {
	for at := 1; at <= 3; at++ { // the run appends three times
		log := memory.New()
		r := newRunner(&foreign{Log: log, t: t, inject: func(n int) string {
			if n == at {
				return `{"type": "input", "answer": {"x": 42}}`
			}
			return ""
		}}, map[string]activity{"value": value})
		r.Parallel = 1
		outcome, err := r.Run(t.Context(), start(t, `{"calls": [
			{"_tool": "value", "value": "†input.answer.x", "_outputPath": "†state.a"},
			{"_tool": "value", "value": "†state.a", "_outputPath": "†state.b"},
			{"_tool": "value", "value": 1, "_outputPath": "†state.c"}], "output": "†state"}`))
		expect(t, outcome, err, journal.RunDone, "1.1 value done → †state.a", "1.2 value done → †state.b", "1.3 value done → †state.c")
		if got := string(store.EncodeJSON(outcome.Output)); got != `{"a":42,"b":42,"c":1}` {
			t.Errorf("before append %d: %s", at, got)
		}
		holdReads(t, log, outcome)
	}
}

// TestForeign_WriteBelowWakesWaitingCalls: what another call writes below a path that
// a call waits for brings it too.
func TestForeign_WriteBelowWakesWaitingCalls(t *testing.T) {
	log := memory.New()
	r := newRunner(&foreign{Log: log, t: t, inject: func(n int) string {
		if n == 2 {
			return `{"type": "data", "kind": "input", "data": {"answer": {"x": 42}}, "path": "†input.answer.x", "_call": {"_tool": "other"}}`
		}
		return ""
	}}, map[string]activity{"value": value})
	r.Parallel = 1
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": "†input.answer", "_outputPath": "†state.a"},
		{"_tool": "value", "value": 1, "_outputPath": "†state.b"}]`))
	expect(t, outcome, err, journal.RunDone, "1.1 value done → †state.a", "1.2 value done → †state.b")
	if got := get(t, log, "†state.a"); got != `{"x":42}` {
		t.Errorf("read %s", got)
	}
}

// TestForeign_BesideWaitingDelegate appends to the parent's context while a
// delegate waits: the run still sees what is decided inside the delegate.
func TestForeign_BesideWaitingDelegate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &PlacePrefix{Log: memory.New()}
		r := newRunner(log, map[string]activity{"sleep": sleep, "value": value, "meddle": func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			res, err := sleep(ctx, in)
			log.happens = func() {
				strangerAppends(t, log.Log, `{"type": "state", "n": 1}`)
			}
			return res, err
		}})
		r.Registry.Delegates["inner"] = &plan.Delegate{Request: readPlan(t, `{"calls": [{"_tool": "value", "value": 5, "_outputPath": "†a"}], "output": "†a"}`)}
		s := start(t, `{"calls": [{"_tool": "x", "_delegate": "inner", "_outputPath": "†b"},
			{"_tool": "sleep", "seconds": 1, "value": 1, "_outputPath": "†c"},
			{"_tool": "meddle", "seconds": 1, "value": "†c", "_outputPath": "†d"},
			{"_tool": "sleep", "seconds": 5, "value": 1, "_outputPath": "†e"}], "output": "†b"}`)
		s.Approve = plan.Policy{Tools: []string{"value"}}
		person := *r
		person.Log = log.Log
		go func() {
			time.Sleep(3 * time.Second)
			if err := person.Decide(context.Background(), journal.Decision{Context: "c.1.1", Call: "1.1"}); err != nil {
				t.Error(err)
			}
		}()
		outcome, err := r.Run(t.Context(), s)
		if err != nil || outcome.Status != journal.RunDone || string(store.EncodeJSON(outcome.Output)) != "5" {
			t.Errorf("%+v, %v", outcome, err)
		}
		if got := get(t, log.Log, "†state.n"); got != "1" {
			t.Errorf("what came in between is %s", got)
		}
	})
}

// lookLog counts the reads of what others have appended.
type lookLog struct {
	store.Log
	looks atomic.Int64
}

func (l *lookLog) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	l.looks.Add(1)
	return l.Log.Messages(ctx, f)
}

// TestForeign_HeardAtOnce: while others run, a call goes on at the moment in which somebody appends
// what it waits for, or decides about it; and the run looks at the log seldom meanwhile, however
// much is appended to other contexts.
func TestForeign_HeardAtOnce(t *testing.T) {
	const quiet, busy = 30*time.Second + 50*time.Millisecond, 10 * time.Second
	for _, c := range []struct {
		name  string
		looks int64 // at most
		meet  func(t *testing.T, r *engine.Runner)
	}{
		{"an append", 20, func(t *testing.T, r *engine.Runner) {
			time.Sleep(quiet)
			strangerAppends(t, r.Log, `{"type": "input", "x": 1}`)
		}},
		{"a decision", 20, func(t *testing.T, r *engine.Runner) {
			time.Sleep(quiet)
			if err := r.Decide(t.Context(), journal.Decision{Context: "c", Call: "1.2"}); err != nil {
				t.Error(err)
			}
		}},
		{"appends to other contexts", 20 + int64(busy/engine.GatheringTime), func(t *testing.T, r *engine.Runner) {
			for range busy / (10 * time.Millisecond) {
				time.Sleep(10 * time.Millisecond)
				if _, err := engine.Append(t.Context(), r.Log.(*lookLog).Log, "other", messages(t, `{"type": "state", "n": 1}`)); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(quiet - busy)
			strangerAppends(t, r.Log, `{"type": "input", "x": 1}`)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, began, ended := &lookLog{Log: memory.New()}, time.Now(), time.Duration(0)
				r := newRunner(log, map[string]activity{"sleep": sleep, "value": value, "ask": value})
				r.Registry.Activities["sleep"].Timeout = time.Hour
				r.Observe = func(record journal.Record) {
					if record.Status == journal.Done && ended == 0 {
						ended = time.Since(began)
					}
				}
				s := start(t, `[{"_tool": "sleep", "seconds": 60, "value": 1, "_outputPath": "†state.a"}, {"_tool": "value", "value": "†input.x", "_outputPath": "†state.b"}]`)
				if c.name == "a decision" {
					s = start(t, `[{"_tool": "sleep", "seconds": 60, "value": 1, "_outputPath": "†state.a"}, {"_tool": "ask", "value": 1, "_outputPath": "†state.b"}]`)
					s.Approve = plan.Policy{Tools: []string{"ask"}}
				}
				go c.meet(t, r)
				outcome, err := r.Run(t.Context(), s)
				if err != nil || outcome.Status != journal.RunDone {
					t.Fatal(outcome, err)
				}
				if ended != quiet {
					t.Errorf("it goes on after %s, not %s", ended, quiet)
				}
				if n := log.looks.Load(); n > c.looks {
					t.Errorf("it has looked at the log %d times in a minute", n)
				}
			})
		})
	}
}

// TestForeign_BeforeThePlan appends while a run begins: what is judged to
// exist is judged again.
func TestForeign_BeforeThePlan(t *testing.T) {
	log := memory.New()
	r := newRunner(&foreign{Log: log, t: t, inject: func(n int) string {
		if n == 1 {
			return `{"type": "state", "a": "there"}`
		}
		return ""
	}}, map[string]activity{"value": value})
	if _, err := engine.Append(t.Context(), log, "c", messages(t, `{"type": "state", "b": 1}`)); err != nil {
		t.Fatal(err)
	}
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": "†state.a", "_outputPath": "†out"}, {"_tool": "value", "value": "late", "_outputPath": "†state.a"}]`))
	expect(t, outcome, err, journal.RunDone, "1.1 value done → †out", "1.2 value done → †state.a")
	if got := get(t, log, "†out"); got != `"there"` {
		t.Errorf("read %s", got)
	}
}

// PlacePrefix is a log before whose first append something else happens.
type PlacePrefix struct {
	store.Log
	happens func()
}

func (l *PlacePrefix) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if happens := l.happens; happens != nil {
		l.happens = nil
		happens()
	}
	return l.Log.Append(ctx, b)
}

// waits begins a run that waits for input.
func waits(t *testing.T) (store.Log, *engine.Runner) {
	t.Helper()
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": "†input.x", "_outputPath": "†state.a"}]`))
	expect(t, outcome, err, journal.RunWaiting, "1.1 value waiting … †input.x")
	if _, err := engine.Append(t.Context(), log, "c", messages(t, `{"type": "input", "x": 1}`)); err != nil {
		t.Fatal(err)
	}
	return log, r
}

// TestRelease_Once: of two who approve a plan at once the second is told so; the plan
// that comes after it, which nobody was shown, is not approved with it.
func TestRelease_Once(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	calls := readPlan(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}]`).Calls
	request := &plan.Request{Mode: "lazy", Planner: plan.PlannerFunc(func(context.Context, plan.Ask) (*plan.Solution, error) {
		return &plan.Solution{Calls: calls}, nil
	})}
	outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
	expect(t, outcome, err, journal.RunWaiting, "1.1 value blocked")
	for _, goesOn := range []bool{false, true} {
		_, err := (&engine.Runner{Log: &PlacePrefix{log, func() {
			if _, err := (&engine.Runner{Log: log}).DecidePlan(t.Context(), journal.PlanDecision{Context: "c"}); err != nil {
				t.Fatal(err)
			}
			if goesOn {
				outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Request: request})
				expect(t, outcome, err, journal.RunWaiting, "3.1 value blocked")
			}
		}}}).DecidePlan(t.Context(), journal.PlanDecision{Context: "c"})
		if !errors.As(err, new(*journal.NoSuchCallError)) || !strings.Contains(err.Error(), "has been approved already") {
			t.Errorf("approved: %v", err)
		}
		if last, err := journal.In(log, "c").LastRun(t.Context()); err != nil || last.Held != goesOn {
			t.Errorf("the run is %+v, %v", last, err)
		}
		if !goesOn {
			outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Request: request})
			expect(t, outcome, err, journal.RunWaiting, "2.1 value blocked")
		}
	}
}

// TestCancel_LosesToTheEnd: a run that comes to its end while somebody is about to
// cancel it has come to its end.
func TestCancel_LosesToTheEnd(t *testing.T) {
	log, r := waits(t)
	err := engine.Cancel(t.Context(), &PlacePrefix{log, func() {
		outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"})
		expect(t, outcome, err, journal.RunDone, "1.1 value done → †state.a")
	}}, "c", journal.Who{})
	if !errors.As(err, new(*journal.NoSuchCallError)) {
		t.Errorf("cancelled: %v", err)
	}
	if last, err := journal.In(log, "c").LastRun(t.Context()); err != nil || last.Status != journal.RunDone {
		t.Errorf("the run is %s, %v", last.Status, err)
	}
}

// TestResume_Unasked: what somebody has cancelled goes on for who asks for it, and not by
// itself.
func TestResume_Unasked(t *testing.T) {
	log, r := waits(t)
	r.Log = &PlacePrefix{log, func() {
		if err := engine.Cancel(t.Context(), log, "c", journal.Who{}); err != nil {
			t.Error(err)
		}
	}}
	for range 2 {
		if outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c", Unasked: true}); err != nil || outcome.Status != journal.RunCancelled {
			t.Errorf("%v, %v", outcome, err)
		}
	}
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "c"})
	expect(t, outcome, err, journal.RunDone, "1.1 value done → †state.a")
}

// TestRun_NewContextExistsMeanwhile: where somebody else makes the context between
// a run's look and its first append, and leaves events but no message there, the run
// looks again.
func TestRun_NewContextExistsMeanwhile(t *testing.T) {
	inner := memory.New()
	other := newRunner(inner, nil)
	refused := &plan.Request{Planner: plan.PlannerFunc(func(context.Context, plan.Ask) (*plan.Solution, error) {
		return nil, errors.New("no plan")
	})}
	r := newRunner(&PlacePrefix{inner, func() {
		if outcome, err := other.Run(t.Context(), engine.Start{Context: "c", Request: refused}); err != nil || outcome.Status != journal.RunFailed {
			t.Error(outcome, err)
		}
	}}, map[string]activity{"value": value})
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}]`))
	expect(t, outcome, err, journal.RunDone, "2.1 value done → †state.a")
}

// TestAppend_BeforeDelegateBegins: what is appended to the context that a call has named
// for its delegate, and which is not there yet, is the delegate's.
func TestAppend_BeforeDelegateBegins(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	asked := 0
	r.Registry.Delegates["thinks"] = &plan.Delegate{Request: &plan.Request{Planner: plan.PlannerFunc(func(ctx context.Context, _ plan.Ask) (*plan.Solution, error) {
		if asked++; asked == 1 {
			if _, err := engine.Append(ctx, log, "c.1.1", messages(t, `[{"type": "state", "early": 1}]`)); err != nil {
				return nil, err
			}
		}
		return &plan.Solution{Calls: []plan.Source{
			{Call: map[string]any{"_tool": "value", "value": []any{"†state.early", "†state.late"}, "_outputPath": "†out"}},
		}, Output: "†out"}, nil
	})}}
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "hand", "_delegate": "thinks", "_outputPath": "†state.done"}]`))
	if err != nil || outcome.Status != journal.RunWaiting || outcome.Calls[0].Child != "c.1.1" {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if info, err := log.Info(t.Context(), "c.1.1"); err != nil || info.Origin.Parent != "c" || info.Origin.Call != "1.1" {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := engine.Append(t.Context(), log, "c.1.1", messages(t, `[{"type": "state", "late": 2}]`)); err != nil {
		t.Fatal(err)
	}
	outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
	expect(t, outcome, err, journal.RunDone, "1.1 hand done → †state.done")
	if _, err := engine.Append(t.Context(), log, "c.1.7", messages(t, `[{"type": "state", "x": 1}]`)); err != nil {
		t.Fatal(err)
	}
	if info, err := log.Info(t.Context(), "c.1.7"); err != nil || info.Origin.Parent != "" {
		t.Errorf("what no call has named: %+v, %v", info, err)
	}
}

// TestHasInput_BeforeLaterEnd: what came while a run that had halted still drained is
// behind what ended then.
func TestHasInput_BeforeLaterEnd(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	if _, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": "†input.x", "_outputPath": "†out"}, {"_tool": "value", "value": 1}]`)); err != nil {
		t.Fatal(err)
	}
	for _, came := range []bool{false, true} {
		if came {
			if _, err := engine.Append(t.Context(), log, "c", messages(t, `[{"type": "state", "x": 1}]`)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := log.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Journal: []store.Entry{{Call: "1.2", Event: "done", Data: `{"call":"1.2","tick":1,"position":2,"tool":"value","status":"done"}`}}}); err != nil {
			t.Fatal(err)
		}
		if woken, err := journal.In(r.Log, "c").HasInput(t.Context()); err != nil || woken != came {
			t.Errorf("woken %t, %v", woken, err)
		}
	}
}
