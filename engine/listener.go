package engine

import (
	"context"
	"time"

	"obelus/store"
)

// gatheringTime is the time for which appends gather after one was heard of, so that a log that is
// written to all the time costs little.
const gatheringTime = 100 * time.Millisecond

// listener hears of appends to any context of a log. The caller must call Stop. The methods may be
// called of a nil listener, which hears nothing.
type listener struct {
	heard   chan struct{}
	stop    context.CancelFunc
	stopped chan struct{} // closed once the goroutine has ended
}

// newListener begins to listen. It reports once at the beginning, since there may have been appends
// before that, and again whenever there was no append for a given time.
func newListener(ctx context.Context, log store.Reader, every time.Duration) *listener {
	ctx, stop := context.WithCancel(ctx)
	l := &listener{heard: make(chan struct{}, 1), stop: stop, stopped: make(chan struct{})}
	go l.run(ctx, log, every)
	return l
}

// run reports appends until ctx is done. Errors of the log are left to the run, which meets them
// when it looks.
func (l *listener) run(ctx context.Context, log store.Reader, every time.Duration) {
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
		case <-time.After(gatheringTime):
		case <-ctx.Done():
		}
	}
}

// Heard returns a channel that receives once there may have been appends since it did before.
func (l *listener) Heard() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.heard
}

// Stop ends the listening, and returns once nothing of it is left.
func (l *listener) Stop() {
	if l != nil {
		l.stop()
		<-l.stopped
	}
}
