package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/once"
	"obelus/host/supervise"
	"obelus/host/web/internal/api"
	"obelus/host/web/internal/mount"
	"obelus/store"
)

// runIn starts a run.
type runIn struct {
	Plan    string          `json:"plan" required:"a plan: {\"plan\": \"plans/refund.lua\"}" jsonschema:"A file below plans/."`
	Input   json.RawMessage `json:"input" jsonschema:"An object, appended as input."`
	Context *string         `json:"context" jsonschema:"The name of the context; a new one unless it is given."`
	Wait    bool            `json:"wait" jsonschema:"Answer when the run has ended or halted."`
	Mode    string          `json:"mode" jsonschema:"The mode, eager or lazy, in place of the plan's own."`
	Approve string          `json:"approve" jsonschema:"The calls to hold for a person: never, always, planned, scopes, or names of tools."`
	Once    bool            `json:"once" jsonschema:"Make the run of this context only once."`

	Labels map[string]string `json:"labels" jsonschema:"Texts by name that are kept with the run."`
}

func (s *Server) postRun(w http.ResponseWriter, r *http.Request, asked runIn) error {
	key := r.Header.Get("Idempotency-Key")
	if _, given := r.Header["Idempotency-Key"]; given && strings.TrimSpace(key) == "" {
		return wrong("the header Idempotency-Key is empty: give a key that is of this request alone, or leave the header out")
	}
	if err := asked.nameByKey(key); err != nil {
		return err
	}
	start, err := asked.start()
	if err != nil {
		return err
	}
	start.Begun = func() { release(r) } // the input is in the log
	if asked.Approve != "" && !start.Approve.Always {
		if err := allow(r.Context(), host.MayDecide, "approve "+quoted(asked.Approve)+", in place of the project's policy,"); err != nil {
			return err
		}
	}
	var decoded store.Optional
	prepare := func(ctx context.Context, start *supervise.Start) (err error) {
		start.Request, start.Registry, err = s.config.Host.Plan(asked.Plan)
		if err != nil {
			return missingPlan(err)
		}
		if err := asked.setMode(r, start.Request); err != nil {
			return err
		}
		if decoded.Set { // it was compared with a run that the log has
			start.Input = decoded
		} else if err := asked.readInput(&start.Start); err != nil {
			return err
		}
		if asked.Once {
			decoded = start.Input
		}
		if start.New {
			return start.MissingInput(ctx, nil, start.Registry.Schemas...)
		}
		return start.MissingInput(ctx, s.log, start.Registry.Schemas...)
	}
	if asked.Once {
		start.Once = true
		return startOnce(s, w, r, supervise.Start{Start: start, Prepare: prepare}, asked.Wait)
	}
	run, err := s.supervisor.Start(r.Context(), supervise.Start{Start: start, Prepare: prepare})
	if err != nil {
		return err
	}
	return s.sendRun(w, r, run, asked.Wait)
}

// missingPlan returns the answer to an error where it is that there is no plan's file, else the
// error.
func missingPlan(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &problem{status: http.StatusNotFound, code: "no-plan", message: err.Error()}
	}
	return err
}

// nameByKey names the context by the key of the request, if there is one.
func (q *runIn) nameByKey(key string) error {
	if key != "" {
		q.Once = true
		if q.Context == nil {
			name := once.KeyContext(key)
			q.Context = &name
		}
	}
	if q.Once && q.Context == nil {
		return wrong(`once makes the run of one name: give it as "context", or a key in the header Idempotency-Key`)
	}
	return nil
}

// setMode replaces the mode of a plan, if the request gives one. To run a lazy plan at once is to
// release it.
func (q *runIn) setMode(r *http.Request, request *plan.Request) error {
	if q.Mode == plan.ModeEager && request.Mode == plan.ModeLazy {
		if err := allow(r.Context(), host.MayDecide, `mode "eager", which releases a lazy plan,`); err != nil {
			return err
		}
	}
	request.SetMode(q.Mode)
	return nil
}

// startOnce starts a run unless the log has it: then it answers with that run.
func startOnce(s *Server, w http.ResponseWriter, r *http.Request, start supervise.Start, wait bool) error {
	if sent, err := sendKnown(s, w, r, start, wait); sent || err != nil {
		return err
	}
	run, err := s.supervisor.Start(r.Context(), start)
	if err == nil {
		select {
		case <-run.Recorded():
		case <-run.Concluded():
		case <-r.Context().Done(): // sendRun answers
		}
		if !isClosed(run.Recorded()) && isClosed(run.Concluded()) {
			_, err = run.Wait(r.Context())
		}
	}
	if errors.Is(err, store.ErrExists) || is[*engine.BusyError](err) { // another request was faster
		sent, known := sendKnown(s, w, r, start, wait)
		if sent || known != nil {
			return known
		}
	}
	if run == nil {
		return err
	}
	return s.sendRun(w, r, run, wait)
}

// sendKnown answers with the run of a context that exists, if it is the run of a request. It is an
// error if it is another, and it reports false if there is none.
func sendKnown(s *Server, w http.ResponseWriter, r *http.Request, start supervise.Start, wait bool) (sent bool, err error) {
	if _, err := s.log.Head(r.Context(), start.Context); err != nil {
		if errors.Is(err, store.ErrNoContext) {
			return false, nil
		}
		return false, err
	}
	// The copy keeps the input if there is no such run after all.
	if err := start.Prepare(r.Context(), &start); err != nil {
		return false, err
	}
	if has, err := once.HasRun(r.Context(), s.log, &start.Start); !has || err != nil {
		return false, err
	}
	if !wait {
		w.Header().Set("Location", mount.Prefix(r)+"/v1/contexts/"+start.Context)
		return true, write(w, http.StatusAccepted, acceptedAnswer{Context: start.Context})
	}
	outcome, err := awaitRest(s, r, start.Context)
	if err != nil {
		return false, err
	}
	return true, s.sendOutcome(w, r, outcome)
}

// awaitRest waits until the run of a context has ended or halted, here or in another process.
func awaitRest(s *Server, r *http.Request, name string) (*journal.Outcome, error) {
	news, leave := s.supervisor.Subscribe(name)
	defer leave()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		outcome, err := engine.ReadOutcome(r.Context(), s.log, name)
		if err != nil || outcome.Status != journal.RunRunning && !outcome.Stopped {
			return outcome, err
		}
		select {
		case <-news:
		case <-look.C: // a process that dies appends nothing
		case <-s.supervisor.Done():
			return nil, supervise.ErrStopping
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// contextFor returns the name that was asked for a new context, or a new name.
func contextFor(asked *string) (string, error) {
	if asked == nil {
		return newName(), nil
	}
	if err := store.CheckContext(*asked); err != nil {
		return "", wrong("context %s", err)
	}
	return *asked, nil
}

// newName returns a name that no context has.
func newName() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

// start checks the request, except for the plan.
func (q *runIn) start() (start engine.Start, err error) {
	if !isPlanName(q.Plan) {
		return start, errNoPlanName(q.Plan)
	}
	if q.Mode != "" && q.Mode != plan.ModeEager && q.Mode != plan.ModeLazy {
		return start, wrong("mode %s: it is eager or lazy", quoted(q.Mode))
	}
	if q.Approve != "" {
		if start.Approve, err = plan.ParsePolicy(q.Approve); err != nil {
			return start, wrong("approve %s: %s", quoted(q.Approve), err)
		}
	}
	if start.Labels = q.Labels; store.CheckLabels(q.Labels) != nil {
		return start, wrong("labels: %s", store.CheckLabels(q.Labels))
	}
	if start.Input.Set = len(q.Input) > 0 && string(q.Input) != "null"; start.Input.Set && q.Input[0] != '{' {
		return start, q.readInput(&start)
	}
	start.New = q.Context == nil
	start.Context, err = contextFor(q.Context)
	return start, err
}

// isPlanName reports whether a text may name the file of a plan.
func isPlanName(name string) bool {
	return path.Clean(strings.ReplaceAll(name, `\`, "/")) == name && strings.HasPrefix(name, "plans/")
}

func errNoPlanName(name string) error {
	return &host.ScriptError{File: name, Message: "it is no plan that can be used over HTTP: those are the files below plans/"}
}

// readInput decodes the input, and drops its text. The decoded values take many times the memory,
// so this waits until it is the run's turn.
func (q *runIn) readInput(start *engine.Start) (err error) {
	if !start.Input.Set {
		return nil
	}
	if start.Input.Value, err = store.DecodeJSON(q.Input); err != nil {
		return wrong("input: %s", err)
	}
	q.Input = nil
	if _, ok := start.Input.Value.(map[string]any); !ok {
		return wrong("input must be an object, not %s", store.Describe(start.Input.Value))
	}
	return nil
}

// sendRun answers with a run's outcome or, without wait, as soon as it has begun. If the client
// goes away the run goes on.
func (s *Server) sendRun(w http.ResponseWriter, r *http.Request, run *supervise.Run, wait bool) error {
	begun := run.Recorded()
	if wait {
		begun = nil
	}
	select {
	case <-run.Concluded():
	case <-begun:
	case <-r.Context().Done():
		switch {
		case isClosed(run.Concluded()):
		case errors.Is(r.Context().Err(), context.DeadlineExceeded) && isClosed(run.Recorded()):
			begun = run.Recorded() // a handler around this one has ended the request, and the run goes on
		default:
			return r.Context().Err()
		}
	}
	if isClosed(begun) {
		w.Header().Set("Location", mount.Prefix(r)+"/v1/contexts/"+run.Context())
		return write(w, http.StatusAccepted, acceptedAnswer{Context: run.Context()})
	}
	outcome, err := run.Wait(r.Context())
	if err != nil {
		return err
	}
	return s.sendOutcome(w, r, outcome)
}

// isClosed reports whether a channel is closed. One that is nil is not.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// sendOutcome answers with a run's outcome. If there is no room for a large output, it answers as
// without wait, and the client finds the output at the context: the run is over and must not be
// started again.
func (s *Server) sendOutcome(w http.ResponseWriter, r *http.Request, outcome *journal.Outcome) error {
	answer := outcomeAnswer{Background: outcome.Background, Context: outcome.Context, Error: errorOf(outcome), Output: outcome.Output, Status: outcome.Status}
	text := append(store.EncodeJSON(answer), '\n')
	if len(text) > smallPiece {
		need := s.room.need(len(text))
		if !need.tryAcquire() {
			w.Header().Set("Location", mount.Prefix(r)+"/v1/contexts/"+outcome.Context)
			return write(w, http.StatusAccepted, acceptedAnswer{Context: outcome.Context, Status: outcome.Status})
		}
		defer need.release()
	}
	return writeJSON(w, http.StatusOK, text)
}

// acceptedAnswer names a run that goes on, or one that has ended with an output for which there is
// no room.
type acceptedAnswer struct {
	Context string            `json:"context"`
	Status  journal.RunStatus `json:"status,omitempty"`
}

// outcomeAnswer is a run's outcome.
type outcomeAnswer struct {
	Background int               `json:"background,omitempty"` // calls at work for which the run does not wait
	Context    string            `json:"context"`
	Error      *errorAnswer      `json:"error"`
	Output     any               `json:"output"`
	Status     journal.RunStatus `json:"status"`
}

// errorAnswer is the error of a run.
type errorAnswer struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// runAnswers returns the answers of an operation that waits for a run if it is asked to. accepted
// says what the one is that does not wait.
func runAnswers(accepted string) func() []api.Answer {
	return func() []api.Answer {
		return []api.Answer{
			{Status: http.StatusOK, About: "With wait: the run's outcome, whatever it is.", Schema: api.Of[outcomeAnswer]()},
			{Status: http.StatusAccepted, About: accepted, Schema: api.Of[acceptedAnswer]()},
		}
	}
}

// errorOf returns the error of a run's outcome, or nil.
func errorOf(o *journal.Outcome) *errorAnswer {
	message, code := why(o)
	if message == "" {
		return nil
	}
	return &errorAnswer{Code: code, Message: message}
}

// why returns the error of a run: its own, or that of its failed calls. A waiting run may have such
// calls too.
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
	if cause := journal.CauseOf(o.Calls); cause != "" {
		return cause, string(journal.RunFailed)
	}
	return "", code
}

// resumeIn goes on with a run.
type resumeIn struct {
	contextIn
	Retry  []string       `json:"retry" jsonschema:"Calls that failed or are in doubt, to run again."`
	Skip   []string       `json:"skip" jsonschema:"Such calls, to go on without."`
	Result map[string]any `json:"result" jsonschema:"Results of such calls, by their numbers."`
	From   string         `json:"from" jsonschema:"A call of a fork, to run again with all calls downstream."`
	Set    map[string]any `json:"set" jsonschema:"Corrections of its arguments, by name."`
	byIn
	Wait bool `json:"wait" jsonschema:"Answer when the run has ended or halted."`
}

// decides reports whether the request is more than to go on.
func (in *resumeIn) decides() bool {
	return len(in.Retry)+len(in.Skip)+len(in.Result)+len(in.Set) > 0 || in.From != ""
}

func (s *Server) postResume(w http.ResponseWriter, r *http.Request, in resumeIn) error {
	release(r) // the answer may take as long as a run
	if in.Set != nil && in.From == "" {
		return wrong("set goes with from: it corrects the arguments of that call")
	}
	if in.decides() {
		if err := allow(r.Context(), host.MayDecide, "a resumption that decides about calls"); err != nil {
			return err
		}
	}
	who, err := decider(r.Context(), in.By)
	if err != nil {
		return err
	}
	how := engine.Resume{Context: in.Context, Retry: in.Retry, Skip: in.Skip, Result: in.Result, From: in.From, Set: in.Set, Who: who}
	run, err := s.supervisor.Resume(r.Context(), how)
	if err != nil {
		return err
	}
	return s.sendRun(w, r, run, in.Wait)
}

// cancelIn cancels the run of a context.
type cancelIn struct {
	nameIn
	By string `query:"by" jsonschema:"The name that the client gives itself; recorded as claimed."`
}

func (s *Server) deleteRun(w http.ResponseWriter, r *http.Request, in cancelIn) error {
	name := in.Context
	if store.CheckStoredContext(name) != nil {
		return fmt.Errorf("%w: %s", store.ErrNoContext, name)
	}
	who, err := decider(r.Context(), in.By)
	if err != nil {
		return err
	}
	run, err := s.supervisor.Cancel(r.Context(), name, who)
	if err != nil {
		return err
	}
	select {
	case <-run.Ended(): // its calls in the background are cancelled too
	case <-r.Context().Done():
	}
	return s.sendRun(w, r, run, true)
}
