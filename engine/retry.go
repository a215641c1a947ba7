package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// journalDecisions records decisions about calls with their authors.
func (t *tick) journalDecisions(s Resume) {
	decided := func(e journal.DecisionEvent, decision string) {
		e.Decision, e.Who = decision, s.Who
		t.appendEntry(store.Entry{Event: journal.EventDecision, Data: string(store.EncodeJSON(e))})
	}
	if s.From != "" {
		decided(journal.DecisionEvent{Call: s.From, Corrected: t.correctionsOf(s.From)}, "rerun")
	}
	for _, call := range s.Retry {
		decided(journal.DecisionEvent{Call: call}, "retried")
	}
	for _, call := range s.Skip {
		decided(journal.DecisionEvent{Call: call}, "skipped")
	}
	for _, call := range jsonvalue.SortedKeys(s.Result) {
		decided(journal.DecisionEvent{Call: call}, "given")
	}
}

// correctionsOf are the arguments of a call that a person has put in the place of others.
func (t *tick) correctionsOf(call string) plan.Values {
	i, _ := journal.IndexInTick(t.event.Tick, call)
	h := t.calls[i].record.Hold
	if h == nil {
		return nil
	}
	corrections := plan.Values{}
	for _, name := range h.Corrected {
		corrections[name] = h.Arguments[name]
	}
	return corrections
}

// decide applies a person's decisions to calls of the tick.
func (t *tick) decide(ctx context.Context, s Resume) error {
	if s.From != "" {
		if err := t.rerun(ctx, s.From, s.Set, s.Who); err != nil {
			return err
		}
	}
	if err := t.rerunDecided(ctx, s.Retry, s.Result); err != nil {
		return err
	}
	for _, name := range s.Skip {
		i, err := t.decidable(name)
		if err != nil {
			return err
		}
		c := &t.calls[i]
		c.record.Status, c.record.Reason = journal.Skipped, journal.ReasonSkipped
		t.recordCall(i)
	}
	t.journalDecisions(s)
	return nil
}

// rerunDecided has calls run again, or settle with results that a person gives, and requeues calls
// that were skipped because of them.
func (t *tick) rerunDecided(ctx context.Context, retry []string, known map[string]any) error {
	given, err := t.checkGiven(ctx, known)
	if err != nil {
		return err
	}
	revived, first := make([]bool, len(t.calls)), []int(nil)
	for _, res := range given {
		t.completeGiven(res)
		revived[res.index], first = true, append(first, res.index)
	}
	for _, name := range retry {
		i, err := t.decidable(name)
		if err != nil {
			return err
		}
		runs, err := t.retry(ctx, i)
		if err != nil {
			return err
		}
		if runs {
			revived[i], first = true, append(first, i)
		}
	}
	if len(first) == 0 {
		return nil
	}
	behind, err := t.downstream(ctx, first...)
	if err != nil {
		return err
	}
	for _, i := range behind { // calls that have run without them, by another alternative perhaps
		if !revived[i] && t.calls[i].record.Status == journal.Done {
			t.stale = append(t.stale, t.calls[i].record.Call)
		}
	}
	t.requeueSkipped(revived)
	return t.hideSuperseded(ctx)
}

func (t *tick) decidable(name string) (int, error) {
	i, ok := journal.IndexInTick(t.event.Tick, name)
	if !ok || i >= len(t.calls) {
		return 0, &journal.NoSuchCallError{Message: fmt.Sprintf("no call %q in the last tick%s", name, t.span()), Absent: true}
	}
	status := t.calls[i].record.Status
	if status != journal.Failed && status != journal.InDoubt {
		status = cmp.Or(t.calls[i].before, status)
		return 0, &journal.NoSuchCallError{Message: fmt.Sprintf("call %s is %s: only one that failed or is in doubt can be retried, skipped or given a result", name, status)}
	}
	return i, nil
}

// span names the calls that there are.
func (t *tick) span() string {
	if len(t.calls) == 0 {
		return ", which has none"
	}
	return fmt.Sprintf(": its calls are %s to %s", journal.CallID(t.event.Tick, 1), journal.CallID(t.event.Tick, len(t.calls)))
}

// retry has a call run again, unless what its delegate has begun must not run twice: then
// it is in doubt.
func (t *tick) retry(ctx context.Context, i int) (runs bool, err error) {
	twice, err := t.restartChild(ctx, &t.calls[i].record)
	switch {
	case err != nil:
		return false, err
	case twice:
		t.recordCall(i)
		return false, nil
	}
	t.requeueFresh(i)
	return true, nil
}

// requeueFresh makes a call run again, and requeues calls that were skipped because of it. A call
// that was in doubt, or whose delegate goes on, keeps the values that it read and the arguments
// that a person approved.
func (t *tick) requeueFresh(i int) {
	c := &t.calls[i]
	was := c.record
	c.record, c.reported = t.newRecord(i), false
	c.record.Attempts, c.record.Child, c.record.Retry = was.Attempts, was.Child, was.Child != ""
	c.record.Before, c.record.SupersededUpTo = was.Before, was.SupersededUpTo
	if was.Status == journal.Failed {
		c.record.SupersededUpTo = t.view.Seq() // the messages that reported its failure
	}
	switch {
	case was.Status == journal.InDoubt || was.Child != "":
		c.record.At, c.record.Reads, c.record.Hold = was.At, was.Reads, was.Hold
	// The correction has not taken effect.
	case was.Before != 0 && was.Hold != nil && was.Hold.Corrected != nil && !t.event.Approve.Holds(t.plan.Calls[i]):
		c.record.Reads, c.record.Hold = was.Reads, was.Hold
	}
	t.recordCall(i)
}

// checkGiven checks results that a person gives, all of them together, as results of activities are
// checked, and returns them in the order of the plan.
func (t *tick) checkGiven(ctx context.Context, known map[string]any) (given []*result, err error) {
	for _, name := range jsonvalue.SortedKeys(known) {
		i, err := t.decidable(name)
		if err != nil {
			return nil, err
		}
		given = append(given, &result{tick: t, index: i, value: plan.Result{Value: known[name]}})
	}
	slices.SortFunc(given, func(a, b *result) int { return a.index - b.index })
	before := t.view.Seq()
	defer func() {
		t.view.Unstage(before)
		t.writers.dropAfter(before)
	}()
	for _, res := range given {
		v, err := store.FromGo(res.value.Value, "result")
		if err == nil {
			res.value.Value = v
			err = t.checkGivenResult(ctx, res.index, v)
		}
		if log, broken := errors.AsType[*logError](err); broken {
			return nil, log.err
		}
		if err != nil {
			return nil, &journal.CorrectionError{Call: t.calls[res.index].record.Call, Err: err}
		}
	}
	return given, nil
}

// checkGivenResult reports why a call does not accept a result, and leaves its messages staged.
func (t *tick) checkGivenResult(ctx context.Context, i int, v any) error {
	call, c := t.plan.Calls[i], t.calls[i]
	v, err := call.CheckResult(v, false)
	if err == nil && call.Output != nil {
		err = t.write(ctx, i, call.Output.Alternatives[0], v, false)
		t.calls[i] = c
	}
	return err
}

// completeGiven has a call settle, in the first step, with the result that a person gives. Its
// reads and its start stay recorded.
func (t *tick) completeGiven(res *result) {
	c := &t.calls[res.index]
	was := c.record
	t.requeueFresh(res.index)
	c.startedAt = t.runner.now()
	c.record.Status, c.record.Reason = journal.Running, journal.ReasonGiven
	c.record.At, c.record.Reads, c.record.Started, c.record.NotIdempotent, c.record.Thought = was.At, was.Reads, was.Started, was.NotIdempotent, was.Thought
	c.record.Duration = was.Duration
	c.record.Script, c.record.SHA256, c.record.Generation = was.Script, was.SHA256, was.Generation
	t.givenResults = append(t.givenResults, res)
}

// answerGiven completes a recorded call with the result that a person gave, however it began.
func (t *tick) answerGiven(i int) {
	c := t.change(i)
	c.startedAt = t.runner.now()
	c.record.Status, c.record.Reason, c.record.Started = journal.Running, journal.ReasonGiven, store.FormatDate(t.runner.dated(c.startedAt))
	t.enqueueStart(start{index: i, invocation: plan.Invocation{Key: t.context + "/" + c.record.Call}})
	t.unblock(i, c.record.Unstored)
}

// requeueSkipped requeues calls that were skipped because of calls that run again.
func (t *tick) requeueSkipped(again []bool) {
	for more := true; more; {
		more = false
		for i, call := range t.plan.Calls {
			r := &t.calls[i].record
			if r.Status == journal.Skipped && r.Reason != journal.ReasonSkipped && !again[i] && t.plan.Graph.DependsOnAny(i, call.Refs, again) {
				t.requeueFresh(i)
				again[i], more = true, true
			}
		}
	}
}

// hasOvertaken reports whether a call is to run although a call that waits for it has settled, or
// whether calls run again: then calls must not see all messages.
func (t *tick) hasOvertaken() bool {
	settled := func(e plan.Edge) bool { return t.calls[e.To].record.Status.Settled() }
	for i := range t.calls {
		r := &t.calls[i].record
		if r.Before != 0 || r.SupersededUpTo != 0 || !r.Status.Settled() && slices.ContainsFunc(t.plan.Graph.OutOf[i], settled) {
			return true
		}
	}
	return false
}
