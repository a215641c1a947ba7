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
	left, err := delegatesInBackground(ctx, log, name)
	if err != nil {
		return err
	}
	err = cancel(ctx, log, name, who)
	if isOver := errors.As(err, new(*journal.NoSuchCallError)); err != nil && !(isOver && len(left) > 0) {
		return err
	}
	for _, child := range left {
		if err := ignoreEnded(cancel(ctx, log, child, journal.Who{})); err != nil {
			return err
		}
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
		records, err := journal.In(log, name).Records(ctx)
		if err != nil {
			return err
		}
		entries := cancelBackground(records)
		if !last.Status.Finished() {
			end := journal.RunEvent{Tick: last.Tick, Status: journal.RunCancelled, Over: last.Over, Worked: journal.Milliseconds(last.Worked), Who: who}
			last.Status, entries = end.Status, append(entries, end.Entry())
		}
		standing := last.Standing(records)
		return l.Append(ctx, store.Batch{ExpectSeq: store.AnySeq, ExpectN: n, Journal: entries, Standing: &standing}, 0)
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
	return ignoreEnded(err)
}

// ignoreEnded returns the error of a delegate's cancellation, nil if it has ended or has a holder
// of its own.
func ignoreEnded(err error) error {
	if errors.As(err, new(*journal.NoSuchCallError)) || errors.As(err, new(*BusyError)) {
		return nil
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
		if left, err := last.HasBackground(ctx, journal.In(log, name)); left || err != nil {
			return last, err
		}
		return last, &journal.NoSuchCallError{Message: fmt.Sprintf("the run of context %s is %s already", name, last.Status)}
	}
	return last, nil
}

// cancelBackground makes the records of background calls those of cancelled ones, and returns their
// entries.
func cancelBackground(records []journal.Record) (entries []store.Entry) {
	for i := range records {
		if r := &records[i]; r.InBackground() {
			r.CountCut()
			r.Status = journal.Cancelled
			entries = append(entries, r.Entry())
		}
	}
	return entries
}
