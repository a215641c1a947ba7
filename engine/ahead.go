package engine

import (
	"cmp"
	"context"
	"slices"
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
	alone := len(t.starts) == 1 && t.running == 1
	if !alone || t.runner.replay != nil || run.Err() != nil || !time.Now().Before(until) {
		return nil, false
	}
	s := t.starts[0]
	activity, can := s.activity.Activity.(Forerunner)
	if !can || !t.mayRunTwice(s) {
		return nil, false
	}
	s.slot = t.runner.pool.ask(s.activity, false)
	defer t.runner.pool.leave(s.slot)
	if s.slot.given != nil {
		return nil, false
	}
	began := time.Now()
	res := t.attempt(t.loop.working, s, aheadFor, func(ctx context.Context, in Invocation) (res Result, err error) {
		res, ran, err = activity.RunAhead(ctx, in)
		return res, err
	})
	if !ran || res.err == errCut || time.Since(began) >= aheadFor {
		return nil, false
	}
	t.starts = t.starts[:0]
	t.takeBack(s.index)
	return &res, true
}

// takeBack takes from the journal of the step that a call runs: it has run, and what it came
// to tells all that there is to tell of that.
func (t *tick) takeBack(i int) {
	for e := len(t.entries) - 1; e >= t.saved.entries; e-- {
		if t.entries[e].Call == t.calls[i].record.Call {
			t.entries, t.places = slices.Delete(t.entries, e, e+1), slices.Delete(t.places, e, e+1)
			return
		}
	}
}

// mayRunTwice tells of a call that is to start whether it may be done in vain before: the
// run waits for it, it may run again, and it has more time than that takes.
func (t *tick) mayRunTwice(s start) bool {
	waited := !t.plan.Calls[s.index].fireAndForget()
	return waited && !s.activity.NotIdempotent && cmp.Or(s.activity.Timeout, DefaultTimeout) > aheadFor
}
