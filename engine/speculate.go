package engine

import (
	"cmp"
	"slices"
	"time"

	"obelus/engine/plan"
)

// speculateFor bounds the time for which a step speculates on calls, and for each of them. For so
// long, and as long as a commit takes, results may not be in the log.
const speculateFor = time.Millisecond

// speculateUntil is the end of the time for which a step with some results may speculate on calls:
// none where the loss of one of them, or of a planner's solution, would be visible.
func (t *tickRun) speculateUntil(results []*result) time.Time {
	if !t.begun && t.event.Planner || slices.ContainsFunc(results, t.mustPersist) {
		return time.Time{}
	}
	return time.Now().Add(speculateFor)
}

// mustPersist reports whether losing the result would be visible outside the process. Only a
// speculative activity is trusted to report a pure result: another may pass on the report of one
// that it wraps, and have an effect of its own.
func (t *tick) mustPersist(res *result) bool {
	if res.retryDue {
		return false
	}
	activity, once := t.plan.Calls[res.index].Activity, t.state.Calls[res.index].Record.NotIdempotent
	if activity == nil || once {
		return true
	}
	_, can := activity.Activity.(plan.Speculative)
	return !can || !res.value.Pure || res.err != nil
}

// speculate runs the one call that a step starts within the step, before the log has the values
// that it reads, where that has no visible effect: so a chain of calls takes one commit, not one
// for each. A call that can't run so is started once the step is in the log, as all others are.
func (t *tickRun) speculate(until time.Time) (_ *result, ran bool) {
	alone := len(t.starts) == 1 && t.state.Running() == 1 && t.starts[0].speculative != nil
	if !alone || t.loop.isInterrupted() || !time.Now().Before(until) {
		return nil, false
	}
	s := t.starts[0]
	s.slot = t.runner.pool.Request(s.activity, false)
	defer t.runner.pool.Release(s.slot)
	if !s.slot.IsGranted() {
		return nil, false
	}
	t.starts = t.starts[:0]
	res := (&task{tick: t, start: s}).speculate(t.loop.working)
	if res.unstarted != nil {
		t.restart(*res.unstarted)
		return nil, false
	}
	return &res, true
}

// speculativeOf returns the activity for a call that may run before the log has its start, as long
// as it has no visible effect: its outcome then records the start too. It is nil for a call that
// must not run in vain, whose reads others wait for, or that has too little time.
func (t *tick) speculativeOf(s start) plan.Speculative {
	call, record := t.plan.Calls[s.index], &t.state.Calls[s.index].Record
	speculative, can := s.activity.Activity.(plan.Speculative)
	edges := t.plan.Graph.OutOf[s.index]
	awaited := func(e plan.Edge) bool { // by a call that does not wait for its outcome
		waits := func(other plan.Edge) bool { return other.To == e.To && other.Kind != plan.ReadEdge }
		return e.Kind == plan.ReadEdge && !slices.ContainsFunc(edges, waits)
	}
	switch {
	case !can, call.Delegate != nil, call.AsksModel, record.Hold != nil:
	case call.FireAndForget(), s.activity.NotIdempotent, cmp.Or(s.activity.AttemptsOf(call).Timeout, plan.DefaultTimeout) <= speculateFor:
	case record.At != t.view.Seq(), slices.ContainsFunc(edges, awaited):
	case s.activity.SkipsSpeculation():
	default:
		return speculative
	}
	return nil
}
