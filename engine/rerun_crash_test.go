package engine_test

import (
	"cmp"
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

// mostCrashes bounds at how many appends of one story the process dies.
const mostCrashes = 40

// cut is where the process dies in a story: before or after the append that is left, or
// nowhere for 0.
type cut struct {
	left  int
	after bool
}

func (c cut) in(log store.Log) store.Log {
	if c.left == 0 {
		return log
	}
	return &crashing{Log: log, left: c.left, after: c.after}
}

// atEveryAppend tells stories that are cut off at each append in turn, with the graph
// thinned at many writers and at few. Each must be as it is wanted, or else as it is where
// nothing cuts it off; one without a word is not compared.
func atEveryAppend(t *testing.T, tell func(seed uint64, c cut) (story, want string, crashed bool)) {
	for _, writers := range []int{64, 1} {
		defer engine.BoundWriters(writers)()
		compared := 0
		for round := range *plans / 5 {
			seed := *firstSeed + uint64(round)
			undisturbed, _, _ := tell(seed, cut{})
			for left, crashed := 1, true; crashed && left < mostCrashes; left++ {
				crashed = false
				for _, after := range []bool{false, true} {
					story, want, died := tell(seed, cut{left, after})
					crashed = crashed || died
					if story == "" {
						continue
					}
					compared++
					if want = cmp.Or(want, undisturbed); story != want {
						t.Fatalf("seed %d, writers %d, crash %d, after it %t:\n%s\nand not\n%s", seed, writers, left, after, story, want)
					}
				}
			}
		}
		if compared < *plans/20 {
			t.Errorf("compared %d", compared)
		}
	}
}

// replays holds that a context's run, if it is finished, comes out the same once more.
func replays(t *testing.T, r *engine.Runner, name string, outcome *journal.Outcome, request *plan.Request) {
	t.Helper()
	if !outcome.Status.Finished() {
		return
	}
	if replayed, err := replay.Run(t.Context(), r, name, nil); err != nil || len(replayed.Differences) > 0 {
		t.Fatalf("seed %d: replayed, %v, %+v\n%s", *firstSeed, err, replayed, callsOf(request))
	}
}

// TestRetry_AfterCrash: where the process dies at any append of a retry, and the run is
// resumed, what the calls are given is still what they are where nothing fails.
func TestRetry_AfterCrash(t *testing.T) {
	atEveryAppend(t, func(seed uint64, c cut) (story, want string, crashed bool) {
		p := freshPlans{randomPlans: randomPlans{rand.New(rand.NewPCG(seed, 4))}}
		request, r, s := p.fresh(t, "calc", "calc", "branch")
		log := r.Log
		r.Parallel = 1
		p.breaks(s, request)
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
		retried := false
		for err == nil && isRetried(outcome) {
			retry := p.mends(s, outcome)
			r.Log = c.in(log)
			outcome, err = r.Resume(t.Context(), retry)
			r.Log, retried = log, true
			if errors.Is(err, errCrash) {
				crashed = true
				outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
				if err == nil && outcome.Status == journal.RunFailed && failsOf(outcome, &retry) { // it is not in the log yet
					outcome, err = r.Resume(t.Context(), retry)
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		clear(s.broken)
		fresh, err := r.Run(t.Context(), engine.Start{Context: "g", Request: request})
		if !retried || err != nil || !fresh.Status.Finished() || slices.ContainsFunc(fresh.Calls, isFailed) {
			return "", "", crashed
		}
		replays(t, r, "c", outcome, request)
		calls := callsOf(request)
		return s.story(outcome, "c") + calls, s.story(fresh, "g") + calls, crashed
	})
}

// failsOf leaves of a retry the calls that still fail, and tells whether any do.
func failsOf(outcome *journal.Outcome, retry *engine.Resume) bool {
	fails := func(call string) bool {
		return slices.ContainsFunc(outcome.Calls, func(r journal.Record) bool { return r.Call == call && isFailed(r) })
	}
	retry.Retry = slices.DeleteFunc(retry.Retry, func(call string) bool { return !fails(call) })
	maps.DeleteFunc(retry.Result, func(call string, _ any) bool { return !fails(call) })
	return len(retry.Retry)+len(retry.Result) > 0
}

// TestRerun_AfterCrash: so it is where calls of a fork run again, some rounds of them,
// beside the same rounds that nothing cuts off.
func TestRerun_AfterCrash(t *testing.T) {
	atEveryAppend(t, func(seed uint64, c cut) (story, _ string, crashed bool) {
		p := freshPlans{randomPlans: randomPlans{rand.New(rand.NewPCG(seed, 3))}, catch: true}
		request, r, s := p.fresh(t, "calc", "branch", "branch", "maybe")
		log := r.Log
		r.Parallel = 1
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
		if err != nil || !outcome.Status.Finished() {
			return "", "", false
		}
		maps.Copy(s.by, inFork(s.by, "c", "f"))
		if _, err := journal.Fork(t.Context(), log, "c", 0, "f"); err != nil {
			t.Fatal(err)
		}
		for range 1 + p.IntN(3) {
			x, set := p.IntN(2), map[string]any{"v": p.pick("p", "q", "r", "s", "t")}
			if p.IntN(2) == 0 {
				x, set = p.IntN(len(request.Calls)), nil
			}
			again := engine.Resume{Context: "f", From: fmt.Sprintf("1.%d", x+1), Set: set}
			before := journalOfCalls(t, log)
			r.Log = c.in(log)
			outcome, err := r.Resume(t.Context(), again)
			r.Log = log
			if errors.Is(err, errCrash) {
				crashed = true
				if journalOfCalls(t, log) != before {
					again = engine.Resume{Context: "f"}
				}
				outcome, err = r.Resume(t.Context(), again)
			}
			if err != nil {
				return "", "", crashed
			}
			story += fmt.Sprintf("from 1.%d %v\n%s", x+1, set, s.story(outcome, "f"))
			replays(t, r, "f", outcome, request)
			if outcome.Status == journal.RunWaiting {
				break
			}
		}
		return story + callsOf(request), "", crashed
	})
}

// journalOfCalls counts what context f's journal has of calls.
func journalOfCalls(t *testing.T, l store.Log) (n int) {
	for e, err := range l.Journal(t.Context(), store.JournalFilter{Context: "f"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Call != "" {
			n++
		}
	}
	return n
}
