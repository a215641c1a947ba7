package sched

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/engine/expr"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// Values are what calls read: the context's messages, those of the step included.
type Values interface {
	// Resolve reads a path for a call, as an instance sees it.
	Resolve(call int, path store.Path, instance string) (store.Resolved, error)

	// Grant returns what a call's scopes let it see, by kind. It notes in reads where each value
	// came from.
	Grant(call int, reads map[string]int64) (map[string]any, error)

	// CheckMethod checks that the value at a path takes the method by which a call writes there. Its
	// error is a [*plan.Fault] where it does not.
	CheckMethod(call int, path store.Path) error

	// Explain adds to the error of a call's parameters what the call's reader can do about it.
	Explain(call int, err error) error
}

// Action is what a call does when its turn has come.
type Action uint8

// What a call does.
const (
	Start  Action = iota // it begins, with its first attempt
	Retry                // it begins another attempt, with the arguments of the first
	Hold                 // it is held for a person
	Wait                 // it waits for values from outside the plan
	Skip                 // it is not to run: what it needs was not written
	Reject               // it can't run, and that is a fault of the plan: its alternatives don't count
	Fail                 // it fails without running, as if its activity had failed
)

// Decision is what a call does, with what it is told by.
type Decision struct {
	Action

	Arguments map[string]any   // of Start and Hold: the call with its references resolved
	Granted   map[string]any   // of Start and Hold: what its scopes let it see
	Reads     map[string]int64 // of Start and Hold: by reference, the newest seq that its value came from
	WaitsFor  []string         // of Wait: the references
	Reason    string           // of Skip
	Err       error            // of Reject and Fail
}

// Evaluate decides what a call does whose turn has come. Its error is one of the values.
func (s *State) Evaluate(ctx context.Context, i int, v Values) (d Decision, err error) {
	c, call := &s.Calls[i], s.Plan.Calls[i]
	if c.Again {
		return Decision{Action: Retry}, nil
	}
	if h := c.Record.Hold; h != nil && h.Decision != "" {
		return s.evaluateDecided(i, v, h)
	}
	d.Reads = map[string]int64{}
	var lacking *expr.Missing
	d.Arguments, lacking, err = call.Resolve(ctx, s.Lookup(i, v, d.Reads))
	if fault, wrong := errors.AsType[*plan.Fault](err); wrong {
		return reject(&plan.Fault{Code: fault.Code, Err: v.Explain(i, fault.Err)}), nil
	}
	if err != nil {
		return d, err
	}
	if lacking != nil {
		return s.evaluateLacking(i, lacking), nil
	}
	if d.Granted, err = v.Grant(i, d.Reads); err != nil {
		return d, err
	}
	if misfit, err := s.misfit(i, v); misfit != nil || err != nil {
		return reject(misfit), err
	}
	if s.Approve.Holds(call) && c.Record.At == 0 {
		d.Action = Hold
	}
	return d, nil
}

func reject(err error) Decision { return Decision{Action: Reject, Err: err} }

// evaluateDecided goes on with a call as a person decided.
func (s *State) evaluateDecided(i int, v Values, h *journal.Hold) (Decision, error) {
	if h.Decision == journal.Rejected {
		return Decision{Action: Fail, Err: &plan.Failure{Fields: map[string]any{"message": h.Reason, "code": journal.Rejected}}}, nil
	}
	call := s.Plan.Calls[i]
	if misfit, err := s.misfit(i, v); misfit != nil || err != nil {
		return reject(misfit), err
	}
	// The correction may have been checked against another version of the tool.
	if len(h.Corrected) > 0 {
		if err := call.Definition.Accepts(h.Arguments); err != nil {
			return Decision{Action: Fail, Err: &plan.Fault{Code: plan.CodeSchema, Err: fmt.Errorf("as corrected: %w", err)}}, nil
		}
	}
	d := Decision{Arguments: make(map[string]any, len(call.Issued)), Granted: h.Granted}
	maps.Copy(d.Arguments, h.Arguments)
	call.WithMeta(d.Arguments)
	if d.Granted == nil {
		d.Granted = map[string]any{}
	}
	d.Reads = call.ReadsWithout(h.Arguments, h.Corrected, s.Calls[i].Record.Reads)
	return d, nil
}

// misfit reports why a value where a call writes does not take its method.
func (s *State) misfit(i int, v Values) (misfit, err error) {
	for _, path := range s.Plan.Calls[i].Output.Writes() {
		err := v.CheckMethod(i, path)
		if _, misfits := errors.AsType[*plan.Fault](err); misfits {
			return err, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Lookup reads references for a call, as of now, and notes in reads where each value came from. A
// path that calls of the plan write has a value only once one of them has written it.
func (s *State) Lookup(i int, v Values, reads map[string]int64) expr.Lookup {
	g, call := s.Plan.Graph, s.Plan.Calls[i]
	return func(path store.Path) (value any, exists, open bool, err error) {
		sources := g.SourcesOf(i, path)
		fresh := len(sources) == 0
		for _, w := range slices.Backward(sources) { // the last is the most likely
			if fresh = s.WroteAbove(w, path); fresh {
				break
			}
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

// isOpen reports whether a path that a call reads is written by no call of the plan, so that its
// value may come from outside.
func (s *State) isOpen(i int, path store.Path) bool {
	before, after := s.Plan.Graph.SplitWriters(i, path)
	return len(before)+len(after) == 0
}

// WroteAbove reports whether a call has written at a path or above it.
func (s *State) WroteAbove(i int, path store.Path) bool {
	return slices.ContainsFunc(s.Calls[i].Written, func(w store.Path) bool { return w.Contains(path) })
}

// evaluateLacking decides about a call whose expressions are missing though all that it depends on
// has settled: it waits, or it fails, or it is skipped.
func (s *State) evaluateLacking(i int, lacking *expr.Missing) Decision {
	if lacking.Open {
		d := Decision{Action: Wait}
		for _, path := range lacking.Paths {
			if s.isOpen(i, path) && !slices.Contains(d.WaitsFor, path.String()) {
				d.WaitsFor = append(d.WaitsFor, path.String())
			}
		}
		return d
	}
	for _, path := range lacking.Paths {
		// The last may have replaced what the others wrote.
		for _, w := range slices.Backward(s.Plan.Graph.WritersFor(i, path)) {
			if s.WroteAbove(w, path) {
				return reject(plan.Faultf(plan.CodeExpression, "%s is missing: %s %s", path, s.Plan.Graph.Label(w), s.howMissing(w, path)))
			}
		}
	}
	reason := s.skipReason(i, lacking.Paths)
	if reason == "" && lacking.Member != nil {
		return reject(plan.Faultf(plan.CodeExpression, "%w", lacking.Member))
	}
	return Decision{Action: Skip, Reason: reason}
}

// howMissing says why a value is missing at or below a path that a call has written.
func (s *State) howMissing(writer int, path store.Path) string {
	switch {
	case slices.Contains(s.Calls[writer].Written, path):
		return "wrote there, and it is there no more"
	case path.Kind() == store.KindError && s.othersWroteErrors(writer):
		return "wrote above it, but without that key, or another error has replaced it"
	}
	return "wrote above it, but without that key"
}

// othersWroteErrors reports whether another call than one has written an error, and so may have
// replaced that one's.
func (s *State) othersWroteErrors(i int) bool {
	for other := range s.Calls {
		if other != i && slices.ContainsFunc(s.Calls[other].Written, func(w store.Path) bool { return w.Kind() == store.KindError }) {
			return true
		}
	}
	return false
}

// mostReasons bounds how many calls the reason of a skip names.
const mostReasons = 8

// skipReason says which branches or failures a skipped call was behind, first those that were
// not skipped themselves.
func (s *State) skipReason(i int, paths []store.Path) string {
	var reasons []string
	var named []int
	for _, skipped := range []bool{false, true} {
		for _, path := range paths {
			for _, w := range s.Plan.Graph.WritersFor(i, path) {
				status := s.Calls[w].Record.Status
				if (status == journal.Skipped) != skipped || slices.Contains(named, w) {
					continue
				}
				if len(named) == mostReasons {
					return strings.Join(append(reasons, "and more"), "; ")
				}
				reason := "%s took another branch than %s"
				switch status {
				case journal.Failed:
					reason = "%s failed, and so did not write %s"
				case journal.Skipped:
					reason = "%s was skipped, and so did not write %s"
				}
				named = append(named, w)
				label := fmt.Sprintf("call %s (%s)", s.Calls[w].Record.Call, s.Plan.Calls[w].Tool)
				reasons = append(reasons, fmt.Sprintf(reason, label, path))
			}
		}
	}
	return strings.Join(reasons, "; ")
}
