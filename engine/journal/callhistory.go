package journal

import (
	"context"
	"slices"
	"sort"
	"time"

	"obelus/store"
)

// eachRecord calls take with the records that an entry adds to the calls of its context: one for
// each call of a new plan, or one for a call that has changed.
func (c Context) eachRecord(ctx context.Context, entry store.Entry, take func(Record) error) error {
	if entry.Call != "" {
		r, err := ReadRecord(entry)
		if err != nil {
			return err
		}
		r.Context = c.Name
		return take(r)
	}
	if entry.Event != EventPlan {
		return nil
	}
	plan, err := ReadPlanEvent(entry)
	if err != nil || plan.Seq == 0 {
		return err
	}
	calls, err := c.PlanMessage(ctx, plan.Seq)
	if err != nil {
		return err
	}
	for i, call := range calls {
		object, _ := call.(map[string]any)
		tool, _ := object["_tool"].(string)
		instance, _ := object["_instance"].(string)
		r := Record{Context: c.Name, Call: CallID(plan.Tick, i+1), Tick: plan.Tick, Position: i + 1, Tool: tool, Instance: instance, Status: Blocked}
		if err := take(r); err != nil {
			return err
		}
	}
	return nil
}

// fold has the newest record of each call, in the order of the plans.
type fold struct {
	first int // calls of earlier ticks are left out, unless a later plan has them
	all   []Record
	place map[string]int
}

func newFold(first int) *fold { return &fold{first: first, place: map[string]int{}} }

// put takes the record of an entry.
func (f *fold) put(entry store.Entry, r Record) error {
	at, ok := f.place[r.Call]
	switch {
	case !ok && entry.Event == EventPlan:
		f.place[r.Call] = len(f.all)
		f.all = append(f.all, r)
		return nil
	case !ok && r.Tick < f.first: // a fire-and-forget call may outlast its tick
		return nil
	case !ok:
		return damaged(entry, "is about call %s, which no plan of the context has", r.Call)
	case r.Status == Ready && f.all[at].Status != Held:
		return nil // a second decision: the first counts
	}
	f.all[at] = r
	return nil
}

// CallHistory has all records of a context's calls, so that their state at any seq is known without
// another look at the journal. It is for one goroutine at a time.
type CallHistory struct {
	c     Context
	n     int64 // position of the newest entry that was read
	plans int
	steps []callStep
	now   *fold // of all steps
}

// callStep is a record with its entry, without the entry's data.
type callStep struct {
	entry  store.Entry
	record Record
}

// CallHistory returns the history of the context's calls, without any entry read.
func (c Context) CallHistory() *CallHistory { return &CallHistory{c: c, now: newFold(0)} }

// Update reads the entries that are new.
func (h *CallHistory) Update(ctx context.Context) error {
	for entry, err := range h.c.Log.Journal(ctx, store.JournalFilter{Context: h.c.Name, After: h.n}) {
		if err != nil {
			return err
		}
		step := callStep{entry: entry}
		step.entry.Data = ""
		had := len(h.steps)
		err := h.c.eachRecord(ctx, entry, func(r Record) error {
			step.record = r
			h.steps = append(h.steps, step)
			return h.now.put(entry, r)
		})
		if err != nil { // the next update reads the entry again
			h.steps = h.steps[:had]
			return err
		}
		if h.n = entry.N; entry.Event == EventPlan {
			h.plans++
		}
	}
	return nil
}

// Size is the number of records that the history has.
func (h *CallHistory) Size() int { return len(h.steps) }

// Plans is the number of plans that the context has had.
func (h *CallHistory) Plans() int { return h.plans }

// At is [Context.RecordsAt], of the entries that were read.
func (h *CallHistory) At(at int64) ([]Record, error) {
	if at == 0 {
		return slices.Clone(h.now.all), nil
	}
	f := newFold(0)
	for _, s := range h.steps[:sort.Search(len(h.steps), func(i int) bool { return h.steps[i].entry.Seq > at })] {
		if err := f.put(s.entry, s.record); err != nil {
			return nil, err
		}
	}
	return f.all, nil
}

// Current is [Context.CurrentRecords] as of now. It updates the history.
func (h *CallHistory) Current(ctx context.Context) ([]Record, error) {
	return h.c.current(ctx, func() ([]Record, error) {
		if err := h.Update(ctx); err != nil {
			return nil, err
		}
		return h.At(0)
	})
}

// Pause is a time in which a call did not work, though it was not settled.
type Pause struct {
	Began time.Time
	Ended time.Time // zero while the pause goes on
	Retry bool      // the call paused before its next attempt; else it waited, or was held for a person
}

// Pauses returns the pauses of the calls up to a seq, or of all entries for 0, by the names of the
// calls and in the order of time. A call whose start was not recorded has none.
func (h *CallHistory) Pauses(at int64) map[string][]Pause {
	all := map[string][]Pause{}
	for _, s := range h.steps {
		if at > 0 && s.entry.Seq > at {
			break
		}
		r := s.record
		pauses := all[r.Call]
		if n := len(pauses); n > 0 && pauses[n-1].Ended.IsZero() {
			pauses[n-1].Ended = s.entry.Date
		}
		if r.Rests || r.Status == Held || r.Status == Waiting && r.Started != "" {
			all[r.Call] = append(pauses, Pause{Began: s.entry.Date, Retry: r.Rests})
		}
	}
	return all
}
