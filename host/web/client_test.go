package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/host/supervise"
)

// TestEvents_Head: a HEAD of a stream ends at once, and its connection can be used
// again.
func TestEvents_Head(t *testing.T) {
	s := serve(t, work, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/echo.json","context":"a","wait":true}`)
	for range 3 {
		if status, text := s.ask("HEAD", "/v1/contexts/a/events", ""); status != http.StatusOK || text != "" {
			t.Error(status, text)
		}
	}
	s.refused("GET", "/v1/contexts/b/events", "", 404, "no-context")
}

// active returns the run that the server has under way in a context, or nil.
func (s *site) active(name string) *supervise.Run {
	for _, run := range s.server.supervisor.Runs() {
		if run.Context() == name {
			return run
		}
	}
	return nil
}

// queued returns the number of runs that wait for their turn.
func (s *site) queued() int {
	_, queued := s.server.supervisor.Load()
	return queued
}

// awaitQueued waits until a number of runs wait for their turn.
func (s *site) awaitQueued(n int) {
	s.t.Helper()
	s.await(fmt.Sprintf("%d runs wait", n), func() bool { return s.queued() == n })
}

// awaitNoBodies waits until no request's body takes room.
func (s *site) awaitNoBodies() {
	s.t.Helper()
	s.await("no body takes room", func() bool { return s.server.bodies.Load() == 0 })
}

// awaitState waits until a run has a state, of which nothing tells.
func (s *site) awaitState(run *supervise.Run, state supervise.State) {
	for deadline := time.Now().Add(30 * time.Second); run.State() != state; runtime.Gosched() {
		if time.Now().After(deadline) {
			s.t.Errorf("the run is %s, not %s", run.State(), state)
			return
		}
	}
}

// TestBodies_TooLargeTogether: no more is taken on than there is room for, and what was taken is given back.
func TestBodies_TooLargeTogether(t *testing.T) {
	s := serve(t, work, nil, func(c *Config) { c.Body = 100_000 })
	large := `{"plan":"plans/echo.json","wait":true,"input":{"n":"` + strings.Repeat("x", 70_000) + `"}}`
	message := `{"type":"state","a":"` + strings.Repeat("x", 70_000) + `"}`
	s.server.bodies.Store(s.server.config.Bodies)
	s.refused("POST", "/v1/runs", large, 429, "full")
	s.refused("POST", "/v1/contexts/a/messages", message, 429, "full")
	s.expect("POST", "/v1/contexts/a/messages", `{"type":"state","a":1}`, 200, `{"context":"a","messages":1,"seq":1}`)
	s.server.bodies.Add(-s.server.config.Bodies)
	s.refused("POST", "/v1/runs", strings.Repeat(" ", 100_001), 413, "too-large")
	for range 20 {
		if status, text := s.ask("POST", "/v1/runs", large); status != http.StatusOK {
			t.Fatal(status, text)
		}
		if status, text := s.ask("POST", "/v1/contexts/a/messages", message); status != http.StatusOK {
			t.Fatal(status, text)
		}
	}
	s.server.streams.Store(mostStreams)
	s.refused("GET", "/v1/contexts/a/events", "", 429, "full")
	s.server.streams.Store(0)
	if status, text := s.ask("HEAD", "/v1/contexts/a/events", ""); status != http.StatusOK {
		t.Error(status, text)
	}
	s.awaitNoBodies() // an answer may arrive before the request is let go of
}

// TestBodies_RoomUntilTheRunHasBegun: a large input that waits for its turn counts among
// those that are worked on, and no longer than until it is in the log.
func TestBodies_RoomUntilTheRunHasBegun(t *testing.T) {
	p := newPause()
	s := serve(t, work, map[string]any{"pause": p}, func(c *Config) { c.Body, c.Runs = 100_000, 1 })
	input := `,"input":{"n":"` + strings.Repeat("x", 70_000) + `"}}`
	s.expect("POST", "/v1/runs", `{"plan":"plans/stop.lua","context":"a"`+input, 202, `{"context":"a"}`)
	<-p.reached
	s.awaitNoBodies()
	answered := make(chan int)
	go func() {
		status, _ := s.ask("POST", "/v1/runs", `{"plan":"plans/echo.json","context":"b","wait":true`+input)
		answered <- status
	}()
	s.awaitQueued(1)
	if s.server.bodies.Load() == 0 {
		t.Error("what waits takes no room")
	}
	close(p.resume)
	if status := <-answered; status != http.StatusOK {
		t.Error(status)
	}
	s.awaitNoBodies()
}

// TestBodies_WithoutABound: a program that gives bodies no bound gets none.
func TestBodies_WithoutABound(t *testing.T) {
	s := serve(t, work, nil, func(c *Config) { c.Body = math.MaxInt64 })
	s.expect("POST", "/v1/contexts/a/messages", `{"type":"state","a":"`+strings.Repeat("x", 100_000)+`"}`, 200, `{"context":"a","messages":1,"seq":1}`)
}

// TestCancel_WhileDraining: a run that is cancelled while its server ends is not
// resumed by the next one, whether or not those who did so wait for it.
func TestCancel_WhileDraining(t *testing.T) {
	p := newPause()
	files := map[string]string{"obelus.lua": "return { drain = '30s' }", "activities/work.lua": work["activities/work.lua"],
		"plans/two.lua": `return { { _tool = "stop", _outputPath = "†state.a" }, { _tool = "double", n = 1, after = "†state.a", _outputPath = "†state.b" } }`}
	s := serve(t, files, map[string]any{"pause": p}, nil)
	s.expect("POST", "/v1/runs", `{"plan":"plans/two.lua","context":"a"}`, 202, `{"context":"a"}`)
	<-p.reached
	drained := make(chan error)
	go func() { drained <- s.server.Drain(context.Background()) }()
	run := s.active("a")
	s.awaitState(run, supervise.Stopping)
	away, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		r, err := http.NewRequestWithContext(away, http.MethodDelete, s.http.URL+"/v1/runs/a", nil)
		if err == nil {
			_, err = http.DefaultClient.Do(r)
		}
		left <- err
	}()
	s.awaitState(run, supervise.Cancelling)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(p.resume)
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	if last, err := journal.In(s.log, "a").LastRun(t.Context()); err != nil || last.Status != journal.RunCancelled || last.Stopped {
		t.Errorf("%+v %v", last, err)
	}
	if outcome, err := run.Wait(t.Context()); err != nil || outcome.Error != engine.ErrCancelled.Error() || outcome.Stopped {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// TestCancel_WaitingRun: a run that waits, and is at work still with what nobody waits
// for, is cancelled as well.
func TestCancel_WaitingRun(t *testing.T) {
	p := newPause()
	files := map[string]string{"obelus.lua": "return { drain = '30s' }", "activities/work.lua": work["activities/work.lua"],
		"plans/behind.lua": `return { { _tool = "stop" }, { _tool = "double", n = "†input.later", _outputPath = "†state.b" } }`}
	s := serve(t, files, map[string]any{"pause": p}, nil)
	s.expect("POST", "/v1/runs", `{"plan":"plans/behind.lua","context":"a"}`, 202, `{"context":"a"}`)
	<-p.reached
	s.until("a", journal.RunWaiting)
	run := s.active("a")
	go func() {
		s.awaitState(run, supervise.Cancelling)
		close(p.resume)
	}()
	s.expect("DELETE", "/v1/runs/a", "", 200, `{"context":"a","error":{"code":"cancelled","message":"it was cancelled"},"output":null,"status":"cancelled"}`)
	s.ask("POST", "/v1/contexts/a/messages", `{"type":"input","later":1}`)
	if last, err := journal.In(s.log, "a").LastRun(t.Context()); err != nil || last.Status != journal.RunCancelled || last.Stopped {
		t.Errorf("%+v %v", last, err)
	}
}

// TestBodies_BrokenOffAndNested: what comes in part only is not the server's fault, and what may be nested
// deep may be so within a request.
func TestBodies_BrokenOffAndNested(t *testing.T) {
	s := serve(t, work, nil, nil)
	for _, path := range []string{"/v1/runs", "/v1/contexts/a/messages"} {
		conn, err := net.Dial("tcp", s.http.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n{\"plan\":", path, s.http.Listener.Addr())
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(answer), "400 Bad Request") || !strings.Contains(string(answer), "to its end") {
			t.Errorf("%s: %s %v", path, answer, err)
		}
	}
	deep := strings.Repeat("[", 255) + strings.Repeat("]", 255)
	s.expect("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":1,"x":`+deep+`},"context":"d","wait":true}`, 200,
		`{"context":"d","error":null,"output":2,"status":"done"}`)
}

// TestContext_DetailsOfItsRun: a context by itself tells what those were told who waited for its run.
func TestContext_DetailsOfItsRun(t *testing.T) {
	s := serve(t, work, nil, nil)
	stands := func(name, want string) {
		t.Helper()
		if status, text := s.ask("GET", "/v1/contexts/"+name, ""); status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, not %s", name, status, text, want)
		}
	}
	s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":21},"context":"a","wait":true}`)
	stands("a", `"output":42,"error":null}`)
	s.ask("POST", "/v1/runs", `{"plan":"plans/lack.lua","context":"b","wait":true}`)
	stands("b", `"error":{"code":"failed","message":"call 1.1 (fail): no luck"}`)
	stands("b", `"status":"failed"`)
	s.ask("POST", "/v1/contexts/c/messages", `{"type":"state","x":1}`)
	stands("c", `"output":null,"error":null}`)

	s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","context":"d","wait":true}`)
	s.ask("DELETE", "/v1/runs/d", "")
	stands("d", `"error":{"code":"cancelled","message":"it was cancelled"}`)

	s.ask("POST", "/v1/runs", `{"plan":"plans/sleep.lua","context":"e"}`)
	if err := s.server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	stands("e", `"error":{"code":"stopped","message":"the host was stopped"}`)
	stands("e", `"stopped":true`)
	all := s.events("e", "", ended)
	if last := all[len(all)-1]; !strings.Contains(last.data, `"status":"interrupted","tick":1,"output":null,"stopped":true}`) {
		t.Error(last)
	}
}

// TestEvents_OfAnotherLog: a client that knows more than there is has followed another
// log, as one of which an older copy was put back, and gets what this one has.
func TestEvents_OfAnotherLog(t *testing.T) {
	s := serve(t, work, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/echo.json","context":"a","wait":true}`)
	all := s.events("a", "", ended)
	again := s.events("a", "9999999", ended)
	if len(again) != len(all) || again[0] != all[0] {
		t.Errorf("%d events, not %d", len(again), len(all))
	}
}

// TestDecisions_InvalidAndAfterCancel: what is not meant decides nothing, and what decides about a run
// that is cancelled says so.
func TestDecisions_InvalidAndAfterCancel(t *testing.T) {
	s := serve(t, pay, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/pay.lua","input":{"amount":7},"context":"a","mode":"lazy","wait":true}`)
	hash := s.planHash("a")
	for _, body := range []string{`{"set":{"amount":5}}`, `{}`, `{"set":`, `[]`, "\xff"} {
		s.refused("POST", "/v1/contexts/a/approve", body, 400, "request")
	}
	s.refused("POST", "/v1/contexts/a/calls/1.1/reject", "{\"reason\": \"\xff\"}", 400, "request")
	s.ask("DELETE", "/v1/runs/a", "")
	s.refused("POST", "/v1/contexts/a/reject", `{"hash":"`+hash+`"}`, 400, "request")
	s.expect("POST", "/v1/contexts/a/approve", `{"hash":"`+hash+`"}`, 200, `{"context":"a","decision":"approved","hash":"`+hash+`","status":"cancelled"}`)
	s.refused("POST", "/v1/contexts/a/resume", `{"retry":["1.9"]}`, 404, "no-call")
	if text := s.refused("POST", "/v1/contexts/a/resume", `{"from":"1.1"}`, 409, "call"); !strings.Contains(text, "POST /v1/contexts/a/fork,") {
		t.Error(text)
	}
}

// TestResume_ResultOfAPerson: whoever knows what a failed call came to all the same can say so.
func TestResume_ResultOfAPerson(t *testing.T) {
	s := serve(t, map[string]string{
		"activities/work.lua": `Tool.register("work", { properties = { _output = { type = "number" } } }); Activity.register("work", function() return nil, "no" end)`,
		"plans/work.lua":      `return { calls = { { _tool = "work", _outputPath = "†state.x" } }, output = "†state.x" }`,
	}, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/work.lua","context":"a","wait":true}`)
	s.refused("POST", "/v1/contexts/a/resume", `{"result":[1],"wait":true}`, 400, "request")
	if text := s.refused("POST", "/v1/contexts/a/resume", `{"result":{"1.1":"x"},"wait":true}`, 422, "message"); !strings.Contains(text, "call 1.1: the result breaks the tool's _output schema") {
		t.Error(text)
	}
	s.expect("POST", "/v1/contexts/a/resume", `{"result":{"1.1":7},"wait":true}`, 200, `{"context":"a","error":null,"output":7,"status":"done"}`)
}

// TestCancel_Delegate: what a run is made of is not cancelled by itself.
func TestCancel_Delegate(t *testing.T) {
	s := serve(t, map[string]string{
		"activities/hand.lua": `Tool.register("hand", {})`,
		"plans/inner.lua":     `return { calls = {}, output = "†input.later" }`,
		"plans/wait.lua":      work["plans/double.lua"],
		"activities/work.lua": `Activity.register("double", function(call) return { double = 2 * call.n } end)`,
		"plans/outer.lua":     `return { { _tool = "hand", _delegate = "plans/wait.lua", _outputPath = "†state.x" } }`,
	}, nil, nil)
	s.expect("POST", "/v1/runs", `{"plan":"plans/outer.lua","context":"a","wait":true}`, 200, `{"context":"a","error":null,"output":null,"status":"waiting"}`)
	if text := s.refused("DELETE", "/v1/runs/a.1.1", "", 409, "delegate"); !strings.Contains(text, "the run of a,") {
		t.Error(text)
	}
	s.expect("DELETE", "/v1/runs/a", "", 200, `{"context":"a","error":{"code":"cancelled","message":"it was cancelled"},"output":null,"status":"cancelled"}`)
}

// TestAnswers_JSONAlone: there is nothing but JSON, at a path that could be written otherwise too.
func TestAnswers_JSONAlone(t *testing.T) {
	s := serve(t, work, nil, nil)
	for _, path := range []string{"//v1/scripts", "/v1/./scripts", "/v1/../v1/scripts", "/v1/contexts//log", "/v1/contexts/a/calls//approve", "/v1/scripts/"} {
		s.refused("GET", path, "", 404, "not-found")
		s.refused("POST", path, "{}", 404, "not-found")
	}
}
