package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/store"
)

func (s *Server) deleteRun(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("context")
	if store.CheckStoredContext(name) != nil {
		return fmt.Errorf("%w: %s", store.ErrNoContext, name)
	}
	who, err := s.who(r.URL.Query().Get("by"))
	if err != nil {
		return err
	}
	one, late, withdrawn := s.unask(name, who)
	if one != nil {
		one.cancel(&engine.CancelledError{Who: who})
		select {
		case <-one.begun:
		case <-one.ended:
		case <-r.Context().Done():
			return r.Context().Err()
		}
		if late || !one.hasBegun() {
			<-one.ended
		}
		if one.hasBegun() && !(late && one.goesOn()) {
			return s.tellRun(w, r, one, true)
		}
		// Nothing of it is in the log, or it has halted. If it was to go on by itself, the
		// run may have been brought to its end by another process.
		withdrawn = withdrawn || !one.alone
	}
	err = s.cancelHalted(r.Context(), name, who)
	if err != nil && !(withdrawn && isOver(err)) {
		return err
	}
	return write(w, http.StatusOK, outcomeBody(cancelled(name)))
}

// unask notes of the runs of a context that somebody has cancelled them: those that
// wait for their turn, which have to do nothing more, and the one that has it, which may
// be all but over.
func (s *Server) unask(name string, who journal.Who) (one *run, late, withdrawn bool) {
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
func (s *Server) cancelHalted(ctx context.Context, name string, who journal.Who) error {
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
func (s *Server) cancelLater(name string, who journal.Who, err error) error {
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
