package sqlite

import (
	"context"
	"sync/atomic"
)

// turn is had by one at a time, who writes. It is not handed to the one that has waited
// longest, as most locks are that many wait for: that one is scheduled behind all whom a
// group has woken, and until then nothing would be written. Whoever runs takes it.
type turn struct {
	taken atomic.Bool
	free  chan struct{} // holds a token once it has been given back, for one of those who wait
}

func newTurn() *turn { return &turn{free: make(chan struct{}, 1)} }

// try takes the turn if nobody has it. Who does not get it waits for free, and tries again.
func (t *turn) try() bool { return t.taken.CompareAndSwap(false, true) }

// give gives it back.
func (t *turn) give() {
	t.taken.Store(false)
	select {
	case t.free <- struct{}{}:
	default:
	}
}

// take waits for it, or for the end of ctx.
func (t *turn) take(ctx context.Context) error {
	for !t.try() {
		select {
		case <-t.free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
