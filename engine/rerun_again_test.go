package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
)

// TestRerun_InRounds: calls run again several times, with corrections, in forks and forks of
// those, while others append and persons approve: at the end they have been given what the
// corrected plan gives from the start.
func TestRerun_InRounds(t *testing.T) {
	bad := 0
	for _, writers := range []int{64, 1} {
		defer engine.BoundWriters(writers)()
		compared := 0
		for round := range *plans {
			seed := *firstSeed + uint64(round)
			p := freshPlans{randomPlans: randomPlans{rand.New(rand.NewPCG(seed, 9))}, catch: true}
			request, r, s := p.fresh(t, "calc", "branch", "branch", "maybe")
			inner := r.Log
			r.Log = &foreign{Log: inner, t: t, inject: func(int) string { // steps are undone now and then
				if p.IntN(3) > 0 {
					return ""
				}
				return fmt.Sprintf(`{"type": "data", "kind": "z", "data": {"o": "%d"}}`, p.IntN(5))
			}}
			r.Parallel = 1 + p.IntN(3)
			held := p.IntN(3) == 0
			policy := plan.Policy{}
			if held {
				policy = plan.Policy{Tools: []string{"branch"}}
			}
			drive := func(o *journal.Outcome, err error, name string) (*journal.Outcome, error) {
				for err == nil && o.Status == journal.RunWaiting {
					holds, e := journal.In(inner, name).Holds(t.Context())
					if e != nil || len(holds) == 0 {
						return o, e
					}
					for _, h := range holds {
						if p.IntN(2) == 0 || h.Call == holds[0].Call {
							if err := r.Decide(t.Context(), journal.Decision{Context: h.Context, Call: h.Call}); err != nil {
								return o, err
							}
						}
					}
					o, err = r.Resume(t.Context(), engine.Resume{Context: name})
				}
				return o, err
			}
			outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request, Approve: policy})
			outcome, err = drive(outcome, err, "c")
			if err != nil || !outcome.Status.Finished() {
				continue
			}
			corrected := *request
			corrected.Calls = slices.Clone(request.Calls)
			from, story, ok := "c", "", true
			var again *journal.Outcome
			froms := ""
			over := false
			for n := range 1 + p.IntN(4) {
				name := "c"
				if n == 0 || p.IntN(3) == 0 {
					name = fmt.Sprint(from, "f")
					if _, err := journal.Fork(t.Context(), inner, from, 0, name); err != nil {
						t.Fatal(err)
					}
					by := map[string]string{}
					for key, given := range s.by {
						if len(key) > len(from) && key[:len(from)+1] == from+"/" {
							by[name+key[len(from):]] = given
						}
					}
					maps.Copy(s.by, by)
					from = name
				}
				name = from
				x, set := p.IntN(2), map[string]any{"v": p.pick("p", "q", "r", "s", "t")}
				froms += fmt.Sprintf("%s 1.%d %v; ", name, x+1, set)
				again, err = r.Resume(t.Context(), engine.Resume{Context: name, From: fmt.Sprintf("1.%d", x+1), Set: set})
				again, err = drive(again, err, name)
				if err != nil || !again.Status.Finished() {
					ok = false
					break
				}
				over = over || overtakes(again.Calls)
				if replayed, err := replay.Run(t.Context(), r, name, nil); err != nil || len(replayed.Differences) > 0 {
					bad++
					if bad < 4 {
						t.Errorf("seed %d writers %d held %t: %s replayed, %v, %+v\n%s", seed, writers, held, froms, err, replayed, callsOf(request))
					}
				}
				call := maps.Clone(corrected.Calls[x].Call.(map[string]any))
				maps.Copy(call, set)
				corrected.Calls[x].Call = call
				for i, record := range again.Calls { // a correction holds as long as the call does not run again without it
					if record.Hold == nil || len(record.Hold.Corrected) == 0 {
						corrected.Calls[i].Call = request.Calls[i].Call
					}
				}
			}
			if !ok || over {
				continue
			}
			story = s.story(again, from)
			r.Log = inner
			fresh, err := r.Run(t.Context(), engine.Start{Context: "g", Request: &corrected})
			if err != nil || !fresh.Status.Finished() {
				continue
			}
			compared++
			if want := s.story(fresh, "g"); story != want {
				bad++
				if bad < 4 {
					t.Errorf("seed %d writers %d held %t: %s\n%s\nbut from the start\n%s\n%s", seed, writers, held, froms, story, want, callsOf(request))
				}
			}
		}
		if compared < *plans/20 {
			t.Errorf("compared %d", compared)
		}
	}
}
