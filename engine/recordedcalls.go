package engine

import (
	"context"
	"fmt"
	"slices"

	"obelus/engine/internal/failure"
	"obelus/engine/internal/logerr"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// mustWait reports whether a call of a recorded run has not been answered that settled before the
// next one began: that may join its writes.
func (t *tick) mustWait(next int) bool {
	began := t.recorded.span(next).Began
	first := func(s start) bool { return t.recorded.span(s.index).Settled.Before(began) }
	return slices.ContainsFunc(t.recordedStarts, first) || slices.ContainsFunc(t.starts, first)
}

// beginRecorded prepares the evaluation of a call of a recorded run. settled is true for a call
// that a person settled: it is not evaluated.
func (t *tick) beginRecorded(ctx context.Context, i int) (settled bool, err error) {
	rt := t.recorded
	if err := rt.inject(ctx, rt.span(i).Began); err != nil {
		return false, err
	}
	record := rt.record(t.recorded.callID(i))
	switch {
	case t.state.Calls[i].AwaitsRetry():
		return false, nil
	case record.IsLeftOut():
		t.skip(t.state.Change(i), record.Reason)
		return true, nil
	case record.Status == journal.Done && record.Reason == journal.ReasonGiven:
		t.startGiven(i)
		return true, nil
	}
	return false, nil
}

// startGiven starts a call whose result a person gave, however it had begun.
func (t *tick) startGiven(i int) {
	c := t.state.Change(i)
	c.Started = t.runner.now()
	c.Record.Reason, c.Record.Started = journal.ReasonGiven, store.FormatDate(t.runner.dated(c.Started))
	t.addStart(start{index: i, invocation: plan.Invocation{Key: t.context + "/" + c.Record.Call}})
}

// deliverRecorded brings the result of a call of a recorded run: of those that have started, the
// one that settled first.
func (t *tickRun) deliverRecorded() {
	if len(t.recordedStarts) == 0 {
		return
	}
	next := 0
	for i, s := range t.recordedStarts {
		if t.recorded.span(s.index).Settled.N < t.recorded.span(t.recordedStarts[next].index).Settled.N {
			next = i
		}
	}
	s := t.recordedStarts[next]
	t.recordedStarts = slices.Delete(t.recordedStarts, next, next+1)
	res := (&task{tick: t, start: s}).do()
	res.tick = t
	t.loop.results <- &res // there is room: no other result is on its way
}

// runsInside reports whether the call of a recorded run has its result from its delegate's run,
// which runs again too.
func (j *task) runsInside(ctx context.Context) bool {
	rt := j.tick.recorded
	return j.child != nil && rt.script.RunsInside(ctx, rt.values.context, rt.callID(j.index))
}

// recordedResult is the result of the call in the recorded run.
func (j *task) recordedResult(ctx context.Context) result {
	rt := j.tick.recorded
	record, ok, err := rt.script.Record(ctx, rt.values.context, rt.callID(j.index))
	res := result{index: j.index, attempts: 1}
	switch {
	case err != nil:
		res.err = unreadLog(ctx, err)
	case !ok:
		res.err = fmt.Errorf("the log knows of no such call")
	case record.Given != nil:
		given := givenResult(record.Given)
		res.value, res.err = given.value, given.err
	case record.Status == journal.Failed:
		res.err = &failure.Inside{Fields: record.Error}
	case len(record.Writes) == 0:
		res.value, res.paths = plan.Result{Value: record.Thought["output"]}, []store.Path{}
	default:
		paths, values, err := rt.script.Written(ctx, rt.values.context, record)
		if cause, ok := logerr.Cause(err); ok {
			err = unreadLog(ctx, cause)
		}
		if res.err = err; err == nil {
			res.value, res.paths = plan.Result{Value: values}, paths
		}
	}
	return res
}
