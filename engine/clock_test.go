package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// TestDates_NeverGoBack: along a log and its journal dates never go back, no context is
// younger than its run, and no call older, whether it runs ahead of the log or not, and
// though the clock goes back.
func TestDates_NeverGoBack(t *testing.T) {
	for clock, now := range map[string]func() time.Time{"system": nil, "set back": leapingClock()} {
		for kind, log := range logs(t) {
			t.Run(kind+"/"+clock, func(t *testing.T) {
				r := newRunner(log, nil)
				r.Now = now
				r.Registry.Activities["value"] = &plan.Registered{Name: "value", Activity: able{run: value}}
				r.Registry.Activities["slow"] = &plan.Registered{Name: "slow", Activity: plan.ActivityFunc(value)}
				r.Registry.Delegates["inside"] = &plan.Delegate{Request: readPlan(t, `[{"_tool": "value", "value": "†input.x", "_outputPath": "†state.x"}]`)}
				var running sync.WaitGroup
				for n := range 60 {
					running.Go(func() {
						s := start(t, `[
							{"_tool": "value", "value": "†input.x", "_outputPath": "†state.a"},
							{"_tool": "ask", "_delegate": "inside", "x": "†state.a", "_outputPath": "†state.b"},
							{"_tool": "slow", "value": "†state.a", "_outputPath": "†state.c"}
						]`)
						if n%2 == 0 {
							s = start(t, `[{"_tool": "value", "value": "†input.x", "_outputPath": "†state.a"}]`)
						}
						s.Context, s.Input = fmt.Sprint("c", n), store.Some(map[string]any{"x": 1})
						for range 2 {
							if _, err := r.Run(t.Context(), s); err != nil {
								t.Error(err)
							}
							if _, err := engine.Append(t.Context(), log, s.Context, messages(t, `{"type": "state", "other": 1}`)); err != nil {
								t.Error(err)
							}
						}
					})
				}
				running.Wait()
				checkDates(t, log)
			})
		}
	}
}

// leapingClock is a clock that is set back now and then, by hours.
func leapingClock() func() time.Time {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(1, 1))
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(-time.Duration(r.IntN(3)) * time.Hour)
	}
}

// checkDates holds a log to what its dates promise.
func checkDates(t *testing.T, log store.Log) {
	t.Helper()
	ctx, contexts := context.Background(), 0
	for info, err := range log.Contexts(ctx, store.ContextFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		contexts++
		newest := time.Time{}
		for m, err := range log.Messages(ctx, store.Filter{Context: info.Context}) {
			if err != nil || m.Date.Before(newest) {
				t.Fatalf("%s: message %d is of %s, after one of %s, %v", info.Context, m.Seq, m.Date, newest, err)
			}
			newest = m.Date
		}
		newest, runs := info.Created, map[int]time.Time{}
		for e, err := range log.Journal(ctx, store.JournalFilter{Context: info.Context}) {
			if err != nil || e.Date.Before(newest) {
				t.Fatalf("%s: entry %d (%s) is of %s, after %s, %v", info.Context, e.N, e.Event, e.Date, newest, err)
			}
			if newest = e.Date; e.Event == "plan" {
				runs[len(runs)+1] = e.Date
			}
		}
		records, err := journal.In(log, info.Context).Records(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			started, err := time.Parse(time.RFC3339, r.Started)
			if began := runs[r.Tick]; err != nil || began.IsZero() || started.Before(began) {
				t.Fatalf("%s: call %s began at %s, before its run at %s, %v", info.Context, r.Call, started, began, err)
			}
		}
	}
	if contexts < 60 {
		t.Errorf("there are %d contexts", contexts)
	}
}
