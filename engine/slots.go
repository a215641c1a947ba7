package engine

import (
	"context"
	"slices"
	"sync"

	"obelus/engine/plan"
)

// slotPool holds the slots for activities that a run and its delegates share, and grants them in
// the order of the requests; a request for an activity at its limit delays no other. Within one
// tick a slot is always free, for its queues keep to the same numbers; the pool joins the ticks of
// delegates, and detached calls of earlier ticks.
type slotPool struct {
	run      context.Context // of the whole run
	parallel int

	mu sync.Mutex
	// Number of calls that are waited for, and of fire-and-forget calls, each at most parallel.
	taken [2]int
	each  map[*plan.Registered]int // number of calls, for activities with a limit
	queue []slot                   // asked for, and not there yet
}

// slot is a call's place among the running activities.
type slot struct {
	activity *plan.Registered
	shared   int           // index into taken
	given    chan struct{} // closed once it is granted; nil if it was granted at once
}

// newSlotPool returns a pool for a run, which lasts as long as its context.
func newSlotPool(run context.Context, parallel int) *slotPool {
	return &slotPool{run: run, parallel: parallel, each: map[*plan.Registered]int{}}
}

// Request gives a slot, which may have to be waited for, and is to be left.
func (p *slotPool) Request(a *plan.Registered, fireAndForget bool) slot {
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

// Wait waits until the slot is granted, or for the end of ctx: then it returns false.
func (one slot) Wait(ctx context.Context) bool {
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

// Release gives a slot back, or withdraws a request, and grants the slot to the next.
func (p *slotPool) Release(one slot) {
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
func (p *slotPool) take(one slot) bool {
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

// IsOver reports whether the whole run is over.
func (p *slotPool) IsOver() bool { return p.run.Err() != nil }

// IsGranted reports whether the slot was granted when it was requested.
func (one slot) IsGranted() bool { return one.given == nil }
