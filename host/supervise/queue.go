package supervise

import (
	"context"
	"slices"
	"sync"
)

// queue gives out a bounded number of places, first come, first served. Its methods may be called
// from several goroutines at once.
type queue struct {
	places int // that are taken at once
	limit  int // turns that may wait

	mu    sync.Mutex
	taken int
	line  []turn
}

// turn is closed once its holder has a place. It is nil if there was one at once.
type turn chan struct{}

// enter takes a place if one is free, and else gets in line for one. It returns [ErrFull] if the
// limit of turns wait already and the request is not to be refused for that.
func (q *queue) enter(always bool) (turn, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.taken < q.places: // and so the line is empty
		q.taken++
		return nil, nil
	case len(q.line) >= q.limit && !always:
		return nil, ErrFull
	}
	t := make(turn)
	q.line = append(q.line, t)
	return t, nil
}

// wait waits until it is a turn. If the context of the request or of the run ends first, it leaves
// the queue and returns the error of that context.
func (q *queue) wait(ctx, run context.Context, t turn) error {
	if t == nil {
		return nil
	}
	select {
	case <-t:
		return nil
	case <-ctx.Done():
		q.leave(t)
		return ctx.Err()
	case <-run.Done():
		q.leave(t)
		return run.Err()
	}
}

// leave takes a turn out of the line or, if it has come meanwhile, frees its place.
func (q *queue) leave(t turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.line, t); i >= 0 {
		q.line = slices.Delete(q.line, i, i+1)
		return
	}
	q.free()
}

// release frees a place.
func (q *queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free()
}

// free gives a place to the first in line. The caller holds the lock.
func (q *queue) free() {
	if len(q.line) == 0 {
		q.taken--
		return
	}
	close(q.line[0])
	q.line = slices.Delete(q.line, 0, 1)
}

// load returns how many places are taken, and how many turns wait.
func (q *queue) load() (taken, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken, len(q.line)
}
