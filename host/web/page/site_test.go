package page_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"obelus/engine/journal"
	"obelus/host"
	"obelus/host/web"
	"obelus/store"
	"obelus/store/sqlite"
)

// site is a project that a test serves with its pages, its log in a file.
type site struct {
	t      testing.TB
	dir    string
	host   *host.Host
	log    store.Log
	server *web.Server
	http   *httptest.Server
	client *http.Client // with cookies, as a browser has them
}

// pause lets a test stop calls in their midst.
type pause struct{ reached, resume chan struct{} }

// Here is called by scripts.
func (p *pause) Here() {
	p.reached <- struct{}{}
	<-p.resume
}

// shop is the project of most tests: a payment that may be refused, waits for input, is held, or
// stops in its midst.
var shop = map[string]string{
	"obelus.lua": `return { drain = "100ms", approve = "refund" }`,
	"activities/shop.lua": `
		Activity.register("charge", { retries = 1, backoff = "1ms" }, function(call)
			if call.amount > 50 then error("card was refused: the limit is 50") end
			return { paid = call.amount, card = { last = "4242", kind = "visa" } }
		end)
		Tool.register("refund", { properties = { amount = { type = "number", minimum = 0, maximum = 100 }, to = { type = "string" } }, required = { "amount", "to" } })
		Activity.register("refund", { idempotent = false }, function(call) return { refunded = call.amount, to = call.to } end)
		Activity.register("letter", function(call) return "paid " .. call.receipt.paid end)
		Activity.register("judge", function(call)
			if call.amount > 10 then return Output.to("†state.large", call.amount) end
			return Output.to("†state.small", call.amount)
		end)
		Activity.register("echo", function(call) return call.value end)
		Activity.register("stop", { timeout = 60 }, function() pause:Here(); return "went on" end)`,
	"plans/order.lua": `return {
		context = { { type = "input", schema = { type = "object", required = { "amount" }, properties = {
			amount = { type = "number", minimum = 0 }, reason = { enum = { "damaged", "late", "other" } }, gift = { type = "boolean" },
			to = { type = "object", required = { "name" }, properties = { name = { type = "string" }, street = { type = "string" } } },
			note = { type = { "string", "null" } }, tags = { type = "array", items = { type = "string" } } } } } },
		calls = {
			{ _tool = "judge", amount = "†input.amount", _outputPath = "†state.small || †state.large" },
			{ _tool = "charge", amount = "†input.amount", _outputPath = "†state.receipt" },
			{ _tool = "letter", receipt = "†state.receipt", _outputPath = "†state.letter" },
			{ _tool = "echo", value = "†state.small", _outputPath = "†state.cheap" },
		},
		output = "†state.letter" }`,
	"plans/wait.lua":   `return { calls = { { _tool = "echo", value = "†state.answer", _outputPath = "†state.said" } }, output = "†state.said" }`,
	"plans/refund.lua": `return { calls = { { _tool = "refund", amount = 40, to = "Ada", _outputPath = "†state.refund" } }, output = "†state.refund" }`,
	"plans/stop.lua":   `return { calls = { { _tool = "stop", _outputPath = "†state.said" } }, output = "†state.said" }`,
	"plans/echo.json":  `{"calls":[],"output":"†input"}`,
	"plans/many.lua": `local calls = {}
		for i = 1, 130 do calls[i] = { _tool = "echo", value = i, _instance = "i" .. i, _outputPath = "†state.n" } end
		return { calls = calls }`,
}

// serve serves a project of these files, with pages.
func serve(t testing.TB, files map[string]string, configure func(*web.Config)) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	for name, text := range files {
		s.write(name, text)
	}
	var err error
	objects := map[string]any{"pause": &pause{make(chan struct{}, 100), make(chan struct{})}}
	if s.host, err = host.Open(host.Config{FS: os.DirFS(s.dir), Dir: s.dir, Objects: objects}); err != nil {
		t.Fatal(err)
	}
	if s.log, err = sqlite.Open(filepath.Join(s.dir, "log.db"), sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	config := web.Config{Host: s.host, Log: s.log, Page: true, Title: "shop"}
	if configure != nil {
		configure(&config)
	}
	server, log := web.New(config), s.log
	s.server, s.http = server, httptest.NewServer(server)
	t.Cleanup(func() {
		if err := errors.Join(server.Drain(context.Background()), log.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.client = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s
}

func (s *site) write(name, text string) {
	s.t.Helper()
	file := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(text), 0o666)); err != nil {
		s.t.Fatal(err)
	}
}

// answer is what the server has answered.
type answer struct {
	status int
	header http.Header
	text   string
	doc    *html.Node
}

func (s *site) do(r *http.Request) answer {
	s.t.Helper()
	response, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	doc, err := html.Parse(strings.NewReader(string(text)))
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text), doc}
}

// get asks for a page.
func (s *site) get(path string) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.http.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	return s.do(r)
}

// page asks for a page that is there, and holds it to the rules of all pages.
func (s *site) page(path string) answer {
	s.t.Helper()
	a := s.get(path)
	if a.status != http.StatusOK {
		s.t.Fatalf("%s: status %d\n%s", path, a.status, textOf(find(a.doc, "main")))
	}
	checkPage(s.t, path, a)
	return a
}

// post sends a form as a browser does; pairs are names and values.
func (s *site) post(path string, pairs ...string) answer {
	s.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.http.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", s.http.URL)
	return s.do(r)
}

// api makes a request of the JSON API.
func (s *site) api(method, path, body string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.http.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	a := s.do(r)
	if a.status >= http.StatusBadRequest {
		s.t.Fatalf("%s %s: status %d: %s", method, path, a.status, a.text)
	}
	return a.text
}

// run starts a plan and waits until it rests.
func (s *site) run(name, plan, input string) {
	s.t.Helper()
	body := fmt.Sprintf(`{"context":%q,"plan":%q`, name, plan)
	if input != "" {
		body += `,"input":` + input
	}
	s.api(http.MethodPost, "/v1/runs", body+"}")
	s.await(name, journal.RunDone, journal.RunWaiting, journal.RunFailed)
}

// await waits until a context's run has one of some statuses.
func (s *site) await(name string, statuses ...journal.RunStatus) {
	s.t.Helper()
	s.until(fmt.Sprintf("%s is %v", name, statuses), func() bool {
		info, err := s.log.Info(s.t.Context(), name)
		return err == nil && slices.Contains(statuses, journal.RunStatus(info.Standing.Status))
	})
}

// awaitCall waits until a call has a status.
func (s *site) awaitCall(name, call string, status journal.Status) {
	s.t.Helper()
	s.until(name+" "+call+" is "+string(status), func() bool {
		records, err := journal.In(s.log, name).CurrentRecords(s.t.Context())
		return err == nil && slices.ContainsFunc(records, func(r journal.Record) bool { return r.Call == call && r.Status == status })
	})
}

// until waits until the log comes to say something.
func (s *site) until(what string, is func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		newest, _, err := store.Newest(ctx, s.log, store.JournalFilter{})
		if err != nil {
			s.t.Fatal(err)
		}
		if is() {
			return
		}
		if _, err := s.log.Await(ctx, newest.N); err != nil {
			s.t.Fatalf("it does not come to that: %s", what)
		}
	}
}

// find returns the first element below a node with a tag, and with the attributes that are given as
// names and values; nil for none.
func find(n *html.Node, tag string, attributes ...string) *html.Node {
	for e := range elements(n) {
		if e.Data == tag && hasAll(e, attributes) {
			return e
		}
	}
	return nil
}

func hasAll(e *html.Node, attributes []string) bool {
	for i := 0; i+1 < len(attributes); i += 2 {
		if attr(e, attributes[i]) != attributes[i+1] {
			return false
		}
	}
	return true
}

// elements returns the elements below a node, in the order of the text.
func elements(n *html.Node) func(func(*html.Node) bool) {
	return func(yield func(*html.Node) bool) {
		if n == nil {
			return
		}
		for e := range n.Descendants() {
			if e.Type == html.ElementNode && !yield(e) {
				return
			}
		}
	}
}

func attr(e *html.Node, name string) string {
	if e == nil {
		return ""
	}
	for _, a := range e.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func hasAttr(e *html.Node, name string) bool {
	return slices.ContainsFunc(e.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// textOf returns the text below a node, with single spaces.
func textOf(n *html.Node) string {
	var b strings.Builder
	if n != nil {
		for e := range n.Descendants() {
			if e.Type == html.TextNode {
				b.WriteString(e.Data + " ")
			}
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// invisible matches the control characters and invisible ones that no text needs.
var invisible = regexp.MustCompile(`[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\x{ad}\x{200b}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2060}-\x{206f}\x{feff}\x{e0000}-\x{e007f}]`)

// checkPage holds a page to what all pages have in common: nothing that its policy forbids, each id
// once, a name for each input, one heading of the first level.
func checkPage(t testing.TB, path string, a answer) {
	t.Helper()
	wrong := func(format string, args ...any) { t.Errorf("%s: %s", path, fmt.Sprintf(format, args...)) }
	if policy := a.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		wrong("its policy is %q", policy)
	}
	if strings.Contains(a.text, "\x00") || strings.Contains(a.text, "ZgotmplZ") || strings.Contains(a.text, "%!") {
		wrong("a mark, a refused value or a wrong format is in its text")
	}
	for n := range a.doc.Descendants() {
		shown := attr(n, "title") + attr(n, "aria-label")
		if n.Type == html.TextNode {
			shown = n.Data
		}
		if invisible.MatchString(shown) {
			wrong("%+q has characters that can't be seen", shown)
		}
	}
	ids, labels, headings := map[string]bool{}, map[string]bool{}, 0
	for e := range elements(a.doc) {
		if e.Data == "label" {
			labels[attr(e, "for")] = true
		}
	}
	for e := range elements(a.doc) {
		if id := attr(e, "id"); id != "" {
			if ids[id] {
				wrong("the id %s is there twice", id)
			}
			ids[id] = true
		}
		for _, at := range e.Attr {
			if strings.HasPrefix(at.Key, "on") || at.Key == "style" || strings.HasPrefix(strings.ToLower(strings.TrimSpace(at.Val)), "javascript:") {
				wrong("<%s %s=%q>", e.Data, at.Key, at.Val)
			}
		}
		switch e.Data {
		case "script":
			if attr(e, "src") == "" {
				wrong("a script within the page")
			}
		case "style":
			wrong("a style within the page")
		case "h1":
			headings++
		case "input", "select", "textarea":
			if attr(e, "type") != "hidden" && attr(e, "aria-label") == "" && !labels[attr(e, "id")] && !within(e, "label") {
				wrong("<%s name=%q> has no label", e.Data, attr(e, "name"))
			}
		case "a":
			if textOf(e) == "" && attr(e, "aria-label") == "" {
				wrong("the link to %s has no text", attr(e, "href"))
			}
		}
	}
	if headings != 1 {
		wrong("%d headings of the first level", headings)
	}
}

func within(e *html.Node, tag string) bool {
	for p := e.Parent; p != nil; p = p.Parent {
		if p.Data == tag {
			return true
		}
	}
	return false
}
