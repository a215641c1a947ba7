package web

import (
	"fmt"
	"net/http"

	"obelus/engine"
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
	one, late, withdrawn := s.supervisor.unask(name, who)
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
	err = s.supervisor.cancelHalted(r.Context(), name, who)
	if err != nil && !(withdrawn && isOver(err)) {
		return err
	}
	return write(w, http.StatusOK, outcomeBody(cancelled(name)))
}
