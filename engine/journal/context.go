package journal

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"obelus/engine/plan"
	"obelus/store"
)

// Context is one context of a log. Its methods read the journal and the messages, and may be called
// from several goroutines at once.
type Context struct {
	Log  store.Reader
	Name string
}

// In returns the context of a log that has a name, whether it exists or not.
func In(log store.Reader, name string) Context { return Context{log, name} }

// Sibling returns the context of the same log that has another name.
func (c Context) Sibling(name string) Context { return Context{c.Log, name} }

// Together runs reads of the context that belong together, and hands them the seq of its newest
// message. It gives [store.ErrNoContext] if the context was pruned meanwhile, and perhaps made
// anew.
func (c Context) Together(ctx context.Context, read func(newest int64) error) error {
	before, err := c.Log.Info(ctx, c.Name)
	if err != nil {
		return err
	}
	failed := read(before.Messages)
	after, err := c.Log.Info(ctx, c.Name)
	if err == nil && !after.Created.Equal(before.Created) {
		err = c.PrunedMeanwhile()
	}
	return cmp.Or(err, failed)
}

// Lineage names the plan that a context runs, last, and before it the plans of the contexts around
// it, the root's first. A fork has the lineage of the context that it was made of. A later run in a
// delegate's context has no context around it.
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

// OfDelegate reports whether an event may be of a delegate's own run: the first in its context.
func (e *PlanEvent) OfDelegate() bool { return e.First <= 1 }

// firstOrigin returns the origin of a context, and for a fork the origin of the context that was
// forked first.
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

// planOfTick returns the plan event of the tick of a call.
func (c Context) planOfTick(ctx context.Context, call string) (PlanEvent, error) {
	tick, _ := PlaceOf(call)
	event, _, err := c.FindTick(ctx, tick)
	return event, err
}

// FindTick returns the plan event of a tick, and its entry; both are zero where there is none.
func (c Context) FindTick(ctx context.Context, tick int) (PlanEvent, store.Entry, error) {
	for entry, err := range c.Log.Journal(ctx, store.JournalFilter{Context: c.Name, Event: EventPlan, Newest: true}) {
		if err != nil {
			return PlanEvent{}, entry, err
		}
		event, err := ReadPlanEvent(entry)
		if err != nil || event.Tick == tick {
			return event, entry, err
		}
	}
	return PlanEvent{}, store.Entry{}, nil
}

// RootPlan names the plan of the run that a context is part of: a plan's file, or a delegate that
// was called by itself. It is empty where nothing has run. The registry that goes with this plan is
// the one for a [obelus/engine.Runner] that is asked about the context; registries of delegates are
// found from there.
func (c Context) RootPlan(ctx context.Context) (string, error) {
	plans, err := c.Lineage(ctx)
	if err != nil {
		return "", err
	}
	return plans[0], nil
}

// CutSum is the number of bytes of a digest that replaces the beginning of a name that would be too
// long, written in hex.
const CutSum = 16

// isCut reports whether a name may belong to a delegate's context whose parents' names were too
// long to be in it.
func isCut(name string) bool {
	sum, _, _ := strings.Cut(name, ".")
	_, err := hex.DecodeString(sum)
	return err == nil && hex.DecodedLen(len(sum)) == CutSum
}

// IsWithin reports whether a context is another one, or is the context of a delegate in it, however
// deep. Their names show it, except names that were too long and had to be cut.
func (c Context) IsWithin(ctx context.Context, other string) (bool, error) {
	for range plan.MaxDepth + 1 {
		if c.Name == other || strings.HasPrefix(c.Name, other+".") {
			return true, nil
		}
		if !isCut(c.Name) {
			break
		}
		origin, ok, err := c.OriginOf(ctx)
		if err != nil || !ok || origin.Parent == "" {
			return false, err
		}
		c.Name = origin.Parent
	}
	return false, nil
}

// ExpectedOrigin returns the origin of a context that does not exist yet: that of a delegate, where
// a call has named it for its delegate. A name that had to be cut shows no parent.
func ExpectedOrigin(ctx context.Context, c Context) (store.Origin, error) {
	parts := strings.Split(c.Name, ".")
	if len(parts) < 3 {
		return store.Origin{}, nil
	}
	parent := strings.Join(parts[:len(parts)-2], ".")
	if store.CheckStoredContext(parent) != nil {
		return store.Origin{}, nil
	}
	records, err := c.Sibling(parent).Records(ctx)
	if errors.Is(err, store.ErrNoContext) {
		err = nil
	}
	for _, r := range records {
		if r.Child == c.Name && !r.Status.Settled() {
			return store.Origin{Parent: parent, Call: r.Call}, nil
		}
	}
	return store.Origin{}, err
}

// OriginOf returns the origin of the context; ok is false if there is no such context.
func (c Context) OriginOf(ctx context.Context) (origin store.Origin, ok bool, err error) {
	info, err := c.Log.Info(ctx, c.Name)
	if errors.Is(err, store.ErrNoContext) {
		return origin, false, nil
	}
	return info.Origin, err == nil, err
}
