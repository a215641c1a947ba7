package page_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"obelus/engine/journal"
	"obelus/host/web"
)

// withTokens is a project whose people have tokens of their own.
func withTokens(t *testing.T) *site {
	t.Setenv("OBELUS_READER", "read-me-0123456789")
	t.Setenv("OBELUS_RUNNER", "run-me-0123456789")
	files := map[string]string{}
	for name, text := range shop {
		files[name] = text
	}
	files["obelus.lua"] = `return { drain = "100ms", approve = "refund", serve = { tokens = {
		Rita = { may = "read", env = "OBELUS_READER" }, Rob = { may = "run", env = "OBELUS_RUNNER" } } } }`
	return serve(t, files, func(c *web.Config) { c.Token, c.Secret = "decide-0123456789", os.Getenv })
}

// TestSession logs people in and out: a cookie stands for the token, which is in no page and no
// address.
func TestSession(t *testing.T) {
	s := withTokens(t)
	a := s.get("/runs?status=done")
	if to := a.header.Get("Location"); a.status != http.StatusSeeOther || to != "/login?next=%2Fruns%3Fstatus%3Ddone" {
		t.Fatalf("without a session: status %d, to %s", a.status, to)
	}
	s.page("/login?next=%2Fruns%3Fstatus%3Ddone")
	if a := s.post("/login", "token", "no-such-token", "next", "/runs"); a.status != http.StatusUnauthorized || !strings.Contains(textOf(a.doc), "No token of this server") || strings.Contains(a.text, "no-such-token") {
		t.Errorf("a wrong token: status %d", a.status)
	}
	a = s.post("/login", "token", "read-me-0123456789", "next", "/runs?status=done")
	if to := a.header.Get("Location"); a.status != http.StatusSeeOther || to != "/runs?status=done" {
		t.Fatalf("the login: status %d, to %s", a.status, to)
	}
	cookie := a.header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie lacks %s: %s", want, cookie)
		}
	}
	if strings.Contains(cookie, "read-me") {
		t.Error("the cookie has the token in it")
	}
	if text := s.page("/runs").text; !strings.Contains(text, "Rita") || strings.Contains(text, "read-me") {
		t.Error("the page does not say who is logged in, or has the token in it")
	}
	// Somebody who may read sees no forms, and can't send one.
	if page := s.page("/plans/order.lua"); find(find(page.doc, "main"), "form") != nil {
		t.Error("somebody who may read has a form")
	}
	if a := s.post("/plans/order.lua", "value:amount", "1"); a.status != http.StatusForbidden {
		t.Errorf("somebody who may read starts a run: status %d", a.status)
	}
	// A session reads; only a page's own forms act with it.
	if a := s.get("/v1/runs"); a.status != http.StatusOK {
		t.Errorf("GET /v1/runs with a session: status %d", a.status)
	}
	taken, _, _ := strings.Cut(cookie, ";") // as somebody who has copied it
	copied := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http.URL+"/v1/runs", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Cookie", taken)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if status := copied(); status != http.StatusOK {
		t.Errorf("the cookie before the logout: status %d", status)
	}
	if a := s.post("/login", "token", strings.Repeat("x", 20<<10)); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a login of 20 KB: status %d", a.status)
	}
	a = s.post("/logout")
	if status := copied(); status != http.StatusUnauthorized {
		t.Errorf("a copy of the cookie after the logout: status %d", status)
	}
	if a.status != http.StatusSeeOther || s.get("/runs").status != http.StatusSeeOther {
		t.Errorf("after the logout the pages are still there")
	}
	for _, next := range []string{"//elsewhere.example/", "https://elsewhere.example/", `/\elsewhere.example`, "javascript:alert(1)"} {
		if a := s.post("/login", "token", "read-me-0123456789", "next", next); a.header.Get("Location") != "/" {
			t.Errorf("%s leads to %s", next, a.header.Get("Location"))
		}
	}
	// Somebody who may run does so, and can't decide.
	s.post("/login", "token", "run-me-0123456789", "next", "/")
	s.followed(s.post("/plans/refund.lua", "context", "held"))
	s.await("held", journal.RunWaiting)
	if page := s.page("/inbox"); find(find(page.doc, "main"), "button") != nil {
		t.Error("somebody who may run has a button for a decision")
	}
	if a := s.post("/runs/held/approve", "call", "1.1"); a.status != http.StatusForbidden {
		t.Errorf("somebody who may run decides: status %d", a.status)
	}
	if find(s.page("/runs/held").doc, "a", "href", "/runs/held/rerun") != nil {
		t.Error("somebody who may run is offered what they may not do")
	}
	if a := s.post("/runs/held/rerun", "from", "1.1", "name", "forked"); a.status != http.StatusForbidden || s.contexts() != 1 {
		t.Errorf("somebody who may run forks: status %d", a.status)
	}
	s.post("/login", "token", "decide-0123456789", "next", "/")
	s.followed(s.post("/runs/held/approve", "call", "1.1"))
	s.await("held", journal.RunDone)
}

// TestSession_Revoked holds that a stream ends with the token of its session.
func TestSession_Revoked(t *testing.T) {
	s := withTokens(t)
	s.post("/login", "token", "read-me-0123456789", "next", "/")
	f := &follower{}
	begun := time.Now()
	if ended := f.followToEnd(s, "/runs?seen=no", func() {
		s.write("obelus.lua", `return { drain = "100ms" }`)
		if err := s.host.Reload().Err; err != nil {
			t.Error(err)
		}
	}); !ended {
		t.Errorf("after %v the stream still goes on", time.Since(begun))
	}
	if a := s.get("/runs"); a.status != http.StatusSeeOther {
		t.Errorf("the session still counts: status %d", a.status)
	}
}

// TestSession_ForeignForms refuses forms that pages of other sites send, with a session and without.
func TestSession_ForeignForms(t *testing.T) {
	s := serve(t, shop, nil)
	for _, header := range []string{"Origin", "Sec-Fetch-Site"} {
		for _, path := range []string{"/plans/order.lua", "/runs/x/cancel", "/runs/x/rerun", "/login", "/logout"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+path, strings.NewReader("value:amount=1"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			value := "https://elsewhere.example"
			if header == "Sec-Fetch-Site" {
				value = "cross-site"
			}
			r.Header.Set(header, value)
			if a := s.do(r); a.status != http.StatusForbidden {
				t.Errorf("POST %s with %s: status %d", path, header, a.status)
			}
		}
	}
	if s.contexts() != 0 {
		t.Error("a foreign form has started a run")
	}
}

// TestReadOnly refuses every act, by pages and by the API, and shows no form for one.
func TestReadOnly(t *testing.T) {
	s := serve(t, shop, nil)
	s.run("held", "plans/refund.lua", "")
	s.run("order", "plans/order.lua", `{"amount":20}`)
	wall := web.New(web.Config{Host: s.host, Log: s.log, Page: true, ReadOnly: true})
	t.Cleanup(func() { _ = wall.Drain(t.Context()) })
	shown := httptest.NewServer(wall)
	t.Cleanup(func() {
		shown.CloseClientConnections()
		shown.Close()
	})
	s.http = shown
	for _, path := range []string{"/runs", "/runs/held", "/runs/order?tab=state", "/inbox", "/plans/order.lua", "/scripts"} {
		for e := range elements(find(s.page(path).doc, "main")) {
			if e.Data == "form" && attr(e, "method") == "post" {
				t.Errorf("%s has a form that acts", path)
			}
		}
	}
	for path, form := range map[string][]string{"/plans/order.lua": {"value:amount", "1"}, "/runs/held/approve": {"call", "1.1"}, "/runs/order/rerun": {"from", "1.1"}} {
		if a := s.post(path, form...); a.status != http.StatusForbidden {
			t.Errorf("POST %s: status %d", path, a.status)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, shown.URL+"/v1/runs", strings.NewReader(`{"plan":"plans/order.lua","input":{"amount":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	if a := s.do(r); a.status != http.StatusForbidden || !strings.Contains(a.text, "read-only") {
		t.Errorf("POST /v1/runs: status %d: %s", a.status, a.text)
	}
}

// TestMounted serves the pages below a path of another program's: every link, form and asset stays
// below it.
func TestMounted(t *testing.T) {
	s := serve(t, shop, nil)
	s.run("order", "plans/order.lua", `{"amount":20}`)
	mux := http.NewServeMux()
	mux.Handle("/tools/obelus/", http.StripPrefix("/tools/obelus", s.server))
	outer := httptest.NewServer(mux)
	t.Cleanup(func() {
		outer.CloseClientConnections()
		outer.Close()
	})
	s.http = outer
	if n := crawl(s, "/tools/obelus/"); n < 20 {
		t.Errorf("only %d pages were reached", n)
	}
	path, _ := s.followed(s.post("/tools/obelus/plans/order.lua", "value:amount", "1"))
	if !strings.HasPrefix(path, "/tools/obelus/runs/") {
		t.Errorf("the form leads to %s", path)
	}
}

// TestPage_Off holds that a server without pages has none.
func TestPage_Off(t *testing.T) {
	s := serve(t, shop, func(c *web.Config) { c.Page = false })
	for _, path := range []string{"/", "/runs", "/login"} {
		if a := s.get(path); a.status != http.StatusNotFound || strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: status %d, %s", path, a.status, a.header.Get("Content-Type"))
		}
	}
}

// TestAssets holds that assets may be kept for good and are small.
func TestAssets(t *testing.T) {
	s := serve(t, shop, nil)
	a := s.page("/runs")
	total := 0
	for e := range elements(a.doc) {
		path := attr(e, "src")
		if e.Data == "link" {
			path = attr(e, "href")
		}
		if path == "" {
			continue
		}
		got := s.get(path)
		if got.status != http.StatusOK || !strings.Contains(got.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: status %d, %s", path, got.status, got.header.Get("Cache-Control"))
		}
		total += len(got.text)
		if strings.HasSuffix(path, ".js") {
			if lines := strings.Count(got.text, "\n"); lines > 500 {
				t.Errorf("the script has %d lines: it may have 500", lines)
			}
		}
	}
	if total == 0 || total > 60<<10 {
		t.Errorf("the assets have %d bytes", total)
	}
	if a := s.get("/assets/page-0000.css"); a.status != http.StatusNotFound {
		t.Errorf("an asset that is not there: status %d", a.status)
	}
}
