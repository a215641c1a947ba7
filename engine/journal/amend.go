package journal

import (
	"context"
	"errors"
	"fmt"

	"obelus/store"
)

// MaxConflicts is how often an append is tried again that others get in before.
const MaxConflicts = 1000

// TooManyConflicts returns the error of an append that others got in before each time.
func TooManyConflicts(context string) error {
	return fmt.Errorf("context %s is appended to by others all the time: gave up after %d tries", context, MaxConflicts)
}

// Amend calls a function that reads the context and appends what follows from that, such as its
// standing. It calls it again where the append gives a [*store.ConflictError], since others have
// appended meanwhile. n is for [store.Batch].ExpectN: the position of the newest entry before
// anything was read.
func Amend(ctx context.Context, c Context, do func(n int64) error) error {
	for range MaxConflicts {
		newest, err := c.newestEntry(ctx)
		if err != nil {
			return err
		}
		n := newest.N
		if n == 0 {
			n = store.NoEntries
		}
		if err := do(n); !errors.As(err, new(*store.ConflictError)) {
			return err
		}
	}
	return TooManyConflicts(c.Name)
}

// StandingLeft returns the standing with which a holder is to leave a context whose run has halted,
// where the one that it wrote may lack something: input that came as the run halted or since, or
// the end of a run that was interrupted or cancelled. It is nil otherwise.
func StandingLeft(ctx context.Context, c Context) (*store.Standing, error) {
	last, err := c.LastRun(ctx)
	if err != nil || last.Status != RunWaiting && last.Status != RunInterrupted && last.Status != RunCancelled {
		return nil, err
	}
	records, err := c.Records(ctx)
	if err != nil {
		return nil, err
	}
	if last.Status == RunWaiting {
		if came, err := last.came(ctx, c, records); !came || err != nil {
			return nil, err
		}
	}
	standing := last.Standing(records)
	return &standing, nil
}

// AppendInput appends an entry that is input for a context's run, and returns its position. It
// wakes the run, and writes the standing that results of the entry and those up to n, unless the
// context has a holder: that reads the entry, and writes the standing itself.
func AppendInput(ctx context.Context, log store.ReadAppender, name string, n int64, entry store.Entry, standing *store.Standing) (int64, error) {
	return appendInput(ctx, log, store.Batch{Context: name, ExpectSeq: store.AnySeq, Journal: []store.Entry{entry}}, n, standing)
}

// appendInput is [AppendInput] of a batch. It returns the position of its first entry.
func appendInput(ctx context.Context, log store.ReadAppender, b store.Batch, n int64, standing *store.Standing) (int64, error) {
	name := b.Context
	b.Wake = true
	holder, err := log.Holder(ctx, name)
	if err != nil {
		return 0, err
	}
	if holder == "" {
		b.ExpectN, b.Standing = n, standing
	}
	appended, err := log.Append(ctx, b)
	if err == nil && holder != "" {
		err = leaveStanding(context.WithoutCancel(ctx), log, name) // the entry is recorded
	}
	return appended.N - int64(len(b.Journal)) + 1, err
}

// leaveStanding writes the standing of a context whose holder may have left it just before it could
// read the newest entries.
func leaveStanding(ctx context.Context, log store.ReadAppender, name string) error {
	return Amend(ctx, In(log, name), func(n int64) error {
		if holder, err := log.Holder(ctx, name); holder != "" || err != nil {
			return err
		}
		standing, err := StandingLeft(ctx, In(log, name))
		if standing == nil || err != nil {
			return err
		}
		_, err = log.Append(ctx, store.Batch{Context: name, ExpectSeq: store.AnySeq, ExpectN: n, Standing: standing, Wake: true})
		return err
	})
}
