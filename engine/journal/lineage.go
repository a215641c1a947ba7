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
func Lineage(ctx context.Context, log store.Log, name string) ([]string, error) {
	last, err := LastRun(ctx, log, name)
	if err != nil {
		return nil, err
	}
	run := last.Event
	for plans := []string{run.Plan}; ; {
		if !run.OfDelegate() {
			return plans, nil
		}
		origin, err := firstOrigin(ctx, log, name)
		if err != nil || origin.Parent == "" || len(plans) > plan.MaxDepth {
			return plans, err
		}
		if run, err = planOfTick(ctx, log, origin.Parent, origin.Call); err != nil {
			return nil, err
		}
		name, plans = origin.Parent, append([]string{run.Plan}, plans...)
	}
}

// OfDelegate tells whether an event may be of a delegate's own run: that is the first
// in its context.
func (e *PlanEvent) OfDelegate() bool { return e.First <= 1 }

// firstOrigin is the origin of a context, of a fork that of what it began as.
func firstOrigin(ctx context.Context, log store.Log, name string) (store.Origin, error) {
	for seen := map[string]bool{}; !seen[name]; {
		seen[name] = true
		origin, _, err := OriginOf(ctx, log, name)
		if err != nil || origin.Parent != "" || origin.Fork == "" {
			return origin, err
		}
		name = origin.Fork
	}
	return store.Origin{}, &DamagedError{name, "what it was forked from is a fork of it"}
}

// planOfTick is what a context ran when one of its calls was made.
func planOfTick(ctx context.Context, log store.Log, name, call string) (PlanEvent, error) {
	tick, _, _ := strings.Cut(call, ".")
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: name, Event: EventPlan, Newest: true}) {
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
func RootPlan(ctx context.Context, log store.Log, name string) (string, error) {
	plans, err := Lineage(ctx, log, name)
	if err != nil {
		return "", err
	}
	return plans[0], nil
}
