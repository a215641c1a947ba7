package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// capture returns the result of an activity as the record of an anonymous delegate's call keeps it;
// nil where the activity broke down.
func capture(res *result) plan.Values {
	captured, loose := plan.Values{}, res.value.Loose
	var failure *plan.Failure
	switch {
	case errors.As(res.err, &failure):
		captured["failure"], loose = failure.Fields, failure.Loose
	case res.err != nil:
		return nil
	case res.value.Message != nil:
		captured["message"] = res.value.Message
	default:
		captured["value"] = res.value.Value
		if res.value.To != "" {
			captured["to"] = res.value.To
		}
	}
	if loose {
		captured["loose"] = true
	}
	return captured
}

// uncapture is the way back from [capture].
func uncapture(object plan.Values) result {
	loose, _ := object["loose"].(bool)
	if fields, ok := object["failure"].(map[string]any); ok {
		return result{err: &plan.Failure{Fields: fields, Loose: loose}}
	}
	value := plan.Result{Value: object["value"], Loose: loose}
	value.To, _ = object["to"].(string)
	value.Message, _ = object["message"].(map[string]any)
	return result{value: value}
}

// insideError is an anonymous delegate that failed though its call has
// alternatives: a fault, not an outcome.
type insideError struct{ fields map[string]any }

func (e *insideError) Error() string { return (&plan.Failure{Fields: e.fields}).Error() }

// childOf names the context of a delegate.
func childOf(context, call string, attempt int) string {
	name := context + "." + call
	if attempt > 1 {
		name += fmt.Sprintf("-%d", attempt)
	}
	if len(name) > maxContextName {
		sum := sha256.Sum256([]byte(name))
		return hex.EncodeToString(sum[:journal.CutSum]) + "." + call
	}
	return name
}

// expectedOrigin is the origin of a context that does not exist yet: that of a delegate, where a
// call has named it for its delegate. A name that had to be cut shows no parent.
func expectedOrigin(ctx context.Context, log store.Reader, name string) (store.Origin, error) {
	parts := strings.Split(name, ".")
	if len(parts) < 3 {
		return store.Origin{}, nil
	}
	parent := strings.Join(parts[:len(parts)-2], ".")
	if store.CheckStoredContext(parent) != nil {
		return store.Origin{}, nil
	}
	records, err := journal.In(log, parent).Records(ctx)
	if errors.Is(err, store.ErrNoContext) {
		err = nil
	}
	for _, r := range records {
		if r.Child == name && !r.Status.Settled() {
			return store.Origin{Parent: parent, Call: r.Call}, nil
		}
	}
	return store.Origin{}, err
}

// newChild names the context of a call's delegate: one that is not there yet, or
// the recorded one of a call that is replayed.
func (t *tick) newChild(ctx context.Context, r *journal.Record) (string, error) {
	if child, err := t.runner.script.Child(ctx, t.context, r.Call); child != "" || err != nil {
		return child, err
	}
	for attempt := r.Attempts; ; attempt++ {
		name := childOf(t.context, r.Call, attempt)
		switch _, err := t.runner.Log.Head(ctx, name); {
		case errors.Is(err, store.ErrNoContext):
			return name, nil
		case err != nil:
			return "", err
		}
	}
}

// maxContextName is how long the name of a context may be.
const maxContextName = 64

// childRun is a delegate's run, as its call begins it.
type childRun struct {
	runner  Runner
	opening Start
	origin  store.Origin
	wanted  bool // its output is the call's result
	retry   bool // what failed in it is to run again
}

// prepareChild prepares the run of a call's delegate: its own messages, then the values that the
// call's scopes grant, then its parameters as input.
func (t *tick) prepareChild(i int, in plan.Invocation) *childRun {
	call := t.plan.Calls[i]
	r := &childRun{
		runner: *t.runner, origin: store.Origin{Parent: t.context, Call: t.state.Calls[i].Record.Call},
		wanted: call.Output != nil, retry: t.state.Calls[i].Record.Retry,
	}
	r.runner.depth++
	r.runner.Approve = plan.Policy{} // the run's own counts
	r.runner.Registry = call.Delegate.RegistryFor(t.runner.Registry)
	request := call.Request(in)
	request.Context = slices.Concat(request.Context, scopeMessages(call, in.Context))
	request = t.runner.script.Request(t.state.Calls[i].Record.Child, request)
	r.opening = Start{Context: t.state.Calls[i].Record.Child, Request: request}
	if call.Delegate.Name != plan.Anonymous { // else its call has been held as it is
		r.opening.Approve = t.event.Approve
	}
	params := map[string]any{}
	for name, v := range in.Call {
		if !strings.HasPrefix(name, "_") {
			params[name] = v
		}
	}
	if len(params) > 0 {
		r.opening.Input = store.Some(params)
	}
	return r
}

// scopeMessages makes messages of the values that a call's scopes grant, in their order.
func scopeMessages(call *plan.Call, granted map[string]any) []store.Message {
	var messages []store.Message
	var seen []string
	for _, scope := range call.ScopePaths {
		kind := scope.Kind()
		v, ok := granted[kind]
		if !ok || slices.Contains(seen, kind) {
			continue
		}
		seen = append(seen, kind)
		messages = append(messages, store.Message{Type: store.TypeData, Kind: kind, Data: store.Some(v)})
	}
	return messages
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

// doubtReason is the reason of a call that is in doubt for what its delegate has begun.
func doubtReason(child string) string {
	return fmt.Sprintf("its delegate, in context %s, has begun what must not run twice", child)
}

// runScope is the run that a context is part of, for requests about the context alone.
type runScope struct {
	runner     *Runner       // its registry holds the names for the context's calls
	ofDelegate bool          // the context is a delegate's
	request    *plan.Request // of the delegate; nil if it is anonymous or can't be found
	lost       error         // why it can't be found
}

// scopeOf finds the run that a context is part of. Where a delegate can't be found, the registry is
// that of the runner.
func (r *Runner) scopeOf(ctx context.Context, name string) (*runScope, error) {
	p := &runScope{runner: r}
	if r.depth > 0 || r.Registry == nil { // a child run has its registry; or no names are needed
		return p, nil
	}
	plans, err := journal.In(r.Log, name).Lineage(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range plans[1:] {
		d := &plan.Delegate{}
		if name != plan.Anonymous {
			if d, err = p.runner.Registry.Delegate(name); err != nil {
				return &runScope{runner: p.runner, ofDelegate: true, lost: err}, nil
			}
		}
		inner := *p.runner
		inner.Registry = d.RegistryFor(p.runner.Registry)
		p = &runScope{runner: &inner, ofDelegate: true, request: d.Request}
	}
	return p, nil
}

// requestOr is the request that a context's run has, where one is given for its root's.
func (p *runScope) requestOr(given *plan.Request) *plan.Request {
	if p.ofDelegate {
		return p.request
	}
	return given
}

// explain adds to the refusal of a run that its delegate could not be found.
func (p *runScope) explain(err error) error {
	var refused *plan.PlanError
	var unplanned *NoPlannerError
	if p.lost != nil && (errors.As(err, &refused) || errors.As(err, &unplanned)) {
		return &LostError{fmt.Errorf("%w (%w)", err, p.lost)}
	}
	return err
}

// LostError is a run of a delegate that is refused since the delegate can't be found
// any more: it may be with other scripts.
type LostError struct{ Err error }

func (e *LostError) Error() string { return e.Err.Error() }

func (e *LostError) Unwrap() error { return e.Err }
