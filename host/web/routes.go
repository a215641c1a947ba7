package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"obelus/host"
)

// operations lists what the server can be asked, by subject.
func operations() []operation {
	return slices.Concat(runOperations(), contextOperations(), timelineOperations(), decisionOperations(), projectOperations(), serverOperations())
}

func (s *Server) routes(pages *pages) http.Handler {
	mux := http.NewServeMux()
	s.access.open = map[string]bool{}
	for _, o := range slices.Concat(s.operations, pages.operations()) {
		isPage := o.Tag == ""
		mux.HandleFunc(o.Route, s.answer(o.Route, func(w http.ResponseWriter, r *http.Request) error {
			err := s.checkRole(r, o)
			if err == nil {
				err = o.handle(s, w, r)
			}
			if err != nil && isPage && w.(*response).status == 0 {
				return pages.page.Fail(w, r, err)
			}
			return err
		}))
		if o.Open && !strings.Contains(o.Route, "{") { // a hook says itself what it needs
			s.access.open[o.path()] = true
		}
	}
	refuse := s.answer("/", func(w http.ResponseWriter, r *http.Request) error {
		err := &problem{status: http.StatusNotFound, code: "not-found", message: "there is nothing at " + r.URL.Path}
		if taken := methodsAt(mux, r); len(taken) > 0 {
			list := strings.Join(taken, ", ")
			w.Header().Set("Allow", list)
			err = &problem{status: http.StatusMethodNotAllowed, code: "method", message: r.Method + " is not for this path: it takes " + list}
		}
		if pages != nil && strings.Contains(r.Header.Get("Accept"), "text/html") {
			return pages.page.Fail(w, r, err)
		}
		return err
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hasRoute(mux, r) {
			mux.ServeHTTP(w, r)
			return
		}
		refuse(w, r)
	})
}

// hasRoute reports whether a mux has a route for a request. Where the path is not written as those
// of routes, as with two slashes, the mux has a redirection of its own instead.
func hasRoute(mux *http.ServeMux, r *http.Request) bool {
	handler, pattern := mux.Handler(r)
	_, isRoute := handler.(http.HandlerFunc)
	return isRoute && pattern != ""
}

// methodsAt lists the methods for which there is a route at the path of a request.
func methodsAt(mux *http.ServeMux, r *http.Request) (taken []string) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		asked := r.WithContext(r.Context())
		asked.Method = method
		if hasRoute(mux, asked) {
			taken = append(taken, method)
		}
	}
	return taken
}

// checkRole returns an error for a request whose author may not make it.
func (s *Server) checkRole(r *http.Request, o operation) error {
	if _, isHook := hookOf(s, r); s.config.ReadOnly && (o.role() > host.MayRead || isHook) {
		return errReadOnly(r.Method + " " + r.URL.Path)
	}
	return allow(r.Context(), o.role(), o.Route)
}

// answer returns a handler that turns the error of a function into an answer.
func (s *Server) answer(route string, handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.(*response).route = route
		if err := handle(w, r); err != nil {
			s.fail(w.(*response), r, err)
		}
	}
}

// errReadOnly refuses a request that would change something.
func errReadOnly(what string) error {
	return &problem{status: http.StatusForbidden, code: "role", message: fmt.Sprintf("this server is read-only: %s is refused", what)}
}
