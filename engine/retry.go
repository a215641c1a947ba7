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
	h := t.state.Calls[i].Record.Hold
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
		c := &t.state.Calls[i]
		c.Record.Status, c.Record.Reason = journal.Skipped, journal.ReasonSkipped
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
	revived, first := make([]bool, len(t.state.Calls)), []int(nil)
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
		if !revived[i] && t.state.Calls[i].Record.Status == journal.Done {
			t.stale = append(t.stale, t.state.Calls[i].Record.Call)
		}
	}
	t.requeueSkipped(revived)
	return t.hideSuperseded(ctx)
}

func (t *tick) decidable(name string) (int, error) {
	i, ok := journal.IndexInTick(t.event.Tick, name)
	if !ok || i >= len(t.state.Calls) {
		return 0, &journal.NoSuchCallError{Message: fmt.Sprintf("no call %q in the last tick%s", name, t.span()), Absent: true}
	}
	status := t.state.Calls[i].Record.Status
	if status != journal.Failed && status != journal.InDoubt {
		status = cmp.Or(t.state.Calls[i].Before, status)
		return 0, &journal.NoSuchCallError{Message: fmt.Sprintf("call %s is %s: only one that failed or is in doubt can be retried, skipped or given a result", name, status)}
	}
	return i, nil
}

// span names the calls that there are.
func (t *tick) span() string {
	if len(t.state.Calls) == 0 {
		return ", which has none"
	}
	return fmt.Sprintf(": its calls are %s to %s", journal.CallID(t.event.Tick, 1), journal.CallID(t.event.Tick, len(t.state.Calls)))
}

// retry has a call run again, unless what its delegate has begun must not run twice: then
// it is in doubt.
func (t *tick) retry(ctx context.Context, i int) (runs bool, err error) {
	twice, err := t.restartChild(ctx, &t.state.Calls[i].Record)
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
	c := &t.state.Calls[i]
	was := c.Record
	c.Record, c.Reported = t.newRecord(i), false
	c.Record.Attempts, c.Record.Child, c.Record.Retry = was.Attempts, was.Child, was.Child != ""
	c.Record.Before, c.Record.SupersededUpTo = was.Before, was.SupersededUpTo
	if was.Status == journal.Failed {
		c.Record.SupersededUpTo = t.view.Seq() // the messages that reported its failure
	}
	switch {
	case was.Status == journal.InDoubt || was.Child != "":
		c.Record.At, c.Record.Reads, c.Record.Hold = was.At, was.Reads, was.Hold
	// The correction has not taken effect.
	case was.Before != 0 && was.Hold != nil && was.Hold.Corrected != nil && !t.event.Approve.Holds(t.plan.Calls[i]):
		c.Record.Reads, c.Record.Hold = was.Reads, was.Hold
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
			return nil, &journal.CorrectionError{Call: t.state.Calls[res.index].Record.Call, Err: err}
		}
	}
	return given, nil
}

// checkGivenResult reports why a call does not accept a result, and leaves its messages staged.
func (t *tick) checkGivenResult(ctx context.Context, i int, v any) error {
	call, c := t.plan.Calls[i], t.state.Calls[i]
	v, err := call.CheckResult(v, false)
	if err == nil && call.Output != nil {
		err = t.write(ctx, i, call.Output.Alternatives[0], v, false)
		t.state.Calls[i] = c
	}
	return err
}

// completeGiven has a call settle, in the first step, with the result that a person gives. Its
// reads and its start stay recorded.
func (t *tick) completeGiven(res *result) {
	c := &t.state.Calls[res.index]
	was := c.Record
	t.requeueFresh(res.index)
	c.Started = t.runner.now()
	c.Record.Status, c.Record.Reason = journal.Running, journal.ReasonGiven
	c.Record.At, c.Record.Reads, c.Record.Started, c.Record.NotIdempotent, c.Record.Thought = was.At, was.Reads, was.Started, was.NotIdempotent, was.Thought
	c.Record.Duration = was.Duration
	c.Record.Script, c.Record.SHA256, c.Record.Generation = was.Script, was.SHA256, was.Generation
	t.givenResults = append(t.givenResults, res)
}

// answerGiven completes a recorded call with the result that a person gave, however it began.
func (t *tick) answerGiven(i int) {
	c := t.state.Change(i)
	c.Started = t.runner.now()
	c.Record.Reason, c.Record.Started = journal.ReasonGiven, store.FormatDate(t.runner.dated(c.Started))
	t.enqueueStart(start{index: i, invocation: plan.Invocation{Key: t.context + "/" + c.Record.Call}})
}

// requeueSkipped requeues calls that were skipped because of calls that run again.
func (t *tick) requeueSkipped(again []bool) {
	for more := true; more; {
		more = false
		for i, call := range t.plan.Calls {
			r := &t.state.Calls[i].Record
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
	settled := func(e plan.Edge) bool { return t.state.Calls[e.To].Record.Status.Settled() }
	for i := range t.state.Calls {
		r := &t.state.Calls[i].Record
		if r.Before != 0 || r.SupersededUpTo != 0 || !r.Status.Settled() && slices.ContainsFunc(t.plan.Graph.OutOf[i], settled) {
			return true
		}
	}
	return false
}
