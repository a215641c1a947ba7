package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"obelus/host"
)

// route is one path of the server.
type route struct {
	pattern string
	may     host.Role // that its requests need; NoRole for a route without a token
	handle  func(http.ResponseWriter, *http.Request) error
	query   string // the names of its parameters
}

// table lists the routes, by subject. [Doc] describes them.
func (s *Server) table() []route {
	return []route{
		{"GET /healthz", host.NoRole, s.health, anyQuery},
		{"GET /metrics", host.MayRead, s.metrics.serve, anyQuery},
		{"GET /openapi.json", host.NoRole, docs{s}.document(), anyQuery},
		{"GET /docs", host.NoRole, docs{s}.page(), anyQuery},
		{"GET /docs/style.css", host.NoRole, docs{s}.style, anyQuery},

		{"POST /v1/runs", host.MayRun, s.postRun, ""},
		{"GET /v1/runs", host.MayRead, lists{s}.listRuns, listFilter + " cursor limit"},
		{"GET /v1/runs/counts", host.MayRead, lists{s}.countRuns, listFilter},
		{"DELETE /v1/runs/{context}", host.MayRun, s.deleteRun, "by"},
		{"GET /v1/approvals", host.MayRead, lists{s}.getInbox, ""},
		{"GET /v1/events", host.MayRead, lists{s}.getFeed, "after inbox"},

		{"GET /v1/contexts", host.MayRead, lists{s}.listContexts, "prefix limit"},
		{"GET /v1/contexts/{context}", host.MayRead, s.getContext, ""},
		{"GET /v1/contexts/{context}/log", host.MayRead, reading{s}.getLog, "kind path since after at newest q limit"},
		{"GET /v1/contexts/{context}/logs", host.MayRead, reading{s}.getLogs, "call level after newest limit"},
		{"GET /v1/contexts/{context}/calls", host.MayRead, reading{s}.getCalls, "at status tool cursor limit"},
		{"GET /v1/contexts/{context}/approvals", host.MayRead, lists{s}.getApprovals, ""},
		{"GET /v1/contexts/{context}/get", host.MayRead, reading{s}.getValue, "ref at instance depth"},
		{"GET /v1/contexts/{context}/why", host.MayRead, reading{s}.getWhy, "ref at instance"},
		{"GET /v1/contexts/{context}/events", host.MayRead, s.getEvents, "after"},
		{"GET /v1/contexts/{context}/graph", host.MayRead, timeline{s}.getGraph, "tick at"},
		{"GET /v1/contexts/{context}/ticks", host.MayRead, timeline{s}.getTicks, ""},
		{"GET /v1/contexts/{context}/steps", host.MayRead, timeline{s}.getSteps, "after limit"},
		{"GET /v1/contexts/{context}/kinds", host.MayRead, timeline{s}.getKinds, "at"},
		{"GET /v1/contexts/{context}/downstream", host.MayRead, timeline{s}.getDownstream, "call"},
		{"GET /v1/contexts/{context}/prompt", host.MayRead, timeline{s}.getPrompt, "call tick"},
		{"GET /v1/contexts/{context}/children", host.MayRead, timeline{s}.getChildren, "limit"},
		{"GET /v1/diff", host.MayRead, timeline{s}.getDiff, "a a_at b b_at"},

		{"POST /v1/contexts/{context}/messages", host.MayRun, s.postMessages, ""},
		{"POST /v1/contexts/{context}/approve", host.MayDecide, s.postApprovePlan, ""},
		{"POST /v1/contexts/{context}/reject", host.MayDecide, s.postRejectPlan, ""},
		{"POST /v1/contexts/{context}/calls/{call}/approve", host.MayDecide, s.postApprove, ""},
		{"POST /v1/contexts/{context}/calls/{call}/reject", host.MayDecide, s.postReject, ""},
		{"POST /v1/contexts/{context}/resume", host.MayRun, s.postResume, ""},
		{"POST /v1/contexts/{context}/fork", host.MayRun, s.postFork, ""},
		{"POST /v1/contexts/{context}/replay", host.MayRun, timeline{s}.postReplay, ""},
		{"POST /v1/hooks/{hook}", host.NoRole, hookHandler(s), anyQuery},

		{"GET /v1/plans", host.MayRead, project{s}.listPlans, ""},
		{"GET /v1/plans/{file...}", host.MayRead, project{s}.getPlan, ""},
		{"POST /v1/check", host.MayRead, project{s}.postCheck, ""},
		{"GET /v1/tools", host.MayRead, project{s}.listTools, ""},
		{"POST /v1/call", host.MayRun, project{s}.postCall, ""},
		{"GET /v1/scripts", host.MayRead, s.getScripts, ""},
		{"GET /v1/code/{generation}/{path...}", host.MayRead, project{s}.getCode, ""},
	}
}

func (s *Server) routes(pages *pages) http.Handler {
	mux := http.NewServeMux()
	s.access.open = map[string]bool{}
	api := s.table()
	for i, route := range slices.Concat(api, pages.table()) {
		isPage := i >= len(api)
		mux.HandleFunc(route.pattern, s.answer(route.pattern, func(w http.ResponseWriter, r *http.Request) error {
			err := s.checkRoute(r, route)
			if err == nil {
				err = route.handle(w, r)
			}
			if err != nil && isPage && w.(*response).status == 0 {
				return pages.page.Fail(w, r, err)
			}
			return err
		}))
		_, path, _ := strings.Cut(route.pattern, " ")
		if route.may == host.NoRole && !strings.Contains(path, "{") { // a hook says itself what it needs
			s.access.open[path] = true
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

// checkRoute returns an error for a request that a route does not take.
func (s *Server) checkRoute(r *http.Request, route route) error {
	if _, isHook := hookOf(s, r); s.config.ReadOnly && (route.may > host.MayRead || isHook) {
		return errReadOnly(r.Method + " " + r.URL.Path)
	}
	if err := allow(r, route.may, route.pattern); err != nil {
		return err
	}
	return checkQuery(r, route.query)
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
