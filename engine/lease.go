package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"obelus/store"
)

// leaseFor is how long the context of a run that died on another machine stays closed to others. A
// live run renews its lease long before.
const (
	leaseFor   = 30 * time.Second
	leaseRenew = leaseFor / 3
)

// append adds a batch as the one that runs the context, and keeps its lease for
// a while; for none gives it back.
func (l *loop) append(ctx context.Context, b store.Batch, hold time.Duration) error {
	if err := l.address(&b, hold); err != nil {
		return err
	}
	appended, err := l.runner.Log.Append(ctx, b)
	return l.appended(appended, err, hold, len(l.releases))
}

// address makes a batch one of the run that holds the context.
func (l *loop) address(b *store.Batch, hold time.Duration) error {
	b.Context = l.context
	b.Lease = &store.Lease{Epoch: l.epoch, For: hold}
	now := l.runner.date()
	if err := store.CheckDate(now); err != nil {
		return fmt.Errorf("the runner's clock can't be right: %w", err)
	}
	setDates(b, now)
	return nil
}

// appended takes what became of a batch that was to be appended, which has the first of the
// results that were taken, so many.
func (l *loop) appended(appended store.Appended, err error, hold time.Duration, results int) error {
	if held, ok := errors.AsType[*store.HeldError](err); ok {
		l.epoch = 0
		return &BusyError{l.context, held.Holder}
	}
	if err != nil {
		return err
	}
	l.n = appended.N
	l.releaseFirst(results)
	switch {
	case hold == 0:
		l.stopRenewal()
		l.epoch = 0
	case l.epoch == 0:
		l.epoch = appended.Epoch
		l.renewLease()
	}
	return nil
}

// setDates sets missing dates, which the log would take from the system's clock. The messages that
// a run begins with are as old as its first event.
func setDates(b *store.Batch, now time.Time) {
	for i := range b.Journal {
		if e := &b.Journal[i]; e.Date.IsZero() {
			e.Date = now
		}
	}
	began := b.Began(now)
	for i := range b.Messages {
		if m := &b.Messages[i]; m.Date.IsZero() {
			m.Date = began
		}
	}
}

// takeLease takes the lease before anything is appended.
func (l *loop) takeLease(ctx context.Context) error {
	return l.append(ctx, store.Batch{ExpectSeq: store.AnySeq}, leaseFor)
}

// renewLease renews the lease from now on, whatever the run is at: its planner may
// think for long, and its calls may drain. A lease that can't be renewed is
// noticed by the next append.
func (l *loop) renewLease() {
	ctx, cancel := context.WithCancel(context.Background())
	batch := store.Batch{Context: l.context, ExpectSeq: store.AnySeq, Lease: &store.Lease{Epoch: l.epoch, For: leaseFor}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(leaseRenew)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_, _ = l.runner.Log.Append(ctx, batch)
			}
		}
	}()
	l.stopRenewal = func() {
		cancel()
		<-ended
	}
}
