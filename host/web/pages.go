package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"obelus/host"
	"obelus/host/web/internal/mount"
	"obelus/host/web/page"
)

// pages are the routes for people, in a browser, and for their sessions.
type pages struct {
	*Server
	page *page.Page
}

// newPages returns the pages; nil where the server has none. api answers the requests that their
// forms make.
func newPages(s *Server, api http.Handler) *pages {
	if !s.config.Page {
		return nil
	}
	p := &pages{Server: s}
	s.access.pages = map[string]bool{"": true, "login": true, "logout": true}
	views := s.room.forViews()
	p.page = page.New(page.Config{
		Title: s.config.Title, Host: s.config.Host, Log: s.log, Runs: s.runs, ShowPlan: s.supervisor.ShowPlan, API: api, Ended: s.supervisor.Done(), Stuck: s.supervisor.Stuck,
		Author: p.author, Explain: p.explain, Follow: p.follow, Recheck: p.recheck, NewName: newName,
		Waiting: s.waiting,
		Reserve: func(ctx context.Context, begun bool, produce func(context.Context) ([]byte, error)) ([]byte, func(), error) {
			if begun {
				return views.reserve(ctx, produce)
			}
			return s.reserve(ctx, views, produce)
		},
	})
	for _, route := range p.page.Routes() {
		_, path, _ := strings.Cut(route.Pattern, " ")
		s.access.pages[firstSegment(path)] = true
	}
	return p
}

// operations lists the requests for pages. Their errors are pages too.
func (p *pages) operations() (all []operation) {
	if p == nil {
		return nil
	}
	add := func(route string, role host.Role, handle func(http.ResponseWriter, *http.Request) error) {
		all = append(all, operation{Route: route, Role: role, Open: role == host.NoRole, handle: func(_ *Server, w http.ResponseWriter, r *http.Request) error { return handle(w, r) }})
	}
	for _, r := range p.page.Routes() {
		add(r.Pattern, r.Role, r.Handle)
	}
	add("GET /login", host.NoRole, p.getLogin)
	add("POST /login", host.NoRole, p.postLogin)
	add("POST /logout", host.NoRole, p.postLogout)
	return all
}

// author describes the author of a request for a page.
func (p *pages) author(r *http.Request) page.Author {
	c := callerOf(r.Context())
	token := c.name != "" && c.name != nameOfLocal
	return page.Author{Name: c.name, Role: c.may, Signed: token && c.name != nameOfToken, Token: token}
}

// explain gives the status and the text for an error of a page.
func (p *pages) explain(r *http.Request, err error) (status int, message string) {
	own := p.problem(r, err)
	return own.status, own.message
}

// follow takes a place for a page that follows the log.
func (p *pages) follow() (leave func(), err error) {
	if p.streams.Add(1) > mostStreams {
		p.streams.Add(-1)
		return nil, errFollowed
	}
	return func() { p.streams.Add(-1) }, nil
}

// refuses answers a request that the guard does not let pass, if it is for a page: one without a
// session is sent to the login. It reports false for other requests.
func (p *pages) refuses(w http.ResponseWriter, r *http.Request, err error) bool {
	if p == nil || !p.access.isPage(r) {
		return false
	}
	if errors.Is(err, errToken) && r.Method == http.MethodGet && r.Header.Get("Accept") != "text/event-stream" {
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, mount.Prefix(r)+"/login?next="+nextOf(r), http.StatusSeeOther)
		return true
	}
	_ = p.page.Fail(w, r, err)
	return true
}
