package web

import (
	"bytes"
	"net/http"
	"sync"

	"obelus/host/web/internal/api"
	"obelus/host/web/internal/mount"
	"obelus/store"
)

// docs describes the server's routes. The descriptions are the same for every project, and need no
// token: a browser that reads them can't bring one.
type docs struct{ *Server }

// pagePolicy lets the page load its style sheet and nothing else.
const pagePolicy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// describedOnce returns the routes, which are described when they are first asked for.
func (s docs) describedOnce() func() []api.Route { return sync.OnceValue(s.described) }

// document returns the handler of GET /openapi.json.
func (s docs) document() func(http.ResponseWriter, *http.Request) error {
	routes := s.describedOnce()
	return func(w http.ResponseWriter, r *http.Request) error {
		server := mount.Prefix(r)
		if server == "" {
			server = "/"
		}
		return writeJSON(w, http.StatusOK, append(store.EncodeJSON(api.Document(routes(), server)), '\n'))
	}
}

// page returns the handler of GET /docs.
func (s docs) page() func(http.ResponseWriter, *http.Request) error {
	routes := s.describedOnce()
	return func(w http.ResponseWriter, r *http.Request) error {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		var b bytes.Buffer
		if err := api.WritePage(&b, routes(), scheme+"://"+r.Host+mount.Prefix(r), Doc()); err != nil {
			return err
		}
		w.Header().Set("Content-Security-Policy", pagePolicy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, err := w.Write(b.Bytes())
		return err
	}
}

// style answers with the style sheet of the page.
func (s docs) style(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, err := w.Write(api.Style)
	return err
}
