package web

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"obelus/engine/journal"
	"obelus/store"
)

// breaking is a log that breaks down where a call writes to the context "breaks".
type breaking struct{ store.Log }

func (b breaking) Append(ctx context.Context, batch store.Batch) (store.Appended, error) {
	for _, m := range batch.Messages {
		if m.Call != "" && batch.Context == "breaks" {
			_ = batch.Messages[len(batch.Messages)]
		}
	}
	return b.Log.Append(ctx, batch)
}

// TestRuns_PanicCostsOneRun: neither the server nor the runs beside it.
func TestRuns_PanicCostsOneRun(t *testing.T) {
	var logged logText
	s := serve(t, work, nil, func(c *Config) {
		c.Log = breaking{c.Log}
		c.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	})
	for _, want := range []int{500, 409} { // it is unfinished then
		status, text := s.ask("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":2},"context":"breaks","wait":true}`)
		if status != want {
			t.Errorf("%d %s", status, text)
		}
	}
	s.expect("POST", "/v1/runs", `{"plan":"plans/double.lua","input":{"n":2},"context":"whole","wait":true}`, 200,
		`{"context":"whole","error":null,"output":4,"status":"done"}`)
	if holder, err := s.log.Holder(t.Context(), "breaks"); holder != "" || err != nil {
		t.Errorf("it is held by %s, %v", holder, err)
	}
	s.server.Drain(t.Context())
	if text := logged.String(); strings.Count(text, "a run broke down") != 1 || !strings.Contains(text, "index out of range") || !strings.Contains(text, "(at broken_test.go:") {
		t.Errorf("the log says %s", text)
	}
	if run, err := journal.In(s.log, "breaks").LastRun(t.Context()); err != nil || run.Status != journal.RunRunning {
		t.Errorf("the run is %s, %v", run.Status, err)
	}
}
