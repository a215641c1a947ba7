package web

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/sqlite"
)

// requests are those that are made up: C stands for a context, K for a call.
var requests = []string{
	"POST /v1/runs", "DELETE /v1/runs/C", "GET /v1/contexts", "GET /v1/contexts/C", "GET /v1/contexts/C/log", "GET /v1/contexts/C/calls",
	"GET /v1/contexts/C/approvals", "GET /v1/contexts/C/get", "GET /v1/contexts/C/why", "GET /v1/contexts/C/events", "POST /v1/contexts/C/messages",
	"POST /v1/contexts/C/approve", "POST /v1/contexts/C/calls/K/approve", "POST /v1/contexts/C/calls/K/reject", "POST /v1/contexts/C/resume",
	"POST /v1/contexts/C/fork", "GET /v1/scripts", "PUT /v1/contexts/C/log", "GET /C/K",
}

// statuses are those that a request may be answered with; what is sent elsewhere
// has a path that is written in another way.
var statuses = []int{
	http.StatusOK, http.StatusAccepted, http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusBadRequest, http.StatusNotFound,
	http.StatusMethodNotAllowed, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
}

// goText is what no answer has of Go, unless the client sent it.
var goText = regexp.MustCompile(`runtime error|nil pointer|goroutine \d|interface \{|map\[string\]|0xc0[0-9a-f]{8}|%!|\.go:\d`)

// unheard is a log of which a server does not notice what is appended: nothing
// goes on by itself between one request and the next.
type unheard struct{ store.Log }

func (u unheard) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	if f.Context == "" {
		return func(func(store.Entry, error) bool) {}
	}
	return u.Log.Journal(ctx, f)
}

// client makes requests of a server within the process.
type client struct {
	site *site
	log  store.Log
}

// stages are what the contexts of a log have come to before a request.
var stages = []string{
	`{"plan":"plans/double.lua","context":"done","input":{"n":2},"wait":true}`,
	`{"plan":"plans/double.lua","context":"waits","wait":true}`,
	`{"plan":"plans/double.lua","context":"held","input":{"n":2},"approve":"always","wait":true}`,
	`{"plan":"plans/double.lua","context":"lazy","input":{"n":2},"mode":"lazy","wait":true}`,
	`{"plan":"plans/fail.lua","context":"failed","wait":true}`,
}

// stage makes the log what it is before each request.
func (c *client) stage(t *testing.T) {
	t.Helper()
	var all []store.ContextInfo
	for info, err := range c.log.Contexts(t.Context(), store.ContextFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, info)
	}
	if err := c.log.Prune(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	for _, body := range stages {
		if w := c.do(t, "POST", "/v1/runs", "", body); w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

// held is what a log holds: its contexts as they are listed, and the newest
// position of its journal.
type held struct {
	Contexts []store.ContextInfo
	Newest   int64
}

func (c *client) held(t *testing.T) (h held) {
	t.Helper()
	for info, err := range c.log.Contexts(t.Context(), store.ContextFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		h.Contexts = append(h.Contexts, info)
	}
	for entry, err := range c.log.Journal(t.Context(), store.JournalFilter{Newest: true}) {
		if err != nil {
			t.Fatal(err)
		}
		h.Newest = entry.N
		break
	}
	return h
}

// sent is a client that goes away once something has been sent.
type sent struct {
	*httptest.ResponseRecorder
	leave func()
}

func (s sent) Flush() {
	s.ResponseRecorder.Flush()
	s.leave()
}

// do makes a request; nil if it can't be one. The runs that it begins have come
// to their end.
func (c *client) do(t *testing.T, method, target, last, body string) *httptest.ResponseRecorder {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r := (&http.Request{
		Method: method, URL: u, RequestURI: target, Host: "127.0.0.1", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}).WithContext(ctx)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	w := sent{httptest.NewRecorder(), leave}
	func() {
		defer func() {
			if broken := recover(); broken != nil && broken != http.ErrAbortHandler {
				panic(broken)
			}
		}()
		c.site.server.ServeHTTP(w, r)
	}()
	for _, run := range c.site.server.supervisor.Runs() {
		<-run.Ended()
	}
	return w.ResponseRecorder
}

// FuzzRequests holds that every request is answered by a status that is
// documented and by JSON of the documented shape, that one which is refused
// leaves nothing in the log, and that after one that is not, all of the log can
// be read.
func FuzzRequests(f *testing.F) {
	at := func(request string) uint8 { return uint8(slices.Index(requests, request)) }
	for _, seed := range []struct{ request, context, call, query, last, body string }{
		{"POST /v1/runs", "", "", "", "", `{"plan":"plans/double.lua","input":{"n":4},"context":"new","wait":true}`},
		{"POST /v1/runs", "", "", "", "", `{"plan":"plans/echo.json","input":{"n":[null,1e400]},"context":"done"}`},
		{"POST /v1/runs", "", "", "", "", `{"plan":"plans/bad.lua","context":"new"}`},
		{"POST /v1/runs", "", "", "", "", `{"plan":"plans/broken.lua","mode":"lazy","approve":"scopes"}`},
		{"POST /v1/runs", "", "", "", "", `{"plan":"../etc/passwd","approve":"double,fail"}`},
		{"POST /v1/runs", "", "", "", "", `{"plan":3}`},
		{"POST /v1/runs", "", "", "", "", `{"plan":"plans/double.lua","input":[],"contxt":"a b"}`},
		{"POST /v1/runs", "", "", "", "", `{"plan":"plans/double.lua","input":{"n":"x"}} {}`},
		{"DELETE /v1/runs/C", "waits", "", "", "", ``},
		{"GET /v1/contexts", "", "", "prefix=d&limit=1", "", ``},
		{"GET /v1/contexts/C", "h%65ld", "", "", "", ``},
		{"GET /v1/contexts/C/log", "done", "", "kind=state&path=state.double&since=2026-01-31T12:00:00Z&after=1&at=3", "", ``},
		{"GET /v1/contexts/C/log", "done", "", "at=-1&pth=%zz", "", ``},
		{"GET /v1/contexts/C/calls", "failed", "", "", "", ``},
		{"GET /v1/contexts/C/get", "done", "", "ref=state.double&at=2&instance=%E2%91%A0", "", ``},
		{"GET /v1/contexts/C/get", "done", "", "ref=%E2%80%A0input.n*2%2B%E2%80%A0state.double", "", ``},
		{"GET /v1/contexts/C/get", "done", "", "ref=%E2%80%A0(", "", ``},
		{"GET /v1/contexts/C/get", "done", "", "depth=1", "", ``},
		{"GET /v1/contexts/C/why", "done", "", "ref=state", "", ``},
		{"GET /v1/contexts/C/events", "done", "", "", "3", ``},
		{"GET /v1/contexts/C/events", "held", "", "after=99999", "x", ``},
		{"POST /v1/contexts/C/messages", "waits", "", "", "", `{"type":"input","n":4}`},
		{"POST /v1/contexts/C/messages", "new", "", "", "", "{\"type\":\"text\",\"text\":\"a\"}\n{\"type\":\"plan\",\"plan\":[]}"},
		{"POST /v1/contexts/C/messages", "new", "", "", "", `[{"type":"state","a":1},{"type":"sate"}]`},
		{"POST /v1/contexts/C/messages", "done", "", "", "", `{"type":"data","kind":"state","data":{"double":[5]},"_call":{"_outputPath":"†state.double"},"_outputMethod":"push"}`},
		{"POST /v1/contexts/C/messages", "done", "", "", "", `{"type":"tool","tool":{"t":{"properties":{"a":{"type":7}}}}}`},
		{"POST /v1/contexts/C/approve", "lazy", "", "", "", ``},
		{"POST /v1/contexts/C/approve", "lazy", "", "", "", `{"hash":"0","set":{"1.1.n":5},"without":["1.1"],"preview":true}`},
		{"POST /v1/contexts/C/reject", "lazy", "", "", "", `{"hash":"0","reason":"no"}`},
		{"POST /v1/contexts/C/calls/K/approve", "held", "1.1", "", "", `{"set":{"n":5}}`},
		{"POST /v1/contexts/C/calls/K/approve", "held", "1.1", "", "", `{"set":{"_outputPath":"†x"}}`},
		{"POST /v1/contexts/C/calls/K/reject", "held", "1.1", "", "", `{"reason":"no receipt"}`},
		{"POST /v1/contexts/C/calls/K/reject", "done", "1.9", "", "", `{"reason":" "}`},
		{"POST /v1/contexts/C/resume", "failed", "", "", "", `{"retry":["1.1"],"wait":true}`},
		{"POST /v1/contexts/C/resume", "waits", "", "", "", `{"skip":["1.1"],"from":"1.1","set":{"n":1}}`},
		{"POST /v1/contexts/C/fork", "done", "", "", "", `{"context":"fork","at":2}`},
		{"POST /v1/contexts/C/fork", "done", "", "", "", `{"at":1e400}`},
		{"GET /v1/scripts", "", "", "", "", ``},
		{"PUT /v1/contexts/C/log", "done", "", "", "", `{}`},
		{"GET /C/K", "v1", "..", "", "", `{}`},
	} {
		f.Add(at(seed.request), seed.context, seed.call, seed.query, seed.last, seed.body)
	}
	c := &client{}
	c.site = serve(f, map[string]string{
		"obelus.lua": "return { timeout = 1, drain = 0, limits = { instructions = 1000000 } }", "activities/work.lua": work["activities/work.lua"], "plans/double.lua": work["plans/double.lua"],
		"plans/fail.lua": work["plans/fail.lua"], "plans/echo.json": work["plans/echo.json"], "plans/bad.lua": work["plans/bad.lua"], "plans/broken.lua": work["plans/broken.lua"],
	}, nil, func(config *Config) {
		var err error
		if c.log, err = sqlite.Open(filepath.Join(f.TempDir(), "log.db"), sqlite.Options{Synchronous: "normal"}); err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { c.log.Close() })
		config.Log, config.Timeout = unheard{c.log}, 10*time.Second
	})
	staged := false
	f.Fuzz(func(t *testing.T, which uint8, name, call, query, last, body string) {
		if !staged {
			c.stage(t)
			staged = true
		}
		method, target, _ := strings.Cut(requests[int(which)%len(requests)], " ")
		target = strings.NewReplacer("C", name, "K", call).Replace(target)
		before := c.held(t)
		w := c.do(t, method, target+"?"+query, last, body)
		if w == nil {
			return
		}
		given := target + query + last + body
		after := c.held(t)
		answered(t, w, given)
		if w.Code >= 300 {
			if diff := cmp.Diff(before, after); diff != "" {
				t.Fatalf("%s %s is refused (%d %s), and leaves (-before +after):\n%s", method, target, w.Code, w.Body, diff)
			}
			return
		}
		if cmp.Equal(before, after) {
			return
		}
		staged = false
		for _, info := range after.Contexts {
			for _, path := range []string{"", "/log", "/calls", "/approvals", "/events"} {
				w := c.do(t, "GET", "/v1/contexts/"+info.Context+path, "", "")
				if w.Code != http.StatusOK {
					t.Fatalf("after %s %s %q, %s of %s is %d %s", method, target, body, path, info.Context, w.Code, w.Body)
				}
				answered(t, w, body)
			}
		}
	})
}

// answered holds that an answer is of the shape that its status has.
func answered(t *testing.T, w *httptest.ResponseRecorder, given string) {
	t.Helper()
	text := w.Body.String()
	if !slices.Contains(statuses, w.Code) {
		t.Fatalf("answered by %d %q", w.Code, text)
	}
	if w.Code/100 == 3 && w.Header().Get("Location") != "" {
		return
	}
	if m := goText.FindString(text); m != "" && !strings.ContainsAny(given, `%\`) && !strings.Contains(given, m) {
		t.Fatalf("it shows Go (%s): %s", m, text)
	}
	var v any
	var err error
	switch kind := w.Header().Get("Content-Type"); {
	case kind == "text/event-stream":
		for line := range strings.Lines(text) {
			if data, ok := strings.CutPrefix(line, "data: "); ok && !json.Valid([]byte(data)) {
				t.Fatalf("an event is no JSON: %s", line)
			}
		}
		return
	case kind != "application/json":
		t.Fatalf("it is %q: %s", kind, text)
	}
	if v, err = store.DecodeJSON([]byte(text)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if w.Code < 300 {
		return
	}
	var refused struct {
		Error struct {
			Code, Message string
			Check         []plan.Problem
		}
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&refused); err != nil || refused.Error.Code == "" || refused.Error.Message == "" {
		t.Fatalf("%v: %v", err, v)
	}
	for _, p := range refused.Error.Check {
		if p.Severity == "" || p.Code == "" || p.Message == "" {
			t.Fatalf("a problem that says nothing: %s", text)
		}
	}
}
