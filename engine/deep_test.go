package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/sqlite"
)

// deep is a value of so many levels.
func deep(levels int) any {
	v := any(true)
	for range levels {
		v = map[string]any{"a": v}
	}
	return v
}

// TestDelegate_TooDeep holds that what is nested too deep for the log to be read again is
// refused at each way in, and what is one level less is taken.
func TestDelegate_TooDeep(t *testing.T) {
	log, err := sqlite.Open(filepath.Join(t.TempDir(), "log.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx := t.Context()
	r := newRunner(log, map[string]activity{
		"echo": func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{Value: true}, nil
		},
	})
	input := func(levels int) error {
		_, err := r.Run(ctx, engine.Start{Context: "input", Request: readPlan(t, `[]`), Input: deep(levels), HasInput: true})
		return err
	}
	message := func(levels int) error {
		_, err := engine.Append(ctx, log, "message", []store.Message{{Type: store.TypeData, Kind: "state", Data: deep(levels), HasData: true}})
		return err
	}
	call := func(levels int) error { // within the call, and that in the plan
		request := readPlan(t, `[{"_tool":"echo","_outputPath":"†x"}]`)
		request.Calls[0].Call.(map[string]any)["n"] = deep(levels - 2)
		_, err := r.Run(ctx, engine.Start{Context: "call", Request: request})
		return err
	}
	hold := readPlan(t, `[{"_tool":"echo","n":{},"_outputPath":"†x"}]`)
	if _, err := r.Run(ctx, engine.Start{Context: "correction", Request: hold, Approve: plan.Policy{Always: true}}); err != nil {
		t.Fatal(err)
	}
	correction := func(levels int) error { // within the arguments
		return r.Decide(ctx, journal.Decision{Context: "correction", Call: "1.1", Arguments: map[string]any{"n": deep(levels - 1)}})
	}
	for name, in := range map[string]func(levels int) error{"input": input, "message": message, "call": call, "correction": correction} {
		if err := in(store.MaxDepth + 1); err == nil || !strings.Contains(err.Error(), "nested deeper than 256") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := log.Head(ctx, name); name != "correction" && !errors.Is(err, store.ErrNoContext) {
			t.Errorf("%s is refused and leaves a context: %v", name, err)
		}
		if err := in(store.MaxDepth); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for m, err := range log.Messages(ctx, store.Filter{Context: name}) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := store.ParseMessages(store.EncodeJSON(&m)); err != nil {
				t.Errorf("%s: what the log prints is not taken back: %v", name, err)
			}
		}
		if _, err := journal.In(log, name).Records(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What becomes too deep as the call is resolved fails the call alone.
	request := readPlan(t, `[{"_tool":"echo","n":{"b":"†input"},"_outputPath":"†y"}]`)
	outcome, err := r.Run(ctx, engine.Start{Context: "input", Request: request})
	if err != nil || outcome.Calls[0].Status != journal.Failed || outcome.Calls[0].Error["message"] != "nested deeper than 256" {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// TestJournal_DeepValues holds that what is as deep as data may be can be read again
// wherever the journal wraps it once more.
func TestJournal_DeepValues(t *testing.T) {
	log, err := sqlite.Open(filepath.Join(t.TempDir(), "log.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r := newRunner(log, map[string]activity{
		"value": value,
		"fail": func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{}, &plan.Failure{Fields: map[string]any{"message": "no", "deep": deep(store.MaxDepth)}}
		},
	})
	for name, c := range map[string]struct {
		text   string
		status journal.RunStatus
		says   string
	}{
		"output":  {`{"calls": [], "output": {"all": "†input"}}`, journal.RunFailed, "the final output is nested deeper than 256"},
		"deepest": {`{"calls": [], "output": "†input"}`, journal.RunDone, ""},
		"hold":    {`{"calls": [{"_tool": "value", "value": "†input.a", "_scopes": ["input"], "_outputPath": "†x"}], "output": "†x"}`, journal.RunWaiting, ""},
		"failure": {`{"calls": [{"_tool": "fail", "_outputPath": "†x"}], "output": 1}`, journal.RunFailed, ""},
	} {
		s := engine.Start{Context: name, Request: readPlan(t, c.text), Input: deep(store.MaxDepth), HasInput: true}
		if name == "hold" {
			s.Approve.Always = true
		}
		outcome, err := r.Run(t.Context(), s)
		if err != nil || outcome.Status != c.status || outcome.Error != c.says {
			t.Errorf("%s: %+v, %v", name, outcome, err)
		}
		last, err := journal.In(log, name).LastRun(t.Context())
		if err != nil || last.Status != c.status {
			t.Errorf("%s: %s, %v", name, last.Status, err)
		}
		records, err := journal.In(log, name).Records(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "failure" && records[0].Error["message"] != "no" {
			t.Errorf("the failure is %v", records[0].Error)
		}
		for _, err := range log.Messages(t.Context(), store.Filter{Context: name}) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
