package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// A call that has settled can run again in a fork, with everything that read its writes; nothing
// else does. Each of these reads the same values as before from calls that do not run again,
// whatever was written since.

// rerun makes a call of the tick run again, with corrections to its arguments, and the calls
// downstream of it.
func (t *tick) rerun(ctx context.Context, name string, set map[string]any, who journal.Who) error {
	origin, _, err := journal.In(t.runner.Log, t.context).OriginOf(ctx)
	if err != nil {
		return err
	}
	if origin.Fork == "" {
		return &journal.NoSuchCallError{
			Message: fmt.Sprintf("context %s is no fork, and what it has done stays", t.context),
			Hint:    journal.Hint{Fork: t.context},
		}
	}
	first, err := t.settledCall(ctx, name)
	if err != nil {
		return err
	}
	// The paths that they read depend on the messages that they saw.
	if err := t.readWriters(ctx); err != nil {
		return err
	}
	downstream, err := t.downstream(ctx, first)
	if err != nil {
		return err
	}
	for _, i := range downstream {
		t.forget(i)
	}
	if err := t.hideSuperseded(ctx); err != nil {
		return err
	}
	if len(set) > 0 {
		return t.applyCorrections(ctx, first, set, who)
	}
	return nil
}

// hideSuperseded hides the earlier messages of calls that are to run again or to be retried.
func (t *tick) hideSuperseded(ctx context.Context) error {
	former, err := journal.In(t.runner.Log, t.context).SupersededFor(ctx, t.event.First, t.all())
	t.view.Hide(slices.Collect(maps.Keys(former))...)
	return err
}

// settledCall finds a call of the tick that has settled.
func (t *tick) settledCall(ctx context.Context, name string) (int, error) {
	for i := range t.state.Calls {
		r := t.state.Calls[i].Record
		switch {
		case r.Call != name:
		case !r.Status.Settled():
			return 0, &journal.NoSuchCallError{Message: fmt.Sprintf("call %s is %s: only one that has settled can run again", name, r.Status)}
		default:
			return i, nil
		}
	}
	ended := int64(0)
	for entry, err := range t.runner.Log.Journal(ctx, store.JournalFilter{Context: t.context, Event: journal.EventRun}) {
		if err != nil {
			return 0, err
		}
		if end, _, err := journal.ReadRunEvent(entry); err == nil && end.Tick != t.event.Tick && strings.HasPrefix(name, fmt.Sprintf("%d.", end.Tick)) {
			ended = entry.Seq
		}
	}
	if ended > 0 {
		return 0, &journal.NoSuchCallError{
			Message: fmt.Sprintf("call %s is of a tick before the last", name),
			Hint:    journal.Hint{Fork: t.context, At: ended},
		}
	}
	return 0, &journal.NoSuchCallError{Message: fmt.Sprintf("no call %q in the last tick%s", name, t.span()), Absent: true}
}

// downstream lists calls and those that read paths that they may write, and so on, in the order of
// the plan.
func (t *tick) downstream(ctx context.Context, first ...int) (all []int, err error) {
	g, again := t.plan.Graph, make([]bool, len(t.state.Calls))
	for _, i := range first {
		again[i] = true
	}
	for more := true; more; {
		more = false
		for i, call := range t.plan.Calls {
			if again[i] || t.hasNotRead(i) {
				continue
			}
			shown := slices.ContainsFunc(g.Into[i], func(e plan.Edge) bool { return e.Kind == plan.ThoughtEdge && again[e.From] })
			if !shown && !g.DependsOnAny(i, slices.Concat(call.Refs, call.ScopePaths), again) {
				continue
			}
			if !shown && t.state.Calls[i].Record.Started != "" {
				looked, err := t.readPaths(ctx, i)
				if err != nil {
					return nil, err
				}
				if !g.DependsOnAny(i, looked, again) {
					continue
				}
			}
			again[i], more = true, true
		}
	}
	for i := range again {
		if again[i] {
			all = append(all, i)
		}
	}
	return all, nil
}

// hasNotRead reports whether a call has yet to read: it reads the values that exist then.
func (t *tick) hasNotRead(i int) bool {
	r := t.state.Calls[i].Record
	return r.At == 0 && !r.Status.Settled()
}

// readPaths lists the paths that a call read, also those that were missing: they may be written
// this time.
func (t *tick) readPaths(ctx context.Context, i int) ([]store.Path, error) {
	call := t.plan.Calls[i]
	paths, lookup := slices.Clone(call.ScopePaths), t.state.Lookup(i, &values{t, ctx}, map[string]int64{})
	_, _, err := call.Resolve(ctx, func(path store.Path) (any, bool, bool, error) {
		paths = append(paths, path)
		return lookup(path)
	})
	var structural *plan.Fault
	if errors.As(err, &structural) {
		err = nil // it failed of that before
	}
	return paths, err
}

// forget resets a call. Its delegate begins anew.
func (t *tick) forget(i int) {
	c := &t.state.Calls[i]
	attempts, before := c.Record.Attempts, cmp.Or(c.Record.Before, c.Record.At, t.view.Seq())
	c.Record, c.Reported, c.Written = t.newRecord(i), false, nil
	c.Record.Attempts, c.Record.Before, c.Record.SupersededUpTo = attempts, before, t.view.Seq()
	t.recordCall(i)
}

// applyCorrections applies a person's corrections to the arguments of a call that runs again.
func (t *tick) applyCorrections(ctx context.Context, i int, set map[string]any, who journal.Who) error {
	call, reads := t.plan.Calls[i], map[string]int64{}
	resolved, lacking, err := call.Evaluate(ctx, t.state.Lookup(i, &values{t, ctx}, reads), set)
	if err != nil {
		return &journal.CorrectionError{Call: t.state.Calls[i].Record.Call, Err: err}
	}
	if lacking != nil {
		return &journal.NoSuchCallError{Message: fmt.Sprintf("call %s can't run again as it stands: %s; correct the parameter that reads it", t.state.Calls[i].Record.Call, lacking)}
	}
	granted, err := grant(ctx, t.resolver(i), call.ScopePaths, call.Instance, reads)
	if err != nil {
		return err
	}
	if set, err = plan.NormalizeObject(set, ""); err != nil {
		return &journal.CorrectionError{Call: t.state.Calls[i].Record.Call, Err: err}
	}
	h := t.preview(i, resolved, granted)
	h.Corrected = jsonvalue.SortedKeys(call.ReplacedBy(set))
	arguments, err := h.With(set)
	if err := cmp.Or(err, call.Definition.Correctable(h.Corrected, h.Arguments), call.Definition.Accepts(arguments)); err != nil {
		return &journal.CorrectionError{Call: t.state.Calls[i].Record.Call, Err: err}
	}
	h.Arguments, h.Decision, h.Who = arguments, journal.Approved, who
	c := &t.state.Calls[i]
	c.Record.Hold, c.Record.Reads = h, reads
	t.recordCall(i)
	return nil
}
