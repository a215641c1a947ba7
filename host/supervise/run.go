package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/host"
)

// Run is a run that a supervisor carries out: from the request for it until it ends or halts. What
// goes on with it later is another Run.
type Run struct {
	context    string
	unattended bool          // no person asked for it: it goes on by itself
	patient    bool          // it waits for its turn however many others do
	resumes    bool          // it goes on with a run that the log has already
	state      atomic.Uint32 // a State; changed by runTable.move alone
	cancel     context.CancelCauseFunc
	recorded   chan struct{} // closed once the log has the run
	concluded  chan struct{} // closed once its outcome is known
	ended      chan struct{} // closed once its background calls have ended too

	began      time.Time // when it had its turn
	generation int       // the generation of scripts with which it began

	// Set before concluded is closed, where that is before ended: a run whose calls go on in the
	// background. It has given back its place in the queue; nil for any other run.
	early *journal.Outcome

	// Set before ended is closed.
	outcome          *journal.Outcome
	err              error
	cancelledForGood bool // by a person or its timeout: it does not go on by itself

	// Under the table's lock.
	number  int         // runs are numbered as they are asked for
	hasNews bool        // news came that it may halt without
	who     journal.Who // cancelled it
}

// Context returns the name of the run's context.
func (r *Run) Context() string { return r.context }

// Recorded returns a channel that is closed once the log has the run: from there on it goes on
// whatever becomes of the process. It stays open if the run is refused, or cancelled, before that.
func (r *Run) Recorded() <-chan struct{} { return r.recorded }

// Concluded returns a channel that is closed once the run has ended or halted.
func (r *Run) Concluded() <-chan struct{} { return r.concluded }

// Ended returns a channel that is closed once the run has ended or halted, and the calls have ended
// for which it does not wait ([journal.Outcome].Background).
func (r *Run) Ended() <-chan struct{} { return r.ended }

// Wait waits until the run has ended or halted, and returns its outcome, as of its end if that has
// come. Its error is the reason why the run was refused, a [*PendingError] if it has begun and its
// end could not be recorded, or the error of ctx.
func (r *Run) Wait(ctx context.Context) (*journal.Outcome, error) {
	select {
	case <-r.concluded:
	case <-ctx.Done():
		if !isClosed(r.concluded) {
			return nil, ctx.Err()
		}
	}
	if !isClosed(r.ended) {
		return r.early, nil
	}
	if r.err == nil {
		return r.outcome, nil
	}
	if r.isRecorded() && isUnwritable(r.err) {
		return nil, &PendingError{Context: r.context, Cancelled: r.cancelledForGood, Err: r.err}
	}
	return nil, r.err
}

// isRecorded reports whether the log has something of the run.
func (r *Run) isRecorded() bool { return isClosed(r.recorded) }

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// errTime cancels a run that takes too long. As for a person, the cause is engine.ErrCancelled.
var errTime error = &cancelledError{"it took longer than a run may"}

type cancelledError struct{ message string }

func (e *cancelledError) Error() string { return e.message }

func (e *cancelledError) Unwrap() error { return engine.ErrCancelled }

// carryFunc starts or resumes a run. It calls begun once the run is durable, and concluded where
// calls go on in the background once it has ended or halted.
type carryFunc func(ctx context.Context, begun func(), concluded func(*journal.Outcome)) (*journal.Outcome, error)

// begin carries out a run once it is its turn. An unattended run waits for that however many others
// do, and finds in the log that it was cancelled. Another run may be cancelled while it waits.
func (s *Supervisor) begin(ctx context.Context, run *Run, carry carryFunc) (*Run, error) {
	running, cancel := context.WithCancelCause(s.running)
	run.cancel, run.recorded = cancel, make(chan struct{})
	run.concluded, run.ended = make(chan struct{}), make(chan struct{})
	if err := s.admit(ctx, running, run); err != nil {
		defer cancel(nil)
		return s.runs.withdraw(run, err)
	}
	go func() {
		defer s.runs.atWork.Done()
		defer cancel(nil)
		limit := time.AfterFunc(s.config.Timeout, func() { cancel(errTime) })
		defer limit.Stop()
		s.carryOut(running, run, func(ctx context.Context) (*journal.Outcome, error) {
			conclude := func(o *journal.Outcome) {
				limit.Stop() // each call that is left has its own
				s.conclude(run, o)
			}
			return carry(ctx, func() { s.runs.record(run) }, conclude)
		})
		cancelled := s.runs.closeRun(run)
		if cause := context.Cause(running); cause != nil {
			run.cancelledForGood = errors.Is(cause, engine.ErrCancelled)
			run.describeCancel(cause)
		}
		if cancelled && run.isResumable() && engine.Cancel(context.Background(), s.log, run.context, run.who) == nil {
			run.cancelledForGood = true
			run.outcome = cancelledOutcome(run.context)
		}
		s.finish(run)
	}()
	return run, nil
}

// admit waits for a run's turn, and then makes it the active one of its context.
func (s *Supervisor) admit(ctx, running context.Context, run *Run) error {
	if err := s.runs.add(run); err != nil {
		return err
	}
	turn, err := s.queue.enter(run.unattended || run.patient)
	if err != nil {
		return err
	}
	if turn != nil {
		s.config.Logger.Debug("run queued", "context", run.context)
	}
	if err := s.queue.wait(ctx, running, turn); err != nil {
		return err
	}
	s.log.releaseLease(s.running, run.context)
	run.began, run.generation = time.Now(), s.config.Host.Generation().Number
	if err := s.activate(ctx, running, run); err != nil {
		s.queue.release()
		return err
	}
	return nil
}

// activate makes a run the active one of its context. It is an error if there is one already.
func (s *Supervisor) activate(ctx, running context.Context, run *Run) error {
	before, err := s.runs.activate(run)
	if before == nil {
		return err
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(running, stop)()
	for before != nil {
		if err := s.waitForEnd(waiting, before); err != nil {
			return err
		}
		before, err = s.runs.activate(run)
	}
	return err
}

// waitForEnd waits for a run that is almost over: a follower of its context may see its end before
// it is no longer active. It is an error if the run still holds its context.
func (s *Supervisor) waitForEnd(ctx context.Context, before *Run) error {
	select {
	case <-before.recorded:
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
		return &engine.BusyError{Context: before.context, Holder: "this process"}
	}
	select {
	case <-before.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// carryOut carries out a run. A panic costs this run and no other.
func (s *Supervisor) carryOut(ctx context.Context, run *Run, carry func(context.Context) (*journal.Outcome, error)) {
	defer func() {
		if broken := recover(); broken != nil {
			run.outcome, run.err = nil, fmt.Errorf("it broke down: %v", broken)
			s.config.Logger.Error("a run broke down: this is a fault of the program", "context", run.context, "error", broken, "stack", string(debug.Stack()))
		}
	}()
	run.outcome, run.err = carry(ctx)
}

// close closes the channels of a run that has ended.
func (r *Run) close() {
	close(r.ended)
	if r.early == nil {
		close(r.concluded)
	}
}

// isResumable reports whether the run has ended only for now: it waits, or the next supervisor
// resumes it.
func (r *Run) isResumable() bool {
	return r.err == nil && (r.outcome.Status == journal.RunWaiting || r.outcome.Stopped)
}

// describeCancel gives a run that was ended early an outcome with the cause.
func (r *Run) describeCancel(cause error) {
	if errors.Is(r.err, context.Canceled) || errors.Is(r.err, context.DeadlineExceeded) {
		r.outcome, r.err = &journal.Outcome{Status: journal.RunCancelled}, nil
		if errors.Is(cause, engine.ErrStopped) {
			r.outcome.Status = journal.RunInterrupted
		}
	}
	switch {
	case r.err != nil || !isEndedEarly(r.outcome) || r.outcome.Error != "":
	case r.outcome.Context == "" && errors.Is(cause, engine.ErrStopped): // the run had not begun
		r.err = ErrStopping
	default:
		r.outcome.Context, r.outcome.Error, r.outcome.Stopped = r.context, cause.Error(), errors.Is(cause, engine.ErrStopped)
	}
}

// isEndedEarly reports whether a run was ended early.
func isEndedEarly(o *journal.Outcome) bool {
	return o.Status == journal.RunInterrupted || o.Status == journal.RunCancelled
}

// finalState returns the state in which a run ends.
func (r *Run) finalState(stuck bool) State {
	switch {
	case stuck:
		return Stuck
	case errors.Is(r.err, ErrStopping):
		return Stopped
	case r.err != nil:
		return Refused
	case r.outcome.Stopped:
		return Stopped
	case r.outcome.Status == journal.RunWaiting:
		return Waiting
	}
	return Ended
}

// logError logs why a run is refused or stuck. It reports whether the run was stuck before: it is
// tried again and again.
func (s *Supervisor) logError(run *Run, pause, took time.Duration) (again bool) {
	switch {
	case pause > 0 && errors.As(run.err, new(*engine.BusyError)):
		s.config.Logger.Debug("run in use", "context", run.context, "error", run.err)
		return true
	case pause == s.orphans.firstPause: // the first try
		until := "the log can be written"
		if isFixedByScripts(run.err) {
			until = "its scripts are mended"
		}
		s.config.Logger.Warn("run stuck: it goes on when "+until, "context", run.context, "took", took, "error", run.err)
	case pause > 0:
		s.config.Logger.Debug("run stuck", "context", run.context, "took", took, "error", run.err)
		return true
	case errors.Is(run.err, ErrStopping): // the next supervisor begins it, or its caller asks again
		s.config.Logger.Debug("run not begun", "context", run.context, "took", took)
	case reactionName().MatchString(run.context) && isTaken(run.err):
		s.config.Logger.Debug("run begun by another", "context", run.context, "error", run.err)
	case run.err != nil:
		s.config.Logger.Warn("run refused", "context", run.context, "took", took, "error", run.err)
	}
	return false
}

// conclude has all who wait for a run, or for its end, go on though calls of it are at work in the
// background. A run that has halted may conclude again.
func (s *Supervisor) conclude(run *Run, outcome *journal.Outcome) {
	if run.early == nil {
		run.early = outcome
		close(run.concluded)
		s.queue.release()
		s.scheduler.noticeEnd(run.context)
	}
	s.reactor.notice(run.context)
	s.config.Logger.LogAttrs(context.Background(), slog.LevelInfo, "run concluded",
		slog.String("context", run.context), slog.String("status", string(outcome.Status)), slog.Int("background", outcome.Background))
}

// finish ends a run for the supervisor, and logs how it ended.
func (s *Supervisor) finish(run *Run) {
	pause := s.orphans.keep(run)
	react := func() {}
	if run.err == nil {
		react = s.reactor.prepare(run.context)
	}
	idle, hasNews := s.runs.remove(run, run.finalState(pause > 0)) // news from now on finds no active run
	if run.early == nil {
		s.queue.release()
	}
	run.close()
	if run.resumes {
		signal(s.watcher.news) // if its context is a delegate's, another run may wait for its end
	}
	if idle {
		host.Idle()
	}
	took := time.Since(run.began)
	if s.logError(run, pause, took) {
		return
	}
	s.config.Ended(run, took)
	s.scheduler.noticeEnd(run.context)
	if run.err != nil {
		return
	}
	react()
	s.config.Logger.LogAttrs(context.Background(), slog.LevelInfo, "run",
		slog.String("context", run.context), slog.String("status", string(run.outcome.Status)), slog.Duration("took", took))
	if run.State() == Waiting {
		what := childDone
		if hasNews {
			what = inputCame
		}
		s.watcher.resumeAll(map[string]news{run.context: what})
	}
}
