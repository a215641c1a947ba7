package replay

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"obelus/engine/expr"
	"obelus/engine/internal/failure"
	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/reading"
	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// call is a call whose record is compared.
type call struct {
	*check
	*plan.Call
	tick   *tick
	index  int
	life   *life
	newest *journal.Record
}

// differ adds a difference of the call.
func (c *call) differ(what string, recorded, replayed any) {
	c.check.differ(Difference{Call: c.newest.Call, What: what, Recorded: recorded, Replayed: replayed})
}

// expect compares the status of the call.
func (c *call) expect(status journal.Status) {
	if c.newest.Status != status {
		c.differ("status", c.newest.Status, status)
	}
}

// checkStart evaluates the call where it had read, and compares what comes of that: whether it
// runs, and with which arguments.
func (c *call) checkStart(ctx context.Context) error {
	r := c.newest
	isDecided := r.IsLeftOut() || r.Reason == journal.ReasonGiven // by a person
	if isDecided || !r.Status.Settled() {
		return nil
	}
	if !c.tick.isReady(c.index, r) {
		c.expect(journal.Blocked)
		return nil
	}
	c.tick.state.Load(c.index, c.before())
	if c.If != nil && r.If != nil {
		holds, err := c.holds(ctx)
		if err != nil {
			return err
		}
		if holds != r.If.Holds {
			c.differ("_if", r.If.Holds, holds)
			return nil
		}
		if !holds {
			c.expect(journal.Skipped)
			return nil
		}
	}
	d, err := c.tick.state.Evaluate(ctx, c.index, &evaluating{c, ctx})
	if err == nil {
		c.compare(d)
	}
	return err
}

// before returns the record of the call as it was when the call was evaluated.
func (c *call) before() journal.Record {
	r := c.newest
	before := journal.NewRecord(r.Tick, c.Call)
	before.If, before.Due, before.Before = r.If, r.Due, r.Before
	settledEarly := c.If != nil && r.If == nil || c.Schedule != nil && r.Due == ""
	if !settledEarly { // else by its condition, or its time
		before.At = c.seq()
	}
	if h := r.Hold; h != nil && (h.Decision == journal.Rejected || len(h.Corrected) > 0) {
		before.Hold, before.Reads = h, r.Reads
	}
	return before
}

// seq returns the seq as of which the call read.
func (c *call) seq() int64 {
	if c.life.at != 0 {
		return c.life.at
	}
	seq := c.steps[c.life.began].seq
	for c.message(seq) != nil && c.message(seq).Call == c.newest.Call { // it settled at once
		seq--
	}
	return seq
}

// holds evaluates the condition of the call with the values that it read.
func (c *call) holds(ctx context.Context) (bool, error) {
	v, missing, err := c.If.Eval(ctx, func(path store.Path) (any, bool, bool, error) {
		seq, ok := c.newest.If.Reads[path.String()]
		if !ok {
			return nil, false, false, nil
		}
		resolver := c.reads().Resolver(c.index)
		resolver.At = seq
		resolved, err := resolver.Resolve(ctx, path, c.Instance)
		return resolved.Value, resolved.Exists, false, err
	})
	if _, bad := errors.AsType[*expr.Error](err); bad {
		return false, nil
	}
	return missing == nil && v != nil && v != false, err
}

// hasRun reports whether the outcome of the call is that of an attempt. One that rests has failed
// since it was refused as it was to go on.
func (c *call) hasRun() bool {
	r := c.newest
	return r.Status == journal.Done || r.Status == journal.Failed && r.Started != "" && !r.Rests
}

// compare compares a decision about the call with the record.
func (c *call) compare(d sched.Decision) {
	r := c.newest
	switch d.Action {
	case sched.Start:
		if !c.hasRun() {
			c.differ("status", r.Status, journal.Running)
			return
		}
		c.compareArguments(d)
	case sched.Skip:
		c.expect(journal.Skipped)
	case sched.Wait:
		c.expect(journal.Waiting)
	case sched.Reject, sched.Fail:
		if d.Action == sched.Fail && r.Handled != nil {
			return
		}
		c.expect(journal.Failed)
		if why := failure.Fields(d.Err); r.Status == journal.Failed && r.Error["code"] != why["code"] {
			c.differ("error", map[string]any(r.Error), why)
		}
	}
}

// compareArguments compares the arguments with which the call started, as far as the log shows
// them, and where they came from.
func (c *call) compareArguments(d sched.Decision) {
	r := c.newest
	if h := r.Hold; h != nil {
		shown, arguments := map[string]any{}, map[string]any{}
		for _, p := range c.Params {
			if !slices.Contains(h.Corrected, p.Name) {
				shown[p.Name], arguments[p.Name] = h.Arguments[p.Name], d.Arguments[p.Name]
			}
		}
		c.compareValue("arguments", shown, arguments)
	}
	if c.IsThought() {
		c.compareValue("arguments", r.Thought["call"], c.ForModel(d.Arguments))
	}
	if c.Delegate != nil {
		c.tick.given[c.index] = plan.Invocation{Call: d.Arguments, Context: d.Granted}
	}
	if !maps.Equal(d.Reads, r.Reads) {
		c.differ("reads", r.Reads, d.Reads)
	}
}

// compareValue compares a value of the record.
func (c *call) compareValue(what string, recorded, replayed any) {
	if !jsonvalue.Equal(recorded, replayed) {
		c.differ(what, recorded, replayed)
	}
}

// reads returns what reads for the calls of the tick. The record of the call says as of which seq.
func (c *call) reads() reading.Reader {
	return reading.Reader{Plan: c.tick.plan, State: c.tick.state, View: c.view, Writers: c.tick.writers}
}

// evaluating is what the call reads while it is evaluated (see [sched.Values]).
type evaluating struct {
	*call
	ctx context.Context
}

func (e *evaluating) Resolve(i int, path store.Path, instance string) (store.Resolved, error) {
	return e.reads().Resolver(i).Resolve(e.ctx, path, instance)
}

func (e *evaluating) Grant(i int, reads map[string]int64) (map[string]any, error) {
	return e.reads().Grant(e.ctx, i, reads)
}

// CheckMethod implements [sched.Values]. What a call that ran has written did fit, be it without
// the writes of calls that wait for it; one that did not run fitted in neither way.
func (e *evaluating) CheckMethod(i int, path store.Path) error {
	if e.hasRun() {
		return nil
	}
	now := e.reads()
	now.Writers = nil
	return now.CheckMethod(e.ctx, i, path)
}

// Now implements [sched.Values]: nothing waits for a time.
func (*evaluating) Now() time.Time { return time.Unix(1<<40, 0) }

func (*evaluating) Explain(_ int, err error) error { return err }
