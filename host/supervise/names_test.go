package supervise

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/host/once"
	"obelus/host/schedule"
	"obelus/host/schedule/ledger"
	"obelus/store"
	"obelus/store/memory"
)

var nights = flag.Int("nights", 10, "how many nights have schedules whose names are taken at random")

// takes are the ways in which a name can be taken before the server makes it: none of them is a run
// of the plan that the name is for.
var takes = map[string]func(t *testing.T, w *worker, name string){
	"message": func(t *testing.T, w *worker, name string) {
		if _, err := w.Append(t.Context(), name, unrelated()); err != nil {
			t.Error(err)
		}
	},
	"fork of a run that is done": func(t *testing.T, w *worker, name string) { w.fork("finished", name) },
	"fork of a run that waits":   func(t *testing.T, w *worker, name string) { w.fork("waits", name) },
	"run in a taken context": func(t *testing.T, w *worker, name string) {
		if _, err := w.Append(t.Context(), name, unrelated()); err != nil {
			t.Error(err)
		}
		w.expect(w.start(name, "double", 2), journal.RunDone, "4")
	},
}

func (w *worker) fork(from, name string) {
	if _, err := journal.Fork(w.t.Context(), w.log, from, 0, name); err != nil {
		w.t.Error(err)
	}
}

// TestNames_OfSchedules holds that each due time has its run or a skip that says why it has none,
// however the names of runs to come were taken, those far ahead too.
func TestNames_OfSchedules(t *testing.T) {
	const hours = 5
	ways := []string{"", "message", "fork of a run that is done", "fork of a run that waits", "run in a taken context"}
	for seed := range uint64(*nights) {
		random := rand.New(rand.NewPCG(seed, 0))
		var taken []string
		for range hours {
			taken = append(taken, ways[random.IntN(len(ways))])
		}
		beyond, overlap := ways[random.IntN(len(ways))], schedule.Overlaps()[random.IntN(3)]
		synctest.Test(t, func(t *testing.T) {
			w := newWorkerOf(t, scheduled(`hourly = { plan = "plans/quick.lua", cron = "0 * * * *", overlap = "`+overlap+`" }`), memory.New(), nil)
			w.expect(w.start("finished", "double", 2), journal.RunDone, "4")
			w.expect(w.start("waits", "double", "†input.n"), journal.RunWaiting, "null")
			due := func(hour int) time.Time { return time.Date(2000, 1, 1, hour, 0, 0, 0, time.UTC) }
			var want []string
			for i, way := range append(taken, beyond) {
				at := due(i + 1)
				if i == hours {
					at = at.AddDate(90, 0, 0)
				}
				if way != "" {
					takes[way](t, w, schedule.RunName("hourly", at))
				}
			}
			time.Sleep(hours*time.Hour + time.Minute)
			synctest.Wait()
			state, err := ledger.Read(t.Context(), w.log, "hourly", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			for i, way := range taken {
				at := due(i + 1)
				if way == "" {
					outcome, err := engine.ReadOutcome(t.Context(), w.log, schedule.RunName("hourly", at))
					if err != nil || outcome.Status != journal.RunDone || !strings.Contains(string(store.EncodeJSON(outcome.Output)), at.Format(time.RFC3339)) {
						t.Errorf("%v: the run of %s: %+v, %v", taken, at, outcome, err)
					}
					continue
				}
				want = append(want, fmt.Sprintf("%s 1 refused", at.Format("15:04")))
			}
			var got []string
			for i := len(state.Skips) - 1; i >= 0; i-- {
				k := state.Skips[i]
				got = append(got, fmt.Sprintf("%s %d %s", k.From.Format("15:04"), k.Count, k.Reason))
				if !strings.Contains(k.Error, "exists, and was begun with ") {
					t.Errorf("the reason is %q", k.Error)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("seed %d, %v, %q: skipped are %v, and not %v", seed, taken, beyond, got, want)
			}
		})
	}
}

// TestNames_OfReactions holds that a plan for an end is started, or that it is said that its name is
// taken.
func TestNames_OfReactions(t *testing.T) {
	for way, take := range takes {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorkerOf(t, reacting(``), memory.New(), nil)
				w.expect(w.start("finished", "double", 2), journal.RunDone, "4")
				w.expect(w.start("waits", "double", "†input.n"), journal.RunWaiting, "null")
				for name, taken := range map[string]bool{"a": true, "b": false} {
					w.expect(w.start(name, "fail", nil), journal.RunFailed, "null")
					entry, _, err := store.Newest(t.Context(), w.log, store.JournalFilter{Context: name, Event: journal.EventRun})
					if err != nil {
						t.Fatal(err)
					}
					at := "on-failed-" + once.Digest(fmt.Sprintf("%s\n%d", name, entry.N))
					if taken {
						take(t, w, at)
					}
					err = newWorkerOf(t, reacting(`failed = "plans/note.lua"`), w.log, nil).reactor.react(name, nil)
					if other := (*once.OtherRunError)(nil); errors.As(err, &other) != taken || !taken && err != nil {
						t.Errorf("%s: %v", name, err)
					}
					if outcome, err := engine.ReadOutcome(t.Context(), w.log, at); !taken && (err != nil || outcome.Status != journal.RunDone) {
						t.Errorf("%s: %+v, %v", name, outcome, err)
					}
				}
			})
		})
	}
}
