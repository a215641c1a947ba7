package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"obelus/engine/internal/failure"
	"obelus/engine/internal/output"
	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// endTick ends a tick that its last step has not ended. After a conflicting append there may be
// more to do, and the tick does not end.
func (t *tickRun) endTick(ctx context.Context) error {
	if err := t.readDecisions(ctx); err != nil || t.state.HasQueued() {
		return err
	}
	t.save()
	if err := t.concludeTick(ctx); err != nil {
		return err
	}
	err := t.commit(ctx)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) && t.begun {
		t.undo()
		return t.poll(ctx)
	}
	return err
}

// endsRun reports whether the run ends with the tick, without detached calls.
func (t *tickRun) endsRun() bool {
	if t.ended == nil || t.ended.Status == journal.RunContinued {
		return false
	}
	return len(t.loop.detachedTicks) == 0 && !t.hasBackground()
}

// outcome is how the run ended with the tick; nil if the planner is asked again.
func (t *tickRun) outcome(ctx context.Context) (*journal.Outcome, error) {
	end := t.ended
	if end.Status == journal.RunContinued {
		t.over = true
		return nil, nil
	}
	var err error
	if !t.endsRun() {
		t.loop.concluded(t.outcomeNow())
		err = t.awaitBackground(ctx)
	}
	return t.outcomeNow(), err
}

// outcomeNow returns how the run has ended or halted with the tick, with its calls as they stand.
func (t *tickRun) outcomeNow() *journal.Outcome {
	end, calls := t.ended, t.all()
	return &journal.Outcome{
		Context: t.context, Status: end.Status, Output: end.Output, Choice: t.event.Choice, Error: journal.Unblamed(end.Error, t.event, calls),
		Stopped: end.Stopped, Calls: calls, Stale: t.stale, Background: t.countBackground(),
	}
}

// concludeTick stages how the tick ends.
func (t *tickRun) concludeTick(ctx context.Context) error {
	end, err := (&ending{t.tick}).verdict(ctx)
	if err == nil {
		end.Detached = t.countBackground() > 0
		t.ended = &end
		appendRunEvent(t.tick, end)
	}
	return err
}

// standingOf describes the run as it is after the step.
func standingOf(t *tickRun) store.Standing {
	now := t
	if t.over {
		now = t.loop.current
	}
	end, counts := now.newest, now.state
	s := store.Standing{
		Status: string(cmp.Or(end.Status, now.before, journal.RunRunning)), Plan: now.event.Plan, Error: journal.ShortError(cmp.Or(end.Cause, end.Error)),
		Started: t.loop.runStarted, Worked: t.loop.workedBefore,
		Tick: now.event.Tick, Labels: now.event.Labels,
		Calls: len(counts.Calls), Done: counts.Done, Failed: counts.Failed, Waiting: counts.In(sched.Waiting), Held: counts.In(sched.Held), Retrying: counts.Retrying,
	}
	if end.Status != "" {
		s.Worked = end.WorkedFor()
	}
	if end.Status == journal.RunContinued {
		s.Status = string(journal.RunRunning)
	}
	if now.unreleased {
		s.Held = 1
	}
	var due time.Time
	if end.Status == journal.RunWaiting {
		due, _ = counts.EarliestDue()
		for i := range counts.Calls {
			journal.AddWait(&s, &counts.Calls[i].Record)
		}
	}
	if end.Status.HasBackground() {
		s.Background = now.countBackground()
	}
	goesOn := !t.loop.givenUp && (counts.Detached() > 0 || t.hasDetached())
	journal.Schedule(&s, t.loop.opened, end.Stopped, goesOn, due)
	ends := end.Status == journal.RunDone || end.Status == journal.RunFailed
	// It is under way, or another run goes on with its end.
	if end.Status == "" || end.Drains || ends && t.runner.alone {
		s.Due = t.loop.opened
	}
	return s
}

// ending says how a tick has ended.
type ending struct{ *tick }

// verdict stages the error messages of the tick, and returns its end.
func (e *ending) verdict(ctx context.Context) (journal.RunEvent, error) {
	end := journal.RunEvent{Tick: e.event.Tick, Status: e.state.RunStatus()}
	if end.Status == journal.RunWaiting {
		return end, nil
	}
	for _, r := range e.state.Unreported() {
		e.report(map[string]any{"call": r.Call, "tool": r.Tool, "error": map[string]any(r.Error)})
	}
	problem := e.problem
	if problem == nil {
		var err error
		if end.Output, problem, err = e.tickOutput(ctx).Value(ctx); err != nil {
			return end, err
		}
	}
	e.reportProblem(problem)
	return e.nextStatus(end, problem), nil
}

// tickOutput returns the parts that the output is computed from.
func (e *ending) tickOutput(ctx context.Context) *output.Tick {
	return &output.Tick{
		Plan: e.plan, Event: &e.event, State: e.state, Resolver: e.view.Resolver(),
		MessageAt: func(seq int64) (*store.Message, error) {
			if at := seq - e.view.Committed(); at > 0 {
				return &e.view.Staged()[at-1], nil
			}
			return journal.In(e.log, e.context).MessageAt(ctx, seq)
		},
		Explain: func(err error) error { return e.hintEmpty(ctx, -1, e.plan.Output, err) },
	}
}

// nextStatus decides whether the planner is asked again: not if there is an output, nor if it broke
// down, nor if it repeated the solution refused just before.
func (e *ending) nextStatus(end journal.RunEvent, problem error) journal.RunEvent {
	var broken *plannerError
	limit, most := 0, DefaultTicks
	if problem = e.boundRefusals(problem); e.event.ByModel {
		most = plan.DefaultTicks
	}
	if e.event.Planner && end.Output == nil && !errors.As(problem, &broken) {
		limit = positive(e.runner.Ticks, most)
	}
	asked := e.event.Tick - e.event.First + 1
	var spent error
	if asked < limit && !e.repeated {
		spent = e.runner.replans.take(e.context, e.runner.Ticks, asked, problem)
	}
	if spent != nil {
		limit, problem = 0, spent
	}
	status, wrong, exhausted := sched.DecideEnd(end.Status, problem, limit, asked, e.repeated)
	if end.Status = status; wrong != nil {
		end.Error = wrong.Error()
	}
	if status == journal.RunFailed && (wrong == nil || !e.event.Planner) { // a planner is asked again about failures
		end.Cause = journal.CauseOf(e.all())
	}
	if exhausted || spent != nil {
		e.report(map[string]any{"error": map[string]any{"message": end.Error, "code": "ticks"}})
	}
	return end
}

// reportProblem stages error messages about the plan.
func (e *ending) reportProblem(problem error) {
	var refused *plan.PlanError
	switch {
	case errors.As(problem, &refused):
		for _, p := range refused.Problems {
			if p.Severity == plan.SeverityWarning { // the plan's event has it
				continue
			}
			if e.event.ByModel {
				p.File = ""
			}
			data := map[string]any{"error": map[string]any{"message": plan.ValidText(p.Error()), "code": cmp.Or(p.Code, plan.CodeSchema)}}
			if p.Call > 0 {
				data["call"], data["tool"] = journal.CallID(e.event.Tick, p.Call), p.Tool
			}
			e.report(data)
		}
	case problem != nil:
		e.report(map[string]any{"error": failure.Fields(problem)})
	}
}

// report stages an error message.
func (e *ending) report(data map[string]any) {
	e.view.Stage(store.Message{Type: store.TypeData, Kind: store.KindError, Data: store.Some(data), Date: e.runner.date()})
}
