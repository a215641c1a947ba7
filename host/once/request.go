package once

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// KeyContext names the context of a request by its key: the key itself if that is a valid name.
func KeyContext(key string) string {
	if store.CheckContext(key) == nil {
		return key
	}
	return "key-" + Digest(key)
}

// OtherRunError is a context that another request has begun.
type OtherRunError struct {
	Context string
	What    string // by which it differs
}

// Error names the context and the difference.
func (e *OtherRunError) Error() string {
	return fmt.Sprintf("context %s exists, and was begun with %s", e.Context, e.What)
}

// Class implements the interface of [store.ClassOf].
func (e *OtherRunError) Class() store.Class { return store.Refused }

// CheckBegun returns an [*OtherRunError] for a context that exists and that no run has begun: a
// fork, or one that was begun with messages. With the name of a plan, the run must be of that
// plan. So a name that a server is going to make can't be taken by others unnoticed.
func CheckBegun(ctx context.Context, log store.Reader, name, plan string) error {
	if _, err := log.Head(ctx, name); err != nil {
		if errors.Is(err, store.ErrNoContext) {
			return nil
		}
		return err
	}
	_, isFork, err := store.Newest(ctx, log, store.JournalFilter{Context: name, Event: journal.EventFork})
	if err != nil {
		return err
	}
	if isFork {
		return &OtherRunError{name, "what it shares with another, as a fork"}
	}
	for first, err := range log.Journal(ctx, store.JournalFilter{Context: name}) {
		switch {
		case err != nil:
			return err
		case first.Event == journal.EventAppend:
			return &OtherRunError{name, "messages, before any run"}
		}
		var begun struct {
			Plan string `json:"plan"`
		}
		if plan != "" && json.Unmarshal([]byte(first.Data), &begun) == nil && begun.Plan != plan {
			return &OtherRunError{name, "another plan, " + begun.Plan}
		}
		return nil
	}
	return &OtherRunError{name, "messages, before any run"}
}

// HasRun reports whether a context has the run of a start, which began the context.
// If the context exists and has another, its error is an [*OtherRunError].
func HasRun(ctx context.Context, log store.Reader, start *engine.Start) (bool, error) {
	name, request, input := start.Context, start.Request, start.Input
	if _, err := log.Head(ctx, name); err != nil {
		if errors.Is(err, store.ErrNoContext) {
			return false, nil
		}
		return false, err
	}
	if err := CheckBegun(ctx, log, name, ""); err != nil {
		return false, err
	}
	last, err := journal.In(log, name).LastRun(ctx)
	switch {
	case err != nil:
		return false, err
	case last.Event.First > 1:
		return false, &OtherRunError{name, "another run"}
	case last.Plan != request.Name:
		return false, &OtherRunError{name, "another plan, " + last.Plan}
	case !maps.Equal(last.Event.Labels, start.Labels):
		return false, &OtherRunError{name, "other labels"}
	}
	given, err := givenInput(ctx, log, name, request)
	if err != nil {
		return false, err
	}
	asked := store.Optional{}
	if input.Set {
		v, err := store.FromGo(input.Value, "input")
		if err != nil {
			return false, err
		}
		asked = store.Some(v)
	}
	if given.Set != asked.Set || !bytes.Equal(store.EncodeJSON(given.Value), store.EncodeJSON(asked.Value)) {
		return false, &OtherRunError{name, "other input"}
	}
	return true, nil
}

// givenInput returns the input that the first run of a context was given in addition to its plan's
// own input.
func givenInput(ctx context.Context, log store.Reader, name string, request *plan.Request) (given store.Optional, err error) {
	var first journal.PlanEvent
	for entry, err := range log.Journal(ctx, store.JournalFilter{Context: name, Event: journal.EventPlan}) {
		if err != nil {
			return given, err
		}
		if first, err = journal.ReadPlanEvent(entry); err != nil {
			return given, err
		}
		break
	}
	own := 0 // inputs that the plan itself brings
	for _, m := range request.Context {
		if m.Kind == "input" && m.Data.Set {
			own++
		}
	}
	for m, err := range log.Messages(ctx, store.Filter{Context: name, Kind: "input", At: max(first.Start, 1)}) {
		if err != nil {
			return given, err
		}
		if !m.Data.Set || m.Seq > first.Start {
			continue
		}
		if own--; own < 0 {
			given = m.Data
		}
	}
	return given, nil
}
