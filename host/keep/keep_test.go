package keep

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine/journal"
	"obelus/store"
	"obelus/store/memory"
)

// TestRemove: what goes is as old as its status allows, is at rest with all its delegates, and is
// needed by no fork.
func TestRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		put := func(name string, status journal.RunStatus, origin store.Origin, lease *store.Lease) {
			t.Helper()
			event := journal.RunEvent{Tick: 1, Status: status}
			b := store.Batch{
				Context: name, ExpectSeq: store.AnySeq, Create: &origin, Lease: lease, Standing: &store.Standing{Status: string(status)},
				Messages: []store.Message{{Type: store.TypeData, Kind: "input", Data: store.Some("x")}},
			}
			if status != "" {
				b.Journal = []store.Entry{journal.PlanEvent{Tick: 1, First: 1, Start: 1}.Entry(), event.Entry()}
			}
			if _, err := log.Append(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		root, day := store.Origin{}, 24*time.Hour
		put("done", journal.RunDone, root, nil)
		put("done.1.1", journal.RunDone, store.Origin{Parent: "done", Call: "1.1"}, nil)
		put("done.1.2", journal.RunWaiting, store.Origin{Parent: "done", Call: "1.2"}, nil) // left behind by its call
		put("failed", journal.RunFailed, root, nil)
		put("waiting", journal.RunWaiting, root, nil)
		put("notes", "", root, nil)
		put("held", journal.RunDone, root, &store.Lease{For: 100 * day})
		put("shared", journal.RunDone, root, nil)
		put("fork", journal.RunWaiting, store.Origin{Fork: "shared", At: 1}, nil)
		time.Sleep(8 * day) // of the bubble's clock
		put("young", journal.RunDone, root, nil)
		remove := func(times Times, want int, stay ...string) {
			t.Helper()
			n, err := Remove(t.Context(), log, times, time.Now())
			if n != want || err != nil {
				t.Errorf("%v: %d are gone, %v", times, n, err)
			}
			var left []string
			for info, err := range log.Contexts(t.Context(), store.ContextFilter{}) {
				if err != nil {
					t.Fatal(err)
				}
				left = append(left, info.Context)
			}
			slices.Sort(left)
			if fmt.Sprint(left) != fmt.Sprint(stay) {
				t.Errorf("%v: there stay %v", times, left)
			}
		}
		remove(Times{journal.RunDone: 9 * day}, 0, "done", "done.1.1", "done.1.2", "failed", "fork", "held", "notes", "shared", "waiting", "young")
		remove(Times{journal.RunDone: 7 * day}, 1, "failed", "fork", "held", "notes", "shared", "waiting", "young")
		remove(Times{journal.RunFailed: 7 * day, NoRun: time.Hour}, 2, "fork", "held", "shared", "waiting", "young")
		time.Sleep(time.Hour)
		remove(Times{journal.RunDone: 0}, 1, "fork", "held", "shared", "waiting")
	})
}
