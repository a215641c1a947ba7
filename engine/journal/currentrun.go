package journal

import (
	"context"
	"slices"

	"obelus/store"
)

// CurrentRun is [Context.LastRun] as of now: an unfinished run without a holder is interrupted, and
// one that is still being interrupted or cancelled is running (protocol §7, Run status).
func (c Context) CurrentRun(ctx context.Context) (last Run, err error) {
	rests := func() bool { return last.Status.Finished() || last.Status == RunWaiting }
	if last, err = c.LastRun(ctx); err != nil || rests() { // the usual case
		return last, err
	}
	untouched := false
	held, err := c.readWithHolder(ctx, func() (settled bool, err error) {
		if last, err = c.LastRun(ctx); err != nil || rests() {
			return true, err
		}
		untouched, err = c.UntouchedFork(ctx)
		return false, err
	})
	switch {
	case err != nil || rests():
	case held:
		last.Status, last.Stopped = RunRunning, false
	default:
		if last.Status == RunRunning {
			last.Status, last.Stopped = RunInterrupted, true
		}
		last.Stopped = last.Stopped && !untouched
	}
	return last, err
}

// UntouchedFork reports whether the context is a fork in which the run of its origin has not been
// resumed: it may have received messages and decisions.
func (c Context) UntouchedFork(ctx context.Context) (bool, error) {
	origin, ok, err := c.OriginOf(ctx)
	if err != nil || !ok || origin.Fork == "" {
		return false, err
	}
	made, ok, err := store.Newest(ctx, c.Log, store.JournalFilter{Context: c.Name, Event: EventFork})
	if err != nil || !ok {
		return false, err
	}
	for entry, err := range c.Log.Journal(ctx, store.JournalFilter{Context: c.Name, After: made.N}) {
		if err != nil || !IsInput(entry) {
			return false, err
		}
	}
	return true, nil
}

// Forked reports whether an entry begins a fork. While it is the newest, the fork is unchanged.
func Forked(entry store.Entry) bool { return entry.Event == EventFork }

// CurrentRecords is [Context.Records] as of now: a call that has started without an outcome, and
// has no holder any more, is interrupted, or in doubt where it must not run twice. In a cancelled
// run a call that paused before another attempt is cancelled, and none waits for a time.
func (c Context) CurrentRecords(ctx context.Context) (records []Record, err error) {
	h := c.wholeHistory(0, 0)
	if err := h.Advance(ctx); err != nil {
		return nil, err
	}
	run, abandoned, err := h.abandoned(ctx, func() (bool, error) {
		records, err = h.records(ctx)
		return slices.ContainsFunc(records, isOfHolder), err
	})
	if err != nil || !abandoned {
		return records, err
	}
	for i := range records {
		records[i].StandWithoutHolder(run)
	}
	return records, nil
}

// isOfHolder is [Line.isOfHolder] of the call's line.
func isOfHolder(r Record) bool { return LineOf(&r).isOfHolder() }

// StandWithoutHolder gives the record of a call the status that it has without a holder, in a run
// that has a status: it was cancelled with its run, or was interrupted. In the first logs a call
// that was cut off with its process is cancelled. The view calls says the same in SQL.
func (r *Record) StandWithoutHolder(run RunStatus) {
	cancelled := run == RunCancelled
	switch cut := r.Status == Cancelled && run == RunInterrupted; {
	case cancelled && (r.AwaitsRetry() || r.cutAtRest()):
		r.Status, r.RetryAt = Cancelled, ""
	case cancelled && r.Status == Waiting:
		r.Due = ""
	case r.cutAtRest():
		r.Status = Interrupted
	case !cut && r.Status != Running:
	case r.NotIdempotent && !r.Rests:
		r.CountCut()
		r.Status = InDoubt
	default:
		r.CountCut()
		r.Status = Interrupted
	}
}

// cutAtRest reports whether the call paused before its next attempt when its run was interrupted or
// cancelled.
func (r Record) cutAtRest() bool { return r.Status == Blocked && r.Attempts > 0 && r.Error != nil }

// readWithHolder calls read, and reports whether the context had a holder meanwhile; read is
// called again while holders come and go. Where read reports that the state is settled, the
// holder does not matter, and the context counts as held.
func (c Context) readWithHolder(ctx context.Context, read func() (settled bool, err error)) (held bool, err error) {
	for {
		before, err := c.newestEntry(ctx)
		if err != nil {
			return true, err
		}
		if settled, err := read(); settled || err != nil {
			return true, err
		}
		if holder, err := c.Log.Holder(ctx, c.Name); err != nil || holder != "" {
			return true, err
		}
		if after, err := c.newestEntry(ctx); err != nil || after.N == before.N {
			return false, err
		}
		// A holder has appended since.
	}
}

func (c Context) newestEntry(ctx context.Context) (store.Entry, error) {
	// To the journal an empty name means all contexts.
	if err := store.CheckStoredContext(c.Name); err != nil {
		return store.Entry{}, err
	}
	entry, _, err := store.Newest(ctx, c.Log, store.JournalFilter{Context: c.Name})
	return entry, err
}
