package sqlite

import (
	"context"
	"sync/atomic"
)

// writerLock is held by the goroutine that writes. Unlike a fair lock it is not handed to the
// goroutine that has waited longest: that one is scheduled behind all those that a group has woken,
// and until then nothing would be written. The next running goroutine takes it.
type writerLock struct {
	taken atomic.Bool
	free  chan struct{} // holds a token once it has been released, for a waiter
}

func newWriterLock() *writerLock { return &writerLock{free: make(chan struct{}, 1)} }

// tryAcquire takes the lock if it is free. A goroutine that does not get it waits for free, and
// tries again.
func (t *writerLock) tryAcquire() bool { return t.taken.CompareAndSwap(false, true) }

// release gives it back.
func (t *writerLock) release() {
	t.taken.Store(false)
	select {
	case t.free <- struct{}{}:
	default:
	}
}

// acquire waits for it, or for the end of ctx.
func (t *writerLock) acquire(ctx context.Context) error {
	for !t.tryAcquire() {
		select {
		case <-t.free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
