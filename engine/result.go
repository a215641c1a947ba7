package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"obelus/engine/internal/capture"
	"obelus/engine/internal/failure"
	"obelus/engine/internal/logerr"
	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/store"
)

// complete takes a call's result: it stages the messages that the call writes, and records how it
// ended.
func (t *tick) complete(ctx context.Context, res *result) error {
	c, call := t.state.Change(res.index), t.plan.Calls[res.index]
	if cause, ok := logerr.Cause(res.err); ok {
		return cause
	}
	c.Record.Attempts += res.attempts
	if c.Record.Reason != journal.ReasonGiven { // else its duration is known
		c.Record.Duration = t.since(c)
	}
	if call.Captured {
		c.Record.Given = capture.Pack(res.value, res.err)
	}
	if res.waitsFor != nil {
		t.waitForChild(c, res)
		return nil
	}
	c.Record.Retry = false
	if call.AsksModel && res.attempts > 0 && c.Record.Reason != journal.ReasonGiven {
		t.noteAnswer(&c.Record, res)
	}
	if call.Output == nil {
		t.conclude(c, t.discard(c, res))
		return nil
	}
	paths, value, err := call.Place(&res.value, res.err)
	if err == nil {
		err = t.write(ctx, c, paths, value, res.value.Loose)
		switch {
		case err == nil:
			c.Record.Handled = handledFailure(call, res)
		case res.err != nil: // else the failure would be lost
			err = fmt.Errorf("%w (the call had failed: %s)", err, res.err)
		}
	}
	if cause, ok := logerr.Cause(err); ok {
		return cause
	}
	t.conclude(c, err)
	return nil
}

// noteAnswer records that a model answered a call as it was asked: with a result, or a failure that
// it chose.
func (t *tick) noteAnswer(r *journal.Record, res *result) {
	reply := res.reply
	if reply == nil {
		reply = &plan.Reply{}
	}
	if res.err != nil && !reply.Chosen {
		return
	}
	r.Answered = &journal.Answered{How: journal.WhenAsked, Tick: t.event.Tick, Hash: reply.Request, Cut: reply.Cut}
	if r.Answered.Hash == "" && r.Model != nil {
		r.Answered.Hash = r.Model.Request
	}
}

// since is how long a call has been at work, in milliseconds. The clock may have
// been set back.
func (t *tick) since(c *sched.Call) float64 {
	return float64(max(t.runner.now().Sub(c.Started), 0).Microseconds()) / 1000
}

// discard checks the result of a call without an output path against its tool. A thought keeps it,
// for the latent calls after it.
func (t *tick) discard(c *sched.Call, res *result) error {
	call := t.plan.Calls[res.index]
	hasOutput := call.AsksModel || call.Given.Set || c.Record.Answered != nil
	switch {
	case res.err != nil:
		return res.err
	case c.Record.Thought != nil && !hasOutput:
		return nil // it is its parameters
	case c.Record.Thought != nil:
		c.Record.Thought = plan.Values{"call": c.Record.Thought["call"], "output": res.value.Value}
	case res.value.To != "":
		return plan.Faultf("output", "the result was sent to %s, and the call has no _outputPath", res.value.To)
	case res.value.Message != nil:
		return nil // it has no value
	}
	_, err := call.CheckResult(res.value.Value, res.value.Loose)
	return err
}

// waitForChild records that a call's delegate waits.
func (t *tick) waitForChild(c *sched.Call, res *result) {
	if c.Record.Unstored { // a detached call is not resumed
		t.settle(c, journal.Failed, map[string]any{"message": "its delegate waits, in context " + c.Record.Child, "code": "delegate"})
		return
	}
	c.Record.WaitingOn, c.WaitsSince = res.waitsFor, res.waitsSince
	c.Record.Reason = "its delegate waits, in context " + c.Record.Child
	e := sched.Event{Kind: sched.Missing}
	if c.Record.Due = ""; !res.due.IsZero() {
		c.Record.Due, e.Due, t.pauses = store.FormatDate(res.due), t.loop.untilDue(res.due), true
	}
	t.record(c, e)
}

// conclude records how a call ended.
func (t *tick) conclude(c *sched.Call, err error) {
	if err != nil {
		t.settle(c, journal.Failed, failure.Fields(err))
		return
	}
	t.settle(c, journal.Done, nil)
}

// settle records the outcome of a call, and its error, if there is one.
func (t *tick) settle(c *sched.Call, status journal.Status, err map[string]any) {
	c.Record.Error = err
	t.record(c, sched.Event{Kind: sched.Finished, Status: status})
}

// record applies an event to a call, and writes its record to the journal.
func (t *tick) record(c *sched.Call, e sched.Event) {
	e.Call = c.Index()
	t.state.Apply(e)
	t.recordCall(e.Call)
}

// handledFailure is the record of a failure that goes to the call's last alternative; nil for any
// other result.
func handledFailure(c *plan.Call, res *result) plan.Values {
	err, failed := errors.AsType[*plan.Failure](res.err)
	if !failed || len(c.Output.Alternatives) < 2 {
		return nil
	}
	return failure.Handled(err)
}

// write stages the messages of a result, all or none.
func (t *tick) write(ctx context.Context, c *sched.Call, paths []store.Path, value any, loose bool) error {
	i := c.Index()
	now, before := t.runner.date(), t.view.Seq()
	data := func(path store.Path) any {
		if values, ok := value.(plan.ValuesByPath); ok {
			return values[path]
		}
		return value
	}
	err := func() error {
		for _, path := range paths {
			m, err := t.message(ctx, i, path, data(path), loose)
			if err != nil {
				return err
			}
			m.Date, m.Written = now, store.FormatDate(now)
			t.noteWriter(i)
			t.view.Stage(m)
		}
		return t.declared.Check(ctx, t.plan.Calls[i], paths, data)
	}()
	if err != nil {
		t.view.Unstage(before)
		t.writers.DropAfter(before)
		return err
	}
	c.Written, c.Record.Writes = paths, make([]string, len(paths))
	for n, path := range paths {
		c.Record.Writes[n] = path.String()
	}
	return nil
}

// message makes the message of a result at one of its paths, if it fits the value there.
func (t *tick) message(ctx context.Context, i int, path store.Path, v any, loose bool) (m store.Message, err error) {
	call := t.plan.Calls[i]
	if loose && schema.HoldsEmptyObject(v) {
		if v, err = t.declared.Lists(ctx, call, path, v); err != nil {
			return m, err
		}
	}
	if size, most := store.SizeOf(v), positive(t.runner.Result, DefaultResult); size > most {
		return m, plan.Faultf("result", "the result at %s has %d bytes, and may have %d: the setting limits.result allows no more", path, size, most)
	}
	m = store.Message{
		Type: store.TypeData, Kind: path.Kind(), Instance: call.Instance, Data: store.Some(store.Wrap(path, v)),
		Producer: t.state.Calls[i].Record.Hold.Correct(call.Issued), Call: t.state.Calls[i].Record.Call, Path: path, Method: call.Method,
	}
	if err := store.CheckDepth(m.Data.Value); err != nil {
		return m, &plan.Fault{Code: plan.CodeSchema, Err: fmt.Errorf("the result at %s is %w", path, err)}
	}
	op, _ := m.Op()
	err = t.reads().CheckJoin(i, func(r store.Resolver) error { return r.CheckOp(ctx, op) })
	if _, misfit := errors.AsType[*plan.Fault](err); err != nil && !misfit {
		err = logerr.Wrap(err)
	}
	return m, err
}

// backOff records that a call failed and is retried after a pause; where the run is to end, the
// retry is left to the next resume. The bound on its attempts counts those of earlier runs too.
func (t *tick) backOff(res *result) {
	i := res.index
	c := t.state.Change(i)
	c.Record.Attempts += res.attempts
	c.Record.Error = failure.Fields(res.err)
	if t.stopping {
		t.requeue(i)
		return
	}
	c.Record.RetryAt = store.FormatDate(t.runner.now().Add(res.retry.after))
	c.Record.Failures = res.retry.invocation.Attempt
	c.Record.MaxTries = c.Record.Attempts - c.Record.Failures + 1 + res.retry.activity.AttemptsOf(t.plan.Calls[i]).Retries
	if t.attempts == nil {
		t.attempts = map[int]start{}
	}
	t.attempts[i] = res.retry.start
	pause(t, c, res.retry.after)
}

// pause has a call pause before its next attempt. Meanwhile it takes no slot.
func pause(t *tick, c *sched.Call, left time.Duration) {
	e := sched.Event{Kind: sched.AttemptFailed, Due: time.Since(t.loop.opened) + left}
	if rest := t.runner.Rest; rest > 0 && left >= rest {
		e.Kind, c.Record.Rests = sched.Missing, true
	}
	t.record(c, e)
	t.pauses = true
}

// endPauses gives the calls their turn that are to be tried again by now.
func (t *tick) endPauses() {
	t.state.ApplyTime(time.Since(t.loop.opened))
	t.pauses = true // others may be left
}
