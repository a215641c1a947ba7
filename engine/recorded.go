package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"obelus/engine/internal/script"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// RunRecorded runs the newest run of a context once more, in another log, driven by a script; it is
// for package replay. choose receives the request of the context's run, which is the given one
// unless the context is a delegate's, and returns the one to run.
func (r *Runner) RunRecorded(ctx context.Context, name string, given *plan.Request, log store.Log, s script.Script, choose func(own *plan.Request) (*plan.Request, error)) (*journal.Outcome, error) {
	at, err := r.scopeOf(ctx, name)
	if err != nil {
		return nil, err
	}
	request, err := choose(at.requestOr(given))
	if err != nil {
		return nil, at.explain(err)
	}
	runner := *at.runner
	runner.Log, runner.Observe, runner.Attend, runner.script = log, nil, nil, s
	// The log tells which calls were held.
	runner.Approve = plan.Policy{}
	// Calls settle one by one, in the recorded order.
	runner.Parallel, runner.pool = math.MaxInt32, newPool(ctx, 1)
	outcome, err := runner.Run(ctx, Start{Context: name, Request: request})
	return outcome, at.explain(err)
}

// inject stages the foreign messages that a recorded run had at a position.
func (t *tick) inject(ctx context.Context, at journal.Position) error {
	return t.runner.script.Inject(ctx, t.view, t.context, at)
}

// reportRecorded stages the error messages that the recorded run has, where it has them among
// foreign messages.
func (t *tick) reportRecorded(ctx context.Context, failed []*journal.Record) error {
	timeline, err := t.runner.script.Timeline(ctx, t.context)
	if err != nil {
		return err
	}
	end, seqs := timeline.Ends[t.event.Tick], map[string]int64{}
	for _, r := range failed {
		if seqs[r.Call], err = t.runner.script.ErrorSeq(ctx, t.context, r.Call); err != nil {
			return err
		}
	}
	failed = slices.DeleteFunc(failed, func(r *journal.Record) bool { return seqs[r.Call] == 0 })
	slices.SortFunc(failed, func(x, y *journal.Record) int { return cmp.Compare(seqs[x.Call], seqs[y.Call]) })
	for _, r := range failed {
		if err := t.inject(ctx, journal.Position{Seq: seqs[r.Call], N: end.N}); err != nil {
			return err
		}
		t.reportFailure(r)
	}
	return t.inject(ctx, end)
}

// awaitsRecorded reports whether a call that settled before the next one began in the record has
// not been answered: the next call may join its writes.
func (t *tick) awaitsRecorded(next int) bool {
	if !t.runner.script.Recorded() {
		return false
	}
	began := t.recordedSpan(next).Began
	first := func(s start) bool { return t.recordedSpan(s.index).Settled.Before(began) }
	return slices.ContainsFunc(t.recordedStarts, first) || slices.ContainsFunc(t.starts, first)
}

// takeRecorded takes decisions about calls from the record, and drops the waits that calls
// overtook.
func (t *tick) takeRecorded() {
	t.writers = writers{}
	for i := range t.state.Calls {
		c := &t.state.Calls[i]
		c.Record.Hold, c.Record.Before, c.Record.SupersededUpTo = t.recordedDecision(c.Record.Call)
	}
}

// recordedDecision returns a person's decision about a recorded call: its hold, nil for none, and,
// of a call that ran again, as of when it reads and up to where it is superseded.
func (t *tick) recordedDecision(call string) (h *journal.Hold, before, superseded int64) {
	record, _, err := t.runner.script.Record(context.Background(), t.context, call)
	if err != nil {
		return nil, 0, 0
	}
	if h = record.Hold; h != nil && h.Decision == "" {
		h = nil
	}
	return h, record.Before, record.SupersededUpTo
}

// byPerson returns a person's decision that settled a recorded call: [journal.ReasonSkipped],
// [journal.ReasonGiven], or nothing.
func (t *tick) byPerson(call string) string {
	record, _, err := t.runner.script.Record(context.Background(), t.context, call)
	if err == nil && (record.Status == journal.Skipped && record.Reason == journal.ReasonSkipped || record.Status == journal.Done && record.Reason == journal.ReasonGiven) {
		return record.Reason
	}
	return ""
}

// deliverRecorded brings the result of a call that is replayed: of those that have
// started, the one that settled first.
func (t *tickRun) deliverRecorded(run context.Context) {
	if len(t.recordedStarts) == 0 {
		return
	}
	next := 0
	for i, s := range t.recordedStarts {
		if t.recordedSpan(s.index).Settled.N < t.recordedSpan(t.recordedStarts[next].index).Settled.N {
			next = i
		}
	}
	s := t.recordedStarts[next]
	t.recordedStarts = slices.Delete(t.recordedStarts, next, next+1)
	res := t.runCall(run, s)
	res.tick = t
	t.loop.results <- &res // there is room: no other result is on its way
}

// recordedResult is the result of a call in the recorded run.
func (t *tick) recordedResult(ctx context.Context, call string) result {
	record, ok, err := t.runner.script.Record(ctx, t.context, call)
	switch {
	case err != nil:
		return result{err: unreadLog(ctx, err)}
	case !ok:
		return result{err: fmt.Errorf("the log knows of no such call")}
	case record.Given != nil:
		return givenResult(record.Given)
	case record.Status == journal.Failed:
		return result{err: &insideError{record.Error}}
	case len(record.Writes) == 0:
		return result{value: plan.Result{Value: record.Thought["output"]}, paths: []store.Path{}}
	}
	paths, values, err := t.runner.script.Written(ctx, t.context, record)
	if unread, ok := errors.AsType[*script.LogError](err); ok {
		err = unreadLog(ctx, unread.Err)
	}
	if err != nil {
		return result{err: err}
	}
	return result{value: plan.Result{Value: values}, paths: paths}
}

// answerGiven completes a recorded call with the result that a person gave, however it began.
func (t *tick) answerGiven(i int) {
	c := t.state.Change(i)
	c.Started = t.runner.now()
	c.Record.Reason, c.Record.Started = journal.ReasonGiven, store.FormatDate(t.runner.dated(c.Started))
	t.enqueueStart(start{index: i, invocation: plan.Invocation{Key: t.context + "/" + c.Record.Call}})
}
