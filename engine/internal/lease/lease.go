// Package lease holds the right to append to a context as the one that runs it.
package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"obelus/store"
)

// For is how long the context of a run that died on another machine stays closed to others. A
// live run renews its lease long before.
const (
	For        = 30 * time.Second
	RenewEvery = For / 3
)

// Lease is the right to append to a context as the one that runs it. Its first append takes it, and
// each renews it. The zero epoch is none. It belongs to one goroutine at a time.
type Lease struct {
	Log     store.Log
	Context string
	Date    func() time.Time // the clock that dates appends

	// Busy makes the error where another holds the context, in words.
	Busy func(context, holder string) error

	epoch   int64
	N       int64  // the journal's position after the last append
	stopped func() // ends the renewal; nil without one
}

// IsTaken reports whether the lease has been taken and not given back.
func (l *Lease) IsTaken() bool { return l.epoch != 0 }

// Take takes the lease before anything is appended.
func (l *Lease) Take(ctx context.Context) error {
	return l.Append(ctx, store.Batch{ExpectSeq: store.AnySeq}, For)
}

// Close gives the lease back.
func (l *Lease) Close() {
	l.StopRenewal()
	if l.IsTaken() {
		// A lease that can't be given back lapses by itself, since its renewal has ended.
		_ = l.Append(context.Background(), store.Batch{ExpectSeq: store.AnySeq}, 0)
	}
}

// Append adds a batch, and keeps the lease for a while; for none it gives it back. Where another
// holds the context, its error is made by Busy.
func (l *Lease) Append(ctx context.Context, b store.Batch, hold time.Duration) error {
	if err := l.Address(&b, hold); err != nil {
		return err
	}
	appended, err := l.Log.Append(ctx, b)
	return l.Appended(appended, err, hold)
}

// Address makes a batch the holder's.
func (l *Lease) Address(b *store.Batch, hold time.Duration) error {
	b.Context = l.Context
	b.Lease = &store.Lease{Epoch: l.epoch, For: hold}
	now := l.Date()
	if err := store.CheckDate(now); err != nil {
		return fmt.Errorf("the runner's clock can't be right: %w", err)
	}
	setDates(b, now)
	return nil
}

// Appended takes what became of a batch that was to be appended.
func (l *Lease) Appended(appended store.Appended, err error, hold time.Duration) error {
	if held, ok := errors.AsType[*store.HeldError](err); ok {
		l.epoch = 0
		return l.Busy(l.Context, held.Holder)
	}
	if err != nil {
		return err
	}
	l.N = appended.N
	switch {
	case hold == 0:
		l.StopRenewal()
		l.epoch = 0
	case l.epoch == 0:
		l.epoch = appended.Epoch
		l.renew()
	}
	return nil
}

// renew renews the lease from now on, whatever the run is at: its planner may think for long, and
// its calls may drain. A lease that can't be renewed is noticed by the next append.
func (l *Lease) renew() {
	ctx, cancel := context.WithCancel(context.Background())
	log := l.Log
	batch := store.Batch{Context: l.Context, ExpectSeq: store.AnySeq, Lease: &store.Lease{Epoch: l.epoch, For: For}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(RenewEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_, _ = log.Append(ctx, batch)
			}
		}
	}()
	l.stopped = func() {
		cancel()
		<-ended
	}
}

// StopRenewal ends the renewal, and waits for its last append.
func (l *Lease) StopRenewal() {
	if l.stopped != nil {
		l.stopped()
		l.stopped = nil
	}
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
