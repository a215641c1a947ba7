package sched

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"obelus/engine/expr"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// Values reads the values of the context for calls, with the messages of the step.
type Values interface {
	// Resolve reads a path for a call, as an instance sees it.
	Resolve(call int, path store.Path, instance string) (store.Resolved, error)

	// Grant returns the values that a call's scopes grant, by kind, and records in reads, by scope,
	// the newest seq that each came from.
	Grant(call int, reads map[string]int64) (map[string]any, error)

	// CheckMethod checks that the value at a path takes the method by which a call writes there. Its
	// error is a [*plan.Fault] where it does not.
	CheckMethod(call int, path store.Path) error

	// Now returns the time by which calls are due.
	Now() time.Time

	// Explain adds a remedy to the error of a call's parameters.
	Explain(call int, err error) error
}

// Action is the next action of a call.
type Action uint8

// The actions of calls.
const (
	Start   Action = iota // it begins, with its first attempt
	Retry                 // it begins another attempt, with the arguments of the first, which it has had in this run
	Hold                  // it is held for a person
	Wait                  // it waits for values from outside the plan, or for a time, which may be when its next attempt is due
	Confirm               // its condition holds, or its time has come
	Skip                  // it is not to run: a value that it needs was not written, or its condition does not hold
	Reject                // it fails without running, by a fault of the plan that its alternatives do not handle
	Fail                  // it fails without running, as if its activity had failed
)

// Decision is the next action of a call, with its content.
type Decision struct {
	Action

	Arguments map[string]any   // of Start and Hold: the call with its references resolved
	Granted   map[string]any   // of Start and Hold: the values that its scopes grant
	Reads     map[string]int64 // of Start and Hold: by reference, the newest seq that its value came from
	WaitsFor  []string         // of Wait: the references; none where it waits for a time
	Reason    string           // of Skip
	// Of Confirm, and of Skip by a condition.
	If  *journal.Condition
	Due time.Time // of Confirm, and of Wait for a time: when a call with a time is due
	Err error     // of Reject and Fail

	Warning string // see [journal.Record]
}

// Evaluate decides about a queued call. Its error is one of the values.
func (s *State) Evaluate(ctx context.Context, i int, v Values) (Decision, error) {
	e := evaluation{s, i, s.Plan.Calls[i], v, nil}
	if len(e.call.Refs) == 0 {
		return e.decide(ctx)
	}
	e.notes = &expr.Notes{}
	d, err := e.decide(e.notes.NotedIn(ctx))
	d.Warning = e.notes.First()
	return d, err
}

func (e *evaluation) decide(ctx context.Context) (Decision, error) {
	s, i, v := e.State, e.i, e.values
	record := &s.Calls[i].Record
	if s.Calls[i].AwaitsRetry() && s.Calls[i].Step == 0 {
		if due, err := time.Parse(time.RFC3339, record.RetryAt); err == nil && v.Now().Before(due) {
			return Decision{Action: Wait, Due: due}, nil
		}
	}
	switch h := record.Hold; {
	case s.Calls[i].AwaitsRetry() && s.Calls[i].Step != 0:
		return Decision{Action: Retry}, nil
	case h != nil && h.Decision == journal.Rejected:
		return Decision{Action: Fail, Err: &plan.Failure{Fields: map[string]any{"message": h.Reason, "code": journal.Rejected}}}, nil
	case h != nil && h.Decision != "":
		return e.approved(h)
	case !s.Calls[i].decided:
		return e.condition(ctx)
	case !s.Calls[i].timed:
		return e.schedule(ctx)
	}
	return e.evaluate(ctx)
}

// evaluation decides about one call.
type evaluation struct {
	*State
	i      int
	call   *plan.Call
	values Values
	notes  *expr.Notes // nil for a call without references
}

// condition evaluates the call's _if. Unlike for a parameter, a value that is missing for good
// makes it false.
func (e *evaluation) condition(ctx context.Context) (d Decision, err error) {
	d.If = &journal.Condition{Reads: map[string]int64{}}
	v, missing, err := e.call.If.Eval(ctx, e.Lookup(e.i, e.values, d.If.Reads))
	if bad, ok := errors.AsType[*expr.Error](err); ok {
		return reject(&plan.Fault{Code: plan.CodeExpression, Err: &expr.PlacedError{Place: "_if", Err: bad}}), nil
	}
	what := string(store.EncodeJSON(v))
	switch {
	case err != nil:
		return d, err
	case missing != nil && missing.Open:
		return e.decideMissing(missing), nil
	case missing != nil:
		what = "missing"
	case v != nil && v != false:
		if e.notes != nil {
			e.notes.NoteCondition(e.call.If.Expr, v)
		}
		d.Action, d.If.Holds = Confirm, true
		return d, nil
	}
	d.Action, d.Reason = Skip, "its _if is "+what
	if e.call.If.Expr != nil {
		d.Reason += ": " + e.call.If.Expr.String()
	}
	if missing != nil {
		if why := cmp.Or(e.skipReason(missing.Paths), missing.Reason()); why != "" {
			d.Reason += " (" + why + ")"
		}
	}
	return d, nil
}

// schedule decides about a call with _at or _in: it waits for its time, unless its parameters
// already show that it is to be skipped. The time is found out once. A recorded run waits for none.
func (e *evaluation) schedule(ctx context.Context) (d Decision, err error) {
	lookup, now := e.Lookup(e.i, e.values, map[string]int64{}), e.values.Now()
	if d.Due, err = time.Parse(time.RFC3339, e.Calls[e.i].Record.Due); err != nil {
		v, missing, err := e.call.Schedule.Eval(ctx, lookup)
		if bad, ok := errors.AsType[*expr.Error](err); ok {
			return reject(&plan.Fault{Code: plan.CodeExpression, Err: &expr.PlacedError{Place: e.call.Schedule.Name, Err: bad}}), nil
		}
		if err != nil {
			return d, err
		}
		if missing != nil {
			return e.decideMissing(missing), nil
		}
		if d.Due, err = e.call.Schedule.Due(v, now); err != nil {
			return reject(err), nil
		}
	}
	if !now.Before(d.Due) {
		d.Action = Confirm
		return d, nil
	}
	if skip, err := e.skippedAnyway(ctx, lookup); skip.Action == Skip || err != nil {
		return skip, err
	}
	d.Action = Wait
	return d, nil
}

// skippedAnyway decides to skip a call one of whose parameters is missing for good.
func (e *evaluation) skippedAnyway(ctx context.Context, lookup expr.Lookup) (d Decision, err error) {
	_, missing, err := e.call.Evaluate(ctx, lookup, nil)
	if _, bad := errors.AsType[*plan.Fault](err); bad {
		return d, nil // it is found when it is time: values may change until then
	}
	if err != nil || missing == nil || missing.Open {
		return d, err
	}
	return e.decideMissing(missing), nil
}

func (e *evaluation) evaluate(ctx context.Context) (d Decision, err error) {
	d.Reads = map[string]int64{}
	if met := e.Calls[e.i].Record.If; met != nil {
		maps.Copy(d.Reads, met.Reads)
	}
	lookup := e.Lookup(e.i, e.values, d.Reads)
	if e.call.Schedule != nil { // for what it reads
		if _, _, err := e.call.Schedule.Eval(ctx, lookup); err != nil && !errors.As(err, new(*expr.Error)) {
			return d, err
		}
	}
	var missing *expr.Missing
	d.Arguments, missing, err = e.call.Resolve(ctx, lookup)
	if fault, ok := errors.AsType[*plan.Fault](err); ok {
		return reject(&plan.Fault{Code: fault.Code, Err: e.values.Explain(e.i, fault.Err)}), nil
	}
	if err != nil {
		return d, err
	}
	if missing != nil {
		return e.decideMissing(missing), nil
	}
	if d.Granted, err = e.values.Grant(e.i, d.Reads); err != nil {
		return d, err
	}
	if misfit, err := e.misfit(); misfit != nil || err != nil {
		return reject(misfit), err
	}
	if e.Approve.Holds(e.call) && e.Calls[e.i].Record.At == 0 {
		d.Action = Hold
	}
	return d, nil
}

func reject(err error) Decision { return Decision{Action: Reject, Err: err} }

// approved decides about a call that a person has approved.
func (e *evaluation) approved(h *journal.Hold) (d Decision, err error) {
	if misfit, err := e.misfit(); misfit != nil || err != nil {
		return reject(misfit), err
	}
	// The correction may have been checked against another version of the tool.
	if len(h.Corrected) > 0 {
		if err := e.call.Definition.Accepts(h.Arguments); err != nil {
			return Decision{Action: Fail, Err: &plan.Fault{Code: plan.CodeSchema, Err: fmt.Errorf("as corrected: %w", err)}}, nil
		}
	}
	d.Arguments, d.Granted = make(map[string]any, len(e.call.Issued)), h.Granted
	maps.Copy(d.Arguments, h.Arguments)
	e.call.WithMeta(d.Arguments)
	if d.Granted == nil {
		d.Granted = map[string]any{}
	}
	d.Reads = e.call.ReadsWithout(h.Arguments, h.Corrected, e.Calls[e.i].Record.Reads)
	return d, nil
}

// misfit returns why a value at a path that the call writes does not take its method, nil if all
// do.
func (e *evaluation) misfit() (misfit, err error) {
	for _, path := range e.call.Output.Writes() {
		err := e.values.CheckMethod(e.i, path)
		if _, misfits := errors.AsType[*plan.Fault](err); misfits {
			return err, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Lookup returns a function that reads references for a call, as of now, and records in reads the
// newest seq that each value came from. A path that calls of the plan write has a value only once
// one of them has written it.
func (s *State) Lookup(i int, v Values, reads map[string]int64) expr.Lookup {
	g, call := s.Plan.Graph, s.Plan.Calls[i]
	return func(path store.Path) (value any, exists, open bool, err error) {
		sources := g.SourcesOf(i, path)
		fresh := len(sources) == 0
		for n := len(sources) - 1; n >= 0 && !fresh; n-- { // the last is the most likely
			fresh = s.WroteAbove(sources[n], path)
		}
		if !fresh {
			return nil, false, false, nil
		}
		resolved, err := v.Resolve(i, path, call.Instance)
		if err != nil {
			return nil, false, false, err
		}
		if !resolved.Exists {
			return nil, false, s.isOpen(i, path), nil
		}
		reads[path.String()] = journal.NewestSeq(resolved.From)
		return resolved.Value, true, false, nil
	}
}

// isOpen reports whether no call of the plan writes a path that a call reads: its value may come
// from outside.
func (s *State) isOpen(i int, path store.Path) bool {
	before, after := s.Plan.Graph.SplitWriters(i, path)
	return len(before)+len(after) == 0
}

// WroteAbove reports whether a call has written at a path or above it.
func (s *State) WroteAbove(i int, path store.Path) bool {
	return slices.ContainsFunc(s.Calls[i].Written, func(w store.Path) bool { return w.Contains(path) })
}

// decideMissing decides about a call whose values are missing though all calls that it depends on
// have settled: it waits, it fails, or it is skipped.
func (e *evaluation) decideMissing(missing *expr.Missing) Decision {
	if missing.Open {
		d := Decision{Action: Wait}
		for _, path := range missing.Paths {
			if e.isOpen(e.i, path) && !slices.Contains(d.WaitsFor, path.String()) {
				d.WaitsFor = append(d.WaitsFor, path.String())
			}
		}
		return d
	}
	for _, path := range missing.Paths {
		// The last may have replaced the values of the others.
		for _, w := range slices.Backward(e.Plan.Graph.WritersFor(e.i, path)) {
			if e.WroteAbove(w, path) {
				return reject(plan.Faultf(plan.CodeExpression, "%s is missing: %s %s", path, e.Plan.Graph.Label(w), e.howMissing(w, path)))
			}
		}
	}
	reason := e.skipReason(missing.Paths)
	if reason == "" && missing.Member != nil {
		return reject(plan.Faultf(plan.CodeExpression, "%w", missing.Member))
	}
	return Decision{Action: Skip, Reason: reason}
}

// howMissing returns why a value is missing at or below a path that a call has written.
func (e *evaluation) howMissing(writer int, path store.Path) string {
	switch {
	case slices.Contains(e.Calls[writer].Written, path):
		return "wrote there, and it is there no more"
	case path.Kind() == store.KindError && e.othersWroteErrors(writer):
		return "wrote above it, but without that key, or another error has replaced it"
	}
	return "wrote above it, but without that key"
}

// othersWroteErrors reports whether a call other than i has written an error, which may have
// replaced i's error.
func (e *evaluation) othersWroteErrors(i int) bool {
	for other := range e.Calls {
		if other != i && slices.ContainsFunc(e.Calls[other].Written, func(w store.Path) bool { return w.Kind() == store.KindError }) {
			return true
		}
	}
	return false
}

// mostReasons bounds how many calls the reason of a skip names.
const mostReasons = 8

// skipReason returns which calls did not write the paths that a skipped call needs, and why; first
// those that were not skipped themselves. It is empty where no call may write them.
func (e *evaluation) skipReason(paths []store.Path) string {
	var reasons []string
	var named []int
	for _, skipped := range []bool{false, true} {
		for _, path := range paths {
			for _, w := range e.Plan.Graph.WritersFor(e.i, path) {
				status := e.Calls[w].Record.Status
				if (status == journal.Skipped) != skipped || slices.Contains(named, w) {
					continue
				}
				if len(named) == mostReasons {
					return strings.Join(append(reasons, "and more"), "; ")
				}
				reason := "%s took another branch than %s"
				switch {
				case e.WroteAbove(w, path):
					reason = "for %[2]s, %[1]s " + e.howMissing(w, path)
				case status == journal.Failed:
					reason = "%s failed, and so did not write %s"
				case status == journal.Skipped:
					reason = "%s was skipped, and so did not write %s"
				}
				named = append(named, w)
				label := fmt.Sprintf("call %s (%s)", e.Calls[w].Record.Call, e.Plan.Calls[w].Tool)
				reasons = append(reasons, fmt.Sprintf(reason, label, path))
			}
		}
	}
	return strings.Join(reasons, "; ")
}
