package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

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
	} else {
		outcome, err = r.runner.run(ctx, r.opening, r.origin)
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
	return r.runner.Resume(ctx, again)
}

// wait is the result of a delegate that waits.
func (r *childRun) wait(ctx context.Context, waits []string) result {
	entry, _, err := store.Newest(ctx, r.runner.Log, store.JournalFilter{})
	if err != nil {
		return result{err: unreadLog(ctx, err)}
	}
	return result{waitsFor: waits, waitsSince: entry.N}
}

// requeueParents requeues calls whose delegates wait, once something has happened in the delegates'
// contexts, or in those of their own delegates.
func (t *tickRun) requeueParents(ctx context.Context) error {
	if len(t.state.Parents()) == 0 {
		return nil
	}
	after := int64(math.MaxInt64)
	for _, i := range t.state.Parents() {
		after = min(after, t.state.Calls[i].WaitsSince)
	}
	for entry, err := range t.runner.Log.Journal(ctx, store.JournalFilter{After: after}) {
		if err != nil {
			return err
		}
		for child, i := range t.state.Parents() {
			if entry.N <= t.state.Calls[i].WaitsSince {
				continue
			}
			t.state.Calls[i].WaitsSince = entry.N
			within, err := journal.In(t.runner.Log, entry.Context).IsWithin(ctx, child)
			if err != nil {
				return err
			}
			if within {
				t.state.Apply(sched.Event{Kind: sched.Arrived, Call: i})
			}
		}
	}
	return nil
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
		return r.wait(ctx, waitsFor(outcome))
	case outcome.Status == journal.RunFailed && name == plan.Anonymous:
		return result{err: &insideError{fail("failed: " + r.failureReason(ctx, outcome))}}
	case outcome.Status == journal.RunFailed:
		return result{err: &plan.Failure{Fields: fail("failed: " + r.failureReason(ctx, outcome))}}
	case name == plan.Anonymous && len(outcome.Calls) == 1 && outcome.Calls[0].Status == journal.Done:
		return uncapture(outcome.Calls[0].Given)
	case outcome.Output == nil && r.wanted:
		return result{err: &plan.Failure{Fields: fail("ended without output")}}
	}
	return result{value: plan.Result{Value: outcome.Output, Loose: true}}
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
