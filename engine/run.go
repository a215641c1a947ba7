package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/store"
)

// MissingInput checks a run that gets no input against the schema of input that the request's
// messages declare: its error is a [*plan.MessageError]. Input among those messages, or in the
// run's context in a log, is not missing; the log is nil for a new context.
func (s *Start) MissingInput(ctx context.Context, log store.Reader, options ...schema.Option) error {
	gives := func(m store.Message) bool { return m.Kind == "input" && m.Data.Set }
	if s.bringsInput() || slices.ContainsFunc(s.Request.Context, gives) {
		return nil
	}
	declared, path := s.Request.Declared("input", options), store.KindPath("input")
	if declared == nil {
		return nil
	}
	broken := declared.Validate(map[string]any{}, path.String())
	if broken == nil {
		return nil
	}
	if log != nil {
		given, err := store.Resolver{Log: log, Context: s.Context}.Resolve(ctx, path, "")
		if err == nil && given.Exists || err != nil && !errors.Is(err, store.ErrNoContext) {
			return nil // the run reports errors of the log
		}
	}
	return &plan.MessageError{Input: true, Err: fmt.Errorf("there is none, and it breaks the schema declared for input: %w", broken)}
}

// bringsInput reports whether the start has input. A value that is not set counts too: the check of
// its message refuses it.
func (s *Start) bringsInput() bool { return s.Input.Set || s.Input.Value != nil }

// Run appends a request's messages, its input and its plan to a context, and runs the plan; a
// planner is asked for one plan after another, until it gives an output. A plan that is refused
// gives a [*plan.PlanError], a message that is refused a [*plan.MessageError], and either leaves no
// trace. So does a context with another holder, a [*BusyError], and one whose last run has not
// ended, an [*UnfinishedError].
//
// When ctx is done no call starts, running calls have the time that Drain allows, and the run can
// be resumed: calls that had not begun run then, and calls that were cut off run again, except
// fire-and-forget calls. An activity that does not heed its context is abandoned two seconds later,
// and may still be at work when its call runs again; a planner is waited for. An error of the log
// ends the run at once, and the part in the log can be resumed; where the end can't be recorded,
// its context is held for half a minute.
func (r *Runner) Run(ctx context.Context, s Start) (*journal.Outcome, error) {
	if err := store.CheckContext(s.Context); err != nil {
		return nil, err
	}
	if s.Request == nil {
		return nil, errNoRequest
	}
	if err := store.CheckLabels(s.Labels); err != nil {
		return nil, err
	}
	return r.run(ctx, s, store.Origin{})
}

var errNoRequest = errors.New("there is nothing to run: the start needs a request, with calls or a planner")

func (r *Runner) run(ctx context.Context, s Start, origin store.Origin) (*journal.Outcome, error) {
	l, err := r.newLoop(ctx, s.Context, s.New)
	if err != nil {
		return nil, err
	}
	defer l.close()
	l.prepare(s)
	l.origin, l.fresh = origin, true
	return l.run(ctx, nil)
}

func (l *loop) prepare(s Start) {
	l.request, l.policy, l.labels, l.once, l.started = s.Request, s.Approve.Or(l.runner.Approve), s.Labels, s.Once, s.Begun
	l.initial = append(l.initial, s.Request.Context...)
	if l.input = s.bringsInput(); l.input {
		l.initial = append(l.initial, store.Message{Type: store.TypeData, Kind: "input", Data: s.Input})
	}
}

// Check compiles a plan as Run would, on the values of the context now (or of an empty one, without
// a context), and runs and writes nothing. Calls for every instance stand for themselves where
// there are no instances. A planner is not asked: its solution is not known before.
func (r *Runner) Check(ctx context.Context, s Start) (*plan.Plan, error) {
	return r.check(ctx, s, true)
}

// Accepts reports whether Run would take the start's plan and messages: its error is Run's.
func (r *Runner) Accepts(ctx context.Context, s Start) error {
	_, err := r.check(ctx, s, false)
	return err
}

func (r *Runner) check(ctx context.Context, s Start, show bool) (*plan.Plan, error) {
	if s.Request == nil {
		return nil, errNoRequest
	}
	if s.Context != "" {
		if err := store.CheckContext(s.Context); err != nil {
			return nil, err
		}
	}
	l, err := r.newLoop(ctx, s.Context, s.New)
	if err != nil {
		return nil, err
	}
	defer l.close()
	l.prepare(s)
	if err := l.stageInitial(ctx); err != nil {
		return nil, err
	}
	request, err := s.Request.Normalize()
	if err != nil {
		return nil, err
	}
	return l.compile(ctx, request, show)
}
