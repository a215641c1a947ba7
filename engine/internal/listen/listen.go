// Package listen has a run hear of appends to its log, by itself and by others.
package listen

import (
	"context"
	"time"

	"obelus/store"
)

// Gathering is the time for which appends gather after one was heard of, so that a log that is
// written to all the time costs little.
const Gathering = 100 * time.Millisecond

// Listener hears of appends to any context of a log. The caller must call Stop. The methods may be
// called of a nil Listener, which hears nothing.
type Listener struct {
	heard   chan struct{}
	stop    context.CancelFunc
	stopped chan struct{} // closed once the goroutine has ended
}

// New begins to listen. It reports once at the beginning, since there may have been appends before
// that, and again whenever there was no append for a given time.
func New(ctx context.Context, log store.Reader, every time.Duration) *Listener {
	ctx, stop := context.WithCancel(ctx)
	l := &Listener{heard: make(chan struct{}, 1), stop: stop, stopped: make(chan struct{})}
	go l.run(ctx, log, every)
	return l
}

// run reports appends until ctx is done. Errors of the log are left to the run, which meets them
// when it looks.
func (l *Listener) run(ctx context.Context, log store.Reader, every time.Duration) {
	defer close(l.stopped)
	for after := int64(0); ctx.Err() == nil; {
		limited, cancel := context.WithTimeout(ctx, every)
		if n, err := log.Await(limited, after); err == nil {
			after = n
		}
		cancel()
		select {
		case l.heard <- struct{}{}:
		default:
		}
		select {
		case <-time.After(Gathering):
		case <-ctx.Done():
		}
	}
}

// Heard returns a channel that receives once there may have been appends since it did before.
func (l *Listener) Heard() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.heard
}

// Stop ends the listening, and returns once nothing of it is left.
func (l *Listener) Stop() {
	if l != nil {
		l.stop()
		<-l.stopped
	}
}
