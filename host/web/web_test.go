package web

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
	"obelus/store/sqlite"
)

// site is a project that a test serves, with its log in a file.
type site struct {
	t      testing.TB
	dir    string
	host   *host.Host
	log    store.Log
	server *Server
	http   *httptest.Server
	logged *logged
}

// pause lets a test stop calls in their midst.
type pause struct{ reached, resume chan struct{} }

func newPause() *pause { return &pause{make(chan struct{}, 1000), make(chan struct{})} }

// Here is called by scripts.
func (p *pause) Here() {
	p.reached <- struct{}{}
	<-p.resume
}

// work is what the project of most tests has.
var work = map[string]string{
	"obelus.lua": "return { drain = '100ms' }",
	"activities/work.lua": `
		Activity.register("double", function(call) return { double = 2 * call.n } end)
		Activity.register("fail", function() return nil, "no luck" end)
		Activity.register("stop", { timeout = 60 }, function() pause:Here(); return "went on" end)
		Activity.register("sleep", { timeout = 60 }, function() require("time").sleep(50) end)`,
	"plans/double.lua": `return { calls = { { _tool = "double", n = "†input.n", _outputPath = "†state" } }, output = "†state.double" }`,
	"plans/fail.lua":   `return { { _tool = "fail", _outputPath = "†state" } }`,
	"plans/lack.lua":   `return { calls = { { _tool = "fail", _outputPath = "†state.a" } }, output = "†state.a" }`,
	"plans/stop.lua":   `return { calls = { { _tool = "stop", _outputPath = "†state.said" } }, output = "†state.said" }`,
	"plans/sleep.lua":  `return { { _tool = "sleep", _outputPath = "†state" } }`,
	"plans/think.lua":  `return function() require("time").sleep(20); return { calls = {} } end`,
	"plans/never.lua":  `return function() return { calls = { { _tool = "fail", _outputPath = "†state" } } } end`,
	"plans/echo.json":  `{"calls":[],"output":"†input"}`,
	"plans/bad.lua":    `return { { _tool = "duble" } }`,
	"plans/broken.lua": "\nreturn {",
}

// serve serves a project of these files.
func serve(t testing.TB, files map[string]string, objects map[string]any, configure func(*Config)) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	for name, text := range files {
		s.write(name, text)
	}
	if objects == nil {
		objects = map[string]any{"pause": newPause()}
	}
	var err error
	if s.host, err = host.Open(host.Config{FS: os.DirFS(s.dir), Dir: s.dir, Objects: objects}); err != nil {
		t.Fatal(err)
	}
	s.open(configure)
	return s
}

// open serves the project's folder, a second time as a first.
func (s *site) open(configure func(*Config)) {
	s.t.Helper()
	var err error
	if s.log, err = sqlite.Open(filepath.Join(s.dir, "log.db"), sqlite.Options{}); err != nil {
		s.t.Fatal(err)
	}
	s.logged = &logged{Handler: slog.DiscardHandler, t: s.t, watchers: map[chan struct{}]func(slog.Record) bool{}}
	config := Config{Host: s.host, Log: s.log, Logger: slog.New(s.logged)}
	if configure != nil {
		configure(&config)
	}
	server, log := New(config), s.log
	s.server, s.http = server, httptest.NewServer(server)
	s.t.Cleanup(func() {
		if err := errors.Join(server.Drain(context.Background()), log.Close()); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(s.http.Close)
}

// logged is a handler of log records that tells tests of them, and fails a test if the program
// reports a fault of its own.
type logged struct {
	slog.Handler
	t        testing.TB
	mu       sync.Mutex
	watchers map[chan struct{}]func(slog.Record) bool
}

// Enabled reports whether a test watches, or the level is that of faults.
func (l *logged) Enabled(_ context.Context, level slog.Level) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.watchers) > 0 || level >= slog.LevelError
}

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "fault of the program") {
		l.t.Error(r.Message)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for seen, match := range l.watchers {
		if !match(r) {
			continue
		}
		select {
		case seen <- struct{}{}:
		default:
		}
	}
	return nil
}

// logText is the text that a logger has written. A run may end a moment after its answer, so that
// its record is written while a test reads.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// watch returns a channel that holds a token once a record of some kind has come, until leave is
// called.
func (l *logged) watch(match func(slog.Record) bool) (seen <-chan struct{}, leave func()) {
	own := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers[own] = match
	return own, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watchers, own)
	}
}

// await waits until a condition holds. The server must log something once it does.
func (s *site) await(what string, is func() bool) {
	s.t.Helper()
	seen, leave := s.logged.watch(func(slog.Record) bool { return true })
	defer leave()
	for limit := time.After(30 * time.Second); !is(); {
		select {
		case <-seen:
		case <-limit:
			s.t.Fatalf("%s: it does not come to that", what)
		}
	}
}

func (s *site) write(name, text string) {
	s.t.Helper()
	file := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(text), 0o666)); err != nil {
		s.t.Fatal(err)
	}
}

// ask makes a request and gives its status and its body.
func (s *site) ask(method, path, body string, headers ...string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.http.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(text))
}

// expect makes a request whose answer is known whole.
func (s *site) expect(method, path, body string, status int, want string) {
	s.t.Helper()
	if got, text := s.ask(method, path, body); got != status || text != want {
		s.t.Errorf("%s %s %s:\n got %d %s\nwant %d %s", method, path, body, got, text, status, want)
	}
}

// refused makes a request that is answered with an error, and gives its message.
func (s *site) refused(method, path, body string, status int, code string, headers ...string) string {
	s.t.Helper()
	got, text := s.ask(method, path, body, headers...)
	var answer struct {
		Error struct {
			Code, Message string
			Check         []plan.Problem
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || got != status || answer.Error.Code != code || answer.Error.Message == "" {
		s.t.Errorf("%s %s %s: %d %s, not %d %s", method, path, body, got, text, status, code)
	}
	if status == http.StatusUnprocessableEntity && answer.Error.Check == nil && code != "expression" && code != "fork" {
		s.t.Errorf("%s %s: no check objects: %s", method, path, text)
	}
	return answer.Error.Message
}

// events follows a context from a position on, until an event that is the last
// one wanted. It gives each as "id kind" and what stands in its data.
func (s *site) events(name string, after string, last func(event) bool) []event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.http.URL+"/v1/contexts/"+name+"/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "text/event-stream" {
		s.t.Fatalf("status %d, %s", response.StatusCode, kind)
	}
	var all []event
	var e event
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			if e.kind == "" {
				continue
			}
			if all = append(all, e); last(e) {
				return all
			}
			e = event{}
		}
	}
	s.t.Fatalf("the stream ended after %v", all)
	return nil
}

type event struct{ id, kind, data string }

// ended is the event of a run that has come to its end.
func ended(e event) bool {
	return e.kind == "run" && !strings.Contains(e.data, `"status":"running"`) && !strings.Contains(e.data, `"status":"waiting"`)
}

// status waits until a context's run stands so.
func (s *site) until(name string, status journal.RunStatus) {
	s.t.Helper()
	s.events(name, "", func(e event) bool {
		return e.kind == "run" && strings.Contains(e.data, fmt.Sprintf(`"status":%q`, status))
	})
}

func TestRuns_Outcomes(t *testing.T) {
	s := serve(t, work, nil, nil)
	s.expect("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":21},"context":"a","wait":true}`, 200,
		`{"context":"a","error":null,"output":42,"status":"done"}`)
	s.expect("POST", "/v1/runs", `{"plan":"plans/echo.json","input":{"n":90071992547409931},"context":"a","wait":true}`, 200,
		`{"context":"a","error":null,"output":{"n":90071992547409931},"status":"done"}`)
	s.expect("POST", "/v1/runs", `{"plan":"plans/fail.lua","context":"b","wait":true}`, 200,
		`{"context":"b","error":{"code":"failed","message":"call 1.1 (fail): no luck"},"output":null,"status":"failed"}`)
	s.expect("POST", "/v1/runs", `{"plan":"plans/never.lua","context":"n","wait":true}`, 200, // which no call is to blame for
		`{"context":"n","error":{"code":"failed","message":"the planner has been asked 100 times without giving an output: the setting ticks allows no more"},"output":null,"status":"failed"}`)
	s.expect("POST", "/v1/runs", `{"plan":"plans/lack.lua","context":"l","wait":true}`, 200, // and not what follows from it
		`{"context":"l","error":{"code":"failed","message":"call 1.1 (fail): no luck"},"output":null,"status":"failed"}`)
	s.expect("POST", "/v1/runs", `{"plan":"plans/double.lua","context":"c","wait":true}`, 200,
		`{"context":"c","error":null,"output":null,"status":"waiting"}`)
	s.expect("POST", "/v1/runs", `{"plan":"plans/double.lua","context":"c","wait":true}`, 409,
		`{"error":{"code":"unfinished","message":"context c has an unfinished run (waiting): go on with it by POST /v1/contexts/c/resume"}}`)
	s.expect("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":1},"context":"d"}`, 202, `{"context":"d"}`)
	s.until("d", journal.RunDone)
	s.expect("GET", "/v1/contexts/d/get?ref=state", "", 200, `{"double":2}`)
	s.expect("POST", "/v1/contexts/d/resume", `{"wait":true}`, 200, `{"context":"d","error":null,"output":2,"status":"done"}`)
	status, text := s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua"}`)
	var made struct{ Context string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != 202 || len(made.Context) != 26 {
		t.Errorf("%d %s", status, text)
	}
	// Both modes of asking for a plan that must be released.
	s.expect("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":1},"context":"e","mode":"lazy","wait":true}`, 200,
		`{"context":"e","error":null,"output":null,"status":"waiting"}`)
	hash := s.planHash("e")
	s.expect("POST", "/v1/contexts/e/approve", `{"hash":"`+hash+`"}`, 200, `{"context":"e","decision":"approved","hash":"`+hash+`"}`)
	s.until("e", journal.RunDone)
}

// TestConfig_Settings: what obelus.lua says under serve goes for a handler too, unless the
// program says otherwise.
func TestConfig_Settings(t *testing.T) {
	files := map[string]string{"obelus.lua": `return { serve = { answers = 4000, body = 3000 } }`}
	got := serve(t, files, nil, func(c *Config) { c.Answers = 5000 }).server.config
	if got.Body != 3000 || got.Answers != 5000 || got.Bodies != DefaultBodies {
		t.Errorf("%+v", got)
	}
}

func TestAnswers_Refused(t *testing.T) {
	s := serve(t, work, nil, func(c *Config) { c.Body = 1000 })
	s.expect("POST", "/v1/contexts/there/messages", `{"type":"state","a":1}`, 200, `{"context":"there","messages":1,"seq":1}`)
	for _, test := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"POST", "/v1/runs", ``, 400, "request"},
		{"POST", "/v1/runs", `{`, 400, "request"},
		{"POST", "/v1/runs", `[]`, 400, "request"},
		{"POST", "/v1/runs", `{"plan":7}`, 400, "request"},
		{"POST", "/v1/runs", `{"plan":"plans/double.lua","wiat":true}`, 400, "request"},
		{"POST", "/v1/runs", `{"plan":"plans/double.lua"} {}`, 400, "request"},
		{"POST", "/v1/runs", `{"plan":"plans/double.lua","context":"a/b"}`, 400, "request"},
		{"POST", "/v1/runs", `{"plan":"plans/double.lua","input":7}`, 400, "request"},
		{"POST", "/v1/runs", `{"plan":"plans/double.lua","mode":"slow"}`, 400, "request"},
		{"POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":"` + strings.Repeat("x", 1000) + `"}}`, 413, "too-large"},
		{"POST", "/v1/runs", `{"plan":"plans/absent.lua"}`, 404, "no-plan"},
		{"POST", "/v1/runs", `{"plan":"obelus.lua"}`, 422, "script"},
		{"POST", "/v1/runs", `{"plan":"data/upload.json"}`, 422, "script"},
		{"POST", "/v1/runs", `{"plan":"plans/../data/upload.json"}`, 422, "script"},
		{"POST", "/v1/runs", `{"plan":"plans//../data/upload.json"}`, 422, "script"},
		{"POST", "/v1/runs", `{"plan":"plans/..\\data\\upload.json"}`, 422, "script"},
		{"POST", "/v1/runs", `{"plan":"plans/a.lua/../../data/upload.json"}`, 422, "script"},
		{"POST", "/v1/runs", `{"plan":"./plans/double.lua"}`, 422, "script"},
		{"POST", "/v1/runs", "\xff\xfe{\x00}\x00", 400, "request"},
		{"POST", "/v1/runs", `{"plan":"../double.lua"}`, 422, "script"},
		{"POST", "/v1/runs", `{"plan":"/etc/passwd"}`, 422, "script"},
		{"POST", "/v1/runs", `{"plan":"log.db"}`, 422, "script"},
		{"POST", "/v1/runs", `{"plan":"plans/bad.lua"}`, 422, "plan"},
		{"POST", "/v1/runs", `{"plan":"plans/broken.lua"}`, 422, "script"},
		{"PUT", "/v1/runs", ``, 405, "method"},
		{"GET", "/v2", ``, 404, "not-found"},
		{"GET", "/v1/contexts/absent", ``, 404, "no-context"},
		{"GET", "/v1/contexts/absent/log", ``, 404, "no-context"},
		{"GET", "/v1/contexts/absent/calls", ``, 404, "no-context"},
		{"GET", "/v1/contexts/absent/get?ref=a", ``, 404, "no-context"},
		{"GET", "/v1/contexts/absent/events", ``, 404, "no-context"},
		{"GET", "/v1/contexts/absent/approvals", ``, 404, "no-context"},
		{"POST", "/v1/contexts/absent/resume", ``, 404, "no-context"},
		{"POST", "/v1/contexts/absent/approve", ``, 404, "no-context"},
		{"DELETE", "/v1/runs/absent", ``, 404, "no-context"},
		{"POST", "/v1/contexts/there/resume", ``, 409, "call"},
		{"DELETE", "/v1/runs/there", ``, 409, "call"},
		{"GET", "/v1/contexts/there/get?ref=state.b", ``, 404, "missing"},
		{"GET", "/v1/contexts/there/why", ``, 400, "request"},
		{"GET", "/v1/contexts/there/get?ref=state.a&at=0", ``, 400, "request"},
		{"GET", "/v1/contexts/there/get?ref=%E2%80%A0a%20%2B%2B", ``, 422, "expression"},
		{"GET", "/v1/contexts/there/get?ref=a..b", ``, 422, "expression"},
		{"GET", "/v1/contexts/there/log?knid=state", ``, 400, "request"},
		{"GET", "/v1/contexts/there/log?kind=%zz", ``, 400, "request"},
		{"GET", "/v1/contexts?prefix=a;limit=1", ``, 400, "request"},
		{"GET", "/v1/contexts/there/log?since=yesterday", ``, 400, "request"},
		{"GET", "/v1/contexts/there/events?after=x", ``, 400, "request"},
		{"POST", "/v1/contexts/there/messages", `{"type":"stat"}`, 422, "message"},
		{"POST", "/v1/contexts/there/messages", `nothing`, 422, "message"},
		{"POST", "/v1/contexts/a%20b/messages", `{"type":"state"}`, 400, "request"},
		{"POST", "/v1/contexts/there/calls/1.1/approve", ``, 404, "no-call"},
		{"POST", "/v1/contexts/there/calls/1.1/reject", ``, 400, "request"},
		{"POST", "/v1/contexts/absent/fork", ``, 404, "no-context"},
		{"POST", "/v1/contexts/there/fork", `{"at":7}`, 422, "fork"},
		{"POST", "/v1/contexts/there/fork", `{"at":-7}`, 400, "request"},
		{"POST", "/v1/contexts/there/fork", `{"at":0}`, 400, "request"},
		{"GET", "/v1/contexts/there/calls?stauts=done", ``, 400, "request"},
		{"GET", "/v1/contexts/there/calls?status=undone", ``, 400, "request"},
		{"GET", "/v1/contexts/there/calls?at=0", ``, 400, "request"},
		{"GET", "/v1/contexts/there?at=1", ``, 400, "request"},
		{"GET", "/v1/runs/counts?status=waiting&status=done", ``, 400, "request"},
		{"GET", "/v1/runs?plan=plans/double.lua&plan=plans/double.lua", ``, 400, "request"},
		{"GET", "/v1/contexts/there/calls?status=done&status=failed", ``, 400, "request"},
		{"GET", "/v1/contexts/there/get?ref=state.a&ref=state.b", ``, 400, "request"},
		{"DELETE", "/v1/runs/there?by=eva&by=ada", ``, 400, "request"},
		{"POST", "/v1/contexts/there/messages?at=1", `{"type":"state","x":1}`, 400, "request"},
		{"POST", "/v1/contexts/there/fork", `{"context":"there"}`, 409, "exists"},
		{"POST", "/v1/contexts/there/fork", `{"context":"a b"}`, 400, "request"},
		{"GET", "/v1/contexts/there/why?ref=state.b", ``, 404, "missing"},
		{"GET", "/v1/contexts/there/why", ``, 400, "request"},
		{"POST", "/v1/contexts/there/resume", `{"set":{}}`, 400, "request"},
	} {
		s.refused(test.method, test.path, test.body, test.status, test.code)
	}
	// Nothing of what was refused has left a trace.
	var contexts []history.Summary
	if _, text := s.ask("GET", "/v1/contexts", ""); json.Unmarshal([]byte(text), &contexts) != nil || len(contexts) != 1 {
		t.Errorf("contexts: %+v", contexts)
	}
}

// TestAnswers_OtherMethods holds that a path of a route is answered, for a method that no route there
// takes, with those that are taken.
func TestAnswers_OtherMethods(t *testing.T) {
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	for _, withPage := range []bool{false, true} {
		s := serve(t, work, nil, func(c *Config) { c.Page = withPage })
		routes := s.server.operations
		if withPage {
			routes = slices.Concat(routes, newPages(s.server, nil).operations())
		}
		methodsFor := func(path string) (methods []string) {
			for _, route := range routes {
				method, pattern, _ := strings.Cut(route.Route, " ")
				matching := parameter.ReplaceAllStringFunc(pattern, func(name string) string {
					switch {
					case name == "{$}":
						return ""
					case strings.HasSuffix(name, "...}"):
						return ".*"
					}
					return "[^/]+"
				})
				if regexp.MustCompile("^" + matching + "$").MatchString(path) {
					methods = append(methods, method)
				}
			}
			if slices.Contains(methods, "GET") {
				methods = append(methods, "HEAD")
			}
			slices.Sort(methods)
			return slices.Compact(methods)
		}
		for _, route := range routes {
			_, pattern, _ := strings.Cut(route.Route, " ")
			path := parameter.ReplaceAllString(strings.TrimSuffix(pattern, "{$}"), "x")
			want := methodsFor(path)
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
				if slices.Contains(want, method) {
					continue
				}
				r, err := http.NewRequestWithContext(t.Context(), method, s.http.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				got := strings.Split(response.Header.Get("Allow"), ", ")
				slices.Sort(got)
				if response.StatusCode != http.StatusMethodNotAllowed || !slices.Equal(got, want) {
					t.Errorf("%s %s with a page (%t): %s, Allow %v, not %v", method, path, withPage, response.Status, got, want)
				}
			}
		}
		s.refused("POST", "/none", "", 404, "not-found")
	}
}

// TestAnswers_InternalErrors: what goes wrong in the host is for its log alone.
func TestAnswers_InternalErrors(t *testing.T) {
	var said bytes.Buffer
	s := serve(t, work, nil, func(c *Config) { c.Logger = slogTo(&said) })
	s.log.Close()
	if message := s.refused("GET", "/v1/contexts", "", 500, "internal"); message != internalText {
		t.Error(message)
	}
	if !strings.Contains(said.String(), "the log is closed") {
		t.Errorf("its log says nothing: %s", said.String())
	}
}

func TestContext_Reading(t *testing.T) {
	s := serve(t, work, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":21},"context":"a","wait":true}`)
	s.ask("POST", "/v1/contexts/b/messages", `{"type":"state","x":"<&>"}`)
	for path, want := range map[string]int{
		"/v1/contexts/a/log": 3, "/v1/contexts/a/log?kind=state": 1, "/v1/contexts/a/log?path=state.double": 1, "/v1/contexts/a/log?after=1": 2, "/v1/contexts/a/log?after=0": 3,
		"/v1/contexts/a/log?at=1": 1, "/v1/contexts/a/log?since=2100-01-01T00:00:00Z": 0, "/v1/contexts/a/calls": 1, "/v1/contexts/b/calls": 0, "/v1/contexts/a/calls?status=failed,done": 1, "/v1/contexts/a/calls?status=failed": 0,
		"/v1/contexts": 2, "/v1/contexts?limit=1": 1, "/v1/contexts?prefix=b": 1, "/v1/contexts?prefix=b&status=failed": 0, "/v1/contexts/a/approvals": 0,
	} {
		status, text := s.ask("GET", path, "")
		var list []map[string]any
		if err := json.Unmarshal([]byte(text), &list); err != nil || status != 200 || len(list) != want {
			t.Errorf("%s: %d, %d elements, not %d: %s", path, status, len(list), want, text)
		}
	}
	s.expect("GET", "/v1/contexts/b/get?ref=state", "", 200, `{"x":"<&>"}`)
	s.expect("GET", "/v1/contexts/a/get?ref=%E2%80%A0state.double%20%2B%201&at=3", "", 200, "43")
	s.refused("GET", "/v1/contexts/a/get?ref=state.double&at=2", "", 404, "missing")
	var scripts struct {
		Generation int
		Files      []scriptFile
		Error      any
	}
	if _, text := s.ask("GET", "/v1/scripts", ""); json.Unmarshal([]byte(text), &scripts) != nil || scripts.Generation != 1 || len(scripts.Files) != 2 || scripts.Error != nil {
		t.Errorf("%+v", scripts)
	}
	s.write("activities/work.lua", "\n\nthis is no Lua")
	s.host.Reload()
	if _, text := s.ask("GET", "/v1/scripts", ""); !strings.Contains(text, `"line":3`) || !strings.Contains(text, `"generation":1`) {
		t.Error(text)
	}
	if _, text := s.ask("GET", "/metrics", ""); !strings.Contains(text, `obelus_run_duration_seconds_count{status="done"} 1`) || !strings.Contains(text, "obelus_scripts_broken 1") {
		t.Error(text)
	}
}

// TestContext_WhyAndFork: a value is explained, and a fork goes another way.
func TestContext_WhyAndFork(t *testing.T) {
	s := serve(t, work, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":21},"context":"a","wait":true}`)
	s.expect("GET", "/v1/contexts/a/why?ref=state.double", "", 200, `{"ref":"†state.double","value":42,"from":[{"seq":3,"path":"†state","data":{"double":42},"call":"1.1","tool":"double",`+
		`"reads":[{"ref":"†input.n","value":21,"from":[{"seq":1,"path":"†input.n","data":21,"kind":"input"}]}]}]}`)
	s.expect("POST", "/v1/contexts/a/fork", `{"context":"b","at":2}`, 200, `{"at":2,"context":"b","parent":"a"}`)
	s.expect("POST", "/v1/contexts/b/resume", `{"wait":true}`, 200, `{"context":"b","error":null,"output":42,"status":"done"}`)
	s.expect("POST", "/v1/contexts/b/resume", `{"from":"1.1","set":{"n":4},"wait":true}`, 200, `{"context":"b","error":null,"output":8,"status":"done"}`)
	s.refused("POST", "/v1/contexts/a/resume", `{"from":"1.1","wait":true}`, 409, "call")
	s.expect("GET", "/v1/contexts/a/get?ref=state.double", "", 200, "42")
}

// TestAnswers_LargeList: a list that does not fit a buffer comes whole.
func TestAnswers_LargeList(t *testing.T) {
	s := serve(t, work, nil, nil)
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, `{"type":"state","n%d":%q}`+"\n", i, strings.Repeat("x", 100))
	}
	s.ask("POST", "/v1/contexts/a/messages", b.String())
	_, text := s.ask("GET", "/v1/contexts/a/log", "")
	var list []map[string]any
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != 2000 {
		t.Errorf("%v, %d elements", err, len(list))
	}
}

// open tells when nobody reads a log's messages any more.
type open struct {
	store.Log
	now    atomic.Int64
	closed chan struct{} // gets a token then
}

func (l *open) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	return func(yield func(*store.Message, error) bool) {
		l.now.Add(1)
		defer func() {
			if l.now.Add(-1) > 0 {
				return
			}
			select {
			case l.closed <- struct{}{}:
			default:
			}
		}()
		l.Log.Messages(ctx, f)(yield)
	}
}

// TestAnswers_SlowReader: who takes a list slowly holds nothing of the log meanwhile.
func TestAnswers_SlowReader(t *testing.T) {
	l := &open{closed: make(chan struct{}, 1)}
	s := serve(t, work, nil, func(c *Config) { l.Log, c.Log = c.Log, l })
	for range 4 { // more than there is room for between the two sides
		s.ask("POST", "/v1/contexts/a/messages", strings.Repeat(`{"type":"state","text":"`+strings.Repeat("x", 10_000)+`"}`+"\n", 200))
	}
	response, err := http.Get(s.http.URL + "/v1/contexts/a/log")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	select {
	case <-l.closed:
	case <-time.After(20 * time.Second):
		t.Error("the log is still read")
	}
	s.ask("POST", "/v1/contexts/a/messages", `{"type":"state","text":"later"}`)
	var list []map[string]any
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil || len(list) != 800 {
		t.Errorf("%v, %d elements", err, len(list))
	}
}

// TestEvents_ContextMadeAnew: a context that is pruned and made anew has other
// messages, and who follows it is told of all of them.
func TestEvents_ContextMadeAnew(t *testing.T) {
	for name, body := range map[string]string{
		"longer":  `{"plan":"plans/double.lua","input":{"n":1},"context":"longer","wait":true}`,
		"shorter": `{"plan":"plans/echo.json","context":"shorter","wait":true}`,
	} {
		s := serve(t, work, nil, nil)
		s.ask("POST", "/v1/runs", `{"plan":"plans/echo.json","input":{"n":1},"context":"`+name+`","wait":true}`)
		runs, last := 0, ""
		all := s.events(name, "", func(e event) bool {
			if ended(e) {
				if runs++; runs == 1 {
					last = e.id
					for info, err := range s.log.Contexts(t.Context(), store.ContextFilter{Prefix: name}) {
						if err = cmp.Or(err, s.log.Prune(t.Context(), info)); err != nil {
							t.Fatal(err)
						}
						break
					}
					s.ask("POST", "/v1/runs", body)
				}
			}
			return runs == 2
		})
		anew := s.events(name, "", ended)
		if again := all[len(all)-len(anew):]; !slices.Equal(again, anew) {
			t.Errorf("%s: who followed it is told\n%v\nnot\n%v", name, again, anew)
		}
		if back := s.events(name, last, ended); !slices.Equal(back, anew) {
			t.Errorf("%s: who comes back is told\n%v\nnot\n%v", name, back, anew)
		}
	}
}

// TestEvents_ForkMadeAnew: a fork's journal begins as that of what it is a fork of,
// so that its first entry does not tell one fork from the next.
func TestEvents_ForkMadeAnew(t *testing.T) {
	s := serve(t, work, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/echo.json","input":{"n":1},"context":"c","wait":true}`)
	fork := func(body string) {
		s.ask("POST", "/v1/contexts/c/fork", `{"context":"f"}`)
		s.ask("POST", "/v1/contexts/f/messages", body)
	}
	fork(`[{"type":"state","n":1},{"type":"state","n":2},{"type":"state","n":3}]`)
	again := false
	all := s.events("f", "", func(e event) bool {
		if e.kind == "message" && strings.Contains(e.data, `"n":3`) {
			info, err := s.log.Info(t.Context(), "f")
			if err = cmp.Or(err, s.log.Prune(t.Context(), info)); err != nil {
				t.Fatal(err)
			}
			again = true
			fork(`{"type":"state","n":4}`)
		}
		return strings.Contains(e.data, `"n":4`)
	})
	if last := all[len(all)-1]; !again || last.kind != "message" {
		t.Errorf("%v", all)
	}
}

// unread is a log that can't be read any more.
type unread struct{ store.Log }

func (unread) Head(context.Context, string) (int64, error) { return 0, store.ErrClosed }

func TestHealth_OfALog(t *testing.T) {
	s := serve(t, work, nil, func(c *Config) { c.Log = unread{c.Log} })
	s.refused("GET", "/healthz", "", http.StatusServiceUnavailable, "log")
}

// TestEvents_NotFlushable: a handler around the server may hide what streams need.
func TestEvents_NotFlushable(t *testing.T) {
	s := serve(t, work, nil, nil)
	s.expect("POST", "/v1/runs", `{"plan":"plans/double.lua","context":"c","input":{"n":1},"wait":true}`, http.StatusOK, `{"context":"c","error":null,"output":2,"status":"done"}`)
	around := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.server.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
	}))
	t.Cleanup(around.Close)
	s.http.URL = around.URL
	if told := s.refused("GET", "/v1/contexts/c/events", "", http.StatusInternalServerError, "internal"); !strings.Contains(told, "an Unwrap method") {
		t.Error(told)
	}
}

// TestBody_Encoding: a byte order mark is passed over, and what is no UTF-8 is called that.
func TestBody_Encoding(t *testing.T) {
	s := serve(t, work, nil, nil)
	if status, text := s.ask("POST", "/v1/runs", "\ufeff"+`{"plan":"plans/double.lua","input":{"n":4},"wait":true}`); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	if status, text := s.ask("POST", "/v1/contexts/marked/messages", "\ufeff"+`{"type":"state","a":1}`); status != 200 && status != 201 {
		t.Errorf("%d %s", status, text)
	}
	for _, path := range []string{"/v1/runs", "/v1/contexts/marked/messages"} {
		for _, body := range []string{"\xff\xfe{\x00}\x00", "\xfe\xff\x00{\x00}", "{\x00}\x00", "\x00{\x00}"} {
			if status, text := s.ask("POST", path, body); status != 400 && status != 422 || !strings.Contains(text, ": save it as UTF-8") {
				t.Errorf("%q: %d %s", body, status, text)
			}
		}
	}
}

// TestBody_Values holds that an error of a body says what is wrong, and where.
func TestBody_Values(t *testing.T) {
	s := serve(t, work, nil, nil)
	s.ask("POST", "/v1/contexts/a/messages", `{"type":"state","x":1}`)
	for _, test := range []struct{ path, body, want string }{
		{"/v1/runs", `[]`, "the body must be an object, not an array"},
		{"/v1/runs", `7`, "the body must be an object, not a number"},
		{"/v1/runs", `{"plan":7}`, "plan must be a string, not a number"},
		{"/v1/runs", `{"plan":["plans/double.lua"]}`, "plan must be a string, not an array"},
		{"/v1/runs", `{"context":true}`, "context must be a string, not a boolean"},
		{"/v1/runs", `{"wait":"true"}`, "wait must be true or false, not a string"},
		{"/v1/runs", `{"labels":"n=1"}`, "labels must be an object, not a string"},
		{"/v1/runs", `{"labels":[]}`, "labels must be an object, not an array"},
		{"/v1/runs", `{"labels":{"m":"1","n":1}}`, "labels.n must be a string, not a number"},
		{"/v1/runs", `{"labels":{"n":null}}`, "labels.n must be a string, not null"},
		{"/v1/runs", `{"labels":{"n":{"o":"1"}}}`, "labels.n must be a string, not an object"},
		{"/v1/contexts/a/fork", `{"at":"1"}`, "at must be a whole number, not a string"},
		{"/v1/contexts/a/fork", `{"at":1.5}`, "at must be a whole number, written in at most 18 digits and nothing else"},
		{"/v1/contexts/a/fork", `{"at":99999999999999999999}`, "at must be a whole number, written in at most 18 digits and nothing else"},
		{"/v1/contexts/a/resume", `{"retry":"1.1"}`, "retry must be an array of strings, not a string"},
		{"/v1/contexts/a/resume", `{"retry":["1.1",1.2]}`, "retry[1] must be a string, not a number"},
		{"/v1/contexts/a/resume", `{"skip":[null]}`, "skip[0] must be a string, not null"},
	} {
		if got := s.refused("POST", test.path, test.body, 400, "request"); got != test.want {
			t.Errorf("%s: %s, not %s", test.body, got, test.want)
		}
	}
	s.expect("POST", "/v1/runs", `{"plan":"plans/double.lua","context":"b","mode":null,"labels":null,"input":{"n":1},"wait":true}`, 200,
		`{"context":"b","error":null,"output":2,"status":"done"}`)
}

// planHash returns the hash of the plan that waits in a context, or in a delegate's there.
func (s *site) planHash(context string) string {
	s.t.Helper()
	status, text := s.ask("GET", "/v1/contexts/"+context+"/approvals", "", bearer(host.MayDecide)...)
	var waiting []struct{ Hash string }
	if err := json.Unmarshal([]byte(text), &waiting); err != nil || len(waiting) == 0 || waiting[0].Hash == "" {
		s.t.Fatal(status, text)
	}
	return waiting[0].Hash
}
