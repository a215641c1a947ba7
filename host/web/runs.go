package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
)

// run is a run that the supervisor carries out.
type run struct {
	context string
	began   time.Time
	cancel  context.CancelCauseFunc
	started chan struct{} // closed once the log has the run
	ended   chan struct{} // closed once the run has ended or halted
	outcome *journal.Outcome
	err     error
	hasNews bool // news came that it may halt without; under the supervisor's lock

	generation int // the generation of scripts with which it began

	unattended       bool // no client waits for it
	cancelledForGood bool // it was cancelled, and does not go on by itself

	cancelRequested bool        // a client has cancelled it; under the supervisor's lock
	who             journal.Who // the client; likewise
	closed          bool        // it is too late to cancel it; likewise
}

// hasStarted reports whether the log has something of the run.
func (one *run) hasStarted() bool {
	select {
	case <-one.started:
		return true
	default:
		return false
	}
}

// errTime cancels a run that takes too long. Like a client's request it is engine.ErrCancelled.
var errTime error = &cancelledError{"it took longer than a run may"}

type cancelledError struct{ message string }

func (e *cancelledError) Error() string { return e.message }

func (e *cancelledError) Unwrap() error { return engine.ErrCancelled }

var errDraining = &problem{status: http.StatusServiceUnavailable, code: "stopping", message: "the server is being stopped", retry: 5}

// carryFunc starts or resumes a run. It calls begun once the run is durable.
type carryFunc func(ctx context.Context, begun func()) (*journal.Outcome, error)

// begin carries out a run once it is its turn. An unattended run waits for that however many others
// do, and finds in the log that it was cancelled. Another run may be cancelled while it waits.
func (s *supervisor) begin(ctx context.Context, name string, alone bool, carry carryFunc) (*run, error) {
	limited, cancel := context.WithCancelCause(s.running)
	one := &run{context: name, unattended: alone, cancel: cancel, started: make(chan struct{}), ended: make(chan struct{})}
	if err := s.admit(ctx, limited, one); err != nil {
		defer cancel(nil)
		switch cause := context.Cause(limited); {
		case cause == nil:
			return nil, err
		case errors.Is(cause, engine.ErrCancelled):
			one.outcome = cancelledOutcome(name)
			close(one.ended)
			return one, nil
		default:
			return nil, errDraining
		}
	}
	go func() {
		defer s.runs.Done()
		defer cancel(nil)
		bounded, stop := context.WithTimeoutCause(limited, s.timeout, errTime)
		defer stop()
		s.carryOut(bounded, one, carry)
		unasked := s.closeRun(one)
		if cause := context.Cause(bounded); cause != nil {
			one.cancelledForGood = errors.Is(cause, engine.ErrCancelled)
			one.describeCancel(cause)
		}
		if unasked && one.isResumable() && engine.Cancel(context.Background(), s.log, name, one.who) == nil {
			one.cancelledForGood = true
			one.outcome = cancelledOutcome(name)
		}
		s.finish(one)
	}()
	return one, nil
}

// carryOut carries out a run. A panic costs this run and no other.
func (s *supervisor) carryOut(ctx context.Context, one *run, carry carryFunc) {
	defer func() {
		if broken := recover(); broken != nil {
			one.outcome, one.err = nil, fmt.Errorf("it broke down: %v", broken)
			s.logger.Error("a run broke down: this is a fault of the program", "context", one.context, "error", broken, "stack", string(debug.Stack()))
		}
	}()
	one.outcome, one.err = carry(ctx, func() { close(one.started) })
}

// isResumable reports whether the run has ended only for now: it waits, or the next server resumes
// it.
func (one *run) isResumable() bool {
	return one.err == nil && (one.outcome.Status == journal.RunWaiting || one.outcome.Stopped)
}

// closeRun reports whether a client has cancelled the run. A client that cancels it later is told
// how it ended.
func (s *supervisor) closeRun(one *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.closed = true
	return one.cancelRequested
}

// describeCancel gives a run that was ended early an outcome with the cause.
func (one *run) describeCancel(cause error) {
	if errors.Is(one.err, context.Canceled) || errors.Is(one.err, context.DeadlineExceeded) {
		one.outcome, one.err = &journal.Outcome{Status: journal.RunCancelled}, nil
		if errors.Is(cause, engine.ErrStopped) {
			one.outcome.Status = journal.RunInterrupted
		}
	}
	switch {
	case one.err != nil || !isEndedEarly(one.outcome) || one.outcome.Error != "":
	case one.outcome.Context == "" && errors.Is(cause, engine.ErrStopped): // the run had not begun
		one.err = errDraining
	default:
		one.outcome.Context, one.outcome.Error, one.outcome.Stopped = one.context, cause.Error(), errors.Is(cause, engine.ErrStopped)
	}
}

// isEndedEarly reports whether a run was ended early.
func isEndedEarly(o *journal.Outcome) bool {
	return o.Status == journal.RunInterrupted || o.Status == journal.RunCancelled
}

// admit waits for a run's turn, and registers it.
func (s *supervisor) admit(ctx, limited context.Context, one *run) error {
	if !one.unattended {
		s.setQueued(one, true)
		defer s.setQueued(one, false)
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(limited, stop)()
	if err := s.gate.enter(waiting, one.unattended); err != nil {
		return err
	}
	s.log.releaseLease(s.running, one.context)
	one.began, one.generation = time.Now(), s.host.Generation().Number
	err := s.register(waiting, one)
	if err != nil {
		s.gate.leave()
	}
	return err
}

// setQueued records whether a run waits for its turn.
func (s *supervisor) setQueued(one *run, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waits {
		s.queued[one] = true
	} else {
		delete(s.queued, one)
	}
}

// register makes a run the active one of its context. It is an error if there is one already.
func (s *supervisor) register(ctx context.Context, one *run) error {
	for {
		before, err := s.tryRegister(one)
		if before == nil {
			return err
		}
		if err := s.waitForEnd(ctx, before); err != nil {
			return err
		}
	}
}

// tryRegister registers a run, or returns the run in the way.
func (s *supervisor) tryRegister(one *run) (before *run, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return nil, errDraining
	}
	if one.cancelRequested {
		return nil, &engine.CancelledError{Who: one.who}
	}
	if before := s.active[one.context]; before != nil {
		return before, nil
	}
	delete(s.woken, one.context) // from now on the run itself looks at the log
	s.active[one.context] = one
	s.runs.Add(1)
	return nil, nil
}

// waitForEnd waits for a run that is almost over: a client that follows its context may see its end
// before it is unregistered here. It is an error if the run still holds its context.
func (s *supervisor) waitForEnd(ctx context.Context, before *run) error {
	select {
	case <-before.started:
	case <-before.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	holder, err := s.log.Holder(ctx, before.context)
	if err != nil {
		return err
	}
	if holder != "" {
		return &engine.BusyError{Context: before.context, Holder: "this server"}
	}
	select {
	case <-before.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finish unregisters a run, and logs how it ended.
func (s *supervisor) finish(one *run) {
	s.mu.Lock()
	delete(s.active, one.context)
	idle := len(s.active) == 0
	pause := s.keepOrphan(one)
	again := one.hasNews // news from now on finds no active run
	s.mu.Unlock()
	s.gate.leave()
	close(one.ended)
	if idle {
		host.Idle()
	}
	took := time.Since(one.began)
	switch {
	case pause > 0 && errors.As(one.err, new(*engine.BusyError)):
		s.logger.Debug("run in use", "context", one.context, "error", one.err)
		return
	case pause == s.lookAgain: // the first try
		until := "the log can be written"
		if isFixedByScripts(one.err) {
			until = "its scripts are mended"
		}
		s.logger.Warn("run stuck: it goes on when "+until, "context", one.context, "took", took, "error", one.err)
	case pause > 0:
		s.logger.Debug("run stuck", "context", one.context, "took", took, "error", one.err)
		return
	case errors.Is(one.err, errDraining): // the next server begins it, or its client asks again
		s.logger.Debug("run not begun", "context", one.context, "took", took)
	case one.err != nil:
		s.logger.Warn("run refused", "context", one.context, "took", took, "error", one.err)
	}
	if one.err != nil {
		s.observer.run("refused", took)
		return
	}
	s.observer.run(string(one.outcome.Status), took)
	s.logger.Info("run", "context", one.context, "status", one.outcome.Status, "took", took)
	if one.outcome.Status == journal.RunWaiting && (again || s.isTrue(one.context, journal.Context.ChildDone)) {
		s.resumeWaiting(one.context)
	}
}

// newRunner returns an engine with the settings as they are now.
func (s *supervisor) newRunner(registry *plan.Registry) *engine.Runner {
	r := s.host.Generation().Settings().Runner(s.log, registry)
	r.Observe = s.observer.call
	return r
}

// resumeFunc returns a function that resumes a run, by its plan's file as it is now.
func (s *supervisor) resumeFunc(how engine.Resume) carryFunc {
	return func(ctx context.Context, begun func()) (*journal.Outcome, error) {
		name, err := journal.In(s.log, how.Context).RootPlan(ctx)
		if err != nil {
			return nil, err
		}
		request, registry, unread := s.host.Generation().PlanOf(name)
		how.Request, how.Begun = request, begun
		outcome, err := s.newRunner(registry).Resume(ctx, how)
		var refused *plan.PlanError
		var unplanned *engine.NoPlannerError
		if (errors.As(err, &refused) || errors.As(err, &unplanned)) && unread != nil {
			return nil, unread
		}
		return outcome, err
	}
}
