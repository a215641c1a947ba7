package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/hook"
	"obelus/host/once"
	"obelus/host/supervise"
	"obelus/host/web/internal/mount"
	"obelus/store"
)

var (
	errNoSecret = &problem{status: http.StatusServiceUnavailable, code: "hook", message: "the server has no secret to verify this hook with; its log says which", retry: 60}
	errHookPlan = &problem{status: http.StatusInternalServerError, code: "internal", message: internalText, retry: 60}
)

// hookOf returns the hook that a request is for, as the newest scripts have it.
func hookOf(s *Server, r *http.Request) (host.Hook, bool) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/v1/hooks/"); ok {
		for _, h := range s.config.Host.Generation().Settings().Serve.Hooks {
			if h.Name == name {
				return h, true
			}
		}
	}
	return host.Hook{}, false
}

// hookIn names a hook.
type hookIn struct {
	Hook string `path:"hook" example:"github" jsonschema:"The name of a hook in the setting serve.hooks."`
}

// deliveredAnswer names the context that a delivery has come to.
type deliveredAnswer struct {
	Context string `json:"context"`
}

// postHook takes a delivery to a hook.
func (s *Server) postHook(w http.ResponseWriter, r *http.Request) error {
	h, ok := hookOf(s, r)
	if !ok {
		return &problem{status: http.StatusNotFound, code: "not-found", message: "there is no hook " + quoted(r.PathValue("hook"))}
	}
	d, err := readDelivery(s, h, r)
	if err != nil {
		return err
	}
	if h.To != nil {
		return d.append(w, r)
	}
	return d.start(w, r)
}

// delivery is a request to a hook that was verified.
type delivery struct {
	server *Server
	hook   host.Hook
	name   string         // of the context of its run, and its id
	input  map[string]any // of the run
}

// readDelivery verifies and reads a request.
func readDelivery(s *Server, h host.Hook, r *http.Request) (*delivery, error) {
	body, err := readBytes(r)
	if err != nil {
		return nil, err
	}
	if h.Verify != hook.None {
		secret := strings.TrimRight(s.config.Secret(h.Secret), "\r\n") // as of keys and tokens
		if secret == "" {
			s.logger.Error("a hook can't be verified: the variable with its secret is not set", "hook", h.Name, "variable", h.Secret)
			return nil, errNoSecret
		}
		if err := h.Scheme.Verify(body, secret, r.Header.Get, time.Now()); err != nil {
			return nil, &problem{status: http.StatusForbidden, code: "signature", message: err.Error()}
		}
	}
	id := hook.BodyID(body)
	if h.HasID() {
		if id = r.Header.Get(h.Once); id == "" {
			return nil, wrong("the header %s, with the id of the delivery, is missing", h.Once)
		}
	}
	input, err := hookInput(h, r, body)
	return &delivery{s, h, hook.ContextName(h.Name, id), input}, err
}

// hookInput returns the input of a run that a request starts.
func hookInput(h host.Hook, r *http.Request, body []byte) (map[string]any, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // none is no JSON
	v, err := hook.DecodeBody(body, kind)
	if err != nil {
		return nil, wrong("%s", err)
	}
	query, err := hook.DecodeQuery(r.URL.RawQuery)
	if err != nil {
		return nil, wrong("%s", err)
	}
	headers := map[string]any{}
	for _, name := range h.Headers {
		if values := r.Header.Values(name); len(values) > 0 {
			headers[name] = strings.ToValidUTF8(strings.Join(values, ", "), "\ufffd")
		}
	}
	input := map[string]any{"body": v, "headers": headers, "query": query}
	if h.Raw {
		if !utf8.Valid(body) {
			return nil, wrong("the body is not UTF-8, and so can't be handed on as raw")
		}
		input["raw"] = string(body)
	}
	return input, nil
}

// start starts the run of a delivery, and answers once it is in the log. A delivery that comes
// again is answered with the run that it has started.
func (d *delivery) start(w http.ResponseWriter, r *http.Request) error {
	s := d.server
	begun := func() error { return once.CheckBegun(r.Context(), s.log, d.name, d.hook.Plan) }
	if _, err := s.log.Head(r.Context(), d.name); !errors.Is(err, store.ErrNoContext) {
		return d.answerAgain(w, r, d.name, cmp.Or(err, begun()))
	}
	run, err := s.supervisor.Start(r.Context(), supervise.Start{
		Start: engine.Start{Context: d.name, Once: true, Begun: func() { release(r) }},
		Prepare: func(_ context.Context, start *supervise.Start) (err error) {
			if start.Request, start.Registry, err = s.config.Host.Plan(d.hook.Plan); err != nil {
				return err
			}
			start.Input = store.Some(d.input)
			return nil
		},
	})
	if err == nil {
		select {
		case <-run.Recorded():
			return d.answer(w, r, d.name, http.StatusAccepted)
		case <-run.Ended():
		case <-r.Context().Done():
			return r.Context().Err()
		}
		if isClosed(run.Recorded()) {
			return d.answer(w, r, d.name, http.StatusAccepted)
		}
		_, err = run.Wait(r.Context())
	}
	switch {
	case errors.Is(err, store.ErrExists), is[*engine.BusyError](err):
		return d.answerAgain(w, r, d.name, begun())
	case is[*plan.PlanError](err), isScript(err): // which is not the sender's affair
		s.logger.Error("the plan of a hook is refused", "hook", d.hook.Name, "plan", d.hook.Plan, "error", err)
		return errHookPlan
	case err == nil: // it was cancelled before its turn
		return &problem{status: http.StatusConflict, code: "cancelled", message: "the run was cancelled before it began"}
	}
	return err
}

// append appends a delivery as input to the run that waits for it. A delivery that comes again is
// not appended again, whatever has become of the run.
func (d *delivery) append(w http.ResponseWriter, r *http.Request) error {
	s := d.server
	name, err := d.hook.To.Context(d.input)
	if err != nil {
		return wrong("the request names no context: %s", err)
	}
	noRun := &problem{status: http.StatusNotFound, code: "no-context", message: fmt.Sprintf("no run waits in a context %s", name)}
	if _, err := s.log.Head(r.Context(), name); err != nil {
		if errors.Is(err, store.ErrNoContext) {
			err = noRun
		}
		return err
	}
	if was, err := once.HasAppended(r.Context(), s.log, name, d.name); was || err != nil {
		return d.answerAgain(w, r, name, err)
	}
	last, err := journal.In(s.log, name).CurrentRun(r.Context())
	if err != nil {
		return err
	}
	if last.Status.Finished() || last.Unwanted() {
		return noRun
	}
	appended, err := s.supervisor.AppendOnce(r.Context(), name, d.name, []store.Message{{Type: store.TypeData, Kind: "input", Data: store.Some(d.input)}})
	switch {
	case err != nil:
		return err
	case !appended:
		return d.answerAgain(w, r, name, nil)
	}
	return d.answer(w, r, name, http.StatusAccepted)
}

// answerAgain answers to a delivery that came before, unless there is an error.
func (d *delivery) answerAgain(w http.ResponseWriter, r *http.Request, name string, err error) error {
	if err != nil {
		return err
	}
	return d.answer(w, r, name, http.StatusOK)
}

func (d *delivery) answer(w http.ResponseWriter, r *http.Request, name string, status int) error {
	w.Header().Set("Location", mount.Prefix(r)+"/v1/contexts/"+name)
	return write(w, status, deliveredAnswer{Context: name})
}
