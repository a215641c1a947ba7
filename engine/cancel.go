package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"obelus/engine/internal/lease"
	"obelus/engine/journal"
	"obelus/store"
)

// Cancel records that the newest run of a context, which has halted, is not to go on by itself; it
// can still be resumed. Its error is a [*journal.NoSuchCallError] where no run is halted, a
// [*BusyError] where it runs, and a [*DelegateError] for a run that is part of another.
func Cancel(ctx context.Context, log store.Log, name string, who journal.Who) error {
	if err := store.CheckStoredContext(name); err != nil {
		return err
	}
	if _, err := log.Head(ctx, name); err != nil {
		return err
	}
	root, err := journal.In(log, name).Root(ctx)
	if err != nil {
		return err
	}
	if root != name {
		return &DelegateError{Context: name, Root: root}
	}
	if err := cancel(ctx, log, name, who); err != nil {
		return err
	}
	records, err := journal.In(log, name).Records(ctx)
	for i := range records {
		if err == nil {
			err = cancelChild(ctx, log, name, &records[i])
		}
	}
	if errors.As(err, new(*journal.DamagedError)) {
		// The run is cancelled: a delegate that can't be read does not go on by itself either.
		return nil
	}
	return err
}

func cancel(ctx context.Context, log store.Log, name string, who journal.Who) error {
	if _, err := halted(ctx, log, name); err != nil {
		return err
	}
	dates := &lease.Clock{}
	if err := dates.Follow(ctx, log, name); err != nil {
		return err
	}
	l := lease.Lease{Log: log, Context: name, Date: func() time.Time { return dates.Date(time.Now()) }, Busy: busy}
	defer l.Close()
	if err := l.Take(ctx); err != nil {
		return err
	}
	return journal.Amend(ctx, journal.In(log, name), func(n int64) error {
		last, err := halted(ctx, log, name) // the former holder of the lease may have gone on until now
		if err != nil {
			return err
		}
		records, _, err := cutOffLeftBehind(ctx, &l, nil, 0)
		if err != nil {
			return err
		}
		end := journal.RunEvent{Tick: last.Tick, Status: journal.RunCancelled, Over: last.Over, Who: who}
		last.Status = end.Status
		standing := last.Standing(records)
		return l.Append(ctx, store.Batch{ExpectSeq: store.AnySeq, ExpectN: n, Journal: []store.Entry{end.Entry()}, Standing: &standing}, 0)
	})
}

// cancelChild cancels the run of the delegate of a context's call, and of the delegates in it: the
// call has ended.
func cancelChild(ctx context.Context, log store.Log, name string, r *journal.Record) error {
	child, err := journal.In(log, name).OwnChild(ctx, r)
	if child == "" || err != nil {
		return err
	}
	records, err := journal.In(log, child).Records(ctx)
	if errors.Is(err, store.ErrNoContext) {
		return nil // it had not begun
	}
	for i := range records {
		if err == nil {
			err = cancelChild(ctx, log, child, &records[i])
		}
	}
	if err == nil {
		err = cancel(ctx, log, child, journal.Who{})
	}
	if errors.As(err, new(*journal.NoSuchCallError)) || errors.As(err, new(*BusyError)) {
		return nil // it has ended, or has a holder of its own
	}
	return err
}

// halted gives a run that can be cancelled.
func halted(ctx context.Context, log store.Reader, name string) (journal.Run, error) {
	last, err := journal.In(log, name).LastRun(ctx)
	switch {
	case err != nil:
		return last, err
	case last.Tick == 0:
		return last, &journal.NoSuchCallError{Message: fmt.Sprintf("context %s has no run to cancel", name)}
	case last.Status.Finished() || last.Status == journal.RunCancelled:
		return last, &journal.NoSuchCallError{Message: fmt.Sprintf("the run of context %s is %s already", name, last.Status)}
	}
	return last, nil
}

// cutOffLeftBehind returns the calls of a context whose lease was taken: detached calls of the
// former holder have ended, and are recorded as cut off. observe may be nil. The timeline is that
// of a run whose first tick is first.
func cutOffLeftBehind(ctx context.Context, l *lease.Lease, observe func(journal.Record), first int) (records []journal.Record, timeline journal.Timeline, err error) {
	var cut []journal.Record
	err = journal.Amend(ctx, journal.In(l.Log, l.Context), func(n int64) error {
		if records, timeline, err = journal.In(l.Log, l.Context).RecordsAndTimeline(ctx, first); err != nil {
			return err
		}
		cut = nil
		var entries []store.Entry
		for i := range records {
			r := &records[i]
			if !r.LeftBehind() {
				continue
			}
			if r.Child != "" {
				if err := cancelChild(ctx, l.Log, l.Context, r); err != nil {
					return err
				}
			}
			r.CutOff()
			cut, entries = append(cut, *r), append(entries, r.Entry())
		}
		if len(cut) == 0 {
			return nil
		}
		last, err := journal.In(l.Log, l.Context).LastRun(ctx)
		if err != nil {
			return err
		}
		standing := last.Standing(records)
		return l.Append(ctx, store.Batch{ExpectSeq: store.AnySeq, ExpectN: n, Journal: entries, Standing: &standing}, lease.For)
	})
	if err != nil {
		return nil, timeline, err
	}
	if observe != nil {
		for _, r := range cut {
			observe(r)
		}
	}
	return records, timeline, nil
}
