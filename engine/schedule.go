package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"obelus/engine/internal/failure"
	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// advance starts the calls that can start, and settles at once those that need no worker: skipped
// and rejected calls, and those that bring their own result.
func (t *tick) advance(ctx context.Context) error {
	for {
		i, ok := t.state.Next()
		if !ok {
			return nil
		}
		t.state.Dequeue(i)
		if err := t.evaluate(ctx, i); err != nil {
			return err
		}
		if err := t.startGroup(ctx, i); err != nil {
			return err
		}
	}
}

// startGroup evaluates the calls that one request answers together with a call that has begun. They
// begin in the same step, whether or not there is room for so many: the group takes one slot.
func (t *tick) startGroup(ctx context.Context, i int) error {
	if t.state.Calls[i].Phase != sched.Running {
		return nil
	}
	for _, k := range t.plan.Group(i) {
		if !t.state.Dequeue(k) {
			continue
		}
		t.joining = true
		err := t.evaluate(ctx, k)
		if t.joining = false; err != nil {
			return err
		}
	}
	return nil
}

// evaluate takes a call's next action: to start, to wait, to be held, skipped or failed.
func (t *tick) evaluate(ctx context.Context, i int) error {
	t.evaluating = evaluating{&t.values, ctx, t.runner}
	d, err := t.state.Evaluate(ctx, i, &t.evaluating)
	if err != nil {
		return err
	}
	c := t.state.Change(i)
	c.Record.Warning = cmp.Or(c.Record.Warning, d.Warning)
	switch d.Action {
	case sched.Start:
		return t.start(ctx, c, d)
	case sched.Retry:
		t.startRetry(i)
	case sched.Hold:
		t.awaitApproval(c, d)
	case sched.Wait:
		t.wait(c, d)
	case sched.Confirm:
		t.confirm(c, d)
	case sched.Skip:
		c.Record.If, c.Record.WaitingOn = d.If, nil
		t.skip(c, d.Reason)
	case sched.Reject:
		c.Record.At = t.view.Seq() // if it runs again, it reads as of here
		t.settle(c, journal.Failed, failure.Fields(d.Err))
	case sched.Fail:
		c.Started = t.runner.now()
		return t.complete(ctx, &result{index: i, err: d.Err})
	}
	return nil
}

// wait records that a call waits, for values or for a time.
func (t *tick) wait(c *sched.Call, d sched.Decision) {
	if c.Record.Rests && !d.Due.IsZero() {
		pause(t, c, max(d.Due.Sub(t.runner.now()), 1))
		return
	}
	c.Record.WaitingOn = d.WaitsFor
	e := sched.Event{Kind: sched.Missing}
	if !d.Due.IsZero() {
		c.Record.Due, e.Due, t.pauses = store.FormatDate(d.Due), t.loop.untilDue(d.Due), true
	}
	t.record(c, e)
}

// confirm records that a call's condition holds, or that its time has come. The journal has it at
// once only if the call still waits for others: a condition is not evaluated again then.
func (t *tick) confirm(c *sched.Call, d sched.Decision) {
	if d.If != nil {
		c.Record.If = d.If
	}
	if !d.Due.IsZero() {
		c.Record.Due = store.FormatDate(d.Due)
	}
	c.Record.WaitingOn = nil
	t.state.Apply(sched.Event{Kind: sched.Confirmed, Call: c.Index()})
	if c.Phase == sched.Blocked {
		t.appendEntry(c.Record.Entry())
	}
}

// skip ends a call that is not to run.
func (t *tick) skip(c *sched.Call, reason string) {
	c.Record.Reason, c.Record.At = reason, t.view.Seq()
	t.settle(c, journal.Skipped, c.Record.Error)
}

// start records that a call runs, and has the step start it, unless it needs no worker.
func (t *tick) start(ctx context.Context, c *sched.Call, d sched.Decision) error {
	i := c.Index()
	call := t.plan.Calls[i]
	in := plan.Invocation{Call: d.Arguments, Context: d.Granted, Tool: call.Definition.Schema, Allows: call.Definition.Allows(), Logs: t.runner.Logs}
	c.Started, c.Record.WaitingOn, c.Record.Reason = t.runner.now(), nil, ""
	if c.Record.Rests { // it goes on with the attempts of an earlier run
		in.Attempt = c.Record.Failures
		if began, err := time.Parse(time.RFC3339, c.Record.Started); err == nil {
			c.Started = began
		}
	} else {
		c.Record.Started, c.Record.Error = store.FormatDate(t.runner.dated(c.Started)), nil
	}
	in.Before = c.Record.Attempts - in.Attempt
	if call.Schedule == nil { // else it is the call's, and not of its delegate
		c.Record.Due = ""
	}
	if len(d.Reads) > 0 || c.Record.Hold != nil { // without those that a person has corrected
		c.Record.Reads = d.Reads
	}
	if call.IsThought() {
		c.Record.Thought = plan.Values{"call": call.ForModel(in.Call)}
	}
	if taken, err := t.takeAnswer(ctx, c); taken || err != nil {
		return err
	}
	if call.IsConstant() {
		c.Record.Warning = cmp.Or(c.Record.Warning, plan.ConstantWarning)
	}
	if call.Activity == nil {
		return t.complete(ctx, &result{index: i, value: plan.Result{Value: call.Given.Value}, attempts: 0})
	}
	in.Key = t.context + "/" + c.Record.Call
	activity := call.Activity.Current(call.ActivityName, call.Definition)
	c.Record.Script, c.Record.SHA256, c.Record.Generation, c.Record.NotIdempotent = activity.Script, activity.SHA256, "", activity.NotIdempotent
	if activity.Code != nil {
		c.Record.Generation = activity.Code.Digest
		if !slices.Contains(t.code, activity.Code) {
			t.code = append(t.code, activity.Code)
		}
	}
	if c.Record.At == 0 {
		c.Record.At = t.view.Seq()
	}
	in.Timeout = activity.AttemptsOf(call).Timeout
	s := start{index: i, activity: activity, doer: call.ActivityName, invocation: in}
	switch {
	case call.AsksModel:
		s.invocation.Question = t.question(i, in)
		for _, scope := range call.ScopePaths {
			resolved, err := t.resolver(i).Resolve(ctx, scope, call.Instance)
			if err != nil {
				return err
			}
			s.granted = append(s.granted, resolved.From...)
		}
	case call.Delegate != nil:
		if c.Record.Child == "" {
			c.Record.Attempts++
			var err error
			if c.Record.Child, err = t.newChild(ctx, &c.Record); err != nil {
				return err
			}
		}
		s.child = t.prepareChild(i, in)
	}
	s.speculative = t.speculativeOf(s)
	t.addStart(s)
	return nil
}

// addStart has the step start a call.
func (t *tick) addStart(s start) {
	s.step = t.state.Step()
	t.state.Apply(sched.Event{Kind: sched.Started, Call: s.index, Joins: t.joining})
	if s.speculative == nil {
		t.recordCall(s.index)
	}
	t.starts = append(t.starts, s)
}

// restart has the step start a call again that could not run without a recorded start.
func (t *tick) restart(s start) {
	s.speculative = nil
	t.recordCall(s.index)
	t.starts = append(t.starts, s)
}

// awaitApproval records that a call waits for a person.
func (t *tick) awaitApproval(c *sched.Call, d sched.Decision) {
	c.Record.Hold, c.Record.WaitingOn, c.Record.At = t.preview(c.Index(), d.Arguments, d.Granted), nil, t.view.Seq()
	if len(d.Reads) > 0 {
		c.Record.Reads = d.Reads
	}
	t.record(c, sched.Event{Kind: sched.HeldBack})
}

// preview returns the part of a call that a person is shown.
func (t *tick) preview(i int, resolved, granted map[string]any) *journal.Hold {
	call := t.plan.Calls[i]
	h := &journal.Hold{Since: store.FormatDate(t.runner.date()), Arguments: plan.Values{}, Granted: granted}
	h.Reasoning, _ = call.Issued["_reasoningForCall"].(string)
	for _, p := range call.Params {
		h.Arguments[p.Name] = resolved[p.Name]
	}
	for _, scope := range call.ScopePaths {
		h.Scopes = append(h.Scopes, strings.TrimPrefix(scope.String(), store.Dagger))
	}
	return h
}

// startRetry starts a call once more, with the arguments of its first start.
func (t *tick) startRetry(i int) {
	s := t.attempts[i]
	s.speculative = nil
	t.addStart(s)
}
