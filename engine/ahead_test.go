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
	"obelus/store"
)

// able is an activity that can run ahead, where it likes to.
type able struct {
	run   activity
	ahead func(ctx context.Context, in engine.Invocation) bool // whether it does; nil if it always does
}

func (a able) Run(ctx context.Context, in engine.Invocation) (engine.Result, error) {
	return a.run(ctx, in)
}

func (a able) RunAhead(ctx context.Context, in engine.Invocation) (engine.Result, bool, error) {
	if a.ahead != nil && !a.ahead(ctx, in) {
		return engine.Result{}, false, nil
	}
	res, err := a.run(ctx, in)
	return res, true, err
}

// appends counts the appends to a log.
type appends struct {
	store.Log
	mu      sync.Mutex
	n       int
	between func() // what another does before one
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
		l.mu.Unlock()
	}
	return l.Log.Append(ctx, b)
}

// chainOf is a plan of calls each of which reads what the one before wrote.
func chainOf(tools ...string) *engine.Request {
	request := &engine.Request{HasOutput: true, Output: fmt.Sprintf("†state.s%d", len(tools))}
	for i, tool := range tools {
		value := "begun"
		if i > 0 {
			value = fmt.Sprintf("†state.s%d", i)
		}
		request.Calls = append(request.Calls, engine.Source{Call: map[string]any{"_tool": tool, "value": value, "_outputPath": fmt.Sprintf("†state.s%d", i+1)}})
	}
	return request
}

// add is what the calls of a chain do.
func addX(_ context.Context, in engine.Invocation) (engine.Result, error) {
	return engine.Result{Value: in.Call["value"].(string) + "x"}, nil
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

// A chain of calls of which nothing can be seen is one append, and the log of it is
// as if each had waited for the one before to be recorded.
func TestAChainThatRunsAheadIsRecordedAsAnyOther(t *testing.T) {
	histories := map[bool][]string{}
	for _, ahead := range []bool{true, false} {
		log := &appends{Log: store.NewMemory()}
		r := &engine.Runner{Log: log, Registry: engine.NewRegistry()}
		r.Registry.Activities["x"] = &engine.Registered{Name: "x", Activity: able{addX, func(context.Context, engine.Invocation) bool { return ahead }}}
		var observed []string
		r.Observe = func(record engine.Record) {
			observed = append(observed, fmt.Sprint(record.Call, " ", record.Status, " ", record.Reads, record.Attempts))
		}
		var outcome *engine.Outcome
		synctest.Test(t, func(t *testing.T) {
			var err error
			if outcome, err = r.Run(t.Context(), engine.Start{Context: "c", Request: chainOf("x", "x", "x", "x")}); err != nil {
				t.Fatal(err)
			}
		})
		if outcome.Output != "begunxxxx" {
			t.Errorf("it came to %v", outcome.Output)
		}
		if want := map[bool]int{true: 1, false: 5}[ahead]; log.n != want {
			t.Errorf("%d appends, not %d", log.n, want)
		}
		for m, err := range log.Messages(t.Context(), store.Filter{Context: "c"}) {
			observed = append(observed, fmt.Sprint(m.Seq, m.Call, m.Path, string(store.EncodeJSON(m.Data)), err))
		}
		histories[ahead] = slices.Concat(entriesOf(t, log), observed)
	}
	if !slices.Equal(histories[true], histories[false]) {
		t.Errorf("ahead:\n%s\nand not:\n%s", strings.Join(histories[true], "\n"), strings.Join(histories[false], "\n"))
	}
}

// What can be seen of a call comes after the log has what the call read, and that it
// has begun.
func TestNothingIsSeenOfACallBeforeTheLogHasItsStart(t *testing.T) {
	log := store.NewMemory()
	r := &engine.Runner{Log: log, Registry: engine.NewRegistry()}
	r.Registry.Activities["x"] = &engine.Registered{Name: "x", Activity: able{run: addX}}
	var seen []string
	sees := func(ctx context.Context, in engine.Invocation) (engine.Result, error) {
		seen = append(seen, in.Key)
		entries := entriesOf(t, log)
		_, call, _ := strings.Cut(in.Key, "/")
		if last := entries[len(entries)-1]; !strings.HasSuffix(last, " "+call+" running") {
			t.Errorf("%s runs, and the log ends with %s", in.Key, last)
		}
		return addX(ctx, in)
	}
	tries := 0
	r.Registry.Activities["shy"] = &engine.Registered{Name: "shy", Activity: able{sees, func(context.Context, engine.Invocation) bool {
		tries++
		return false
	}}}
	r.Registry.Activities["once"] = &engine.Registered{Name: "once", Activity: able{run: sees}, NotIdempotent: true}
	r.Registry.Activities["go"] = &engine.Registered{Name: "go", Activity: engine.ActivityFunc(sees)}
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
func TestRunningAheadHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &appends{Log: store.NewMemory()}
		r := &engine.Runner{Log: log, Registry: engine.NewRegistry()}
		takes := func(d time.Duration) activity {
			return func(ctx context.Context, in engine.Invocation) (engine.Result, error) {
				select {
				case <-time.After(d):
				case <-ctx.Done():
					return engine.Result{}, ctx.Err()
				}
				return addX(ctx, in)
			}
		}
		r.Registry.Activities["long"] = &engine.Registered{Name: "long", Activity: able{run: takes(time.Minute)}, Timeout: time.Hour}
		r.Registry.Activities["short"] = &engine.Registered{Name: "short", Activity: able{run: takes(300 * time.Microsecond)}}
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
	})
}

// Somebody else may append while calls run ahead: they run again, on what there is then.
func TestCallsThatRanAheadRunAgainAfterAConflict(t *testing.T) {
	for _, first := range []string{"x", "go"} { // with the plan, and later
		log := &appends{Log: store.NewMemory()}
		if _, err := engine.Append(t.Context(), log, "c", messages(t, `{"type": "data", "kind": "state", "data": {"s1": "old"}}`)); err != nil {
			t.Fatal(err)
		}
		r := &engine.Runner{Log: log, Registry: engine.NewRegistry()}
		r.Registry.Activities["x"] = &engine.Registered{Name: "x", Activity: able{run: addX}}
		r.Registry.Activities["go"] = &engine.Registered{Name: "go", Activity: engine.ActivityFunc(addX)}
		ran := 0
		r.Registry.Activities["y"] = &engine.Registered{Name: "y", Activity: able{run: func(ctx context.Context, in engine.Invocation) (engine.Result, error) {
			if ran++; ran == 1 {
				log.between = func() {
					if _, err := engine.Append(context.Background(), log.Log, "c", messages(t, `{"type": "data", "kind": "noise", "data": {"late": "late"}}`)); err != nil {
						t.Error(err)
					}
				}
			}
			return engine.Result{Value: in.Call["value"].(string) + in.Call["late"].(string)}, nil
		}}}
		request := chainOf(first, "y", "x")
		request.Calls[1].Call.(map[string]any)["late"] = "†noise.late || 'none'"
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
		if err != nil || ran != 2 || outcome.Output != "begunxlatex" || outcome.Calls[1].Attempts != 1 {
			t.Errorf("after %s: ran %d times: %v, %+v", first, ran, err, outcome)
		}
		holdReads(t, log, outcome)
	}
}

// A call that fails ahead has failed, and is tried again as any other is.
func TestFailuresAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := (&engine.Runner{Log: store.NewMemory(), Registry: engine.NewRegistry()}).WithoutChance()
		flaky := able{run: func(ctx context.Context, in engine.Invocation) (engine.Result, error) {
			switch {
			case in.Call["value"] == "begun":
				panic("no")
			case in.Attempt < 3:
				return engine.Result{}, engine.NewFailure("not yet")
			}
			return addX(ctx, in)
		}}
		r.Registry.Activities["x"] = &engine.Registered{Name: "x", Activity: able{run: addX}}
		r.Registry.Activities["flaky"] = &engine.Registered{Name: "flaky", Activity: flaky, Retries: 2}
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: chainOf("x", "flaky", "x")})
		if err != nil || outcome.Output != "begunxxx" || outcome.Calls[1].Attempts != 3 {
			t.Errorf("%v, %+v", err, outcome)
		}
		outcome, err = r.Run(t.Context(), engine.Start{Context: "d", Request: chainOf("flaky", "x")})
		if err != nil || outcome.Status != engine.RunFailed || !strings.Contains(fmt.Sprint(outcome.Calls[0].Error), "broke down") {
			t.Errorf("%v, %+v", err, outcome)
		}
	})
}

// Where the log takes nothing what ran ahead has not happened.
func TestWhatRanAheadIsLostWithItsAppend(t *testing.T) {
	log := store.NewMemory()
	refuse := errors.New("the disk is full")
	r := &engine.Runner{Log: refusing{log, refuse}, Registry: engine.NewRegistry()}
	r.Registry.Activities["x"] = &engine.Registered{Name: "x", Activity: able{run: addX}}
	if _, err := r.Run(t.Context(), engine.Start{Context: "c", Request: chainOf("x", "x")}); !errors.Is(err, refuse) {
		t.Errorf("%v", err)
	}
	if last, err := engine.LastRun(t.Context(), log, "c"); err != nil || last.Tick != 0 {
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
