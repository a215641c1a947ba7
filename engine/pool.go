package engine

import (
	"context"
	"sync"
)

// pool holds the places for activities that a run and its delegates share.
// Within one tick there is always room, for its turns keep to the same numbers;
// here the ticks of delegates meet, and calls that an earlier tick left behind.
type pool struct {
	run   context.Context // of the run that all of it is part of
	slots chan struct{}   // of calls that a run waits for
	loose chan struct{}   // of fire-and-forget calls

	mu   sync.Mutex
	each map[*Registered]chan struct{} // of activities that do not run as often as they like
}

func newPool(run context.Context, parallel int) *pool {
	return &pool{run: run, slots: make(chan struct{}, parallel), loose: make(chan struct{}, parallel), each: map[*Registered]chan struct{}{}}
}

// enter waits for a place to run an activity. It gives false if ctx is done
// before there is one; else leave gives the place back.
func (p *pool) enter(ctx context.Context, a *Registered, loose bool) (leave func(), ok bool) {
	own := p.own(a)
	if !take(ctx, own) {
		return nil, false
	}
	shared := p.slots
	if loose {
		shared = p.loose
	}
	if !take(ctx, shared) {
		give(own)
		return nil, false
	}
	return func() { give(shared); give(own) }, true
}

func (p *pool) own(a *Registered) chan struct{} {
	if a.Concurrency <= 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.each[a] == nil {
		p.each[a] = make(chan struct{}, a.Concurrency)
	}
	return p.each[a]
}

// take takes a place, at once if there is one; nil has no end of them.
func take(ctx context.Context, places chan struct{}) bool {
	if places == nil {
		return true
	}
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func give(places chan struct{}) {
	if places != nil {
		<-places
	}
}
