package engine

import (
	"fmt"
	"sync"

	"obelus/engine/internal/bounds"
)

// replans counts how often planners of a run and of its delegates are asked again, at any depth:
// the first plan of each is free. Of a run that is resumed, delegates that have ended do not count.
// It is safe for concurrent use.
type replans struct {
	mu  sync.Mutex
	sum int
	of  map[string]int // by context

	nested int // delegates that delegates have started
}

// nest counts a delegate that is started at a depth, and reports whether there may be one more.
func (r *replans) nest(depth int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if depth > 1 {
		r.nested++
	}
	return r.nested <= bounds.MaxNested
}

// count counts that the planner of a context has been asked again n times in all.
func (r *replans) count(context string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum += n - r.of[context]
	r.of[context] = n
}

// take counts that the planner of a context is asked once more, after it was asked some times, or
// returns an error if no planner of the run may be: one that alone is asked again has the bound on
// its own ticks. ticks is [Runner].Ticks, and problem, which may be nil, is what was wrong with the
// last plan.
func (r *replans) take(context string, ticks, asked int, problem error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.of[context]
	alone := r.sum == taken
	counted := taken >= asked
	full := r.sum+1 >= positive(ticks, DefaultTicks)
	if full && !alone && !counted {
		bound := fmt.Errorf("the planners of the run and of its delegates have been asked again %d times in all: the setting ticks allows no more", r.sum)
		if problem != nil {
			bound = fmt.Errorf("%w; the last time: %s", bound, problem)
		}
		return bound
	}
	r.sum += max(0, asked-taken)
	r.of[context] = max(taken, asked)
	return nil
}
