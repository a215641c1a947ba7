package web

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// TestOrphans_DecidedAndWaiting: a server that begins goes on with what was decided while there
// was none, and leaves alone what waits.
func TestOrphans_DecidedAndWaiting(t *testing.T) {
	s := serve(t, pay, nil, nil)
	for _, name := range []string{"a", "b"} {
		s.ask("POST", "/v1/runs", `{"plan":"plans/pay.lua","input":{"amount":7},"context":"`+name+`","wait":true}`)
	}
	if err := s.server.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	runner := &engine.Runner{Log: s.log, Registry: s.host.Generation().Registry()}
	if err := runner.Decide(t.Context(), journal.Decision{Context: "a", Call: "1.1"}); err != nil {
		t.Fatal(err)
	}
	s.http.Close()
	s.open(nil)
	s.until("a", journal.RunDone)
	if runs := s.halts("b"); runs != 1 {
		t.Errorf("the one that waits was looked at %d times", runs)
	}
}

// TestOrphans_DecidedAsTheRunHalted: a decision that came just as its run halted is not forgotten
// by the server that begins after that.
func TestOrphans_DecidedAsTheRunHalted(t *testing.T) {
	s := serve(t, work, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","context":"held","input":{"n":2},"approve":"always","wait":true}`)
	s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","context":"lazy","input":{"n":2},"mode":"lazy","wait":true}`)
	if err := s.server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	runner := &engine.Runner{Log: s.log, Registry: s.host.Generation().Registry()}
	_, err := (&engine.Runner{Log: s.log}).DecidePlan(t.Context(), journal.PlanDecision{Context: "lazy"})
	err = errors.Join(err, runner.Decide(t.Context(), journal.Decision{Context: "held", Call: "1.1"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"held", "lazy"} {
		halt, ok := store.Entry{}, false
		for entry, err := range s.log.Journal(t.Context(), store.JournalFilter{Context: name, Event: "run"}) {
			if halt, ok = entry, err == nil; err != nil {
				t.Fatal(err)
			}
		}
		// As it is when the run's own append comes after the decision.
		batch := store.Batch{Context: name, ExpectSeq: halt.Seq, Journal: []store.Entry{{Event: halt.Event, Data: halt.Data}}}
		if _, err := s.log.Append(t.Context(), batch); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	s.http.Close()
	s.open(nil)
	s.until("held", journal.RunDone)
	s.until("lazy", journal.RunDone)
}

// dying is a log of a process that dies once something has happened: a run has come to its
// end, or a call is running.
type dying struct {
	store.Log
	event string
	dead  bool
	stays string // a context whose lease does not lapse with the others, as of one who stood still
	epoch int64  // of that
}

func (d *dying) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if d.dead {
		return store.Appended{}, errors.New("the process has ended")
	}
	for _, e := range b.Journal {
		d.dead = d.dead || e.Event == d.event && (d.stays == "" || b.Context == d.stays)
	}
	if b.Lease != nil && b.Lease.For > 0 && b.Context != d.stays { // whoever dies holds nothing
		b.Lease = &store.Lease{Epoch: b.Lease.Epoch, For: time.Millisecond}
	}
	appended, err := d.Log.Append(ctx, b)
	if b.Context == d.stays {
		d.epoch = appended.Epoch
	}
	return appended, err
}

// TestOrphans_FireAndForgetCalls: calls that a run has left in the background as its process ended
// run again in the server that begins after that, while the run is done in all its answers.
func TestOrphans_FireAndForgetCalls(t *testing.T) {
	files := maps.Clone(work)
	files["activities/nap.lua"] = `Activity.register("nap", function() require("time").sleep(0.3) return 1 end)`
	s := serve(t, files, nil, nil)
	if err := s.server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	runner := &engine.Runner{Log: &dying{Log: s.log, event: "run"}, Registry: s.host.Generation().Registry(), Drain: -1}
	if _, err := runner.Run(t.Context(), engine.Start{Context: "a", Request: &plan.Request{
		Calls: []plan.Source{{Call: map[string]any{"_tool": "nap"}}}, Output: store.Some("x"),
	}}); err == nil {
		t.Fatal("it has not died")
	}
	leftBehind := func() (bool, error) {
		last, err := journal.In(s.log, "a").LastRun(t.Context())
		if err != nil {
			return false, err
		}
		return last.LeftBehind(t.Context(), journal.In(s.log, "a"))
	}
	if behind, err := leftBehind(); !behind || err != nil {
		t.Fatal(behind, err)
	}
	s.http.Close()
	s.open(nil)
	news, leave := s.server.supervisor.Subscribe("a")
	defer leave()
	for {
		if status, body := s.ask("GET", "/v1/contexts/a", ""); status != http.StatusOK || !strings.Contains(body, `"status":"done"`) {
			t.Fatalf("the run: %d %s", status, body)
		}
		if behind, err := leftBehind(); !behind || err != nil {
			break
		}
		select {
		case <-news:
		case <-time.After(20 * time.Second):
			t.Fatal("it is still there")
		}
	}
	if records, err := journal.In(s.log, "a").Records(t.Context()); err != nil || records[0].Status != journal.Done || records[0].Attempts != 2 {
		t.Errorf("%+v, %v", records, err)
	}
}

// TestOrphans_TakenOver: what another process was at when it died goes on by a server that lives,
// also where that was in a delegate.
func TestOrphans_TakenOver(t *testing.T) {
	s := serve(t, work, nil, func(c *Config) { c.poll = time.Millisecond / 4 })
	for name, call := range map[string]map[string]any{
		"a": {"_tool": "double", "n": 2, "_outputPath": "†out"},
		"b": {"_tool": "double", "n": 2, "_outputPath": "†out", "_delegate": plan.Anonymous},
	} {
		runner := &engine.Runner{Log: &dying{Log: s.log, event: "running"}, Registry: s.host.Generation().Registry()}
		if _, err := runner.Run(t.Context(), engine.Start{Context: name, Request: &plan.Request{
			Calls: []plan.Source{{Call: call}}, Output: store.Some("†out"),
		}}); err == nil {
			t.Fatal("it has not died")
		}
		s.until(name, journal.RunDone)
	}
}

// TestOrphans_TakenOverWithoutItsDelegate: a run that was taken over while its delegate's context
// was still held goes on when that is free, whoever ended what ran there, and however it
// became free.
func TestOrphans_TakenOverWithoutItsDelegate(t *testing.T) {
	s := serve(t, work, nil, func(c *Config) { c.poll = time.Millisecond / 4 })
	registry := s.host.Generation().Registry()
	for name, then := range map[string]func(delegate string){
		"dies": func(delegate string) {
			lease := store.Batch{Context: delegate, ExpectSeq: store.AnySeq, Lease: &store.Lease{For: time.Millisecond}}
			_, err := s.log.Append(t.Context(), lease)
			if err != nil && !errors.As(err, new(*store.HeldError)) { // the server may have found it free already
				t.Error(err)
			}
		},
		"ends": func(delegate string) {
			other := &engine.Runner{Log: s.log, Registry: registry}
			_, err := other.Resume(t.Context(), engine.Resume{Context: delegate})
			if err != nil && !errors.As(err, new(*engine.BusyError)) { // the server may have found it free already
				t.Error(err)
			}
		},
		"stops": func(delegate string) {
			end := store.Entry{Event: "run", Data: `{"tick":1,"status":"cancelled","output":null,"stopped":true}`}
			if _, err := s.log.Append(t.Context(), store.Batch{Context: delegate, ExpectSeq: store.AnySeq, Journal: []store.Entry{end}}); err != nil {
				t.Error(err)
			}
		},
	} {
		log := &dying{Log: s.log, event: "running", stays: name + ".1.1"}
		runner := &engine.Runner{Log: log, Registry: registry}
		if _, err := runner.Run(t.Context(), engine.Start{Context: name, Request: &plan.Request{
			Calls:  []plan.Source{{Call: map[string]any{"_tool": "double", "n": 2, "_outputPath": "†out", "_delegate": plan.Anonymous}}},
			Output: store.Some("†out"),
		}}); err == nil {
			t.Fatal("it has not died")
		}
		s.until(name, journal.RunWaiting)
		free := store.Batch{Context: log.stays, ExpectSeq: store.AnySeq, Lease: &store.Lease{Epoch: log.epoch}}
		if _, err := s.log.Append(t.Context(), free); err != nil {
			t.Fatal(err)
		}
		then(log.stays)
		s.until(name, journal.RunDone)
	}
}

// TestOrphans_DelegateHeldByAnother: what comes to a delegate's context that somebody else is at is
// left to that one, and does not keep the server busy.
func TestOrphans_DelegateHeldByAnother(t *testing.T) {
	files := maps.Clone(work)
	files["plans/waits.json"] = `{"calls": [{"_tool": "double", "n": "†input.m", "_outputPath": "†out"}], "output": "†out"}`
	files["plans/outer.json"] = `{"calls": [{"_tool": "go", "_outputPath": "†out", "_delegate": "plans/waits.json"}], "output": "†out"}`
	s := serve(t, files, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/outer.json","context":"a","wait":true}`)
	lease := store.Batch{Context: "a.1.1", ExpectSeq: store.AnySeq, Lease: &store.Lease{For: time.Minute}}
	held, err := s.log.Append(t.Context(), lease)
	if err != nil {
		t.Fatal(err)
	}
	s.ask("POST", "/v1/contexts/a.1.1/messages", `{"type":"input","m":4}`)
	for i := range 50 {
		s.ask("POST", "/v1/runs", fmt.Sprintf(`{"plan":"plans/double.lua","context":"b%d","input":{"n":1},"wait":true}`, i))
	}
	if halts := s.halts("a"); halts > 3 {
		t.Errorf("it halted %d times", halts)
	}
	free := store.Batch{Context: "a.1.1", ExpectSeq: store.AnySeq, Lease: &store.Lease{Epoch: held.Epoch}}
	if _, err := s.log.Append(t.Context(), free); err != nil {
		t.Fatal(err)
	}
	other := &engine.Runner{Log: s.log, Registry: s.host.Generation().Registry()}
	if _, err := other.Resume(t.Context(), engine.Resume{Context: "a.1.1"}); err != nil {
		t.Fatal(err)
	}
	s.until("a", journal.RunDone)
}

// TestOrphans_RunWhereADelegateRan: a plan that is run in the context of a delegate that has ended
// is a run of its own: it goes on by itself, and can be cancelled.
func TestOrphans_RunWhereADelegateRan(t *testing.T) {
	files := maps.Clone(work)
	files["plans/handed.json"] = `{"calls": [{"_tool": "double", "n": 2, "_outputPath": "†out", "_delegate": "anonymous"}], "output": "†out"}`
	files["plans/waits.json"] = `{"calls": [{"_tool": "double", "n": "†input.m", "_outputPath": "†out"}], "output": "†out"}`
	s := serve(t, files, nil, nil)
	for _, name := range []string{"a", "b"} {
		s.ask("POST", "/v1/runs", fmt.Sprintf(`{"plan":"plans/handed.json","context":%q,"wait":true}`, name))
		s.ask("POST", "/v1/runs", fmt.Sprintf(`{"plan":"plans/waits.json","context":"%s.1.1","wait":true}`, name))
		s.until(name+".1.1", journal.RunWaiting)
	}
	s.ask("POST", "/v1/contexts/a.1.1/messages", `{"type":"input","m":4}`)
	s.events("a.1.1", "", func(e event) bool {
		return e.kind == "run" && strings.Contains(e.data, `"status":"done"`) && strings.Contains(e.data, `"tick":2`)
	})
	if status, text := s.ask("DELETE", "/v1/runs/b.1.1", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	s.until("b.1.1", journal.RunCancelled)
}

// full is a log that can't grow for a while.
type full struct {
	store.Log
	is atomic.Bool
}

// noRoom is an error as a log on a full disk gives it.
type noRoom struct{}

func (noRoom) Error() string { return "/srv/log.db can't grow: no room on the disk" }

func (noRoom) Temporary() bool { return true }

func (f *full) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if f.is.Load() {
		return store.Appended{}, noRoom{}
	}
	return f.Log.Append(ctx, b)
}

// serveFull serves a project with a log that can be full, and with a run of
// context a that is in its call then.
func serveFull(t *testing.T) (s *site, log *full, p *pause) {
	t.Helper()
	p = newPause()
	s = serve(t, work, map[string]any{"pause": p}, func(c *Config) {
		log = &full{Log: c.Log}
		c.Log, c.poll = log, 10*time.Millisecond/4
	})
	s.ask("POST", "/v1/runs", `{"plan":"plans/stop.lua","context":"a"}`)
	<-p.reached
	log.is.Store(true)
	return s, log, p
}

// awaitStuck waits until the server is to try a context's run again, and is not at it.
func (s *site) awaitStuck(name string, want bool) {
	s.t.Helper()
	s.await(fmt.Sprintf("%s is stuck: %t", name, want), func() bool {
		_, stuck := s.server.supervisor.Stuck(name)
		return stuck == want && s.active(name) == nil
	})
}

// TestFullDisk_RunGoesOn: a run that can't be recorded goes on when the log can be written again,
// and clients are told to come again, without a word of the host's files.
func TestFullDisk_RunGoesOn(t *testing.T) {
	s, log, p := serveFull(t)
	p.resume <- struct{}{}
	s.awaitStuck("a", true)
	for path, body := range map[string]string{"/v1/runs": `{"plan":"plans/echo.json"}`, "/v1/contexts/a/messages": `{"type":"input","n":1}`} {
		status, text := s.ask("POST", path, body)
		if status != http.StatusServiceUnavailable || !strings.Contains(text, `"code":"log"`) || strings.Contains(text, "srv") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	log.is.Store(false)
	select {
	case p.resume <- struct{}{}: // the call runs again: nobody knew that it had ended
	case <-time.After(20 * time.Second):
		t.Fatal("the run does not go on")
	}
	s.until("a", journal.RunDone)
}

// TestFullDisk_WaitForARun: who waits for a run that is stuck is told that it goes on.
func TestFullDisk_WaitForARun(t *testing.T) {
	s, log, p := serveFull(t)
	log.is.Store(false)
	answer := make(chan string)
	go func() {
		_, text := s.ask("POST", "/v1/runs", `{"plan":"plans/stop.lua","context":"b","wait":true}`)
		answer <- text
	}()
	<-p.reached
	log.is.Store(true)
	close(p.resume)
	if text := <-answer; !strings.Contains(text, `"message":"context b has been begun, and goes on by itself when the server can write its log`) {
		t.Error(text)
	}
	log.is.Store(false)
	s.until("b", journal.RunDone)
	s.until("a", journal.RunDone)
}

// TestFullDisk_Cancelled: a run that was cancelled while that could not be recorded is
// cancelled, and does not begin again.
func TestFullDisk_Cancelled(t *testing.T) {
	s, log, p := serveFull(t)
	status, text := s.ask("DELETE", "/v1/runs/a", "")
	if status != http.StatusServiceUnavailable || !strings.Contains(text, "context a was told to end") {
		t.Errorf("%d %s", status, text)
	}
	log.is.Store(false)
	s.until("a", journal.RunCancelled)
	close(p.resume)
	if n := len(p.reached); n != 0 {
		t.Errorf("the call has run %d times more", n)
	}
}

// TestFullDisk_RequestsMeanwhile: a run that is stuck stays so whatever is asked of its context
// meanwhile, but for its end, which comes when that can be recorded.
func TestFullDisk_RequestsMeanwhile(t *testing.T) {
	s, log, p := serveFull(t)
	p.resume <- struct{}{}
	s.awaitStuck("a", true)
	for _, body := range []string{`{"plan":"plans/stop.lua","context":"a"}`, `{"plan":"plans/none.lua","context":"a"}`} {
		if status, text := s.ask("POST", "/v1/runs", body); status/100 == 2 {
			t.Errorf("%d %s", status, text)
		}
	}
	if _, stuck := s.server.supervisor.Stuck("a"); !stuck {
		t.Error("nobody goes on with it any more")
	}
	if status, text := s.ask("DELETE", "/v1/runs/a", ""); status != http.StatusServiceUnavailable || !strings.Contains(text, "context a was told to end") {
		t.Errorf("%d %s", status, text)
	}
	log.is.Store(false)
	s.until("a", journal.RunCancelled)
	close(p.resume)
}

// TestFullDisk_WhenTheServerBegins: a run that a server left when it was stopped goes on, though
// the next one begins on a full disk.
func TestFullDisk_WhenTheServerBegins(t *testing.T) {
	p := newPause()
	s := serve(t, work, map[string]any{"pause": p}, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/stop.lua","context":"a"}`)
	<-p.reached
	if err := s.server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.http.Close()
	close(p.resume)
	var log *full
	s.open(func(c *Config) {
		log = &full{Log: c.Log}
		log.is.Store(true)
		c.Log, c.poll = log, 10*time.Millisecond/4
	})
	s.awaitStuck("a", true)
	log.is.Store(false)
	s.until("a", journal.RunDone)
}

// TestOrphans_LapsedLease: what somebody left who can't be seen to be dead goes on when
// the lease has lapsed.
func TestOrphans_LapsedLease(t *testing.T) {
	s := serve(t, pay, nil, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/pay.lua","input":{"amount":7},"context":"a","wait":true}`)
	if err := s.server.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	runner := &engine.Runner{Log: s.log, Registry: s.host.Generation().Registry()}
	if err := runner.Decide(t.Context(), journal.Decision{Context: "a", Call: "1.1"}); err != nil {
		t.Fatal(err)
	}
	lease := store.Batch{Context: "a", ExpectSeq: store.AnySeq, Lease: &store.Lease{For: 300 * time.Millisecond}}
	if _, err := s.log.Append(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	s.http.Close()
	s.open(nil)
	s.until("a", journal.RunDone)
}

// away takes a file of the project away until it is put back.
func (s *site) away(name string) (back func()) {
	s.t.Helper()
	file, away := filepath.Join(s.dir, name), filepath.Join(s.dir, filepath.Base(filepath.Dir(name))+".away")
	rename := func(from, to string) {
		s.t.Helper()
		if err := os.Rename(from, to); err != nil {
			s.t.Fatal(err)
		}
	}
	rename(file, away)
	return func() { rename(away, file) }
}

// TestOrphans_MendedScripts: what the scripts of a moment did not let go on does so with those
// that come after them, or when its plan's file is there again; nobody asks for it.
func TestOrphans_MendedScripts(t *testing.T) {
	tool := `Activity.register("ren", function(call) return call.v end)`
	files := map[string]string{
		"obelus.lua": "return {}", "activities/ren.lua": tool,
		"plans/ren.lua":  `return { calls = { { _tool = "ren", v = "†input.x", _outputPath = "†s.a" } }, output = "†s.a" }`,
		"plans/held.lua": `return { calls = { { _tool = "ren", v = 5, _outputPath = "†s.a" } }, output = "†s.a" }`,
		"plans/asked.lua": `return function(context)
			if context.s then return { calls = {}, output = context.s.a } end
			return { calls = { { _tool = "ren", v = "†input.x", _outputPath = "†s.a" } } }
		end`,
	}
	for name, c := range map[string]struct{ run, broken, path, body, stuck string }{
		"tool":          {`{"plan":"plans/ren.lua","context":"a","wait":true}`, "activities/ren.lua", "messages", `{"type":"input","x":1}`, `unknown tool \"ren\"`},
		"tool and file": {`{"plan":"plans/ren.lua","context":"a","wait":true}`, "activities/ren.lua plans/ren.lua", "messages", `{"type":"input","x":1}`, `unknown tool \"ren\"`},
		"approved":      {`{"plan":"plans/held.lua","context":"a","approve":"always","wait":true}`, "activities/ren.lua", "calls/1.1/approve", `{}`, `unknown tool \"ren\"`},
		"planner":       {`{"plan":"plans/asked.lua","context":"a","wait":true}`, "plans/asked.lua", "messages", `{"type":"input","x":1}`, "plans/asked.lua: there is no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			again := time.Minute // by a new generation alone
			if name == "planner" {
				again = 10 * time.Millisecond
			}
			s := serve(t, files, nil, func(c *Config) { c.poll = again / 4 })
			s.expect("POST", "/v1/runs", c.run, http.StatusOK, `{"context":"a","error":null,"output":null,"status":"waiting"}`)
			var back []func()
			for _, file := range strings.Fields(c.broken) {
				back = append(back, s.away(file))
			}
			s.host.Reload()
			if status, text := s.ask("POST", "/v1/contexts/a/"+c.path, c.body); status != http.StatusOK {
				t.Fatal(status, text)
			}
			s.awaitStuck("a", true)
			if _, text := s.ask("GET", "/v1/contexts/a", ""); !strings.Contains(text, `"stuck":"`) || !strings.Contains(text, c.stuck) {
				t.Error(text)
			}
			for _, mend := range back {
				mend()
			}
			s.host.Reload()
			s.ask("POST", "/v1/contexts/other/messages", `{"type":"state","x":1}`) // news, before the next poll
			s.until("a", journal.RunDone)
			s.awaitStuck("a", false)
		})
	}
}

// TestOrphans_MendedOnceResumed: who resumed a run is told that it has begun, and it goes on
// though its plan's file was not there when its planner was to be asked.
func TestOrphans_MendedOnceResumed(t *testing.T) {
	s := serve(t, map[string]string{
		"obelus.lua": "return {}", "activities/ren.lua": `Activity.register("ren", function(call) return call.v end)`,
		"plans/asked.lua": `return function(context)
			if context.s then return { calls = {}, output = context.s.a } end
			return { calls = { { _tool = "ren", v = 7, _outputPath = "†s.a" } } }
		end`,
	}, nil, func(c *Config) { c.poll = 10 * time.Millisecond / 4 })
	s.expect("POST", "/v1/runs", `{"plan":"plans/asked.lua","context":"a","approve":"always","wait":true}`, http.StatusOK, `{"context":"a","error":null,"output":null,"status":"waiting"}`)
	s.ask("DELETE", "/v1/runs/a", "")
	s.ask("POST", "/v1/contexts/a/calls/1.1/approve", "{}")
	back := s.away("plans/asked.lua")
	s.expect("POST", "/v1/contexts/a/resume", "{}", http.StatusAccepted, `{"context":"a"}`)
	s.awaitStuck("a", true)
	back()
	s.until("a", journal.RunDone)
	s.awaitStuck("a", false)
}

// TestOrphans_MendedDelegate: so does a delegate's run that was resumed by itself while it
// was not registered.
func TestOrphans_MendedDelegate(t *testing.T) {
	s := serve(t, map[string]string{
		"obelus.lua": "return {}", "activities/ren.lua": `Activity.register("ren", function(call) return call.v end)`,
		"activities/asked.lua": `Delegate.register("asked", { calls = function(context)
			if context.s then return { calls = {}, output = context.s.a } end
			return { calls = { { _tool = "ren", v = "†x.y", _outputPath = "†s.a" } } }
		end })`,
		"plans/root.lua": `return { calls = { { _tool = "r", _delegate = "asked", _outputPath = "†s.a" } }, output = "†s.a" }`,
	}, nil, func(c *Config) { c.poll = 10 * time.Millisecond / 4 })
	s.expect("POST", "/v1/runs", `{"plan":"plans/root.lua","context":"c","wait":true}`, http.StatusOK, `{"context":"c","error":null,"output":null,"status":"waiting"}`)
	s.ask("DELETE", "/v1/runs/c", "") // so that it does not go on by itself
	s.ask("POST", "/v1/contexts/c.1.1/messages", `{"type":"data","kind":"x","data":{"y":5}}`)
	back := s.away("activities/asked.lua")
	s.host.Reload()
	s.expect("POST", "/v1/contexts/c.1.1/resume", "{}", http.StatusAccepted, `{"context":"c.1.1"}`)
	s.awaitStuck("c.1.1", true)
	back()
	s.host.Reload()
	s.until("c.1.1", journal.RunDone)
	s.expect("GET", "/v1/contexts/c.1.1/get?ref=s.a", "", http.StatusOK, "5")
	s.awaitStuck("c.1.1", false)
}

// TestOrphans_NewsWhileHeldElsewhere: what comes to a run that another process is at, which may not take it
// up any more, is looked at when that has let go of it.
func TestOrphans_NewsWhileHeldElsewhere(t *testing.T) {
	s := serve(t, work, nil, func(c *Config) { c.poll = 10 * time.Millisecond / 4 })
	s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","context":"a","wait":true}`)
	lease := store.Batch{Context: "a", ExpectSeq: store.AnySeq, Lease: &store.Lease{For: time.Minute}}
	held, err := s.log.Append(t.Context(), lease)
	if err != nil {
		t.Fatal(err)
	}
	s.ask("POST", "/v1/contexts/a/messages", `{"type":"input","n":4}`)
	s.awaitStuck("a", true)
	lease.Lease = &store.Lease{Epoch: held.Epoch}
	if _, err := s.log.Append(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	s.until("a", journal.RunDone)
}

// TestCancel_BesideARefusedRequest: a request that is refused is not what a DELETE cancels.
func TestCancel_BesideARefusedRequest(t *testing.T) {
	s := serve(t, work, nil, nil)
	for i := range 50 {
		name := fmt.Sprint("x", i)
		s.ask("POST", "/v1/runs", fmt.Sprintf(`{"plan":"plans/double.lua","context":%q,"wait":true}`, name))
		refused := make(chan struct{})
		for range 2 {
			go func() {
				s.ask("POST", "/v1/runs", fmt.Sprintf(`{"plan":"plans/double.lua","context":%q}`, name))
				refused <- struct{}{}
			}()
		}
		status, text := s.ask("DELETE", "/v1/runs/"+name, "")
		<-refused
		<-refused
		if last, err := journal.In(s.log, name).LastRun(t.Context()); err != nil || status == 200 && last.Status != journal.RunCancelled {
			t.Fatalf("%d %s; the run is %s, %v", status, text, last.Status, err)
		}
	}
}

// TestRuns_AcknowledgedIsRecorded: nothing is acknowledged that the log does not take.
func TestRuns_AcknowledgedIsRecorded(t *testing.T) {
	var log *full
	s := serve(t, pay, nil, func(c *Config) {
		log = &full{Log: c.Log}
		c.Log = log
	})
	s.ask("POST", "/v1/runs", `{"plan":"plans/pay.lua","input":{"amount":7},"context":"a","wait":true}`) // it is held
	log.is.Store(true)
	for _, ask := range [][3]string{
		{"POST", "/v1/runs", `{"plan":"plans/pay.lua","input":{"amount":7},"context":"b"}`},
		{"POST", "/v1/runs", `{"plan":"plans/pay.lua","input":{"amount":7},"context":"d","wait":true}`},
		{"POST", "/v1/contexts/a/messages", `{"type":"input","n":1}`},
		{"POST", "/v1/contexts/a/calls/1.1/approve", `{}`},
		{"POST", "/v1/contexts/a/calls/1.1/reject", `{"reason":"no"}`},
		{"POST", "/v1/contexts/a/fork", `{"context":"f"}`},
		{"POST", "/v1/contexts/a/resume", `{}`},
		{"DELETE", "/v1/runs/a", ``},
	} {
		if status, text := s.ask(ask[0], ask[1], ask[2]); status != http.StatusServiceUnavailable {
			t.Errorf("%s %s: %d %s", ask[0], ask[1], status, text)
		}
	}
	log.is.Store(false)
}
