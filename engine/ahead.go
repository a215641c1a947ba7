package engine

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"
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
	activity, once := t.plan.Calls[res.index].activity, t.calls[res.index].record.Once
	if activity == nil || once {
		return true
	}
	_, can := activity.Activity.(Forerunner)
	return !can || !res.value.Unseen || res.err != nil
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
func (t *tick) forerunner(s start) Forerunner {
	call, record := t.plan.Calls[s.index], &t.calls[s.index].record
	ahead, can := s.activity.Activity.(Forerunner)
	reread := func(e edge) bool { return e.kind == readEdge }
	switch {
	case !can, t.runner.replay != nil, call.delegate != nil, call.asks:
	case call.fireAndForget(), s.activity.NotIdempotent, cmp.Or(s.activity.Timeout, DefaultTimeout) <= aheadFor:
	case record.At != t.view.Seq(), slices.ContainsFunc(t.plan.graph.outOf[s.index], reread):
	case atomic.LoadInt32(&s.activity.behind) > 0 && atomic.AddInt32(&s.activity.behind, -1) >= 0:
	default:
		return ahead
	}
	return nil
}

// stayBehind is how many calls of an activity do not run ahead after one that gave up, whose
// work was in vain.
const stayBehind = 100

// tryAhead does a call for as long as nobody can tell. One that is to go on after that begins
// anew, once the log has that it has begun.
func (t *tick) tryAhead(ctx context.Context, s start) result {
	began, ran := time.Now(), false
	res := t.attempt(ctx, s, aheadFor, func(ctx context.Context, in Invocation) (res Result, err error) {
		res, ran, err = s.ahead.RunAhead(ctx, in)
		return res, err
	})
	if !ran || res.err == errCut || time.Since(began) >= aheadFor {
		atomic.StoreInt32(&s.activity.behind, stayBehind)
		return result{index: s.index, behind: &s}
	}
	res.unseen, res.value.Unseen = true, res.err == nil
	return res
}
