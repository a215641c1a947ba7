package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"obelus/store"
)

// lineage names what a context runs, last, and before that what those around it did
// of whose calls it is the delegate's, the root's first. A fork is in the place of
// what it began as. What somebody has run in a delegate's context since is nobody's.
func lineage(ctx context.Context, log store.Log, name string) ([]string, error) {
	last, err := LastRun(ctx, log, name)
	if err != nil {
		return nil, err
	}
	run := last.plan
	for plans := []string{run.Plan}; ; {
		if !run.ofDelegate() {
			return plans, nil
		}
		origin, err := bornAs(ctx, log, name)
		if err != nil || origin.Parent == "" || len(plans) > MaxDepth {
			return plans, err
		}
		if run, err = planOfTick(ctx, log, origin.Parent, origin.Call); err != nil {
			return nil, err
		}
		name, plans = origin.Parent, append([]string{run.Plan}, plans...)
	}
}

// ofDelegate tells whether an event may be of a delegate's own run: that is the first
// in its context.
func (e *planEvent) ofDelegate() bool { return e.First <= 1 }

// bornAs is the origin of a context, of a fork that of what it began as.
func bornAs(ctx context.Context, log store.Log, name string) (store.Origin, error) {
	for seen := map[string]bool{}; !seen[name]; {
		seen[name] = true
		origin, _, err := originOf(ctx, log, name)
		if err != nil || origin.Parent != "" || origin.Fork == "" {
			return origin, err
		}
		name = origin.Fork
	}
	return store.Origin{}, &DamagedError{name, "what it was forked from is a fork of it"}
}

// planOfTick is what a context ran when one of its calls was made.
func planOfTick(ctx context.Context, log store.Log, name, call string) (planEvent, error) {
	tick, _, _ := strings.Cut(call, ".")
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: name, Event: eventPlan, Newest: true}) {
		if err != nil {
			return planEvent{}, err
		}
		event, err := readPlanEvent(entry)
		if err != nil || strconv.Itoa(event.Tick) == tick {
			return event, err
		}
	}
	return planEvent{}, nil
}

// RootPlan names what is run where a context is part of the run: a plan's file, or a
// delegate that was asked by itself. It is empty where nothing has run. Whoever asks a
// [Runner] for something about a context gives it the registry that goes with this
// plan; what a delegate's own calls may name, it finds from there.
func RootPlan(ctx context.Context, log store.Log, name string) (string, error) {
	plans, err := lineage(ctx, log, name)
	if err != nil {
		return "", err
	}
	return plans[0], nil
}

// part is what a context is of a run, for who asks about it by itself.
type part struct {
	runner  *Runner  // whose registry has what the context's calls may name
	inside  bool     // it is that of a delegate
	request *Request // of the delegate; nil if it is anonymous or can't be found
	lost    error    // why it can't be found
}

// within finds what a context is part of. What can't be found of it has the names of who
// asked for it.
func (r *Runner) within(ctx context.Context, name string) (*part, error) {
	p := &part{runner: r}
	if r.depth > 0 || r.Registry == nil { // of a room, which has what it needs; or nothing is to be named
		return p, nil
	}
	plans, err := lineage(ctx, r.Log, name)
	if err != nil {
		return nil, err
	}
	for _, plan := range plans[1:] {
		d := &Delegate{}
		if plan != Anonymous {
			if d, err = p.runner.Registry.delegate(plan); err != nil {
				return &part{runner: p.runner, inside: true, lost: err}, nil
			}
		}
		inner := *p.runner
		inner.Registry = d.registry(p.runner.Registry)
		p = &part{runner: &inner, inside: true, request: d.Request}
	}
	return p, nil
}

// own is the request that a context's run has, where one is given for its root's.
func (p *part) own(given *Request) *Request {
	if p.inside {
		return p.request
	}
	return given
}

// explain says of what a run is refused for that its delegate could not be found.
func (p *part) explain(err error) error {
	var refused *PlanError
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
