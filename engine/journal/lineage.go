package journal

import (
	"context"
	"strconv"
	"strings"

	"obelus/engine/plan"
	"obelus/store"
)

// Lineage names what a context runs, last, and before that what those around it did
// of whose calls it is the delegate's, the root's first. A fork is in the place of
// what it began as. What somebody has run in a delegate's context since is nobody's.
func (c Context) Lineage(ctx context.Context) ([]string, error) {
	last, err := c.LastRun(ctx)
	if err != nil {
		return nil, err
	}
	run := last.Event
	for plans := []string{run.Plan}; ; {
		if !run.OfDelegate() {
			return plans, nil
		}
		origin, err := c.firstOrigin(ctx)
		if err != nil || origin.Parent == "" || len(plans) > plan.MaxDepth {
			return plans, err
		}
		if run, err = c.Sibling(origin.Parent).planOfTick(ctx, origin.Call); err != nil {
			return nil, err
		}
		c.Name, plans = origin.Parent, append([]string{run.Plan}, plans...)
	}
}

// OfDelegate tells whether an event may be of a delegate's own run: that is the first
// in its context.
func (e *PlanEvent) OfDelegate() bool { return e.First <= 1 }

// firstOrigin is the origin of a context, of a fork that of what it began as.
func (c Context) firstOrigin(ctx context.Context) (store.Origin, error) {
	for seen := map[string]bool{}; !seen[c.Name]; {
		seen[c.Name] = true
		origin, _, err := c.OriginOf(ctx)
		if err != nil || origin.Parent != "" || origin.Fork == "" {
			return origin, err
		}
		c.Name = origin.Fork
	}
	return store.Origin{}, &DamagedError{c.Name, "what it was forked from is a fork of it"}
}

// planOfTick is what a context ran when one of its calls was made.
func (c Context) planOfTick(ctx context.Context, call string) (PlanEvent, error) {
	tick, _, _ := strings.Cut(call, ".")
	for entry, err := range c.Log.Journal(ctx, store.JournalFilter{Context: c.Name, Event: EventPlan, Newest: true}) {
		if err != nil {
			return PlanEvent{}, err
		}
		event, err := ReadPlanEvent(entry)
		if err != nil || strconv.Itoa(event.Tick) == tick {
			return event, err
		}
	}
	return PlanEvent{}, nil
}

// RootPlan names what is run where a context is part of the run: a plan's file, or a
// delegate that was asked by itself. It is empty where nothing has run. Whoever asks a
// [engine.Runner] for something about a context gives it the registry that goes with this
// plan; what a delegate's own calls may name, it finds from there.
func (c Context) RootPlan(ctx context.Context) (string, error) {
	plans, err := c.Lineage(ctx)
	if err != nil {
		return "", err
	}
	return plans[0], nil
}
