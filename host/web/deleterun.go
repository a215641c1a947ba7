package web

import (
	"fmt"
	"net/http"

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
	run, err := s.supervisor.Cancel(r.Context(), name, who)
	if err != nil {
		return err
	}
	return s.sendRun(w, r, run, true)
}
