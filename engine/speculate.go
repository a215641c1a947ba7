package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"obelus/engine/plan"
)

// aheadFor bounds for how long a step runs calls ahead, and each of them. So long, and as
// long as a commit takes, what has been done may not be in the log.
const aheadFor = time.Millisecond

// aheadUntil is how long a step with some results may run calls ahead: not at all where one
// of them, or what a planner gave, would be missed if it were lost meanwhile.
func (t *tick) aheadUntil(results []*result) time.Time {
	if !t.begun && t.event.Planner || slices.ContainsFunc(results, t.dear) {
		return time.Time{}
	}
	return time.Now().Add(aheadFor)
}

// dear tells of a result that it would be missed. That nothing of the call could be seen is
// believed of an activity that can run ahead alone: another may hand on what one says that
// it wraps, and do something of its own.
func (t *tick) dear(res *result) bool {
	if res.rested {
		return false
	}
	activity, once := t.plan.Calls[res.index].Activity, t.calls[res.index].record.NotIdempotent
	if activity == nil || once {
		return true
	}
	_, can := activity.Activity.(plan.Speculative)
	return !can || !res.value.Pure || res.err != nil
}

// runAhead does the one call that a step is to start within the step, before the log has
// what it reads, where nobody can tell: so a chain of calls takes one commit, not one for
// each. A call that can't run so is started once the step is in the log, as all others are.
func (t *tick) runAhead(run context.Context, until time.Time) (_ *result, ran bool) {
	alone := len(t.starts) == 1 && t.running == 1 && t.starts[0].ahead != nil
	if !alone || run.Err() != nil || !time.Now().Before(until) {
		return nil, false
	}
	s := t.starts[0]
	s.slot = t.runner.pool.ask(s.activity, false)
	defer t.runner.pool.leave(s.slot)
	if s.slot.given != nil {
		return nil, false
	}
	t.starts = t.starts[:0]
	res := t.tryAhead(t.loop.working, s)
	if res.behind != nil {
		t.begin(*res.behind)
		return nil, false
	}
	return &res, true
}

// forerunner is what does a call of which the log does not have that it has begun, as long
// as nobody can tell: then its outcome tells that too. It is nil for a call that is not to
// be done in vain or without others knowing that it has read, or that has less time than
// that takes.
func (t *tick) forerunner(s start) plan.Speculative {
	call, record := t.plan.Calls[s.index], &t.calls[s.index].record
	ahead, can := s.activity.Activity.(plan.Speculative)
	edges := t.plan.Graph.OutOf[s.index]
	awaited := func(e plan.Edge) bool { // by one that does not wait for its outcome
		waits := func(other plan.Edge) bool { return other.To == e.To && other.Kind != plan.ReadEdge }
		return e.Kind == plan.ReadEdge && !slices.ContainsFunc(edges, waits)
	}
	switch {
	case !can, t.runner.script.Recorded(), call.Delegate != nil, call.AsksModel, record.Hold != nil:
	case call.FireAndForget(), s.activity.NotIdempotent, cmp.Or(s.activity.Timeout, plan.DefaultTimeout) <= aheadFor:
	case record.At != t.view.Seq(), slices.ContainsFunc(edges, awaited):
	case s.activity.SkipsSpeculation():
	default:
		return ahead
	}
	return nil
}

// tryAhead does a call for as long as nobody can tell. One that is to go on after that begins
// anew, once the log has that it has begun; one that had ended by then, though it had to wait
// for a processor meanwhile, has its outcome.
func (t *tick) tryAhead(ctx context.Context, s start) result {
	var ran, late bool
	res := t.attempt(ctx, s, aheadFor, func(ctx context.Context, in plan.Invocation) (res plan.Result, err error) {
		if res, ran, err = s.ahead.Speculate(ctx, in); !ran || err != nil {
			until, _ := ctx.Deadline()
			late = ctx.Err() != nil || !time.Now().Before(until)
			ran = ran && !late
		}
		return res, err
	})
	ran = ran && res.err != errCut
	s.activity.NoteSpeculation(ran, late)
	if !ran {
		return result{index: s.index, behind: &s}
	}
	res.unseen, res.value.Pure = true, res.err == nil
	return res
}
