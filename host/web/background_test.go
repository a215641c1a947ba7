package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"obelus/engine/journal"
)

// background is a project whose plan starts a long call and does not wait for it.
var background = map[string]string{
	"obelus.lua": `return { serve = { on = { done = "plans/told.lua" } }, drain = "100ms" }`,
	"activities/work.lua": `
		Activity.register("minute", { timeout = 90 }, function() pause:Here() return 1 end)
		Activity.register("one", function() return 1 end)`,
	"plans/report.lua": `return { calls = { { _tool = "minute" }, { _tool = "one", _outputPath = "†a" } }, output = "†a" }`,
	"plans/told.lua":   `return { calls = {}, output = "†input.status" }`,
}

// TestBackground holds that a run is done in every answer once its output is known: the request that
// waits for it is answered, lists have background beside the status, a reaction is started, its place
// is free, and nothing else runs in its context, which is not pruned, until the call has ended.
func TestBackground(t *testing.T) {
	p := newPause()
	s := serve(t, background, map[string]any{"pause": p}, func(c *Config) { c.Runs = 1 })
	began := time.Now()
	for _, name := range []string{"a", "b"} { // one place is enough for both
		status, body := s.ask("POST", "/v1/runs", `{"plan":"plans/report.lua","context":"`+name+`","wait":true}`)
		if want := `{"background":1,"context":"` + name + `","error":null,"output":1,"status":"done"}`; status != http.StatusOK || strings.TrimSpace(body) != want {
			t.Errorf("%d %s, want %s", status, body, want)
		}
	}
	if took := time.Since(began); took > 50*time.Second {
		t.Errorf("the answers took %s", took)
	}
	for _, address := range []string{"/v1/runs", "/v1/contexts/a"} {
		if _, body := s.ask("GET", address, ""); !strings.Contains(body, `"background":1,`) || !strings.Contains(body, `"status":"done"`) {
			t.Errorf("%s: %s", address, body)
		}
	}
	if status, body := s.ask("POST", "/v1/runs", `{"plan":"plans/report.lua","context":"a","wait":true}`); status != http.StatusConflict {
		t.Errorf("another run in its context: %d %s", status, body)
	}
	told := func() bool {
		_, body := s.ask("GET", "/v1/runs?label=on=a", "")
		return strings.Contains(body, `"plan":"plans/told.lua"`)
	}
	s.await("the reaction has begun", told)
	close(p.resume)
	ended := func() bool {
		records, err := journal.In(s.log, "a").Records(t.Context())
		return err == nil && records[0].Status == journal.Done
	}
	s.await("the call has ended", ended)
	s.await("it is no more in the background", func() bool {
		_, body := s.ask("GET", "/v1/contexts/a", "")
		return !strings.Contains(body, "background")
	})
}

// TestBackground_Stopped holds that a server that stops leaves the call interrupted after drain, and
// that the next one goes on with it.
func TestBackground_Stopped(t *testing.T) {
	p := newPause()
	s := serve(t, background, map[string]any{"pause": p}, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/report.lua","context":"a","wait":true}`)
	if err := s.server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	records, err := journal.In(s.log, "a").CurrentRecords(t.Context())
	if err != nil || records[0].Status != journal.Interrupted {
		t.Errorf("%+v, %v", records, err)
	}
	s.http.Close()
	close(p.resume)
	s.open(nil)
	s.await("the call has ended", func() bool {
		records, err := journal.In(s.log, "a").Records(t.Context())
		return err == nil && records[0].Status == journal.Done && records[0].Attempts == 2
	})
	if _, body := s.ask("GET", "/v1/contexts/a", ""); !strings.Contains(body, `"status":"done"`) {
		t.Errorf("the run: %s", body)
	}
}

// TestBackground_Cancelled holds that a run that is done can be cancelled while calls of it go on in
// the background: these are, and the run stays done.
func TestBackground_Cancelled(t *testing.T) {
	s := serve(t, background, map[string]any{"pause": newPause()}, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/report.lua","context":"a","wait":true}`)
	if status, body := s.ask("DELETE", "/v1/runs/a", ""); status != http.StatusOK || !strings.Contains(body, `"status":"done"`) {
		t.Errorf("%d %s", status, body)
	}
	records, err := journal.In(s.log, "a").CurrentRecords(t.Context())
	if err != nil || records[0].Status != journal.Cancelled {
		t.Errorf("%+v, %v", records, err)
	}
	if status, body := s.ask("POST", "/v1/runs", `{"plan":"plans/told.lua","input":{"status":"next"},"context":"a","wait":true}`); status != http.StatusOK || !strings.Contains(body, `"output":"next"`) {
		t.Errorf("the next run in its context: %d %s", status, body)
	}
}

// TestBackground_CancelledLater cancels a run that is done, and whose calls in the background were left
// by a server that has ended: the answer says that it is done, and nothing goes on with them.
func TestBackground_CancelledLater(t *testing.T) {
	s := serve(t, background, map[string]any{"pause": newPause()}, nil)
	s.ask("POST", "/v1/runs", `{"plan":"plans/report.lua","context":"a","wait":true}`)
	if err := s.server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.http.Close()
	s.open(func(c *Config) { c.NoResume = true })
	if status, body := s.ask("DELETE", "/v1/runs/a", ""); status != http.StatusOK || !strings.Contains(body, `"output":1,"status":"done"`) {
		t.Errorf("%d %s", status, body)
	}
	records, err := journal.In(s.log, "a").CurrentRecords(t.Context())
	if err != nil || records[0].Status != journal.Cancelled {
		t.Errorf("%+v, %v", records, err)
	}
}
