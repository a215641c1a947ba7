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
	who, err := s.decider(r.URL.Query().Get("by"))
	if err != nil {
		return err
	}
	one, late, withdrawn := s.supervisor.cancelRuns(name, who)
	if one != nil {
		one.cancel(&engine.CancelledError{Who: who})
		select {
		case <-one.started:
		case <-one.ended:
		case <-r.Context().Done():
			return r.Context().Err()
		}
		if late || !one.hasStarted() {
			<-one.ended
		}
		if one.hasStarted() && !(late && one.isResumable()) {
			return s.sendRun(w, r, one, true)
		}
		// The log has nothing of it, or it has halted. If it was to go on by itself,
		// another process may have completed the run.
		withdrawn = withdrawn || !one.unattended
	}
	err = s.supervisor.cancelHalted(r.Context(), name, who)
	if err != nil && !(withdrawn && isNothingToCancel(err)) {
		return err
	}
	return write(w, http.StatusOK, outcomeBody(cancelledOutcome(name)))
}
