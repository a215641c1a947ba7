package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/logerr"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// amendment is a tick of the log to which decisions are applied before it goes on.
type amendment struct {
	*tickRun
	inherited bool // the tick began in the context that this one was forked from
}

// restartChild lets the delegate of a call that runs again begin anew, where it has not begun or
// belongs to the call that this one was forked from. If that would run a call again that must not
// run twice, the call is in doubt.
func (a *amendment) restartChild(ctx context.Context, r *journal.Record) (twice bool, err error) {
	if r.Child == "" {
		return false, nil
	}
	origin, ok, err := journal.In(a.runner.Log, r.Child).OriginOf(ctx)
	if err != nil || ok && origin.Parent == a.context {
		return false, err
	}
	twice, err = journal.In(a.runner.Log, r.Child).RanNonIdempotent(ctx)
	if twice { // and reads the values that exist by then
		r.Status, r.Reason, r.At, r.Reads, r.Hold, r.Error = journal.InDoubt, doubtReason(r.Child), 0, nil, nil, nil
	}
	r.Child = ""
	return twice, err
}

// disownChild lets a fork's call go on without its delegate's context, which belongs to the call
// that it was forked from. twice reports that the delegate, which begins anew, would run a call
// again that must not run twice.
func (l *loop) disownChild(ctx context.Context, r *journal.Record) (twice bool, err error) {
	if r.Child == "" || r.Status.Settled() {
		return false, nil
	}
	child, err := journal.In(l.runner.Log, l.context).OwnChild(ctx, r)
	if child != "" || err != nil {
		return false, err
	}
	if twice, err = journal.In(l.runner.Log, r.Child).RanNonIdempotent(ctx); err != nil {
		return false, err
	}
	if r.Status == journal.Waiting {
		r.Status, r.At = journal.Blocked, 0 // it begins anew, and reads anew
	}
	if twice {
		r.WaitingOn, r.Reason = nil, doubtReason(r.Child)
	}
	r.Child = ""
	return twice, nil
}

// doubtReason is the reason of a call that is in doubt for what its delegate has begun.
func doubtReason(child string) string {
	return fmt.Sprintf("its delegate, in context %s, has begun what must not run twice", child)
}

// restoreCall restores a call from its record. A call that must not run twice, and would, is in
// doubt.
func (a *amendment) restoreCall(record journal.Record, twice bool) {
	i := record.Position - 1
	if i < 0 || i >= len(a.state.Calls) {
		return
	}
	c, call := &a.state.Calls[i], a.plan.Calls[i]
	record.Context = ""
	record.CountCut()
	cut := record.Status == journal.Running && !record.Rests || record.Status == journal.Interrupted || record.Status == journal.Cancelled
	switch {
	case a.inherited && record.InBackground():
		c.Record = record
		c.Record.Status, c.Record.Reason = journal.Skipped, journal.ReasonOfOrigin
		a.recordCall(i)
	case twice, cut && (record.NotIdempotent || call.Activity != nil && call.Activity.NotIdempotent):
		c.Record = record
		c.Record.Status = journal.InDoubt
		a.recordCall(i)
	case record.Status.Settled() || record.Status == journal.InDoubt || record.Status == journal.Held || record.Status == journal.Ready:
		a.state.Load(i, record)
		if record.Status == journal.Held {
			a.observed = append(a.observed, record)
		}
	default:
		c.Record.Attempts, c.Record.Child, c.Record.Hold, c.Record.Retry = record.Attempts, record.Child, record.Hold, record.Retry
		c.Record.Before, c.Record.SupersededUpTo, c.Record.Model = record.Before, record.SupersededUpTo, record.Model
		if c.Record.If = record.If; call.Schedule != nil {
			c.Record.Due = record.Due
		}
		if record.Rests {
			c.Record.Rests, c.Record.RetryAt, c.Record.Failures, c.Record.MaxTries = true, record.RetryAt, record.Failures, record.MaxTries
			c.Record.Started, c.Record.Error = record.Started, record.Error
		}
		c.Before = record.Status
		if cut || record.Rests || record.Child != "" || record.Status == journal.Blocked {
			c.Record.At = record.At
		}
		if record.Hold != nil {
			c.Record.Reads = record.Reads
		} else if a.inherited && a.state.Approve.Holds(call) {
			c.Record.At = 0 // it began where it was not held
		}
	}
}

// restoreReported finds whose failures became error messages already.
func (a *amendment) restoreReported(ctx context.Context) error {
	reported := map[string]string{}
	for m, err := range a.runner.Log.Messages(ctx, store.Filter{Context: a.context, After: a.event.Start, Kind: store.KindError}) {
		if err != nil {
			return err
		}
		if call, failure := journal.ReportedFailure(m); call != "" && !a.view.Hides(m.Seq) {
			reported[call] = string(store.EncodeJSON(failure))
		}
	}
	for i := range a.state.Calls {
		r := &a.state.Calls[i].Record
		a.state.Calls[i].Reported = r.Error != nil && reported[r.Call] == string(store.EncodeJSON(map[string]any(r.Error)))
	}
	return nil
}

// journalDecisions records decisions about calls with their authors.
func (a *amendment) journalDecisions(s Resume) {
	decided := func(e journal.DecisionEvent, decision string) {
		e.Decision, e.Who = decision, s.Who
		a.appendEntry(e.Entry())
	}
	if s.From != "" {
		decided(journal.DecisionEvent{Call: s.From, Corrected: a.correctionsOf(s.From)}, journal.Rerun)
	}
	for _, call := range s.Retry {
		decided(journal.DecisionEvent{Call: call}, journal.Retried)
	}
	for _, call := range s.Skip {
		decided(journal.DecisionEvent{Call: call}, "skipped")
	}
	for _, call := range jsonvalue.SortedKeys(s.Result) {
		decided(journal.DecisionEvent{Call: call}, "given")
	}
}

// correctionsOf are the arguments of a call that a person has put in the place of others.
func (a *amendment) correctionsOf(call string) plan.Values {
	i, _ := journal.IndexInTick(a.event.Tick, call)
	h := a.state.Calls[i].Record.Hold
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
func (a *amendment) decide(ctx context.Context, s Resume) error {
	if s.From != "" {
		if err := a.rerun(ctx, s.From, s.Set, s.Who); err != nil {
			return err
		}
	}
	if err := a.rerunDecided(ctx, s.Retry, s.Result); err != nil {
		return err
	}
	for _, name := range s.Skip {
		i, err := a.decidable(name)
		if err != nil {
			return err
		}
		c := &a.state.Calls[i]
		c.Record.Status, c.Record.Reason = journal.Skipped, journal.ReasonSkipped
		a.recordCall(i)
	}
	a.journalDecisions(s)
	return nil
}

// rerunDecided has calls run again, or settle with results that a person gives, and requeues calls
// that were skipped because of them.
func (a *amendment) rerunDecided(ctx context.Context, retry []string, known map[string]any) error {
	given, err := a.checkGiven(ctx, known)
	if err != nil {
		return err
	}
	revived, first := make([]bool, len(a.state.Calls)), []int(nil)
	for _, res := range given {
		a.completeGiven(res)
		revived[res.index], first = true, append(first, res.index)
	}
	for _, name := range retry {
		i, err := a.decidable(name)
		if err != nil {
			return err
		}
		runs, err := a.retry(ctx, i)
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
	behind, err := a.downstream(ctx, first...)
	if err != nil {
		return err
	}
	for _, i := range behind { // calls that have run without them, by another alternative perhaps
		if !revived[i] && a.state.Calls[i].Record.Status == journal.Done {
			a.stale = append(a.stale, a.state.Calls[i].Record.Call)
		}
	}
	a.requeueSkipped(revived)
	return a.hideSuperseded(ctx)
}

func (a *amendment) decidable(name string) (int, error) {
	i, ok := journal.IndexInTick(a.event.Tick, name)
	if !ok || i >= len(a.state.Calls) {
		return 0, &journal.NoSuchCallError{Message: fmt.Sprintf("no call %q in the last tick%s", name, a.span()), Absent: true}
	}
	status := a.state.Calls[i].Record.Status
	if status != journal.Failed && status != journal.InDoubt {
		status = cmp.Or(a.state.Calls[i].Before, status)
		return 0, &journal.NoSuchCallError{Message: fmt.Sprintf("call %s is %s: only one that failed or is in doubt can be retried, skipped or given a result", name, status)}
	}
	return i, nil
}

// span names the calls that there are.
func (a *amendment) span() string {
	if len(a.state.Calls) == 0 {
		return ", which has none"
	}
	return fmt.Sprintf(": its calls are %s to %s", journal.CallID(a.event.Tick, 1), journal.CallID(a.event.Tick, len(a.state.Calls)))
}

// retry has a call run again, unless what its delegate has begun must not run twice: then
// it is in doubt.
func (a *amendment) retry(ctx context.Context, i int) (runs bool, err error) {
	twice, err := a.restartChild(ctx, &a.state.Calls[i].Record)
	switch {
	case err != nil:
		return false, err
	case twice:
		a.recordCall(i)
		return false, nil
	}
	a.requeueFresh(i)
	return true, nil
}

// requeueFresh makes a call run again, and requeues calls that were skipped because of it. A call
// that was in doubt, or whose delegate goes on, keeps the values that it read and the arguments
// that a person approved.
func (a *amendment) requeueFresh(i int) {
	c := &a.state.Calls[i]
	was := c.Record
	used := c.Record.Model
	c.Record, c.Reported = a.newRecord(i), false
	c.Record.Model = used.Earlier()
	c.Record.Attempts, c.Record.Child, c.Record.Retry = was.Attempts, was.Child, was.Child != ""
	c.Record.Before, c.Record.SupersededUpTo, c.Record.Due = was.Before, was.SupersededUpTo, was.Due
	if was.Status == journal.Failed {
		c.Record.SupersededUpTo = a.view.Seq() // the messages that reported its failure
	}
	switch {
	case was.Status == journal.InDoubt || was.Child != "":
		c.Record.At, c.Record.Reads, c.Record.Hold, c.Record.If = was.At, was.Reads, was.Hold, was.If
	// The correction has not taken effect.
	case was.Before != 0 && was.Hold != nil && was.Hold.Corrected != nil && !a.event.Approve.Holds(a.plan.Calls[i]):
		c.Record.Reads, c.Record.Hold = was.Reads, was.Hold
	}
	a.recordCall(i)
}

// checkGiven checks results that a person gives, all of them together, as results of activities are
// checked, and returns them in the order of the plan.
func (a *amendment) checkGiven(ctx context.Context, known map[string]any) (given []*result, err error) {
	for _, name := range jsonvalue.SortedKeys(known) {
		i, err := a.decidable(name)
		if err != nil {
			return nil, err
		}
		given = append(given, &result{tick: a.tickRun, index: i, value: plan.Result{Value: known[name]}})
	}
	slices.SortFunc(given, func(a, b *result) int { return a.index - b.index })
	before := a.view.Seq()
	defer func() {
		a.view.Unstage(before)
		a.writers.DropAfter(before)
	}()
	for _, res := range given {
		v, err := store.FromGo(res.value.Value, "result")
		if err == nil {
			res.value.Value = v
			err = a.checkGivenResult(ctx, res.index, v)
		}
		if cause, ok := logerr.Cause(err); ok {
			return nil, cause
		}
		if err != nil {
			return nil, &journal.CorrectionError{Call: a.state.Calls[res.index].Record.Call, Err: err}
		}
	}
	return given, nil
}

// checkGivenResult reports why a call does not accept a result, and leaves its messages staged.
func (a *amendment) checkGivenResult(ctx context.Context, i int, v any) error {
	call, c := a.plan.Calls[i], a.state.Calls[i]
	v, err := call.CheckResult(v, false)
	if err == nil && call.Output != nil {
		err = a.write(ctx, a.state.Change(i), call.Output.Alternatives[0], v, false)
		a.state.Calls[i] = c
	}
	return err
}

// completeGiven has a call settle, in the first step, with the result that a person gives. Its
// reads and its start stay recorded.
func (a *amendment) completeGiven(res *result) {
	c := &a.state.Calls[res.index]
	was := c.Record
	a.requeueFresh(res.index)
	c.Started = a.runner.now()
	c.Record.Status, c.Record.Reason = journal.Running, journal.ReasonGiven
	c.Record.If = was.If
	c.Record.At, c.Record.Reads, c.Record.Started, c.Record.NotIdempotent, c.Record.Thought = was.At, was.Reads, was.Started, was.NotIdempotent, was.Thought
	c.Record.Duration = was.Duration
	c.Record.Script, c.Record.SHA256, c.Record.Generation = was.Script, was.SHA256, was.Generation
	a.givenResults = append(a.givenResults, res)
}

// requeueSkipped requeues calls that were skipped because of calls that run again.
func (a *amendment) requeueSkipped(again []bool) {
	for more := true; more; {
		more = false
		for i, call := range a.plan.Calls {
			r := &a.state.Calls[i].Record
			isBehind := r.Status == journal.Skipped && !r.IsLeftOut()
			if isBehind && !again[i] && a.plan.Graph.DependsOnAny(i, decisive(call, r), again) {
				a.requeueFresh(i)
				again[i], more = true, true
			}
		}
	}
}

// decisive lists the references of a call that led to its outcome: of one whose condition does not
// hold, only that one's.
func decisive(call *plan.Call, r *journal.Record) []store.Path {
	if r.Status == journal.Skipped && r.If != nil && !r.If.Holds && call.If != nil {
		return call.If.Reads()
	}
	return call.Refs
}

// hasOvertaken reports whether a call is to run although a call that waits for it has settled, or
// whether calls run again: then calls must not see all messages.
func (a *amendment) hasOvertaken() bool {
	settled := func(e plan.Edge) bool { return a.state.Calls[e.To].Record.Status.Settled() }
	for i := range a.state.Calls {
		r := &a.state.Calls[i].Record
		if r.Before != 0 || r.SupersededUpTo != 0 || !r.Status.Settled() && slices.ContainsFunc(a.plan.Graph.OutOf[i], settled) {
			return true
		}
	}
	return false
}
