package journal

import (
	"context"
	"slices"

	"obelus/store"
)

// CurrentRun is [Context.LastRun] as of now: a run at which nobody is that has not come to its
// end or to a halt is interrupted, and one that is only being interrupted or cancelled is
// running still (additions.md, "Interrupted").
func (c Context) CurrentRun(ctx context.Context) (Run, error) {
	rests := func(r Run) bool { return r.Status.Finished() || r.Status == RunWaiting }
	if last, err := c.LastRun(ctx); err != nil || rests(last) { // as most do
		return last, err
	}
	for {
		before, err := c.newestEntry(ctx)
		if err != nil {
			return Run{}, err
		}
		last, err := c.LastRun(ctx)
		if err != nil || rests(last) {
			return last, err
		}
		untouched, err := c.UntouchedFork(ctx)
		if err != nil {
			return last, err
		}
		stands, err := c.checkHolder(ctx, before)
		switch {
		case err != nil:
			return last, err
		case stands == held:
			last.Status, last.Stopped = RunRunning, false
			return last, nil
		case stands == unheld:
			if last.Status == RunRunning {
				last.Status, last.Stopped = RunInterrupted, true
			}
			last.Stopped = last.Stopped && !untouched
			return last, nil
		}
	}
}

// UntouchedFork tells whether nobody has gone on in a fork with what ran where it was made:
// messages and decisions may have come to it.
func (c Context) UntouchedFork(ctx context.Context) (bool, error) {
	origin, ok, err := c.OriginOf(ctx)
	if err != nil || !ok || origin.Fork == "" {
		return false, err
	}
	made, ok, err := store.Newest(ctx, c.Log, store.JournalFilter{Context: c.Name, Event: eventFork})
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

// Forked tells whether an entry is where a fork begins. While it is the newest nothing has
// come to the fork, and nobody has gone on there.
func Forked(entry store.Entry) bool { return entry.Event == eventFork }

// CurrentRecords is [Context.RecordsAt] where that is as of now: of a call that has started and has no outcome, and
// that nobody runs any more, it tells that it was interrupted, or that it is in doubt where
// it must not run twice.
func (c Context) CurrentRecords(ctx context.Context, at int64) ([]Record, error) {
	if at > 0 {
		return c.RecordsAt(ctx, at)
	}
	for {
		before, err := c.newestEntry(ctx)
		if err != nil {
			return nil, err
		}
		records, err := c.Records(ctx)
		begun := func(r Record) bool { return r.Status == Running || r.Status == Cancelled || r.cutAtRest() }
		if err != nil || !slices.ContainsFunc(records, begun) {
			return records, err
		}
		last, err := c.LastRun(ctx)
		if err != nil {
			return nil, err
		}
		stands, err := c.checkHolder(ctx, before)
		switch {
		case err != nil:
			return nil, err
		case stands == held:
			return records, nil
		case stands == unheld:
			for i := range records {
				records[i].interrupt(last)
			}
			return records, nil
		}
	}
}

// interrupt tells of a call at which nobody is any more that it was interrupted. The first
// logs call one cancelled that was cut off with its process.
func (r *Record) interrupt(last Run) {
	switch cut := r.Status == Cancelled && last.Status == RunInterrupted; {
	case r.cutAtRest():
		r.Status = Interrupted
	case !cut && r.Status != Running:
	case r.NotIdempotent && !r.Rests:
		r.Status = InDoubt
	default:
		r.Status = Interrupted
	}
}

// cutAtRest tells of a call that was to be tried again when its run was interrupted.
func (r Record) cutAtRest() bool { return r.Status == Blocked && r.Attempts > 0 && r.Error != nil }

// holding is whether somebody is at a context.
type holding int

const (
	held holding = iota
	unheld
	changedHands // by somebody who has appended since
)

// checkHolder tells whether somebody is at a context, or has been since its newest entry
// in the journal was read.
func (c Context) checkHolder(ctx context.Context, before store.Entry) (holding, error) {
	holder, err := c.Log.Holder(ctx, c.Name)
	if err != nil || holder != "" {
		return held, err
	}
	after, err := c.newestEntry(ctx)
	if err != nil || after.N != before.N {
		return changedHands, err
	}
	return unheld, nil
}

func (c Context) newestEntry(ctx context.Context) (store.Entry, error) {
	if err := store.CheckStoredContext(c.Name); err != nil { // to the journal an empty name means all contexts
		return store.Entry{}, err
	}
	entry, _, err := store.Newest(ctx, c.Log, store.JournalFilter{Context: c.Name})
	return entry, err
}
