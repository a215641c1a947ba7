package web

import (
	"context"
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

// scriptsAnswer is the generation that is loaded.
type scriptsAnswer struct {
	Digest     string        `json:"digest"`
	Error      *reloadAnswer `json:"error"` // null unless the files hold scripts that do not load
	Files      []scriptFile  `json:"files"`
	Generation int           `json:"generation"`
	Loaded     string        `json:"loaded"`
	Pending    []string      `json:"pending"`
}

// reloadAnswer says why newer scripts do not load.
type reloadAnswer struct {
	Added   []string       `json:"added"`
	Changed []string       `json:"changed"`
	Check   []plan.Problem `json:"check"`
	Code    string         `json:"code"`
	Date    string         `json:"date"`
	Message string         `json:"message"`
	Removed []string       `json:"removed"`
}

// getScripts answers with the loaded scripts and, while the files hold scripts that do not load,
// the error.
func (s *Server) getScripts(context.Context, noIn) (scriptsAnswer, error) {
	last := s.config.Host.LastReload()
	g := last.Generation
	answer := scriptsAnswer{
		Generation: g.Number, Digest: g.Digest, Loaded: store.FormatDate(g.Loaded), Pending: append([]string{}, last.Pending...), Files: []scriptFile{},
	}
	for _, f := range g.Files() {
		answer.Files = append(answer.Files, scriptFile{f.Path, f.SHA256})
	}
	if last.Err != nil {
		problems, _ := host.Problems(last.Err)
		answer.Error = &reloadAnswer{
			Code: "script", Message: last.Err.Error(), Check: append([]plan.Problem{}, problems...), Date: store.FormatDate(last.Time),
			Added: append([]string{}, last.Added...), Changed: append([]string{}, last.Changed...), Removed: append([]string{}, last.Removed...),
		}
	}
	return answer, nil
}

// getHealth answers whether the server takes requests and can read its log.
func (s *Server) getHealth(w http.ResponseWriter, r *http.Request) error {
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
