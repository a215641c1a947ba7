package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"obelus/engine"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host/once"
	"obelus/store"
)

// Start is a run to begin.
type Start struct {
	engine.Start

	// Registry is the one to run the request with, as [host.Host.Plan] returns it; nil for the
	// project's.
	Registry *plan.Registry

	// Prepare, if it is set, is called when it is the run's turn, to complete the rest: so a run
	// takes little memory while it waits. Its error refuses the run.
	Prepare func(ctx context.Context, start *Start) error

	patient bool // it is not refused if too many runs wait
}

// Start begins a run in a context when it is its turn, and returns once it is: a program that does
// not wait for that calls it in a goroutine of its own. A run that is cancelled before its turn has
// ended. The error is [ErrFull] if too many runs wait already, [ErrStopping], an
// [*engine.BusyError] if the context is in use, or the error of ctx, which counts until then. All
// other errors are the run's: see [Run.Wait].
func (s *Supervisor) Start(ctx context.Context, start Start) (*Run, error) {
	return s.begin(ctx, &Run{context: start.Context, patient: start.patient}, func(ctx context.Context, begun func(), concluded func(*journal.Outcome)) (*journal.Outcome, error) {
		if start.Once {
			if _, err := s.log.Head(ctx, start.Context); !errors.Is(err, store.ErrNoContext) {
				return nil, cmp.Or(err, store.ErrExists)
			}
		}
		if start.Prepare != nil {
			if err := start.Prepare(ctx, &start); err != nil {
				return nil, err
			}
		}
		then := start.Begun
		start.Begun = func() {
			begun()
			if then != nil {
				then()
			}
		}
		r := s.newRunner(cmp.Or(start.Registry, s.config.Host.Generation().Registry()))
		r.Concluded = concluded
		return r.Run(ctx, start.Start)
	})
}

// Resume goes on with the newest run of a context when it is its turn, by its plan's file as it is
// then, and returns once it is. Its errors are Start's.
func (s *Supervisor) Resume(ctx context.Context, how engine.Resume) (*Run, error) {
	return s.begin(ctx, &Run{context: how.Context, resumes: true}, s.resumeFunc(how))
}

// resumeUnasked resumes a run that no person asked for, and returns once it has its turn.
func (s *Supervisor) resumeUnasked(name string) {
	_, err := s.begin(s.running, &Run{context: name, unattended: true, resumes: true}, s.resumeFunc(engine.Resume{Context: name, Unasked: true}))
	switch {
	case err == nil, errors.Is(err, errWaking):
	case errors.As(err, new(*engine.BusyError)):
		s.runs.noteNews(name)
	default:
		s.watcher.logError("a run can't go on", err, "context", name)
		s.watcher.miss(name, inputCame, err)
	}
}

// resumeFunc returns a function that resumes a run, by its plan's file as it is then.
func (s *Supervisor) resumeFunc(how engine.Resume) carryFunc {
	return func(ctx context.Context, begun func(), concluded func(*journal.Outcome)) (*journal.Outcome, error) {
		name, err := journal.In(s.log, how.Context).RootPlan(ctx)
		if err != nil {
			return nil, err
		}
		request, registry, unread := s.config.Host.Generation().PlanOf(name)
		how.Request, how.Begun = request, begun
		r := s.newRunner(registry)
		r.Concluded = concluded
		outcome, err := r.Resume(ctx, how)
		var refused *plan.PlanError
		var unplanned *engine.NoPlannerError
		if (errors.As(err, &refused) || errors.As(err, &unplanned)) && unread != nil {
			return nil, errors.Join(err, fmt.Errorf("the plan's file, which may have registered it, can't be read: %w", unread))
		}
		return outcome, err
	}
}

// newRunner returns an engine with the settings as they are now.
func (s *Supervisor) newRunner(registry *plan.Registry) *engine.Runner {
	r := s.config.Host.Generation().Settings().Runner(s.log, registry)
	r.Observe, r.Spent, r.Watch, r.Rest = s.observe, s.config.Spent, s.config.Watch, s.config.Rest
	return r
}

// observe hands a call's record on, and logs the warning of a call that has settled.
func (s *Supervisor) observe(r journal.Record) {
	if r.Warning != "" && r.Status.Settled() {
		s.config.Logger.Warn("a call's expressions may not mean what they say", "context", r.Context, "call", r.Call, "tool", r.Tool, "warning", r.Warning)
	}
	if s.config.Observe != nil {
		s.config.Observe(r)
	}
}

// Wait waits until the newest run of a context has ended, also if it halts first and goes on later,
// and returns its outcome. A context in which nothing has run gives an outcome without a status.
// The error is the reason why its first run is refused, [ErrStopping] if the supervisor was shut
// down and the next one goes on with the run, or the error of the log or of ctx.
func (s *Supervisor) Wait(ctx context.Context, name string) (*journal.Outcome, error) {
	news, leave := s.Subscribe(name)
	defer leave()
	for {
		var own *journal.Outcome
		var refused error
		if run := s.runs.find(name); run != nil {
			own, refused = run.Wait(ctx)
		}
		last := isClosed(s.done)
		outcome, err := engine.ReadOutcome(ctx, s.log, name)
		switch {
		case err != nil:
			return nil, err
		case outcome.Status == "" && refused != nil:
			return nil, refused
		case outcome.Status == "":
			return cmp.Or(own, outcome), nil
		case outcome.Status.Finished():
			return outcome, nil
		case (outcome.Status == journal.RunCancelled || outcome.Status == journal.RunInterrupted) && !outcome.Stopped:
			return outcome, nil // it does not go on by itself
		case last:
			return nil, ErrStopping
		}
		select {
		case <-news:
		case <-s.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Decide records a decision about a held call, and goes on with its run. Its error is the one of
// [engine.Runner.Decide].
func (s *Supervisor) Decide(ctx context.Context, d journal.Decision) error {
	runner, err := s.runnerOf(ctx, d.Context)
	if err != nil {
		return err
	}
	if err := runner.Decide(ctx, d); err != nil {
		return err
	}
	signal(s.watcher.news)
	return nil
}

// runnerOf returns a runner with the names for the calls of a context.
func (s *Supervisor) runnerOf(ctx context.Context, name string) (*engine.Runner, error) {
	plan, err := journal.In(s.log, name).RootPlan(ctx)
	if err != nil {
		return nil, err
	}
	_, registry, _ := s.config.Host.Generation().PlanOf(plan)
	return s.newRunner(registry), nil
}

// DecidePlan records a decision about a plan that waits for one, and goes on with its run. It
// returns what [engine.Runner.DecidePlan] does.
func (s *Supervisor) DecidePlan(ctx context.Context, d journal.PlanDecision) (string, error) {
	runner, err := s.runnerOf(ctx, d.Context)
	if err != nil {
		return "", err
	}
	name, err := runner.DecidePlan(ctx, d)
	if err == nil {
		signal(s.watcher.news)
	}
	return name, err
}

// PreviewPlan is [engine.Runner.PreviewPlan].
func (s *Supervisor) PreviewPlan(ctx context.Context, d journal.PlanDecision) ([]string, error) {
	runner, err := s.runnerOf(ctx, d.Context)
	if err != nil {
		return nil, err
	}
	return runner.PreviewPlan(ctx, d)
}

// ShowPlan returns the plan that waits in a context, or in a delegate's there, as it is shown to
// the person who is to decide.
func (s *Supervisor) ShowPlan(ctx context.Context, name string) (*history.ShownPlan, error) {
	runner, err := s.runnerOf(ctx, name)
	if err != nil {
		return nil, err
	}
	return runner.ShowPlan(ctx, name, s.config.Host.Generation().PermissionsOf)
}

// Append adds messages to a context, and goes on with a run that waits for them. It returns what
// [engine.Append] does.
func (s *Supervisor) Append(ctx context.Context, name string, messages []store.Message) (store.Appended, error) {
	appended, err := engine.Append(ctx, s.log, name, messages, s.config.Host.Generation().Registry().Schemas...)
	if err == nil {
		signal(s.watcher.news)
	}
	return appended, err
}

// AppendOnce is Append of messages that may be asked for again with the same id: it appends them
// once, and reports whether it did so now.
func (s *Supervisor) AppendOnce(ctx context.Context, name, id string, messages []store.Message) (bool, error) {
	_, err := engine.Append(ctx, once.Appends(s.log, id), name, messages, s.config.Host.Generation().Registry().Schemas...)
	if errors.Is(err, once.ErrAppended) {
		return false, nil
	}
	if err == nil {
		signal(s.watcher.news)
	}
	return err == nil, err
}
