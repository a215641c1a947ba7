package web

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// askUnread asks for something by a connection that reads no more than the beginning of the answer.
func askUnread(t *testing.T, addr, path string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	var begin [12]byte
	if _, err := io.ReadFull(c, begin[:]); err != nil {
		t.Fatal(err)
	}
	if got := string(begin[:]); got != "HTTP/1.1 200" {
		t.Fatalf("%s: %s", path, got)
	}
	return c
}

// TestRoom_ClientsThatDoNotRead holds that the large answers that are being sent are bounded for
// all clients together, wherever they come from; and that small ones go on being sent.
func TestRoom_ClientsThatDoNotRead(t *testing.T) {
	const large = 12 << 20 // more than what a connection's buffers take
	for _, path := range []string{"/log", "/get?ref=state.a", "/why?ref=state.a", "/events"} {
		t.Run(path, func(t *testing.T) {
			s := serve(t, work, nil, func(c *Config) { c.Body, c.Answers = 2*large, 2*large+large/2 })
			s.server.timeouts.room, s.server.timeouts.write = 200*time.Millisecond, time.Minute
			s.expect("POST", "/v1/contexts/a/messages", `{"type":"state","a":"`+strings.Repeat("x", large)+`"}`, 200, `{"context":"a","messages":1,"seq":1}`)
			s.expect("POST", "/v1/contexts/b/messages", `{"type":"state","a":1}`, 200, `{"context":"b","messages":1,"seq":1}`)
			addr := strings.TrimPrefix(s.http.URL, "http://")
			first := askUnread(t, addr, "/v1/contexts/a"+path)
			if !strings.HasPrefix(path, "/why") { // which has the value twice
				askUnread(t, addr, "/v1/contexts/a"+path)
			}
			s.refused("GET", "/v1/contexts/a/get?ref=state.a", "", http.StatusTooManyRequests, "full")
			s.refused("GET", "/v1/contexts/a/log", "", http.StatusTooManyRequests, "full")
			s.refused("GET", "/v1/contexts/a/events", "", http.StatusTooManyRequests, "full")
			s.expect("GET", "/v1/contexts/b/get?ref=state.a", "", 200, "1")
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			s.server.timeouts.room = time.Minute // until it is noticed that the first one has gone
			if status, text := s.ask("GET", "/v1/contexts/a/get?ref=state.a", ""); status != http.StatusOK || len(text) < large {
				t.Errorf("%d, %d bytes", status, len(text))
			}
		})
	}
}

// TestRoom_OutputOfRun holds that a run whose output there is no room to send is not refused,
// since it is over: the answer says how, and where its output is.
func TestRoom_OutputOfRun(t *testing.T) {
	s := serve(t, work, nil, func(c *Config) { c.Body, c.Answers = 1<<20, 1<<20 })
	if !s.server.room.large.TryAcquire(1 << 20) {
		t.Fatal("there is no room to begin with")
	}
	body := `{"plan":"plans/echo.json","context":"a","wait":true,"input":{"n":"` + strings.Repeat("x", 200_000) + `"}}`
	status, text := s.ask("POST", "/v1/runs", body)
	if status != http.StatusAccepted || text != `{"context":"a","status":"done"}` {
		t.Errorf("%d %s", status, text)
	}
	s.expect("POST", "/v1/runs", `{"plan":"plans/echo.json","context":"b","wait":true,"input":{"n":"small"}}`, 200,
		`{"context":"b","error":null,"output":{"n":"small"},"status":"done"}`)
	s.server.room.large.Release(1 << 20)
	if status, text := s.ask("GET", "/v1/contexts/a", ""); status != http.StatusOK || len(text) < 200_000 {
		t.Errorf("%d, %d bytes", status, len(text))
	}
}

// TestBodies_CountWhatIsMadeOfThem holds that a body of many small values takes the room of
// what is made of it, and passes where there is no other.
func TestBodies_CountWhatIsMadeOfThem(t *testing.T) {
	s := serve(t, work, nil, func(c *Config) { c.Body, c.Bodies = 4<<20, 32<<20 })
	many := `{"type":"state","a":[` + strings.Repeat("0,", 1<<20) + `0]}`
	s.server.bodies.Store(1)
	s.refused("POST", "/v1/contexts/a/messages", many, http.StatusTooManyRequests, "full")
	s.server.bodies.Store(0)
	s.expect("POST", "/v1/contexts/a/messages", many, 200, `{"context":"a","messages":1,"seq":1}`)
	long := `{"type":"state","a":"` + strings.Repeat("x", 2<<20) + `"}`
	s.server.bodies.Store(1)
	s.expect("POST", "/v1/contexts/a/messages", long, 200, `{"context":"a","messages":1,"seq":2}`)
}
