package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/journal"
	"obelus/engine/plan"
)

// A call that has settled can run again in a fork, with everything that read its writes; nothing
// else does. Each of these reads the same values as before from calls that do not run again,
// whatever was written since.

// rerun makes a call of the tick run again, with corrections to its arguments, and the calls
// downstream of it.
func (a *amendment) rerun(ctx context.Context, name string, set map[string]any, who journal.Who) error {
	origin, _, err := journal.In(a.runner.Log, a.context).OriginOf(ctx)
	if err != nil {
		return err
	}
	if origin.Fork == "" {
		return &journal.NoSuchCallError{
			Message: fmt.Sprintf("context %s is no fork, and what it has done stays", a.context),
			Hint:    journal.Hint{Fork: a.context},
		}
	}
	first, err := a.settledCall(ctx, name)
	if err != nil {
		return err
	}
	// The paths that they read depend on the messages that they saw.
	if err := a.readWriters(ctx, &a.loop.timeline); err != nil {
		return err
	}
	downstream, err := a.downstream(ctx, first)
	if err != nil {
		return err
	}
	for _, i := range downstream {
		a.forget(i)
	}
	if err := a.hideSuperseded(ctx); err != nil {
		return err
	}
	if len(set) > 0 {
		return a.applyCorrections(ctx, first, set, who)
	}
	return nil
}

// hideSuperseded hides the earlier messages of calls that are to run again or to be retried.
func (a *amendment) hideSuperseded(ctx context.Context) error {
	superseded, err := a.loop.timeline.SupersededFor(ctx, journal.In(a.runner.Log, a.context), a.event.First, a.all())
	superseded.HideFrom(a.view)
	return err
}

// settledCall finds a call of the tick that has settled.
func (a *amendment) settledCall(ctx context.Context, name string) (int, error) {
	for i := range a.state.Calls {
		r := a.state.Calls[i].Record
		switch {
		case r.Call != name:
		case !r.Status.Settled():
			return 0, &journal.NoSuchCallError{Message: fmt.Sprintf("call %s has not settled (obelus calls shows why): only one that has can run again", name)}
		default:
			return i, nil
		}
	}
	tick, _ := journal.PlaceOf(name)
	ended, err := journal.In(a.runner.Log, a.context).EndOfTick(ctx, tick)
	if err != nil {
		return 0, err
	}
	if ended > 0 && tick != a.event.Tick {
		return 0, &journal.NoSuchCallError{
			Message: fmt.Sprintf("call %s is of a tick before the last", name),
			Hint:    journal.Hint{Fork: a.context, At: ended},
		}
	}
	return 0, &journal.NoSuchCallError{Message: fmt.Sprintf("no call %q in the last tick%s", name, a.span()), Absent: true}
}

// downstream lists calls and those that read paths that they may write, and so on, in the order of
// the plan.
func (a *amendment) downstream(ctx context.Context, first ...int) (all []int, err error) {
	g, again := a.plan.Graph, make([]bool, len(a.state.Calls))
	for _, i := range first {
		again[i] = true
	}
	for more := true; more; {
		more = false
		for i, call := range a.plan.Calls {
			if again[i] || a.hasNotRead(i) {
				continue
			}
			shown := slices.ContainsFunc(g.Into[i], func(e plan.Edge) bool { return e.Kind == plan.ThoughtEdge && again[e.From] })
			if !shown && !g.DependsOnAny(i, slices.Concat(decisive(call, &a.state.Calls[i].Record), call.ScopePaths), again) {
				continue
			}
			if !shown && a.state.Calls[i].Record.Started != "" {
				reads, err := a.readsOf(ctx, i)
				if err != nil {
					return nil, err
				}
				looked := slices.Collect(maps.Keys(reads))
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
func (a *amendment) hasNotRead(i int) bool {
	r := a.state.Calls[i].Record
	return r.At == 0 && r.If == nil && !r.Status.Settled()
}

// forget resets a call. Its delegate begins anew.
func (a *amendment) forget(i int) {
	c := &a.state.Calls[i]
	attempts, due, before := c.Record.Attempts, c.Record.Due, cmp.Or(c.Record.Before, c.Record.At, a.view.Seq())
	c.Record, c.Reported, c.Written = a.newRecord(i), false, nil
	c.Record.Attempts, c.Record.Due, c.Record.Before, c.Record.SupersededUpTo = attempts, due, before, a.view.Seq()
	a.recordCall(i)
}

// applyCorrections applies a person's corrections to the arguments of a call that runs again.
func (a *amendment) applyCorrections(ctx context.Context, i int, set map[string]any, who journal.Who) error {
	call, reads := a.plan.Calls[i], map[string]int64{}
	resolved, lacking, err := call.Evaluate(ctx, a.state.Lookup(i, &evaluating{values: &a.values, ctx: ctx}, reads), set)
	if err != nil {
		return &journal.CorrectionError{Call: a.state.Calls[i].Record.Call, Err: err}
	}
	if lacking != nil {
		return &journal.NoSuchCallError{Message: fmt.Sprintf("call %s can't run again as it stands: %s; correct the parameter that reads it", a.state.Calls[i].Record.Call, lacking)}
	}
	granted, err := a.reads().Grant(ctx, i, reads)
	if err != nil {
		return err
	}
	if set, err = plan.NormalizeObject(set, ""); err != nil {
		return &journal.CorrectionError{Call: a.state.Calls[i].Record.Call, Err: err}
	}
	h := a.preview(i, resolved, granted)
	h.Corrected = jsonvalue.SortedKeys(call.ReplacedBy(set))
	arguments, err := h.With(set)
	if err := cmp.Or(err, call.Definition.Correctable(h.Corrected, h.Arguments), call.Definition.Accepts(arguments)); err != nil {
		return &journal.CorrectionError{Call: a.state.Calls[i].Record.Call, Err: err}
	}
	if len(h.Corrected) > 0 {
		keepShown(h, call.Issued)
	}
	h.Arguments, h.Decision, h.Who = arguments, journal.Approved, who
	c := &a.state.Calls[i]
	c.Record.Hold, c.Record.Reads = h, reads
	a.recordCall(i)
	return nil
}
