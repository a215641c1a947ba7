package web

import (
	"context"
	"errors"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/store"
)

// cancelRuns marks the runs of a context as cancelled: the queued ones, which then end without
// having begun, and the active one, which it returns, or nil. late reports that the active run is
// already closed, withdrawn that a queued run was cancelled.
func (s *supervisor) cancelRuns(name string, who journal.Who) (one *run, late, withdrawn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one = s.active[name]
	if one != nil {
		late, one.cancelRequested, one.who = one.closed, true, who
	}
	for queued := range s.queued {
		if queued.context == name && queued != one {
			queued.cancelRequested, withdrawn = true, true
			queued.cancel(&engine.CancelledError{Who: who})
		}
	}
	return one, late, withdrawn
}

// cancelHalted records that the run of a context which no process holds is cancelled.
func (s *supervisor) cancelHalted(ctx context.Context, name string, who journal.Who) error {
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
func (s *supervisor) scheduleCancel(name string, who journal.Who, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.orphans[name]
	if l == nil || s.draining || !isUnwritable(err) {
		return err
	}
	l.unwanted, l.who = true, who
	return unrecordedCancel(name)
}

// isNothingToCancel reports whether there was no run to cancel.
func isNothingToCancel(err error) bool {
	return errors.Is(err, store.ErrNoContext) || errors.As(err, new(*journal.NoSuchCallError))
}

// cancelledOutcome is the outcome of a run that was cancelled before it went on.
func cancelledOutcome(name string) *journal.Outcome {
	return &journal.Outcome{Context: name, Status: journal.RunCancelled, Error: engine.ErrCancelled.Error()}
}
