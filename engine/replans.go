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
	if more := n - r.of[context]; more > 0 {
		r.sum += more
		r.of[context] = n
	}
}

// spent returns an error if no planner of the run may be asked again; nil if the planner that has
// been asked some times is the only one, since the bound on its ticks is the same. ticks is
// [Runner].Ticks, and problem, which may be nil, is what was wrong with the last plan.
func (r *replans) spent(ticks, asked int, problem error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	alone := r.sum < asked
	if alone || r.sum+1 < positive(ticks, DefaultTicks) {
		return nil
	}
	bound := fmt.Errorf("the planners of the run and of its delegates have been asked again %d times in all: the setting ticks allows no more", r.sum)
	if problem != nil {
		bound = fmt.Errorf("%w; the last time: %s", bound, problem)
	}
	return bound
}
