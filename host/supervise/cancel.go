package supervise

import (
	"context"
	"errors"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/store"
)

// Cancel cancels the runs of a context: those that wait for their turn, the one at work, whose
// calls may end within the time of the setting drain, or else the one that has halted. It returns a
// run whose end is to be waited for. Its error is a [*journal.NoSuchCallError] or
// [store.ErrNoContext] if there is nothing to cancel, an [*engine.BusyError] if another process
// runs the context, and a [*PendingError] if it is recorded later.
func (s *Supervisor) Cancel(ctx context.Context, name string, who journal.Who) (*Run, error) {
	run, late, withdrawn := s.cancelRuns(name, who)
	if run != nil {
		select {
		case <-run.recorded:
		case <-run.ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if late || !run.isRecorded() {
			<-run.ended
		}
		if run.isRecorded() && !(late && run.State().goesOn()) {
			return run, nil
		}
		// The log has nothing of it, or it has halted. If it was to go on by itself,
		// another process may have completed the run.
		withdrawn = withdrawn || !run.unattended
	}
	err := s.cancelHalted(ctx, name, who)
	if err != nil && !(withdrawn && isNothingToCancel(err)) {
		return nil, err
	}
	return cancelledRun(name), nil
}

// cancelledRun returns an ended run for one that was cancelled after it had halted.
func cancelledRun(name string) *Run {
	run := &Run{context: name, recorded: make(chan struct{}), ended: make(chan struct{}), outcome: cancelledOutcome(name)}
	run.state.Store(uint32(Ended))
	close(run.ended)
	return run
}

// cancelRuns cancels the runs of a context: the queued ones, which then end without having begun,
// and the active one, which it returns, or nil. late reports that it is too late to cancel the
// active run, withdrawn that a queued run ends.
func (s *Supervisor) cancelRuns(name string, who journal.Who) (run *Run, late, withdrawn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if run = s.active[name]; run != nil {
		late = run.State() == Ending
		s.cancelRun(run, who)
	}
	for queued := range s.queued {
		if queued.context == name && !queued.unattended { // an unattended one finds it in the log
			withdrawn = true
			s.cancelRun(queued, who)
		}
	}
	return run, late, withdrawn
}

// cancelRun cancels a run unless it is cancelled, or over, already. The caller holds the lock.
func (s *Supervisor) cancelRun(run *Run, who journal.Who) {
	if run.State().mayBecome(Cancelling) {
		s.move(run, Cancelling)
		run.who = who
		run.cancel(&engine.CancelledError{Who: who})
	}
}

// cancelHalted records that the run of a context which no process holds is cancelled.
func (s *Supervisor) cancelHalted(ctx context.Context, name string, who journal.Who) error {
	s.mu.Lock()
	left := s.orphans[name]
	s.mu.Unlock()
	s.log.releaseLease(s.running, name)
	if err := engine.Cancel(ctx, s.log, name, who); err != nil {
		return s.scheduleCancel(name, who, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.orphans[name] == left {
		delete(s.orphans, name)
	}
	return nil
}

// scheduleCancel remembers to cancel an orphan when the log can be written again. For any other
// error than that it returns err.
func (s *Supervisor) scheduleCancel(name string, who journal.Who, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.orphans[name]
	if l == nil || s.draining || !isUnwritable(err) {
		return err
	}
	l.unwanted, l.who = true, who
	return &PendingError{Context: name, Cancelled: true, Err: err}
}

// isNothingToCancel reports whether there was no run to cancel.
func isNothingToCancel(err error) bool {
	return errors.Is(err, store.ErrNoContext) || errors.As(err, new(*journal.NoSuchCallError))
}

// cancelledOutcome is the outcome of a run that was cancelled before it went on.
func cancelledOutcome(name string) *journal.Outcome {
	return &journal.Outcome{Context: name, Status: journal.RunCancelled, Error: engine.ErrCancelled.Error()}
}
