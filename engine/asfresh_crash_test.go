package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/store"
)

// TestRetriedAfterACrash: where the process dies at any append of a retry, and the run is
// resumed, what the calls are given is still what they are where nothing fails.
func TestRetriedAfterACrash(t *testing.T) {
	bad := 0
	for _, writers := range []int{64, 1} {
		defer engine.BoundWriters(writers)()
		compared := 0
		for round := range *plans / 5 {
			seed := *firstSeed + uint64(round)
			for n, again := 1, true; again && n < 40; n++ {
				again = false
				for _, after := range []bool{false, true} {
					p := freshPlans{randomPlans: randomPlans{rand.New(rand.NewPCG(seed, 4))}}
					request, r, s := p.fresh(t, "calc", "calc", "branch")
					inner := r.Log
					r.Parallel = 1
					for i := range request.Calls {
						call := request.Calls[i].Call.(map[string]any)
						s.broken[p.own(i)] = call["_tool"] == "calc" && call["_outputPath"] == "†a."+p.own(i) && p.IntN(2) == 0
					}
					outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
					rounds := 0
					for err == nil && outcome.Status == engine.RunFailed && slices.ContainsFunc(outcome.Calls, isFailed) {
						var failed []string
						for _, call := range outcome.Calls {
							if isFailed(call) && p.IntN(2) == 0 {
								failed = append(failed, call.Call)
								delete(s.broken, p.own(call.Position-1))
							}
						}
						rounds++
						r.Log = &crashing{Log: inner, left: n, after: after}
						outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Retry: failed})
						r.Log = inner
						if errors.Is(err, errCrash) {
							again = true
							outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
							if err == nil && outcome.Status == engine.RunFailed { // the retry is not in the log yet
								var left []string
								for _, call := range outcome.Calls {
									if isFailed(call) && slices.Contains(failed, call.Call) {
										left = append(left, call.Call)
									}
								}
								if len(left) > 0 {
									outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c", Retry: left})
								}
							}
						}
					}
					if err != nil {
						t.Fatal(err)
					}
					if rounds == 0 {
						again = false
						continue
					}
					clear(s.broken)
					fresh, err := r.Run(t.Context(), engine.Start{Context: "g", Request: request})
					if err != nil || !fresh.Status.Finished() || slices.ContainsFunc(fresh.Calls, isFailed) {
						continue
					}
					compared++
					got, want := s.story(outcome, "c"), s.story(fresh, "g")
					replayed, err := r.Replay(t.Context(), "c", nil)
					if got != want || err != nil || len(replayed.Differences) > 0 {
						bad++
						if bad < 4 {
							t.Errorf("seed %d, writers %d, crash %d %t: retried\n%s\nbut undisturbed\n%s\n%s\n%+v %v", seed, writers, n, after, got, want, callsOf(request), replayed, err)
						}
					}
				}
			}
		}
		if compared < *plans/20 {
			t.Errorf("compared %d", compared)
		}
	}
}

// TestAgainAfterACrash: so it is where calls of a fork run again, some rounds of them,
// beside the same rounds that nothing cuts off.
func TestAgainAfterACrash(t *testing.T) {
	bad := 0
	for _, writers := range []int{64, 1} {
		defer engine.BoundWriters(writers)()
		compared := 0
		for round := range *plans / 5 {
			seed := *firstSeed + uint64(round)
			want := ""
			for n, crashed := 10000, true; crashed && n != 40; n++ {
				crashed = n == 10000
				for _, after := range []bool{false, true} {
					p := freshPlans{randomPlans: randomPlans{rand.New(rand.NewPCG(seed, 3))}, catch: true}
					request, r, s := p.fresh(t, "calc", "branch", "branch", "maybe")
					inner := r.Log
					r.Parallel = 1
					outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
					if err != nil || !outcome.Status.Finished() {
						continue
					}
					maps.Copy(s.by, inFork(s.by))
					if _, err := engine.Fork(t.Context(), inner, "c", 0, "f"); err != nil {
						t.Fatal(err)
					}
					story, ok := "", true
					for range 1 + p.IntN(3) {
						x, set := p.IntN(2), map[string]any{"v": p.pick("p", "q", "r", "s", "t")}
						if p.IntN(2) == 0 {
							x, set = p.IntN(len(request.Calls)), nil
						}
						before := journalOfCalls(t, inner)
						r.Log = &crashing{Log: inner, left: n, after: after}
						again, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: fmt.Sprintf("1.%d", x+1), Set: set})
						r.Log = inner
						if errors.Is(err, errCrash) {
							crashed = true
							now := journalOfCalls(t, inner)
							again, err = nil, nil
							if now == before { // nothing of it is in the log
								again, err = r.Resume(t.Context(), engine.Resume{Context: "f", From: fmt.Sprintf("1.%d", x+1), Set: set})
							} else {
								again, err = r.Resume(t.Context(), engine.Resume{Context: "f"})
							}
						}
						if err != nil {
							ok = false
							break
						}
						story += fmt.Sprintf("FROM 1.%d %v\n", x+1, set) + s.story(again, "f")
						if replayed, err := r.Replay(t.Context(), "f", nil); again.Status != engine.RunWaiting && (err != nil || len(replayed.Differences) > 0) {
							story += fmt.Sprintf("REPLAY %+v %v\n", replayed, err)
						}
						if again.Status == engine.RunWaiting {
							break
						}
					}
					if !ok {
						continue
					}
					compared++
					if n == 10000 {
						want = story
						if strings.Contains(story, "REPLAY") && bad < 3 {
							bad++
							t.Errorf("seed %d %s\n%s", seed, story, callsOf(request))
						}
					} else if story != want {
						bad++
						if bad < 4 {
							t.Errorf("seed %d, writers %d, crash %d %t:\n%s\nbut undisturbed\n%s\n%s", seed, writers, n, after, story, want, callsOf(request))
						}
					}
				}
				if n == 10000 {
					n = 0
				}
			}
		}
		if compared < *plans/20 {
			t.Errorf("compared %d", compared)
		}
	}
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
