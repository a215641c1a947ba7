package web

import (
	"context"
	"net/http"
	"sync/atomic"
)

// gate bounds how many runs there are at once, and how many wait for their turn.
type gate struct {
	places  chan struct{}
	queue   int64
	waiting atomic.Int64
}

func newGate(places, queue int) *gate {
	return &gate{places: make(chan struct{}, places), queue: int64(queue)}
}

var errFull = &problem{status: http.StatusTooManyRequests, code: "full", message: "too many runs wait for their turn", retry: 1}

// enter waits for a place. It returns an error if too many wait already, unless patient.
func (g *gate) enter(ctx context.Context, patient bool) error {
	select {
	case g.places <- struct{}{}:
		return nil
	default:
	}
	if n := g.waiting.Add(1); n > g.queue && !patient {
		g.waiting.Add(-1)
		return errFull
	}
	defer g.waiting.Add(-1)
	select {
	case g.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) leave() { <-g.places }
