package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/oklog/ulid/v2"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
)

// runRequest is the body of POST /v1/runs.
type runRequest struct {
	Plan    string          `json:"plan"`
	Input   json.RawMessage `json:"input"`
	Context *string         `json:"context"`
	Wait    bool            `json:"wait"`
	Mode    string          `json:"mode"`
	Approve string          `json:"approve"`
}

func (s *Server) postRun(w http.ResponseWriter, r *http.Request) error {
	var asked runRequest
	if err := readHeld(r, &asked); err != nil {
		return err
	}
	start, err := asked.start()
	if err != nil {
		return err
	}
	one, err := s.begin(r.Context(), start.Context, false, func(ctx context.Context, begun func()) (*journal.Outcome, error) {
		request, registry, err := s.config.Host.Plan(asked.Plan)
		if notFound(err) {
			return nil, &problem{status: http.StatusNotFound, code: "no-plan", message: err.Error()}
		}
		if err != nil {
			return nil, err
		}
		if asked.Mode != "" {
			request.Mode = asked.Mode
		}
		if err := asked.readInput(&start); err != nil {
			return nil, err
		}
		start.Request, start.Begun = request, func() {
			begun()
			release(r) // the input is in the log
		}
		if err := start.MissingInput(ctx, s.log, registry.Schemas...); err != nil {
			return nil, err
		}
		return s.runner(registry).Run(ctx, start)
	})
	if err != nil {
		return err
	}
	return s.tellRun(w, r, one, asked.Wait)
}

// contextFor is the name that is asked for a new context, or one that no other has.
func contextFor(asked *string) (string, error) {
	if asked == nil {
		return ulid.MustNew(ulid.Now(), rand.Reader).String(), nil
	}
	if err := store.CheckContext(*asked); err != nil {
		return "", wrong("context %s", err)
	}
	return *asked, nil
}

// start checks what is asked for, but for the plan.
func (q *runRequest) start() (start engine.Start, err error) {
	if q.Plan == "" {
		return start, wrong(`the plan is missing: {"plan": "plans/refund.lua"}`)
	}
	if clean := path.Clean(strings.ReplaceAll(q.Plan, `\`, "/")); clean != q.Plan || !strings.HasPrefix(q.Plan, "plans/") {
		return start, &host.ScriptError{File: q.Plan, Message: "it is no plan that can be run over HTTP: those are the files below plans/"}
	}
	if q.Mode != "" && q.Mode != "eager" && q.Mode != "lazy" {
		return start, wrong("mode %s: it is eager or lazy", quoted(q.Mode))
	}
	if q.Approve != "" {
		if start.Approve, err = plan.ParsePolicy(q.Approve); err != nil {
			return start, wrong("approve %s: %s", quoted(q.Approve), err)
		}
	}
	if start.HasInput = len(q.Input) > 0 && string(q.Input) != "null"; start.HasInput && q.Input[0] != '{' {
		return start, q.readInput(&start)
	}
	start.Context, err = contextFor(q.Context)
	return start, err
}

// readInput takes in the input, and lets go of its text. What is made of that takes many
// times the memory, so it is not made before the run has its turn.
func (q *runRequest) readInput(start *engine.Start) (err error) {
	if !start.HasInput {
		return nil
	}
	if start.Input, err = store.DecodeJSON(q.Input); err != nil {
		return wrong("input: %s", err)
	}
	q.Input = nil
	if _, ok := start.Input.(map[string]any); !ok {
		return wrong("input must be an object, not %s", store.Describe(start.Input))
	}
	return nil
}

// tellRun answers with a run's end, or, without wait, with that it has begun.
// A client that goes away leaves the run alone.
func (s *Server) tellRun(w http.ResponseWriter, r *http.Request, one *run, wait bool) error {
	begun := one.begun
	if wait {
		begun = nil
	}
	select {
	case <-one.ended:
	case <-begun:
	case <-r.Context().Done():
		if !errors.Is(r.Context().Err(), context.DeadlineExceeded) || !one.hasBegun() {
			return r.Context().Err()
		}
		begun = one.begun // the time that a handler around this one gives is over, and the run goes on
	}
	select {
	case <-begun:
		w.Header().Set("Location", mountedAt(r)+"/v1/contexts/"+one.context)
		return write(w, http.StatusAccepted, map[string]any{"context": one.context})
	default:
	}
	if one.err != nil {
		return one.failed()
	}
	return s.sendOutcome(w, r, one)
}

// sendOutcome answers with how a run has ended. Where there is no room to send a large output
// it answers as without wait, and the client finds it at the context: the run is over, and must
// not be asked for again.
func (s *Server) sendOutcome(w http.ResponseWriter, r *http.Request, one *run) error {
	text := append(store.EncodeJSON(outcomeBody(one.outcome)), '\n')
	if len(text) > smallPiece {
		from, size := s.room.of(len(text))
		if !from.TryAcquire(size) {
			w.Header().Set("Location", mountedAt(r)+"/v1/contexts/"+one.context)
			return write(w, http.StatusAccepted, map[string]any{"context": one.context, "status": one.outcome.Status})
		}
		defer from.Release(size)
	}
	return writeJSON(w, http.StatusOK, text)
}

// mountedAt is what a handler around the server has taken off a request's path.
func mountedAt(r *http.Request) string {
	given, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		return ""
	}
	prefix, ok := strings.CutSuffix(given.EscapedPath(), r.URL.EscapedPath())
	if !ok {
		return ""
	}
	return prefix
}

// failed is why a run has no outcome. What of it was recorded before the log could
// not be written any more is not to be asked for again.
func (one *run) failed() error {
	if !one.hasBegun() || !isUnwritable(one.err) {
		return one.err
	}
	if one.unwanted {
		return untold(one.context)
	}
	return stuck("context %s has been begun, and goes on by itself when the server can write its log: look at it later", one.context)
}

// outcomeBody is how a run stands, for who waited for it.
func outcomeBody(o *journal.Outcome) map[string]any {
	return map[string]any{"context": o.Context, "status": o.Status, "output": o.Output, "error": errorBody(o)}
}

// errorBody is what a run failed of, or null.
func errorBody(o *journal.Outcome) any {
	message, code := why(o)
	if message == "" {
		return nil
	}
	return map[string]any{"code": code, "message": message}
}

// why tells what a run failed of: itself, or the first of its calls that did. One
// that waits may hold such a call too.
func why(o *journal.Outcome) (message, code string) {
	code = string(o.Status)
	switch {
	case o.Stopped:
		return cmp.Or(o.Error, engine.ErrStopped.Error()), "stopped"
	case o.Status == journal.RunInterrupted:
		return cmp.Or(o.Error, "it was interrupted"), code
	case o.Status == journal.RunCancelled:
		return cmp.Or(o.Error, engine.ErrCancelled.Error()), code
	}
	if o.Error != "" {
		return o.Error, code
	}
	for _, r := range o.Calls {
		if r.Status != journal.Failed || r.Unstored {
			continue
		}
		text, ok := r.Error["message"].(string)
		if !ok {
			text = string(store.EncodeJSON(r.Error))
		}
		return fmt.Sprintf("call %s (%s): %s", r.Call, r.Tool, text), string(journal.RunFailed)
	}
	return "", code
}

// resumeRequest is the body of POST …/resume.
type resumeRequest struct {
	Retry  []string        `json:"retry"`
	Skip   []string        `json:"skip"`
	Result json.RawMessage `json:"result"` // by call, what it came to
	From   string          `json:"from"`   // a call of a fork, to run again with what is downstream
	Set    json.RawMessage `json:"set"`    // corrections of its arguments
	By     string          `json:"by"`     // who decides that
	Wait   bool            `json:"wait"`
}

func (s *Server) postResume(w http.ResponseWriter, r *http.Request) error {
	var asked resumeRequest
	if err := read(r, &asked); err != nil {
		return err
	}
	results, err := readByName("result", "results by their calls", asked.Result)
	if err != nil {
		return err
	}
	set, err := readSet(asked.Set)
	if err == nil && set != nil && asked.From == "" {
		err = wrong("set goes with from: it corrects the arguments of that call")
	}
	if err != nil {
		return err
	}
	name, err := s.there(r)
	if err != nil {
		return err
	}
	who, err := s.who(asked.By)
	if err != nil {
		return err
	}
	how := engine.Resume{Context: name, Retry: asked.Retry, Skip: asked.Skip, Result: results, From: asked.From, Set: set, Who: who}
	one, err := s.begin(r.Context(), name, false, s.resuming(how))
	if err != nil {
		return err
	}
	return s.tellRun(w, r, one, asked.Wait)
}

// resuming goes on with a run, by its plan's file as it is now.
func (s *Server) resuming(how engine.Resume) carrier {
	return func(ctx context.Context, begun func()) (*journal.Outcome, error) {
		name, err := journal.In(s.log, how.Context).RootPlan(ctx)
		if err != nil {
			return nil, err
		}
		request, registry, unread := s.config.Host.Generation().PlanOf(name)
		how.Request, how.Begun = request, begun
		outcome, err := s.runner(registry).Resume(ctx, how)
		var refused *plan.PlanError
		var unplanned *engine.NoPlannerError
		if (errors.As(err, &refused) || errors.As(err, &unplanned)) && unread != nil {
			return nil, unread
		}
		return outcome, err
	}
}

func stuck(format string, args ...any) error {
	return &problem{status: http.StatusServiceUnavailable, code: "log", message: fmt.Sprintf(format, args...)}
}

func untold(name string) error {
	return stuck("context %s was told to end, which is recorded when the server can write its log", name)
}
