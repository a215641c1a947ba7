package web

import (
	"errors"
	"net/http"

	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
)

// scriptFile is a script as GET /v1/scripts lists it.
type scriptFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// getScripts answers with the loaded scripts and, while the files hold scripts that do not load,
// the error.
func (s *Server) getScripts(w http.ResponseWriter, r *http.Request) error {
	last := s.config.Host.LastReload()
	g := last.Generation
	body := map[string]any{
		"generation": g.Number, "digest": g.Digest, "loaded": store.FormatDate(g.Loaded),
		"pending": append([]string{}, last.Pending...), "error": nil,
	}
	files := []scriptFile{}
	for _, f := range g.Files() {
		files = append(files, scriptFile{f.Path, f.SHA256})
	}
	body["files"] = files
	if last.Err != nil {
		problems, ok := host.Problems(last.Err)
		if !ok {
			problems = []plan.Problem{}
		}
		body["error"] = map[string]any{
			"code": "script", "message": last.Err.Error(), "check": problems, "date": store.FormatDate(last.Time),
			"added": append([]string{}, last.Added...), "changed": append([]string{}, last.Changed...), "removed": append([]string{}, last.Removed...),
		}
	}
	return write(w, http.StatusOK, body)
}

// health answers whether the server takes requests and can read its log.
func (s *Server) health(w http.ResponseWriter, r *http.Request) error {
	if s.supervisor.IsShutDown() {
		return errStopping
	}
	if _, err := s.log.Head(r.Context(), ""); err != nil && !errors.Is(err, store.ErrNoContext) {
		if r.Context().Err() != nil { // the error is the request's
			return err
		}
		s.logger.Error("the log can't be read", "error", err)
		return errUnreadable
	}
	return write(w, http.StatusOK, map[string]any{"status": "ok"})
}
