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

// run is one that this server carries out.
type run struct {
	context string
	began   time.Time
	cancel  context.CancelCauseFunc
	begun   chan struct{} // closed once it is in the log
	ended   chan struct{} // closed once it has come to an end or to a halt
	outcome *journal.Outcome
	err     error
	again   bool // something came that it may halt for; under the server's lock

	generation int // of the scripts when it began

	alone    bool // nobody asked for it
	unwanted bool // it was told to end for good

	unasked bool        // somebody has cancelled it; under the server's lock
	who     journal.Who // has; likewise
	over    bool        // too late for that; likewise
}

// hasBegun tells whether something of a run is in the log.
func (one *run) hasBegun() bool {
	select {
	case <-one.begun:
		return true
	default:
		return false
	}
}

// errTime is why a run is cancelled of which nobody wants that. Who asks for that does so with
// engine.ErrCancelled.
var errTime error = &cancelledError{"it took longer than a run may"}

type cancelledError struct{ message string }

func (e *cancelledError) Error() string { return e.message }

func (e *cancelledError) Unwrap() error { return engine.ErrCancelled }

var errDraining = &problem{status: http.StatusServiceUnavailable, code: "stopping", message: "the server is being stopped", retry: 5}

// carrier begins or resumes a run; it calls begun once the run is safe.
type carrier func(ctx context.Context, begun func()) (*journal.Outcome, error)

// begin carries out a run once it is its turn. One that nobody asked for waits for
// that however many others do, and finds in the log then that it is cancelled; another
// may be cancelled while it waits.
func (s *Server) begin(ctx context.Context, name string, alone bool, carry carrier) (*run, error) {
	limited, cancel := context.WithCancelCause(s.running)
	one := &run{context: name, alone: alone, cancel: cancel, begun: make(chan struct{}), ended: make(chan struct{})}
	if err := s.enter(ctx, limited, one); err != nil {
		defer cancel(nil)
		switch cause := context.Cause(limited); {
		case cause == nil:
			return nil, err
		case errors.Is(cause, engine.ErrCancelled):
			one.outcome = cancelled(name)
			close(one.ended)
			return one, nil
		default:
			return nil, errDraining
		}
	}
	go func() {
		defer s.runs.Done()
		defer cancel(nil)
		bounded, stop := context.WithTimeoutCause(limited, s.config.Timeout, errTime)
		defer stop()
		s.carryOut(bounded, one, carry)
		unasked := s.close(one)
		if cause := context.Cause(bounded); cause != nil {
			one.unwanted = errors.Is(cause, engine.ErrCancelled)
			one.cut(cause)
		}
		if unasked && one.goesOn() && engine.Cancel(context.Background(), s.log, name, one.who) == nil {
			one.unwanted = true
			one.outcome = cancelled(name)
		}
		s.end(one)
	}()
	return one, nil
}

// carryOut carries out a run. A fault of the program costs that run and no other.
func (s *Server) carryOut(ctx context.Context, one *run, carry carrier) {
	defer func() {
		if broken := recover(); broken != nil {
			one.outcome, one.err = nil, fmt.Errorf("it broke down: %v", broken)
			s.logger.Error("a run broke down: this is a fault of the program", "context", one.context, "error", broken, "stack", string(debug.Stack()))
		}
	}()
	one.outcome, one.err = carry(ctx, func() { close(one.begun) })
}

// goesOn tells whether a run has ended for now only: it waits, or the next server
// resumes it.
func (one *run) goesOn() bool {
	return one.err == nil && (one.outcome.Status == journal.RunWaiting || one.outcome.Stopped)
}

// close tells whether somebody has cancelled a run; who does so from now on is told how
// it ended.
func (s *Server) close(one *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.over = true
	return one.unasked
}

// cut says why a run that was told to end has done so, if it has.
func (one *run) cut(cause error) {
	if errors.Is(one.err, context.Canceled) || errors.Is(one.err, context.DeadlineExceeded) {
		one.outcome, one.err = &journal.Outcome{Status: journal.RunCancelled}, nil
		if errors.Is(cause, engine.ErrStopped) {
			one.outcome.Status = journal.RunInterrupted
		}
	}
	switch {
	case one.err != nil || !isCut(one.outcome) || one.outcome.Error != "":
	case one.outcome.Context == "" && errors.Is(cause, engine.ErrStopped): // it had not begun
		one.err = errDraining
	default:
		one.outcome.Context, one.outcome.Error, one.outcome.Stopped = one.context, cause.Error(), errors.Is(cause, engine.ErrStopped)
	}
}

// isCut tells of an outcome whether the run was ended early.
func isCut(o *journal.Outcome) bool {
	return o.Status == journal.RunInterrupted || o.Status == journal.RunCancelled
}

// enter waits for a run's turn, and makes it one of the server's.
func (s *Server) enter(ctx, limited context.Context, one *run) error {
	if !one.alone {
		s.queue(one, true)
		defer s.queue(one, false)
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(limited, stop)()
	if err := s.gate.enter(waiting, one.alone); err != nil {
		return err
	}
	s.log.giveBack(s.running, one.context)
	one.began, one.generation = time.Now(), s.config.Host.Generation().Number
	err := s.enlist(waiting, one)
	if err != nil {
		s.gate.leave()
	}
	return err
}

// queue notes that a run waits for its turn, or does so no longer.
func (s *Server) queue(one *run, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waits {
		s.queued[one] = true
	} else {
		delete(s.queued, one)
	}
}

// enlist makes a run one of the server's, unless its context has one already.
func (s *Server) enlist(ctx context.Context, one *run) error {
	for {
		before, err := s.tryEnlist(one)
		if before == nil {
			return err
		}
		if err := s.outlast(ctx, before); err != nil {
			return err
		}
	}
}

// tryEnlist gives the run that is in the way.
func (s *Server) tryEnlist(one *run) (before *run, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return nil, errDraining
	}
	if one.unasked {
		return nil, &engine.CancelledError{Who: one.who}
	}
	if before := s.active[one.context]; before != nil {
		return before, nil
	}
	delete(s.woken, one.context) // it looks at the log from now on
	s.active[one.context] = one
	s.runs.Add(1)
	return nil, nil
}

// outlast waits for a run that is all but over: whoever follows its context may
// know of its end before the server does.
func (s *Server) outlast(ctx context.Context, before *run) error {
	select {
	case <-before.begun:
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

// end lets go of a run.
func (s *Server) end(one *run) {
	s.mu.Lock()
	delete(s.active, one.context)
	idle := len(s.active) == 0
	pause := s.settled(one)
	again := one.again // whatever comes from now on finds that the run has gone
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
	case pause == s.config.lookAgain: // for the first time
		until := "the log can be written"
		if isOfScripts(one.err) {
			until = "its scripts are mended"
		}
		s.logger.Warn("run stuck: it goes on when "+until, "context", one.context, "took", took, "error", one.err)
	case pause > 0:
		s.logger.Debug("run stuck", "context", one.context, "took", took, "error", one.err)
		return
	case errors.Is(one.err, errDraining): // the next server begins it, or whoever asked asks again
		s.logger.Debug("run not begun", "context", one.context, "took", took)
	case one.err != nil:
		s.logger.Warn("run refused", "context", one.context, "took", took, "error", one.err)
	}
	if one.err != nil {
		s.metrics.run("refused", took)
		return
	}
	s.metrics.run(string(one.outcome.Status), took)
	s.logger.Info("run", "context", one.context, "status", one.outcome.Status, "took", took)
	if one.outcome.Status == journal.RunWaiting && (again || s.freed(one.context)) {
		s.goOn(one.context)
	}
}

// runner is an engine with the settings as they are now.
func (s *Server) runner(registry *plan.Registry) *engine.Runner {
	r := s.config.Host.Generation().Settings().Runner(s.log, registry)
	r.Observe = s.metrics.call
	return r
}
