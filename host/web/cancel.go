package web

import (
	"context"
	"errors"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/store"
)

// unask notes of the runs of a context that somebody has cancelled them: those that
// wait for their turn, which have to do nothing more, and the one that has it, which may
// be all but over.
func (s *supervisor) unask(name string, who journal.Who) (one *run, late, withdrawn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one = s.active[name]
	if one != nil {
		late, one.unasked, one.who = one.over, true, who
	}
	for queued := range s.queued {
		if queued.context == name && queued != one {
			queued.unasked, withdrawn = true, true
			queued.cancel(&engine.CancelledError{Who: who})
		}
	}
	return one, late, withdrawn
}

// cancelHalted cancels the run of a context that nobody is at.
func (s *supervisor) cancelHalted(ctx context.Context, name string, who journal.Who) error {
	s.mu.Lock()
	left := s.leftovers[name]
	s.mu.Unlock()
	s.log.giveBack(s.running, name)
	if err := engine.Cancel(ctx, s.log, name, who); err != nil {
		return s.cancelLater(name, who, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leftovers[name] == left {
		delete(s.leftovers, name)
	}
	return nil
}

// cancelLater notes that a run which is stuck is not wanted any more.
func (s *supervisor) cancelLater(name string, who journal.Who, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leftovers[name]
	if l == nil || s.draining || !isUnwritable(err) {
		return err
	}
	l.unwanted, l.who = true, who
	return untold(name)
}

// isOver tells of an error whether there was nothing to cancel.
func isOver(err error) bool {
	return errors.Is(err, store.ErrNoContext) || errors.As(err, new(*journal.NoSuchCallError))
}

// cancelled is how a run stands that was cancelled before it went on.
func cancelled(name string) *journal.Outcome {
	return &journal.Outcome{Context: name, Status: journal.RunCancelled, Error: engine.ErrCancelled.Error()}
}
