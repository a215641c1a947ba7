package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"obelus/engine/internal/bounds"
	"obelus/engine/internal/capture"
	"obelus/engine/internal/failure"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// runs begins runs and goes on with them.
type runs interface {
	run(ctx context.Context, s Start, origin store.Origin) (*journal.Outcome, error)
	Resume(ctx context.Context, s Resume) (*journal.Outcome, error)
}

// childRun is a delegate's run, as its call begins it.
type childRun struct {
	runner  *Runner
	runs    runs // the runner
	opening Start
	origin  store.Origin
	wanted  bool // its output is the call's result
	retry   bool // what failed in it is to run again
}

// start runs a delegate, or goes on with it where it stands.
func (r *childRun) start(ctx context.Context) result {
	if r.runner.depth > plan.MaxDepth {
		return result{err: &plan.Fault{Code: plan.CodeSchema, Err: fmt.Errorf("delegates are nested deeper than %d", plan.MaxDepth)}}
	}
	last, err := journal.In(r.runner.Log, r.opening.Context).LastRun(ctx)
	if err != nil {
		return result{err: unreadLog(ctx, err)}
	}
	if taken, err := r.isTaken(ctx); err != nil {
		return result{err: unreadLog(ctx, err)}
	} else if taken {
		return result{err: fmt.Errorf("the context %s of its delegate belongs to something else", r.opening.Context)}
	}
	if !last.Event.OfDelegate() {
		return result{err: fmt.Errorf("something else has run in the context %s of its delegate, so that it can't go on there: fork context %s, and retry it in the fork", r.opening.Context, r.origin.Parent)}
	}
	var outcome *journal.Outcome
	if last.Tick > 0 {
		outcome, err = r.resume(ctx, last)
	} else if r.runner.replans.nest(r.runner.depth) {
		outcome, err = r.runs.run(ctx, r.opening, r.origin)
	} else {
		return result{err: &plan.Fault{Code: plan.CodeSchema, Err: fmt.Errorf("the delegates of the run have started more than %d delegates", bounds.MaxNested)}}
	}
	if ctx.Err() != nil && (err != nil || outcome.Status == journal.RunInterrupted || outcome.Status == journal.RunCancelled) {
		return result{err: errCut}
	}
	var busy *BusyError
	var refused *plan.PlanError
	var message *plan.MessageError
	switch {
	case err == nil:
		return r.result(ctx, outcome)
	case errors.As(err, &busy): // it was resumed on its own
		return r.wait(ctx, []string{})
	case errors.As(err, &refused), errors.As(err, &message):
		return result{err: &plan.Fault{Code: plan.CodeSchema, Err: fmt.Errorf("its delegate %s can't run: %w", r.opening.Request.Name, err)}}
	}
	return result{err: unreadLog(ctx, err)}
}

// resume goes on with the delegate. If it is to be retried, so are the calls
// that failed in it.
func (r *childRun) resume(ctx context.Context, last journal.Run) (*journal.Outcome, error) {
	again := Resume{Context: r.opening.Context, Request: r.opening.Request}
	if r.retry && last.Status == journal.RunFailed {
		records, err := journal.In(r.runner.Log, r.opening.Context).Records(ctx)
		if err != nil {
			return nil, err
		}
		for _, record := range records {
			if record.Tick == last.Tick && record.Blamed() {
				again.Retry = append(again.Retry, record.Call)
			}
		}
	}
	return r.runs.Resume(ctx, again)
}

// wait is the result of a delegate that waits.
func (r *childRun) wait(ctx context.Context, waits []string) result {
	entry, _, err := store.Newest(ctx, r.runner.Log, store.JournalFilter{})
	if err != nil {
		return result{err: unreadLog(ctx, err)}
	}
	return result{waitsFor: waits, waitsSince: entry.N}
}

// isTaken reports whether the delegate's context was made by another call or program.
func (r *childRun) isTaken(ctx context.Context) (bool, error) {
	origin, ok, err := journal.In(r.runner.Log, r.opening.Context).OriginOf(ctx)
	return ok && origin != r.origin, err
}

// result makes the call's result of how its delegate ended.
func (r *childRun) result(ctx context.Context, outcome *journal.Outcome) result {
	name := r.opening.Request.Name
	fail := func(what string) map[string]any {
		return map[string]any{
			"message": fmt.Sprintf("delegate %s (context %s) %s", name, outcome.Context, what),
			"code":    "delegate", "context": outcome.Context,
		}
	}
	switch {
	case outcome.Status == journal.RunWaiting:
		res := r.wait(ctx, waitsFor(outcome))
		res.due, _ = journal.EarliestDue(outcome.Calls)
		return res
	case outcome.Status == journal.RunFailed && name == plan.Anonymous:
		return result{err: &failure.Inside{Fields: fail("failed: " + r.failureReason(ctx, outcome))}}
	case outcome.Status == journal.RunFailed:
		return result{err: &plan.Failure{Fields: fail("failed: " + r.failureReason(ctx, outcome))}}
	case name == plan.Anonymous && len(outcome.Calls) == 1 && outcome.Calls[0].Status == journal.Done:
		return givenResult(outcome.Calls[0].Given)
	case outcome.Output == nil && r.wanted:
		return result{err: &plan.Failure{Fields: fail("ended without output")}}
	}
	res := result{value: plan.Result{Value: outcome.Output, Loose: true}}
	if choice := outcome.Choice; choice != nil && choice.Fails {
		fields, _ := outcome.Output.(map[string]any)
		res.err = &plan.Failure{Fields: fields, Loose: true}
	} else if choice != nil {
		res.value.To = choice.To
	}
	return res
}

// waitsFor lists the references, held calls and plans that a run waits for.
func waitsFor(outcome *journal.Outcome) []string {
	waits := []string{}
	for _, r := range outcome.Calls {
		for _, path := range r.WaitingOn {
			if !slices.Contains(waits, path) {
				waits = append(waits, path)
			}
		}
	}
	return waits
}

// failureReason returns why a run failed. A failure inside a delegate is described where it began,
// at any depth.
func (r *childRun) failureReason(ctx context.Context, outcome *journal.Outcome) string {
	if outcome.Error != "" {
		return outcome.Error
	}
	calls, where, otherwise := outcome.Calls, "", ""
	for range plan.MaxDepth + 1 {
		i := slices.IndexFunc(calls, journal.Record.Blamed)
		if i < 0 {
			return otherwise
		}
		c := calls[i]
		message, _ := c.Error["message"].(string)
		otherwise = fmt.Sprintf("call %s (%s)%s: %s", c.Call, c.Tool, where, message)
		if c.Child == "" || c.Error["code"] != "delegate" {
			return otherwise
		}
		var err error
		if calls, err = journal.In(r.runner.Log, c.Child).Records(ctx); err != nil {
			return otherwise
		}
		where = " in context " + c.Child
	}
	return otherwise
}

// givenResult is the result of a call that was captured.
func givenResult(object plan.Values) (res result) {
	res.value, res.err = capture.Unpack(object)
	return res
}

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

// newChild names the context of a call's delegate: one that is not there yet.
func (vs *values) newChild(ctx context.Context, r *journal.Record) (string, error) {
	for attempt := r.Attempts; ; attempt++ {
		name := childOf(vs.context, r.Call, attempt)
		switch _, err := vs.log.Head(ctx, name); {
		case errors.Is(err, store.ErrNoContext):
			return name, nil
		case err != nil:
			return "", err
		}
	}
}

// maxContextName is how long the name of a context may be.
const maxContextName = 64

// prepareChild prepares the run of a call's delegate: its own messages, then the values that the
// call's scopes grant, then its parameters as input.
func (t *tick) prepareChild(i int, in plan.Invocation) *childRun {
	call := t.plan.Calls[i]
	runner := *t.runner
	runner.depth, runner.alone = runner.depth+1, false
	runner.Approve = plan.Policy{} // the run's own counts
	runner.Registry = call.Delegate.RegistryFor(t.runner.Registry)
	r := &childRun{
		runner: &runner, runs: &runner, origin: store.Origin{Parent: t.context, Call: t.state.Calls[i].Record.Call},
		wanted: call.Output != nil, retry: t.state.Calls[i].Record.Retry,
	}
	request := call.Request(in)
	granted, input := call.Opening(in)
	request.Context = slices.Concat(request.Context, granted)
	r.opening = Start{Context: t.state.Calls[i].Record.Child, Request: request, Input: input}
	if call.Delegate.Name != plan.Anonymous { // else its call has been held as it is
		r.opening.Approve = t.event.Approve
	}
	return r
}
