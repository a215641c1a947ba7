package ops

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
)

// Bounds of the contexts that are kept, and of the entries about calls of one.
const (
	mostKept  = 8
	mostSteps = 200_000
)

// Runs reads the calls of contexts, and keeps the histories of those that it has read last: a page
// that follows a run, or goes through its past, reads the new entries of the journal alone. Its
// methods may be called from several goroutines at once.
type Runs struct {
	Project

	mu   sync.Mutex
	kept []*run // the one that was asked for last stands first
}

// run is a context with its calls.
type run struct {
	context string
	created time.Time

	mu      sync.Mutex
	history *journal.History
	ticks   []engine.Tick // of the newest run
	plans   int           // of the history when they were compiled
	digest  string        // of the scripts then
}

// with calls a function with the history of a context, up to now.
func (r *Runs) with(ctx context.Context, name string, do func(*run) error) error {
	of, err := r.take(ctx, name)
	if err != nil {
		return err
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	if err = of.history.Advance(ctx); err == nil {
		err = do(of)
	}
	if err != nil || of.history.Size() > mostSteps {
		r.drop(of)
	}
	return err
}

// take returns a context's run.
func (r *Runs) take(ctx context.Context, name string) (*run, error) {
	info, err := r.Log.Info(ctx, name)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.kept, func(of *run) bool { return of.context == name && of.created.Equal(info.Created) })
	found := &run{context: name, created: info.Created, history: journal.HistoryOf(r.Log, name)}
	if i >= 0 {
		found = r.kept[i]
		r.kept = slices.Delete(r.kept, i, i+1)
	}
	r.kept = slices.Insert(r.kept[:min(len(r.kept), mostKept-1)], 0, found)
	return found, nil
}

// drop forgets a run that is too large to be kept.
func (r *Runs) drop(large *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = slices.DeleteFunc(r.kept, func(of *run) bool { return of == large })
}

// Lines is [journal.History.Lines] of a context.
func (r *Runs) Lines(ctx context.Context, name string, at int64) (lines []*journal.Line, err error) {
	err = r.with(ctx, name, func(of *run) error {
		lines, err = of.history.Lines(ctx, at)
		return err
	})
	return lines, err
}

// Records is [journal.History.Records] of a context.
func (r *Runs) Records(ctx context.Context, name string, lines []*journal.Line) (records []journal.Record, err error) {
	if len(lines) == 0 {
		return nil, nil
	}
	err = r.with(ctx, name, func(of *run) error {
		records, err = of.history.Records(ctx, lines)
		return err
	})
	return records, err
}

// Pauses is [journal.History.Pauses] of a context.
func (r *Runs) Pauses(ctx context.Context, name string, lines []*journal.Line) (pauses map[string][]journal.Pause, err error) {
	err = r.with(ctx, name, func(of *run) error {
		pauses, err = of.history.Pauses(ctx, lines)
		return err
	})
	return pauses, err
}

// Begun returns the plan events of a context up to a seq; 0 for all.
func (r *Runs) Begun(ctx context.Context, name string, at int64) (events []journal.PlanEvent, err error) {
	err = r.with(ctx, name, func(of *run) error {
		events = of.history.Ticks(at)
		return nil
	})
	return events, err
}

// Ticks returns the ticks of a context's newest run that had begun at a seq or, with 0, have begun;
// none where nothing had run.
func (r *Runs) Ticks(ctx context.Context, name string, at int64) (ticks []engine.Tick, err error) {
	err = r.with(ctx, name, func(of *run) error {
		digest, plans := r.Host.Generation().Digest, len(of.history.Ticks(0))
		if of.plans != plans || of.digest != digest {
			if of.ticks, err = r.TicksOf(ctx, of.history); err != nil {
				return err
			}
			of.plans, of.digest = plans, digest
		}
		begun := of.history.Ticks(at)
		for _, tick := range of.ticks {
			if slices.ContainsFunc(begun, func(e journal.PlanEvent) bool { return e.Tick == tick.Tick }) {
				ticks = append(ticks, tick)
			}
		}
		return nil
	})
	return ticks, err
}

// RerunTick is the tick of a call that is to run again, as it stands where that is done.
type RerunTick struct {
	engine.Tick
	Records []journal.Record // its calls

	// At is the seq at which the context is to be forked first, where the tick had ended; 0 for the
	// newest tick, which is forked as it stands.
	At int64
}

// RerunTick returns the tick of a call of the newest run of a context, for the call to run again.
// Its error is a [*journal.NoSuchCallError] where the run has no such tick, and a [*plan.PlanError]
// where the plan of the tick was refused.
func (r *Runs) RerunTick(ctx context.Context, name, call string) (*RerunTick, error) {
	ticks, err := r.Ticks(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	number, _ := journal.PlaceOf(call)
	i := slices.IndexFunc(ticks, func(t engine.Tick) bool { return t.Tick == number })
	if i < 0 {
		return nil, &journal.NoSuchCallError{Message: fmt.Sprintf("the newest run of %s has no call %s", name, call), Absent: true}
	}
	if ticks[i].Refused != nil {
		return nil, ticks[i].Refused
	}
	of := &RerunTick{Tick: ticks[i]}
	if i < len(ticks)-1 {
		if of.At, err = journal.In(r.Log, name).EndOfTick(ctx, number); err != nil {
			return nil, err
		}
	}
	lines, err := r.Lines(ctx, name, of.At)
	if err != nil {
		return nil, err
	}
	of.Records, err = r.Records(ctx, name, journal.OfTick(lines, number))
	return of, err
}

// Outcome is [engine.ReadOutcome], which reads the calls of a run that has failed or waits.
func (r *Runs) Outcome(ctx context.Context, name string) (*journal.Outcome, error) {
	last, err := journal.In(r.Log, name).CurrentRun(ctx)
	if err != nil {
		return nil, err
	}
	var records []journal.Record
	if last.Status == journal.RunFailed || last.Status == journal.RunWaiting {
		lines, err := r.Lines(ctx, name, 0)
		if err != nil {
			return nil, err
		}
		telling := func(l *journal.Line) bool { return l.Status == journal.Failed || l.InBackground() }
		if records, err = r.Records(ctx, name, journal.Pick(lines, telling)); err != nil {
			return nil, err
		}
	}
	return last.Outcome(name, records), nil
}
