package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"obelus/store"
)

// Timeline gives the times of the events of a context's journal.
type Timeline struct {
	Events []Arrival     // in their order
	Starts map[int]int64 // the seqs at which ticks began
	// By call ("1.2") and by tick ("1"): where each decision to run it again stands, in order. N is
	// the position of the decision, and the messages of the call or tick up to Seq are superseded
	// from there on.
	Reruns map[string][]Position
}

// Position is a place in a context's history: the seq of the newest message there, and a position
// in the journal.
type Position struct{ Seq, N int64 }

// Arrival is an event that adds messages to a context: the end of a tick, or an append of foreign
// messages.
type Arrival struct {
	Seq      int64
	Tick     int   // that ended, 0 for an append
	Messages int64 // that were appended
}

// ReadTimeline reads the timeline of a context for a run that began with a tick: retries count from
// that run on.
func (c Context) ReadTimeline(ctx context.Context, first int) (Timeline, error) {
	t := NewTimeline()
	for entry, err := range c.Log.Journal(ctx, store.JournalFilter{Context: c.Name}) {
		if err == nil {
			err = t.Add(entry, first)
		}
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// RecordsAndTimeline is [Context.Records] and [Context.ReadTimeline] in one pass over the journal.
func (c Context) RecordsAndTimeline(ctx context.Context, first int) ([]Record, Timeline, error) {
	t := NewTimeline()
	records, err := c.RecordsFrom(ctx, 0, 0, func(entry store.Entry) error { return t.Add(entry, first) })
	return records, t, err
}

// NewTimeline returns a timeline without events.
func NewTimeline() Timeline {
	return Timeline{Starts: map[int]int64{}, Reruns: map[string][]Position{}}
}

// Add adds the next entry of a context's journal, for a run that began with a tick.
func (t *Timeline) Add(entry store.Entry, first int) error {
	switch entry.Event {
	case EventAppend:
		var data struct {
			Messages int64 `json:"messages"`
		}
		_ = json.Unmarshal([]byte(entry.Data), &data) // unreadable data counts as no messages
		t.Events = append(t.Events, Arrival{Seq: entry.Seq, Messages: data.Messages})
	case EventPlan:
		plan, err := ReadPlanEvent(entry)
		if err != nil {
			return err
		}
		t.Starts[plan.Tick] = plan.Start
	case EventRun:
		end, _, err := ReadRunEvent(entry)
		if err != nil {
			return err
		}
		t.Events = append(t.Events, Arrival{Seq: entry.Seq, Tick: end.Tick})
	case string(Blocked):
		r, err := ReadRecord(entry)
		if err != nil {
			return err
		}
		t.noteRerun(&r, entry.N, first)
	}
	return nil
}

// noteRerun adds a record's decision to run its call again to the timeline, if it is one: a rerun
// in a fork, or a retry in a run whose first tick is first. n is the record's position in the
// journal.
func (t *Timeline) noteRerun(r *Record, n int64, first int) {
	if r.SupersededUpTo != 0 && (r.Before != 0 || r.Tick >= first) {
		tick := strconv.Itoa(r.Tick)
		t.Reruns[r.Call] = append(t.Reruns[r.Call], Position{r.SupersededUpTo, n})
		t.Reruns[tick] = append(t.Reruns[tick], Position{r.SupersededUpTo, n})
	}
}

// TickEndingWith returns the tick whose end appended a message; 0 for a foreign message.
func (t *Timeline) TickEndingWith(seq int64) int {
	first, _ := slices.BinarySearchFunc(t.Events, seq, func(e Arrival, seq int64) int { return cmp.Compare(e.Seq, seq) })
	for _, e := range t.Events[first:] {
		switch {
		case e.Tick == 0 && seq <= e.Seq-e.Messages:
			continue
		case e.Tick != 0 && seq > t.Starts[e.Tick]:
			return e.Tick
		}
		return 0
	}
	return 0
}
