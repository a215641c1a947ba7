package journal

import (
	"context"
	"time"
)

// Pause is a time in which a call did not work, though it was not settled.
type Pause struct {
	Began time.Time
	Ended time.Time // zero while the pause goes on
	Retry bool      // the call paused before its next attempt; else it waited, or was held for a person
}

// Pauses returns the pauses of calls up to where their lines are of, by the numbers of the calls
// and in the order of time. A call pauses from when it halts, also for a person, until it is
// recorded to run or has an outcome.
func (h *History) Pauses(ctx context.Context, lines []*Line) (map[string][]Pause, error) {
	var undecoded []*callEntry
	for _, line := range lines {
		for e := line.entry; e != nil && line.mayHavePaused(); e = e.before {
			if e.line == nil {
				undecoded = append(undecoded, e)
			}
		}
	}
	if err := h.decode(ctx, undecoded); err != nil {
		return nil, err
	}
	all := map[string][]Pause{}
	for _, line := range lines {
		if line.entry != nil && line.mayHavePaused() {
			if pauses := line.entry.pauses(); pauses != nil {
				all[line.Call] = pauses
			}
		}
	}
	return all, nil
}

// mayHavePaused reports whether the call may have paused: it has other entries than a start and an
// outcome.
func (l *Line) mayHavePaused() bool {
	if l.entry == nil || l.Attempts > 1 || !l.Status.Settled() {
		return l.entry != nil
	}
	start := l.entry.before
	return start != nil && (start.status != Running || start.before != nil)
}

// pauses returns the pauses of the call up to an entry.
func (e *callEntry) pauses() (all []Pause) {
	if e.before != nil {
		all = e.before.pauses()
	}
	works := e.status == Running && !e.line.rests || e.status.Settled()
	goesOn := len(all) > 0 && all[len(all)-1].Ended.IsZero()
	if goesOn {
		last := &all[len(all)-1]
		if !works && last.Retry == e.line.rests {
			return all
		}
		last.Ended = e.date
		if began := e.line.Started; began.After(last.Began) && began.Before(e.date) {
			last.Ended = began
		}
	}
	begun := !e.line.Started.IsZero() || e.status == Held || len(all) > 0
	if !works && begun {
		all = append(all, Pause{Began: e.date, Retry: e.line.rests})
	}
	return all
}
