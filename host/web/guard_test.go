package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func slogTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// TestGuard_ForeignPages: a page of another site gets nothing, by whatever name.
func TestGuard_ForeignPages(t *testing.T) {
	s := serve(t, work, nil, func(c *Config) { c.Names = []string{"obelus.example"} })
	own := strings.TrimPrefix(s.http.URL, "http://")
	_, port, _ := net.SplitHostPort(own)
	for _, host := range []string{own, "127.0.0.1", "localhost:" + port, "LOCALHOST", "[::1]:" + port, "obelus.example", "Obelus.Example.:80"} {
		if status, text := s.ask("GET", "/v1/contexts", "", "Host", host); status != 200 {
			t.Errorf("as %s: %d %s", host, status, text)
		}
	}
	for _, host := range []string{"evil.example", "evil.example:" + port, "10.0.0.1", "127.0.0.1.evil.example", "obelus.example.evil", "localhost.evil", "0.0.0.0"} {
		s.refused("GET", "/v1/contexts", "", 403, "host", "Host", host)
	}
	if status, text := s.ask("GET", "/v1/contexts", "", "Origin", s.http.URL); status != 200 {
		t.Errorf("own origin: %d %s", status, text)
	}
	for _, origin := range []string{"http://evil.example", "https://evil.example:" + port, "null", "http://127.0.0.1:1", "://"} {
		s.refused("POST", "/v1/runs", `{"plan":"plans/double.lua"}`, 403, "origin", "Origin", origin)
	}
}

func TestGuard_Token(t *testing.T) {
	s := serve(t, work, nil, func(c *Config) { c.Token = "s3cret" })
	for _, authorization := range []string{"", "Bearer", "Bearer s3cre", "Bearer s3crets", "Basic s3cret", "s3cret"} {
		message := s.refused("GET", "/v1/contexts", "", 401, "token", "Authorization", authorization)
		if strings.Contains(message, "s3c") {
			t.Error(message)
		}
	}
	s.refused("GET", "/metrics", "", 401, "token")
	for _, good := range []string{"Bearer s3cret", "bearer  s3cret"} {
		if status, text := s.ask("GET", "/v1/contexts", "", "Authorization", good); status != 200 {
			t.Errorf("%s: %d %s", good, status, text)
		}
	}
	s.expect("GET", "/healthz", "", 200, `{"status":"ok"}`)
}

// listening serves at an address of its own, with little patience.
func listening(t *testing.T, s *site) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.server.timeouts = clientTimeouts{header: 100 * time.Millisecond, body: 100 * time.Millisecond, write: 100 * time.Millisecond, room: time.Second}
	ended := make(chan error, 1)
	go func() { ended <- s.server.Serve(t.Context(), l) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// TestGuard_SlowClients: who dawdles is let go.
func TestGuard_SlowClients(t *testing.T) {
	addr := listening(t, serve(t, work, nil, nil))
	for what, sent := range map[string]string{
		"headers": "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow:",
		"a body":  "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"large headers": "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Large: " + strings.Repeat("x", 2*headerBytes) +
			"\r\nX-Slow:",
	} {
		t.Run(what, func(t *testing.T) {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			go fmt.Fprint(c, sent) // the other side may not take all of it
			if _, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

// TestGuard_WaitForARun: who waits for a run is not taken for one who dawdles.
func TestGuard_WaitForARun(t *testing.T) {
	p := newPause()
	addr := listening(t, serve(t, work, map[string]any{"pause": p}, nil))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := `{"plan":"plans/stop.lua","wait":true}`
	fmt.Fprintf(c, "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	<-p.reached
	<-time.After(300 * time.Millisecond) // longer than it has patience for anything else
	close(p.resume)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), `"output":"went on"`) {
		t.Errorf("%v: %s", err, text)
	}
}

// TestGuard_ClientGone: a request whose client has gone is told of like any other, and is no fault of
// the server.
func TestGuard_ClientGone(t *testing.T) {
	files := map[string]string{
		"activities/wait.lua": `Activity.register("wait", { timeout = 60 }, function() pause:Here(); require("time").sleep(50) end)`,
		"plans/wait.lua":      `return { { _tool = "wait", _outputPath = "†state.x" } }`,
		"obelus.lua":          work["obelus.lua"],
	}
	for path, body := range map[string]string{
		"/v1/runs": `{"plan":"plans/wait.lua","wait":true}`,
		"/v1/call": `{"call":{"_tool":"wait"}}`,
	} {
		t.Run(path, func(t *testing.T) {
			p := newPause()
			s := serve(t, files, map[string]any{"pause": p}, nil)
			close(p.resume)
			gone, leave := s.logged.watch(func(r slog.Record) bool { return r.Message == "request" })
			defer leave()
			failed, leaveFailed := s.logged.watch(func(r slog.Record) bool { return r.Level >= slog.LevelError })
			defer leaveFailed()
			ctx, cancel := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.http.URL+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				<-p.reached
				cancel()
			}()
			if response, err := http.DefaultClient.Do(r); err == nil {
				response.Body.Close()
				t.Fatal("it was answered")
			}
			<-gone
			if len(failed) > 0 {
				t.Error("it is told of as a fault")
			}
			if _, text := s.ask("GET", "/metrics", ""); !strings.Contains(text, `obelus_http_requests_total{route="POST `+path+`",status="499"} 1`) {
				t.Error("it is not counted")
			}
		})
	}
}
