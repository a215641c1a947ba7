package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
)

// TestRerun_PlannedEqualsFreshRun: where calls of a run's first tick run again, in a fork made when
// it had ended, the planner of the next tick, its calls and the output are given what they
// are from the start; also where the process dies at any append of it.
func TestRerun_PlannedEqualsFreshRun(t *testing.T) {
	atEveryAppend(t, func(seed uint64, c cut) (story, want string, crashed bool) {
		p := freshPlans{randomPlans: randomPlans{rand.New(rand.NewPCG(seed, 5))}, catch: true}
		request, r, s := p.fresh(t, "calc", "branch", "branch", "maybe")
		log := r.Log
		r.Parallel = 1
		planned := inTwoTicks(request, s)
		if _, err := r.Run(t.Context(), engine.Start{Context: "c", Request: planned}); err != nil {
			return "", "", false
		}
		fork := func(of, name string) bool {
			maps.Copy(s.by, inFork(s.by, "c", "f"))
			ended := endOfTick(t, log, of)
			if ended != 0 {
				if _, err := journal.Fork(t.Context(), log, of, ended, name); err != nil {
					t.Fatal(err)
				}
			}
			return ended != 0
		}
		if !fork("c", "f") {
			return "", "", false
		}
		x, set := p.IntN(2), map[string]any{"v": p.pick("p", "q", "r", "s", "t")}
		again := engine.Resume{Context: "f", From: fmt.Sprintf("1.%d", x+1), Set: set, Request: planned}
		before := journalOfCalls(t, log)
		r.Log = c.in(log)
		outcome, err := r.Resume(t.Context(), again)
		r.Log = log
		if errors.Is(err, errCrash) {
			crashed = true
			if journalOfCalls(t, log) != before {
				again = engine.Resume{Context: "f", Request: planned}
			}
			outcome, err = r.Resume(t.Context(), again)
		}
		if err != nil {
			return "", "", crashed
		}
		corrected := *request
		corrected.Calls = slices.Clone(request.Calls)
		call := maps.Clone(corrected.Calls[x].Call.(map[string]any))
		maps.Copy(call, set)
		corrected.Calls[x].Call = call
		fresh, err := r.Run(t.Context(), engine.Start{Context: "g", Request: inTwoTicks(&corrected, s)})
		if err != nil || !fresh.Status.Finished() || overtakes(allCalls(t, log, "f")) {
			return "", "", crashed
		}
		for _, planner := range []*plan.Request{nil, planned} {
			if replayed, err := replay.Run(t.Context(), r, "f", planner); err != nil || len(replayed.Differences) > 0 {
				t.Fatalf("seed %d: replayed, %v, %+v\n%s", seed, err, replayed, callsOf(request))
			}
		}
		outcome.Calls, fresh.Calls = allCalls(t, log, "f"), allCalls(t, log, "g")
		said := fmt.Sprintf("from 1.%d %v\n%s", x+1, set, callsOf(request))
		story, want = s.story(outcome, "f"), s.story(fresh, "g")
		if story == want && fresh.Status == journal.RunDone {
			from := fmt.Sprintf("2.%d", 1+p.IntN(5))
			story, said = s.onceMore(t, r, from), "and from "+from+"\n"+said
		}
		return story + said, want + said, crashed
	})
}

// onceMore has a call of context f's last tick run again, as it is, in a fork.
func (s *seen) onceMore(t *testing.T, r *engine.Runner, from string) string {
	maps.Copy(s.by, inFork(s.by, "f", "h"))
	if _, err := journal.Fork(t.Context(), r.Log, "f", 0, "h"); err != nil {
		t.Fatal(err)
	}
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "h", From: from})
	if err != nil {
		t.Fatal(err)
	}
	outcome.Calls = allCalls(t, r.Log, "h")
	return s.story(outcome, "h")
}

// inTwoTicks has a planner give the calls of a request, and then some that depend on what
// it sees by then, and on what there is of the first.
func inTwoTicks(request *plan.Request, s *seen) *plan.Request {
	last := len(request.Calls) - 1
	return &plan.Request{Context: request.Context, Planner: plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
		if ask.Tick == 1 {
			return &plan.Solution{Calls: request.Calls}, nil
		}
		all := []any{ask.Kinds}
		if instances, ok := ask.Kinds["_instances"].(map[string]any); ok {
			all = slices.AppendSeq(all, maps.Values(instances))
		}
		for _, of := range all {
			kinds := of.(map[string]any)
			kinds["error"] = kinds["error"] != nil // which came last is another matter
		}
		sees := string(store.EncodeJSON(ask.Kinds))
		calls := []plan.Source{
			{Call: map[string]any{"_tool": "calc", "id": "sees", "v": sees, "_outputPath": "†c.sees"}},
			{Call: map[string]any{"_tool": "calc", "id": "reads", "v": "†(†a.k0 || †b.k0 || 0)", "w": fmt.Sprintf("†(†a.k%d || †b.k%d || †s.y || 0)", last, last), "_outputPath": "†a.k0"}},
			{Call: map[string]any{"_tool": "calc", "id": "scoped", "_scopes": []any{"s", "a", "b", "c"}, "_outputPath": "†c.scoped"}},
			{Call: map[string]any{"_tool": "calc", "id": "backward", "v": "†b.k0", "_outputPath": "†c.backward"}},
			{Call: map[string]any{"_tool": "calc", "id": "other", "v": "p", "_outputPath": "†b.k0"}},
		}
		return &plan.Solution{Calls: calls, Output: map[string]any{"planned": request.Output, "scoped": "†c.scoped"}}, nil
	})}
}

// endOfTick is the seq at which a context's first tick had ended, and its planner was to be
// asked again; 0 if it was not.
func endOfTick(t *testing.T, log store.Log, name string) (ended int64) {
	for entry, err := range log.Journal(t.Context(), store.JournalFilter{Context: name, Event: "run"}) {
		if err != nil {
			t.Fatal(err)
		}
		return entry.Seq
	}
	return 0
}

// allCalls are those of all ticks.
func allCalls(t *testing.T, log store.Log, name string) []journal.Record {
	records, err := journal.In(log, name).Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return records
}
