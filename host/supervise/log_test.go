package supervise

import (
	"testing"

	"obelus/engine/journal"
	"obelus/store"
)

// TestOwnAppends: the watch goes past the appends of this process that hold no news, and past no
// others.
func TestOwnAppends(t *testing.T) {
	type step struct {
		batch store.Batch
		other int64 // entries that another process has appended before
	}
	entries := func(events ...string) (all []store.Entry) {
		for _, event := range events {
			all = append(all, store.Entry{Event: event})
		}
		return all
	}
	lease := &store.Lease{}
	begin := store.Batch{Context: "a", Create: &store.Origin{}, Lease: lease, Messages: make([]store.Message, 1), Journal: entries("plan")}
	whole := begin
	whole.Journal = entries("plan", journal.EventRun)
	end := store.Batch{Context: "a", Lease: lease, Journal: entries(journal.EventRun)}
	child := begin
	child.Create = &store.Origin{Parent: "p", Call: "1.1"}
	input := store.Batch{Context: "b", Create: &store.Origin{}, Messages: make([]store.Message, 1), Journal: entries(journal.EventAppend)}
	for _, test := range []struct {
		name  string
		steps []step
		want  int64 // position up to which there is no news
	}{
		{"nothing", nil, 0},
		{"a run in one append", []step{{batch: whole}}, 3},
		{"a run in two appends", []step{{batch: begin}, {batch: end}}, 3},
		{"another run in the context", []step{{batch: begin}, {batch: end}, {batch: end}}, 3},
		{"the end of a run that began before", []step{{batch: end}}, 0},
		{"a delegate's run", []step{{batch: child}, {batch: end}}, 2},
		{"input", []step{{batch: whole}, {batch: input}, {batch: begin}}, 3},
		{"another process", []step{{batch: whole}, {batch: begin, other: 1}, {batch: end}}, 3},
		{"messages alone", []step{{batch: store.Batch{Context: "a", Messages: make([]store.Message, 1)}}, {batch: whole}}, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			own := newOwnAppends()
			var n int64
			seq := map[string]int64{}
			for _, s := range test.steps {
				if s.batch.Create != nil {
					seq[s.batch.Context] = 0
				}
				seq[s.batch.Context] += int64(len(s.batch.Messages))
				n += s.other + store.Positions(&s.batch)
				own.note(&s.batch, store.Appended{Seq: seq[s.batch.Context], N: n})
			}
			if got := own.skip(0); got != test.want {
				t.Errorf("there is no news up to %d, not %d", got, test.want)
			}
			if got := own.skip(n); got != n || len(own.spans) > 0 {
				t.Errorf("past all of it, it is at %d and keeps %v", got, own.spans)
			}
		})
	}
}

// TestOwnAppends_ExistingContext: a run in a context that was there may be a delegate's, whatever
// the append says that it would create.
func TestOwnAppends_ExistingContext(t *testing.T) {
	own := newOwnAppends()
	own.note(&store.Batch{Context: "a", Create: &store.Origin{}, Lease: &store.Lease{}, Messages: make([]store.Message, 1),
		Journal: []store.Entry{{Event: "plan"}, {Event: journal.EventRun}}}, store.Appended{Seq: 2, N: 3})
	if got := own.skip(0); got != 0 || len(own.roots) > 0 {
		t.Errorf("there is no news up to %d, with %v", got, own.roots)
	}
}

// TestOwnAppends_Bound: appends that the watch has not come to are dropped above a bound, and then
// it reads the journal.
func TestOwnAppends_Bound(t *testing.T) {
	own := newOwnAppends()
	step := store.Batch{Context: "a", Journal: []store.Entry{{Event: "running"}}}
	for n := int64(1); n <= maxSpans+1; n++ {
		own.note(&step, store.Appended{N: n})
	}
	if got := own.skip(0); got != 0 || len(own.spans) != 1 {
		t.Errorf("there is no news up to %d, and %d appends are kept", got, len(own.spans))
	}
	if got := own.skip(maxSpans); got != maxSpans+1 {
		t.Errorf("there is no news from %d up to %d", maxSpans, got)
	}
}
