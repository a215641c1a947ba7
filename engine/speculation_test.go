package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// able is an activity that can run ahead, where it likes to, and of which nothing can be
// seen unless it says so.
type able struct {
	run   activity
	ahead func(ctx context.Context, in plan.Invocation) bool // whether it does; nil if it always does
	seen  bool
}

func (a able) Run(ctx context.Context, in plan.Invocation) (plan.Result, error) {
	res, err := a.run(ctx, in)
	res.Pure = !a.seen
	return res, err
}

func (a able) Speculate(ctx context.Context, in plan.Invocation) (plan.Result, bool, error) {
	if a.ahead != nil && !a.ahead(ctx, in) {
		return plan.Result{}, false, nil
	}
	res, err := a.run(ctx, in)
	return res, true, err
}

// never is not to run ahead.
func never(context.Context, plan.Invocation) bool { return false }

// appends counts the appends to a log.
type appends struct {
	store.Log
	mu      sync.Mutex
	n       int
	code    []*store.Code // that came with them
	between func()        // what another does before one
}

func (l *appends) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	l.mu.Lock()
	between := l.between
	l.between = nil
	l.mu.Unlock()
	if between != nil {
		between()
	}
	if len(b.Messages)+len(b.Journal) > 0 { // else it is about the lease
		l.mu.Lock()
		l.n++
		l.code = append(l.code, b.Code...)
		l.mu.Unlock()
	}
	return l.Log.Append(ctx, b)
}

// chainOf is a plan of calls each of which reads what the one before wrote.
func chainOf(tools ...string) *plan.Request {
	request := &plan.Request{HasOutput: true, Output: fmt.Sprintf("†state.s%d", len(tools))}
	for i, tool := range tools {
		value := "begun"
		if i > 0 {
			value = fmt.Sprintf("†state.s%d", i)
		}
		request.Calls = append(request.Calls, plan.Source{Call: map[string]any{"_tool": tool, "value": value, "_outputPath": fmt.Sprintf("†state.s%d", i+1)}})
	}
	return request
}

// sideBySide is a plan of calls that read nothing.
func sideBySide(tool string, values ...string) *plan.Request {
	request := &plan.Request{HasOutput: true, Output: "†out"}
	for i, value := range values {
		request.Calls = append(request.Calls, plan.Source{Call: map[string]any{"_tool": tool, "value": value, "_outputPath": fmt.Sprintf("†out.c%d", i)}})
	}
	return request
}

// add is what the calls of a chain do.
func addX(_ context.Context, in plan.Invocation) (plan.Result, error) {
	return plan.Result{Value: in.Call["value"].(string) + "x"}, nil
}

func entriesOf(t *testing.T, log store.Log) (all []string) {
	t.Helper()
	for entry, err := range log.Journal(t.Context(), store.JournalFilter{Context: "c"}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.TrimSpace(fmt.Sprint(entry.Seq, " ", entry.Call, " ", entry.Event)))
	}
	return all
}

// countEnding counts the entries with an ending.
func countEnding(entries []string, with string) (n int) {
	for _, e := range entries {
		if strings.HasSuffix(e, with) {
			n++
		}
	}
	return n
}

// strangerAppends has somebody else append to a log while it is run.
func strangerAppends(t *testing.T, log store.Log, message string) {
	if _, err := engine.Append(context.Background(), log, "c", messages(t, message)); err != nil {
		t.Error(err)
	}
}

// A chain of calls of which nothing can be seen is one append, and the log of it is
// as if each had waited for the one before to be recorded, but that it holds no starts of
// what had ended by then.
func TestSpeculation_ChainIsRecordedAsAnyOther(t *testing.T) {
	chain := chainOf("x", "x", "maybe", "x", "x")
	chain.Calls[3].Call.(map[string]any)["late"] = "†noise"
	begin := func(ctx context.Context, r *engine.Runner) (*journal.Outcome, error) {
		return r.Run(ctx, engine.Start{Context: "c", Request: chain})
	}
	resume := func(retry bool) func(ctx context.Context, r *engine.Runner) (*journal.Outcome, error) {
		return func(ctx context.Context, r *engine.Runner) (*journal.Outcome, error) {
			again := engine.Resume{Context: "c", Request: chain}
			if retry {
				again.Retry = []string{"1.3"}
			}
			return r.Resume(ctx, again)
		}
	}
	noise := messages(t, `{"type": "data", "kind": "noise", "data": 1}`)
	for name, steps := range map[string][]func(ctx context.Context, r *engine.Runner) (*journal.Outcome, error){
		"fresh":   {begin},
		"waiting": {begin, resume(false)},
		"failed":  {begin, resume(true)},
	} {
		histories := map[bool][]string{}
		for _, ahead := range []bool{true, false} {
			log := &appends{Log: memory.New()}
			r := &engine.Runner{Log: log, Registry: plan.NewRegistry()}
			may := func(context.Context, plan.Invocation) bool { return ahead }
			broken := name == "failed"
			r.Registry.Activities["x"] = &plan.Registered{Name: "x", Activity: able{run: addX, ahead: may}}
			r.Registry.Activities["maybe"] = &plan.Registered{Name: "maybe", Activity: able{run: func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
				if broken {
					return plan.Result{}, plan.NewFailure("no")
				}
				return addX(ctx, in)
			}, ahead: may}}
			var told []string
			r.Observe = func(record journal.Record) {
				told = append(told, fmt.Sprint(record.Call, " ", record.Status, " ", record.Reads, record.Attempts))
			}
			synctest.Test(t, func(t *testing.T) {
				for i, step := range steps {
					if i > 0 || name != "waiting" {
						if _, err := engine.Append(t.Context(), log, "c", noise); err != nil {
							t.Fatal(err)
						}
					}
					log.n = 0
					outcome, err := step(t.Context(), r)
					if broken = false; err != nil {
						t.Fatal(err)
					}
					if last := i == len(steps)-1; last && outcome.Output != "begunxxxxx" {
						t.Errorf("%s: it came to %v", name, outcome.Output)
					}
					if ahead && log.n != 1 && (i > 0 || name != "waiting") { // which ends by an append of its own
						t.Errorf("%s: %d appends", name, log.n)
					}
				}
			})
			for m, err := range log.Messages(t.Context(), store.Filter{Context: "c"}) {
				told = append(told, fmt.Sprint(m.Seq, m.Call, m.Path, string(store.EncodeJSON(m.Data)), err))
			}
			entries := entriesOf(t, log)
			starts := func(entry string) bool { return strings.HasSuffix(entry, " running") }
			if slices.ContainsFunc(entries, starts) == ahead {
				t.Errorf("%s: ahead %t, and the journal holds\n%s", name, ahead, strings.Join(entries, "\n"))
			}
			histories[ahead] = slices.Concat(slices.DeleteFunc(entries, starts), told)
		}
		if !slices.Equal(histories[true], histories[false]) {
			t.Errorf("%s: ahead:\n%s\nand not:\n%s", name, strings.Join(histories[true], "\n"), strings.Join(histories[false], "\n"))
		}
	}
}

// What can be seen of a call comes after the log has what the call read, and that it
// has begun.
func TestSpeculation_NothingIsSeenBeforeStart(t *testing.T) {
	log := memory.New()
	r := &engine.Runner{Log: log, Registry: plan.NewRegistry()}
	r.Registry.Activities["x"] = &plan.Registered{Name: "x", Activity: able{run: addX}}
	var seen []string
	sees := func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		seen = append(seen, in.Key)
		entries := entriesOf(t, log)
		_, call, _ := strings.Cut(in.Key, "/")
		if last := entries[len(entries)-1]; !strings.HasSuffix(last, " "+call+" running") {
			t.Errorf("%s runs, and the log ends with %s", in.Key, last)
		}
		return addX(ctx, in)
	}
	tries := 0
	r.Registry.Activities["shy"] = &plan.Registered{Name: "shy", Activity: able{run: sees, ahead: func(context.Context, plan.Invocation) bool {
		tries++
		return false
	}}}
	r.Registry.Activities["once"] = &plan.Registered{Name: "once", Activity: able{run: sees}, NotIdempotent: true}
	r.Registry.Activities["go"] = &plan.Registered{Name: "go", Activity: plan.ActivityFunc(sees)}
	outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: chainOf("x", "shy", "x", "once", "x", "go", "x", "x")})
	if err != nil || outcome.Output != "begunxxxxxxxx" {
		t.Fatal(err, outcome)
	}
	if want := []string{"c/1.2", "c/1.4", "c/1.6"}; !slices.Equal(seen, want) || tries != 1 {
		t.Errorf("%v were seen, not %v; shy was asked %d times", seen, want, tries)
	}
	for _, record := range outcome.Calls {
		if record.Attempts != 1 {
			t.Errorf("%s has %d attempts", record.Call, record.Attempts)
		}
	}
}

// A step that runs ahead ends after a while, and a call that takes longer than that is
// begun again once it is recorded.
func TestSpeculation_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &appends{Log: memory.New()}
		r := &engine.Runner{Log: log, Registry: plan.NewRegistry()}
		takes := func(d time.Duration) activity {
			return func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
				select {
				case <-time.After(d):
				case <-ctx.Done():
					return plan.Result{}, ctx.Err()
				}
				return addX(ctx, in)
			}
		}
		r.Registry.Activities["long"] = &plan.Registered{Name: "long", Activity: able{run: takes(time.Minute)}, Timeout: time.Hour}
		r.Registry.Activities["short"] = &plan.Registered{Name: "short", Activity: able{run: takes(300 * time.Microsecond)}}
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: chainOf("short", "short", "long", "short", "short", "short", "short", "short")})
		if err != nil || outcome.Output != "begunxxxxxxxx" {
			t.Fatal(err, outcome)
		}
		if d := outcome.Calls[2].Duration; d < 60_000 || d > 60_002 {
			t.Errorf("the long call took %v ms", d)
		}
		// The long one is recorded as begun with those before it; four follow it within a millisecond.
		if log.n != 3 {
			t.Errorf("%d appends", log.n)
		}
		log.n = 0
		tools := slices.Repeat([]string{"short"}, 15) // four at a time, and then one by a worker, with whose result the next go on
		if outcome, err := r.Run(t.Context(), engine.Start{Context: "d", Request: chainOf(tools...)}); err != nil || outcome.Status != journal.RunDone || log.n != 4 {
			t.Errorf("%v, %d appends", err, log.n)
		}
	})
}

// Somebody else may append while calls run ahead: they run again, on what there is then.
func TestSpeculation_RepeatedAfterConflict(t *testing.T) {
	for _, first := range []string{"x", "go"} { // with the plan, and later
		synctest.Test(t, func(t *testing.T) {
			log := &appends{Log: memory.New()}
			if _, err := engine.Append(t.Context(), log, "c", messages(t, `{"type": "data", "kind": "state", "data": {"s1": "old"}}`)); err != nil {
				t.Fatal(err)
			}
			r := &engine.Runner{Log: log, Registry: plan.NewRegistry()}
			r.Registry.Activities["x"] = &plan.Registered{Name: "x", Activity: able{run: addX}}
			r.Registry.Activities["go"] = &plan.Registered{Name: "go", Activity: able{run: addX, ahead: never}}
			ran, ahead := 0, 0
			r.Registry.Activities["y"] = &plan.Registered{Name: "y", Activity: able{ahead: func(context.Context, plan.Invocation) bool {
				ahead++
				return true
			}, run: func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
				if ran++; ran == 1 {
					log.between = func() {
						strangerAppends(t, log.Log, `{"type": "data", "kind": "noise", "data": {"late": "late"}}`)
					}
				}
				return plan.Result{Value: in.Call["value"].(string) + in.Call["late"].(string)}, nil
			}}}
			request := chainOf(first, "y", "x")
			request.Calls[1].Call.(map[string]any)["late"] = "†noise.late || 'none'"
			outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
			if err != nil || ran != 2 || outcome.Output != "begunxlatex" || outcome.Calls[1].Attempts != 1 {
				t.Errorf("after %s: ran %d times: %v, %+v", first, ran, err, outcome)
			}
			if ahead != 2 { // the second time by a worker, once the log has what it reads
				t.Errorf("it ran ahead %d times", ahead)
			}
			holdReads(t, log, outcome)
		})
	}
}

// A call that fails ahead has failed, and is tried again as any other is.
func TestSpeculation_Failures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := (&engine.Runner{Log: memory.New(), Registry: plan.NewRegistry()}).WithoutChance()
		flaky := able{run: func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			switch {
			case in.Call["value"] == "begun":
				panic("no")
			case in.Attempt < 3:
				return plan.Result{}, plan.NewFailure("not yet")
			}
			return addX(ctx, in)
		}}
		r.Registry.Activities["x"] = &plan.Registered{Name: "x", Activity: able{run: addX}}
		r.Registry.Activities["flaky"] = &plan.Registered{Name: "flaky", Activity: flaky, Retries: 2}
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: chainOf("x", "flaky", "x")})
		if err != nil || outcome.Output != "begunxxx" || outcome.Calls[1].Attempts != 3 {
			t.Errorf("%v, %+v", err, outcome)
		}
		outcome, err = r.Run(t.Context(), engine.Start{Context: "d", Request: chainOf("flaky", "x")})
		if err != nil || outcome.Status != journal.RunFailed || !strings.Contains(fmt.Sprint(outcome.Calls[0].Error), "broke down") {
			t.Errorf("%v, %+v", err, outcome)
		}
	})
}

// Where the log takes nothing what ran ahead has not happened.
func TestSpeculation_LostWithItsAppend(t *testing.T) {
	log := memory.New()
	refuse := errors.New("the disk is full")
	r := &engine.Runner{Log: refusing{log, refuse}, Registry: plan.NewRegistry()}
	r.Registry.Activities["x"] = &plan.Registered{Name: "x", Activity: able{run: addX}}
	if _, err := r.Run(t.Context(), engine.Start{Context: "c", Request: chainOf("x", "x")}); !errors.Is(err, refuse) {
		t.Errorf("%v", err)
	}
	if last, err := journal.In(log, "c").LastRun(t.Context()); err != nil || last.Tick != 0 {
		t.Errorf("%v, %+v", err, last)
	}
}

type refusing struct {
	store.Log
	with error
}

func (l refusing) Append(context.Context, store.Batch) (store.Appended, error) {
	return store.Appended{}, l.with
}

// What would be missed if it were lost is recorded before anything else is done: the
// outcome of a call that could be seen, and what a planner gave.
func TestSpeculation_ImpureResultIsRecordedFirst(t *testing.T) {
	log := memory.New()
	r := &engine.Runner{Log: log, Registry: plan.NewRegistry()}
	want := ""
	looks := func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		if entries := entriesOf(t, log); !slices.Contains(entries, want) {
			t.Errorf("%q is not among what is recorded, %q", want, entries)
		}
		return addX(ctx, in)
	}
	r.Registry.Activities["looks"] = &plan.Registered{Name: "looks", Activity: able{run: looks}}
	for name, dear := range map[string]*plan.Registered{
		"go":    {Activity: plan.ActivityFunc(addX)},
		"wraps": {Activity: plan.ActivityFunc(able{run: addX}.Run)},
		"seen":  {Activity: able{run: addX, ahead: never, seen: true}},
		"once":  {Activity: able{run: addX}, NotIdempotent: true},
		"fails": {Activity: able{ahead: never, run: func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{}, &plan.Failure{Fields: map[string]any{"message": "no"}}
		}}},
	} {
		dear.Name = name
		r.Registry.Activities[name] = dear
		log = memory.New()
		r.Log, want = log, "2 1.1 done"
		request := chainOf(name, "looks")
		if name == "fails" {
			request.Calls[0].Call.(map[string]any)["_outputPath"] = "†state.none || †state.s1"
			request.Calls[1].Call.(map[string]any)["value"] = "†state.s1.message"
		}
		if _, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request}); err != nil {
			t.Fatal(name, err)
		}
	}
	planned := &plan.Request{Planner: plan.PlannerFunc(func(context.Context, plan.Ask) (*plan.Solution, error) {
		request := chainOf("looks", "looks")
		return &plan.Solution{Calls: request.Calls, Output: request.Output}, nil
	})}
	log = memory.New()
	r.Log, want = log, "1  plan"
	if outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: planned}); err != nil || outcome.Output != "begunxx" {
		t.Fatal(err, outcome)
	}
}

// slowly is a log whose appends take a while.
type slowly struct{ store.Log }

func (l slowly) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if len(b.Messages) > 0 {
		time.Sleep(time.Second)
	}
	return l.Log.Append(ctx, b)
}

// What would be missed is recorded first also where it comes together with what would not.
func TestSpeculation_ImpureResultIsRecordedFirstAmongOthers(t *testing.T) {
	for _, order := range [][]string{{"quiet", "dear"}, {"dear", "quiet"}} {
		synctest.Test(t, func(t *testing.T) {
			log := memory.New()
			r := &engine.Runner{Log: slowly{log}, Registry: plan.NewRegistry()}
			after := func(d time.Duration) activity {
				return func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
					time.Sleep(d)
					return plan.Result{Value: "x"}, nil
				}
			}
			r.Registry.Activities["first"] = &plan.Registered{Name: "first", Activity: plan.ActivityFunc(after(time.Second))}
			// Both end while the outcome of the first is being recorded.
			times := map[string]time.Duration{order[0]: 1200 * time.Millisecond, order[1]: 1300 * time.Millisecond}
			r.Registry.Activities["quiet"] = &plan.Registered{Name: "quiet", Activity: able{run: after(times["quiet"]), ahead: never}}
			r.Registry.Activities["dear"] = &plan.Registered{Name: "dear", Activity: plan.ActivityFunc(after(times["dear"]))}
			r.Registry.Activities["looks"] = &plan.Registered{Name: "looks", Activity: able{run: func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
				entries := entriesOf(t, log)
				if !slices.ContainsFunc(entries, func(e string) bool { return strings.HasSuffix(e, "1.3 done") }) {
					t.Errorf("%v: the outcome of 1.3 is not among what is recorded, %q", order, entries)
				}
				return plan.Result{Value: "x"}, nil
			}}}
			request := &plan.Request{}
			for _, call := range []map[string]any{
				{"_tool": "first", "_outputPath": "†a"}, {"_tool": "quiet", "_outputPath": "†b"}, {"_tool": "dear", "_outputPath": "†c"},
				{"_tool": "looks", "b": "†b", "c": "†c", "_outputPath": "†d"},
			} {
				request.Calls = append(request.Calls, plan.Source{Call: call})
			}
			if outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request}); err != nil || outcome.Status != journal.RunDone {
				t.Fatal(outcome, err)
			}
		})
	}
}

// So is what a planner gave when it was asked again.
func TestSpeculation_SecondPlanIsRecordedFirst(t *testing.T) {
	log := memory.New()
	r := &engine.Runner{Log: log, Registry: plan.NewRegistry()}
	asked := 0
	r.Registry.Activities["looks"] = &plan.Registered{Name: "looks", Activity: able{run: func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		if plans := countEnding(entriesOf(t, log), "plan"); plans != asked {
			t.Errorf("%s runs, and %d plans of %d are recorded", in.Key, plans, asked)
		}
		return plan.Result{Value: "x"}, nil
	}}}
	planned := &plan.Request{Planner: plan.PlannerFunc(func(context.Context, plan.Ask) (*plan.Solution, error) {
		if asked++; asked == 4 {
			asked--
			return &plan.Solution{Output: "done"}, nil
		}
		return &plan.Solution{Calls: chainOf("looks", "looks").Calls}, nil
	})}
	if outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: planned}); err != nil || asked != 3 {
		t.Fatal(err, outcome, asked)
	}
}

// An activity whose calls reach out is not tried in vain each time; nor one whose calls take
// long, but one that was late once is soon tried again.
func TestSpeculation_GivenUpIsSkippedForAWhile(t *testing.T) {
	for name, c := range map[string]struct {
		ahead func(ctx context.Context, key string) bool
		tries int
	}{
		"reaches out": {func(context.Context, string) bool { return false }, 1},
		"late":        {func(ctx context.Context, _ string) bool { <-ctx.Done(); return false }, 6}, // 1, 3, 7, 15, 31 and 63
		"late once": {func(ctx context.Context, key string) bool {
			if key == "c/1.1" {
				<-ctx.Done()
			}
			return key != "c/1.1"
		}, 99}, // all but the second
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &engine.Runner{Log: memory.New(), Registry: plan.NewRegistry(), Parallel: 1}
			tries := 0
			r.Registry.Activities["x"] = &plan.Registered{Name: "x", Activity: able{run: addX, ahead: func(ctx context.Context, in plan.Invocation) bool {
				tries++
				return c.ahead(ctx, in.Key)
			}}}
			outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: sideBySide("x", make([]string, 100)...)})
			if err != nil || outcome.Status != journal.RunDone || tries != c.tries {
				t.Errorf("%s: tried %d times: %v, %v", name, tries, err, outcome.Status)
			}
		})
	}
}

// What a call came to that had to wait for a processor meanwhile is not thrown away.
func TestSpeculation_LateEndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		r := &engine.Runner{Log: log, Registry: plan.NewRegistry()}
		ran := 0
		r.Registry.Activities["x"] = &plan.Registered{Name: "x", Activity: able{run: func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			ran++
			time.Sleep(time.Second)
			return addX(ctx, in)
		}}}
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: chainOf("x", "x")})
		if err != nil || outcome.Output != "begunxx" || ran != 2 {
			t.Error(err, outcome, ran)
		}
		if got, want := entriesOf(t, log), []string{"1  plan", "2 1.1 done", "3 1.2 done", "3  run"}; !slices.Equal(got, want) {
			t.Errorf("the journal holds %q", got)
		}
	})
}

// A chain of calls that update one value runs ahead as any other: what is to be read before
// it is written over is read by one whose outcome is waited for.
func TestSpeculation_UpdatesOfOneValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &appends{Log: memory.New()}
		r := &engine.Runner{Log: log, Registry: plan.NewRegistry()}
		r.Registry.Activities["x"] = &plan.Registered{Name: "x", Activity: able{run: addX}}
		request := &plan.Request{HasOutput: true, Output: "†state.n", Context: messages(t, `{"type": "state", "n": "begun"}`)}
		for range 5 {
			request.Calls = append(request.Calls, plan.Source{Call: map[string]any{"_tool": "x", "value": "†state.n", "_outputPath": "†state.n"}})
		}
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
		if err != nil || outcome.Output != "begunxxxxx" || log.n != 1 {
			t.Error(err, outcome, log.n)
		}
	})
}

// What nobody waits for does not run ahead, though but one call runs beside it.
func TestSpeculation_NotOfFireAndForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &engine.Runner{Log: memory.New(), Registry: plan.NewRegistry()}
		pause := able{ahead: never, run: func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			pause, _ := time.ParseDuration(in.Call["value"].(string))
			time.Sleep(pause)
			return plan.Result{Value: in.Call["value"]}, nil
		}}
		r.Registry.Activities["pause"] = &plan.Registered{Name: "pause", Activity: pause}
		ran := false
		r.Registry.Activities["tell"] = &plan.Registered{Name: "tell", Activity: able{
			run: func(context.Context, plan.Invocation) (plan.Result, error) {
				ran = true
				return plan.Result{}, nil
			},
			ahead: func(context.Context, plan.Invocation) bool {
				t.Error("it ran ahead")
				return true
			},
		}}
		request := &plan.Request{}
		for _, call := range []map[string]any{
			{"_tool": "pause", "value": "1ms", "_outputPath": "†state.quick"},
			{"_tool": "pause", "value": "1s", "_outputPath": "†state.slow"},
			{"_tool": "tell", "value": "†state.quick"},
		} {
			request.Calls = append(request.Calls, plan.Source{Call: call})
		}
		if outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request}); err != nil || outcome.Status != journal.RunDone || !ran {
			t.Error(err, outcome)
		}
	})
}

// Who runs ahead keeps to how often its activity runs, and to its time.
func TestSpeculation_KeepsLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &engine.Runner{Log: memory.New(), Registry: plan.NewRegistry()}
		running := 0
		one := func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			if running++; running > 1 {
				t.Errorf("%s runs beside another", in.Key)
			}
			if in.Call["value"] == "slow" {
				time.Sleep(time.Second)
			}
			running--
			return addX(ctx, in)
		}
		notSlow := func(_ context.Context, in plan.Invocation) bool { return in.Call["value"] != "slow" }
		r.Registry.Activities["one"] = &plan.Registered{Name: "one", Activity: able{run: one, ahead: notSlow}, Concurrency: 1}
		r.Registry.Activities["short"] = &plan.Registered{Name: "short", Timeout: 500 * time.Microsecond, Activity: able{run: func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
			time.Sleep(700 * time.Microsecond)
			return addX(ctx, in)
		}}}
		r.Registry.Activities["pause"] = &plan.Registered{Name: "pause", Activity: able{ahead: never, run: func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			if in.Call["value"] == "quick" { // the other is at work by then
				time.Sleep(time.Millisecond)
			}
			return plan.Result{Value: in.Call["value"]}, nil
		}}}
		delegate := &plan.Delegate{Request: chainOf("pause", "one")}
		delegate.Request.Calls[0].Call.(map[string]any)["value"] = "†input.value"
		r.Registry.Delegates["inside"] = delegate
		request := &plan.Request{}
		for i, value := range []string{"slow", "quick"} {
			request.Calls = append(request.Calls, plan.Source{Call: map[string]any{"_tool": "hand", "_delegate": "inside", "value": value, "_outputPath": fmt.Sprintf("†state.d%d", i)}})
		}
		r.Registry.Tools["hand"], _ = plan.NewTool("hand", map[string]any{})
		if outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request}); err != nil || outcome.Status != journal.RunDone {
			t.Error(err, outcome)
		}
		outcome, err := r.Run(t.Context(), engine.Start{Context: "d", Request: chainOf("short")})
		if err != nil || outcome.Status != journal.RunFailed || outcome.Calls[0].Error["code"] != "timeout" {
			t.Error(err, outcome)
		}
	})
}
