package journal

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"obelus/store"
)

// Superseded is the set of a context's messages that count no more, by seq, since their calls have
// run again or are retried. They stay in the log, and a [store.Resolver] over it reads them. A nil
// Superseded is empty.
type Superseded map[int64]bool

// Has reports whether a message is superseded.
func (s Superseded) Has(seq int64) bool { return s[seq] }

// Without returns a log of the context without the messages.
func (s Superseded) Without(log store.OpReader) store.OpReader { return store.Hiding(log, s.Has) }

// HideFrom hides the messages from a view of the context, as far as that has them.
func (s Superseded) HideFrom(view *store.View) {
	for seq := range s {
		if seq <= view.Seq() {
			view.Hide(seq)
		}
	}
}

// SupersededIn finds the messages of the context that are superseded, since their calls have run
// again or are retried: the writes of the calls, and the reports of their failures and of their
// ticks' failures.
func (t *Timeline) SupersededIn(ctx context.Context, c Context) (Superseded, error) {
	all := Superseded{}
	if len(t.Reruns) == 0 {
		return all, nil
	}
	for m, err := range c.Log.Messages(ctx, store.Filter{Context: c.Name}) {
		if err != nil {
			return nil, err
		}
		if _, ok := t.SupersededSince(m); ok {
			all[m.Seq] = true
		}
	}
	return all, nil
}

// SupersededSince returns the position in the journal since which a message is superseded; ok is
// false for one that counts.
func (t *Timeline) SupersededSince(m *store.Message) (n int64, ok bool) {
	if len(t.Reruns) == 0 {
		return 0, false
	}
	whose := m.Call
	if whose == "" && m.Kind == store.KindError {
		if tick := t.TickEndingWith(m.Seq); tick > 0 { // it is not foreign
			call, _ := ReportedFailure(m)
			whose = cmp.Or(call, strconv.Itoa(tick))
		}
	}
	again := t.Reruns[whose]
	first := slices.IndexFunc(again, func(at Position) bool { return m.Seq <= at.Seq })
	if first < 0 {
		return 0, false
	}
	return again[first].N, true
}

// SupersededFor is [Timeline.SupersededIn] for a run whose first tick is first. Some of its calls
// run again, as records say, which need not be in the journal yet.
func (t Timeline) SupersededFor(ctx context.Context, c Context, first int, records []Record) (Superseded, error) {
	if !anyAgain(records) {
		return nil, nil
	}
	reruns := t.Reruns
	t.Reruns = make(map[string][]Position, len(reruns))
	for whose, again := range reruns {
		t.Reruns[whose] = slices.Clip(again)
	}
	for _, r := range records {
		t.noteRerun(&r, 0, first)
	}
	return t.SupersededIn(ctx, c)
}

// SupersededFor is [Timeline.SupersededFor] with the timeline of a context, which it reads where a
// call runs again.
func SupersededFor(ctx context.Context, c Context, first int, records []Record) (Superseded, error) {
	if !anyAgain(records) {
		return nil, nil
	}
	t, err := c.ReadTimeline(ctx, first)
	if err != nil {
		return nil, err
	}
	return t.SupersededFor(ctx, c, first, records)
}

// anyAgain reports whether a call runs again or is retried.
func anyAgain(records []Record) bool {
	return slices.ContainsFunc(records, func(r Record) bool { return r.SupersededUpTo != 0 })
}

// Superseded finds the messages of the context that are superseded for a run that begins there, and
// for appends: in the context, a fork, their calls ran again.
func (c Context) Superseded(ctx context.Context) (Superseded, error) {
	origin, _, err := c.OriginOf(ctx)
	if err != nil || origin.Fork == "" {
		return nil, err
	}
	t, err := c.ReadTimeline(ctx, math.MaxInt)
	if err != nil {
		return nil, err
	}
	return t.SupersededIn(ctx, c)
}
