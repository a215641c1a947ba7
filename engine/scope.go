package engine

import (
	"context"
	"errors"
	"fmt"

	"obelus/engine/journal"
	"obelus/engine/plan"
)

// runScope is the run that a context is part of, for requests about the context alone.
type runScope struct {
	runner     *Runner       // its registry holds the names for the context's calls
	ofDelegate bool          // the context is a delegate's
	request    *plan.Request // of the delegate; nil if it is anonymous or can't be found
	lost       error         // why it can't be found
}

// scopeOf finds the run that a context is part of. Where a delegate can't be found, the registry is
// that of the runner.
func (r *Runner) scopeOf(ctx context.Context, name string) (*runScope, error) {
	p := &runScope{runner: r}
	if r.depth > 0 || r.Registry == nil { // a child run has its registry; or no names are needed
		return p, nil
	}
	plans, err := journal.In(r.Log, name).Lineage(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range plans[1:] {
		d := &plan.Delegate{}
		if name != plan.Anonymous {
			if d, err = p.runner.Registry.Delegate(name); err != nil {
				return &runScope{runner: p.runner, ofDelegate: true, lost: err}, nil
			}
		}
		inner := *p.runner
		inner.Registry = d.RegistryFor(p.runner.Registry)
		p = &runScope{runner: &inner, ofDelegate: true, request: d.Isolated()}
	}
	return p, nil
}

// Within returns the runner and the request with which the run of a context goes on: those of its
// delegate, where it is a delegate's, else the runner itself and the request that is given.
func (r *Runner) Within(ctx context.Context, name string, given *plan.Request) (*Runner, *plan.Request, error) {
	p, err := r.scopeOf(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	return p.runner, p.requestOr(given), p.lost
}

// requestOr is the request that a context's run has, where one is given for its root's.
func (p *runScope) requestOr(given *plan.Request) *plan.Request {
	if p.ofDelegate {
		return p.request
	}
	return given
}

// explain adds to the refusal of a run that its delegate could not be found.
func (p *runScope) explain(err error) error {
	var refused *plan.PlanError
	var unplanned *NoPlannerError
	if p.lost != nil && (errors.As(err, &refused) || errors.As(err, &unplanned)) {
		return &LostError{fmt.Errorf("%w (%w)", err, p.lost)}
	}
	return err
}

// LostError is a run of a delegate that is refused since the delegate can't be found
// any more: it may be with other scripts.
type LostError struct{ Err error }

func (e *LostError) Error() string { return e.Err.Error() }

func (e *LostError) Unwrap() error { return e.Err }
