package web

import (
	"bytes"
	"net/http"

	"obelus/host/web/internal/api"
	"obelus/host/web/internal/mount"
	"obelus/store"
)

// serverOperations are those about the server itself. The descriptions are the same for every
// project, and need no token: a browser that reads them can't bring one.
func serverOperations() []operation {
	return tagged("server",
		operation{
			ID: "health", Route: "GET /healthz", Open: true, Summary: "Say whether requests are taken and the log can be read.",
			Answer: "It is well; else the status is 503.", Schema: func() api.Schema { return api.Object(api.Schema{"status": api.Schema{"const": "ok"}}) },
			handle: (*Server).getHealth,
		},
		operation{
			ID: "metrics", Route: "GET /metrics", Summary: "Get metrics for Prometheus.",
			Type: "text/plain", Answer: "Metrics in the text format of Prometheus.",
			handle: func(s *Server, w http.ResponseWriter, r *http.Request) error { return s.metrics.serve(w, r) },
		},
		operation{
			ID: "openapi", Route: "GET /openapi.json", Open: true, Summary: "Get this description as an OpenAPI document.",
			Answer: "An OpenAPI 3.1 document.", Schema: func() api.Schema { return api.Schema{"type": "object"} },
			handle: (*Server).getDocument,
		},
		operation{
			ID: "docs", Route: "GET /docs", Open: true, Summary: "Read this description as a page.",
			Type: "text/html", Answer: "A page without scripts.", handle: (*Server).getDocs,
		},
		operation{
			ID: "docsStyle", Route: "GET /docs/style.css", Open: true, Summary: "Get the style of the page.",
			Type: "text/css", Answer: "A style sheet.", handle: (*Server).getDocsStyle,
		},
	)
}

// pagePolicy lets the page load its style sheet and nothing else.
const pagePolicy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (s *Server) getDocument(w http.ResponseWriter, r *http.Request) error {
	server := mount.Prefix(r)
	if server == "" {
		server = "/"
	}
	return writeJSON(w, http.StatusOK, append(store.EncodeJSON(api.Document(s.described(), server)), '\n'))
}

func (s *Server) getDocs(w http.ResponseWriter, r *http.Request) error {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	var b bytes.Buffer
	if err := api.WritePage(&b, s.described(), scheme+"://"+r.Host+mount.Prefix(r), docOf(nil)); err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err := w.Write(b.Bytes())
	return err
}

func (s *Server) getDocsStyle(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, err := w.Write(api.Style)
	return err
}
