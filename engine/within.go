package engine

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"obelus/store"
)

// whose tells of which call of which context a context is the delegate's, a fork what
// it began as. It is nobody's where there is no parent.
func whose(ctx context.Context, log store.Log, name string) (parent, call string, err error) {
	for {
		origin, _, err := originOf(ctx, log, name)
		if err != nil || origin.Parent != "" || origin.Fork == "" {
			return origin.Parent, origin.Call, err
		}
		name = origin.Fork
	}
}

// RootPlan names what is run where a context is part of the run: a plan's file, or a
// delegate that was asked by itself. It is empty where nothing has run. Whoever asks a
// [Runner] for something about a context gives it the registry that goes with this
// plan; what a delegate's own calls may name, it finds from there.
func RootPlan(ctx context.Context, log store.Log, name string) (string, error) {
	parent, call, err := whose(ctx, log, name)
	if err != nil || parent == "" {
		last, wrong := LastRun(ctx, log, name)
		return last.Plan, cmp.Or(err, wrong)
	}
	for {
		outer, of, err := whose(ctx, log, parent)
		if err != nil {
			return "", err
		}
		if outer == "" {
			return planOfTick(ctx, log, parent, call)
		}
		parent, call = outer, of
	}
}

// planOfTick names what a context ran when one of its calls was made.
func planOfTick(ctx context.Context, log store.Log, name, call string) (string, error) {
	tick, _, _ := strings.Cut(call, ".")
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: name, Event: eventPlan, Newest: true}) {
		if err != nil {
			return "", err
		}
		event, err := readPlanEvent(entry)
		if err != nil {
			return "", err
		}
		if strconv.Itoa(event.Tick) == tick {
			return event.Plan, nil
		}
	}
	return "", nil
}

// within is the runner for a context by itself, and what that runs if it is that of a
// delegate: its calls may name other things than those around it. A delegate that is
// not there any more has nothing to run, and the names of who asked for it.
func (r *Runner) within(ctx context.Context, name string) (*Runner, *Request, error) {
	if r.depth > 0 || r.Registry == nil { // of a room, which has what it needs; or nothing is to be named
		return r, nil, nil
	}
	parent, _, err := whose(ctx, r.Log, name)
	if err != nil || parent == "" {
		return r, nil, err
	}
	outer, _, err := r.within(ctx, parent)
	if err != nil {
		return nil, nil, err
	}
	run, err := LastRun(ctx, r.Log, name)
	if err != nil {
		return nil, nil, err
	}
	d := &Delegate{}
	if run.Plan != Anonymous {
		if d, err = outer.Registry.delegate(run.Plan); err != nil {
			return outer, nil, nil
		}
	}
	inner := *outer
	inner.Registry = d.registry(outer.Registry)
	return &inner, d.Request, nil
}
