package engine

import (
	"context"
	"slices"
	"sync"

	"obelus/engine/plan"
)

// pool holds the slots for activities that a run and its delegates share, and
// gives them in the order in which they are asked for; who waits for an activity
// of which enough run holds up nobody behind it. Within one tick there is always
// one, for its turns keep to the same numbers; here the ticks of delegates meet,
// and calls that an earlier tick left behind.
type pool struct {
	run      context.Context // of the run that all of it is part of
	parallel int

	mu    sync.Mutex
	taken [2]int                   // of waited-for calls and of fire-and-forget calls, each of which has as many as parallel
	each  map[*plan.Registered]int // taken, of activities that do not run as often as they like
	queue []slot                   // asked for, and not there yet
}

// slot is what a call needs to run its activity.
type slot struct {
	activity *plan.Registered
	shared   int           // index into taken
	given    chan struct{} // closed once it is; nil if it was there at once
}

func newPool(run context.Context, parallel int) *pool {
	return &pool{run: run, parallel: parallel, each: map[*plan.Registered]int{}}
}

// ask gives a slot, which may have to be waited for, and is to be left.
func (p *pool) ask(a *plan.Registered, fireAndForget bool) slot {
	one := slot{activity: a}
	if fireAndForget {
		one.shared = 1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.take(one) {
		one.given = make(chan struct{})
		p.queue = append(p.queue, one)
	}
	return one
}

// wait waits until the slot is given, or for the end of ctx: then it tells false.
func (one slot) wait(ctx context.Context) bool {
	if one.given == nil {
		return true
	}
	select {
	case <-one.given:
		return true
	case <-ctx.Done():
		return false
	}
}

// leave gives a slot back, to whoever waits for one, or waits for it no longer.
func (p *pool) leave(one slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.queue, one); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
		return
	}
	p.taken[one.shared]--
	if one.activity.Concurrency > 0 {
		p.each[one.activity]--
	}
	p.queue = slices.DeleteFunc(p.queue, func(next slot) bool {
		taken := p.take(next)
		if taken {
			close(next.given)
		}
		return taken
	})
}

// take takes a slot if there is one.
func (p *pool) take(one slot) bool {
	limit := one.activity.Concurrency
	if p.taken[one.shared] == p.parallel || limit > 0 && p.each[one.activity] == limit {
		return false
	}
	p.taken[one.shared]++
	if limit > 0 {
		p.each[one.activity]++
	}
	return true
}
