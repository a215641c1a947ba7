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
	"runtime/debug"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"obelus/engine"
	"obelus/store"
)

// run is one that this server carries out.
type run struct {
	context string
	began   time.Time
	cancel  context.CancelCauseFunc
	begun   chan struct{} // closed once it is in the log
	ended   chan struct{} // closed once it has come to an end or to a halt
	outcome *engine.Outcome
	err     error
	again   bool // something came that it may halt for; under the server's lock

	generation int // of the scripts when it began

	alone    bool // nobody asked for it
	unwanted bool // it was told to end for good

	unasked bool // somebody has cancelled it; under the server's lock
	over    bool // too late for that; likewise
}

// hasBegun tells whether something of a run is in the log.
func (one *run) hasBegun() bool {
	select {
	case <-one.begun:
		return true
	default:
		return false
	}
}

// Why runs are cancelled, beside engine.ErrStopped.
var (
	errCancelled = errors.New("it was cancelled")
	errTime      = errors.New("it took longer than a run may")
)

var errDraining = &problem{status: http.StatusServiceUnavailable, code: "stopping", message: "the server is being stopped", retry: 5}

// carrier begins or resumes a run; it calls begun once the run is safe.
type carrier func(ctx context.Context, begun func()) (*engine.Outcome, error)

// begin carries out a run once it is its turn. One that nobody asked for waits for
// that however many others do, and finds in the log then that it is cancelled; another
// may be cancelled while it waits.
func (s *Server) begin(ctx context.Context, name string, alone bool, carry carrier) (*run, error) {
	limited, cancel := context.WithCancelCause(s.running)
	one := &run{context: name, alone: alone, cancel: cancel, begun: make(chan struct{}), ended: make(chan struct{})}
	if err := s.enter(ctx, limited, one); err != nil {
		defer cancel(nil)
		switch context.Cause(limited) {
		case nil:
			return nil, err
		case errCancelled:
			one.outcome = cancelled(name)
			close(one.ended)
			return one, nil
		default:
			return nil, errDraining
		}
	}
	go func() {
		defer s.runs.Done()
		defer cancel(nil)
		bounded, stop := context.WithTimeoutCause(limited, s.config.Timeout, errTime)
		defer stop()
		s.carryOut(bounded, one, carry)
		unasked := s.close(one)
		if cause := context.Cause(bounded); cause != nil {
			one.unwanted = errors.Is(cause, errCancelled) || errors.Is(cause, errTime)
			one.cut(cause)
		}
		if unasked && one.goesOn() && engine.Cancel(context.Background(), s.log, name) == nil {
			one.unwanted = true
			one.outcome = cancelled(name)
		}
		s.end(one)
	}()
	return one, nil
}

// carryOut carries out a run. A fault of the program costs that run and no other.
func (s *Server) carryOut(ctx context.Context, one *run, carry carrier) {
	defer func() {
		if broken := recover(); broken != nil {
			one.outcome, one.err = nil, fmt.Errorf("it broke down: %v", broken)
			s.logger.Error("a run broke down: this is a fault of the program", "context", one.context, "error", broken, "stack", string(debug.Stack()))
		}
	}()
	one.outcome, one.err = carry(ctx, func() { close(one.begun) })
}

// goesOn tells whether a run has ended for now only: it waits, or the next server
// resumes it.
func (one *run) goesOn() bool {
	return one.err == nil && (one.outcome.Status == engine.RunWaiting || one.outcome.Stopped)
}

// close tells whether somebody has cancelled a run; who does so from now on is told how
// it ended.
func (s *Server) close(one *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.over = true
	return one.unasked
}

// cut says why a run that was told to end has done so, if it has.
func (one *run) cut(cause error) {
	if errors.Is(one.err, context.Canceled) || errors.Is(one.err, context.DeadlineExceeded) {
		one.outcome, one.err = &engine.Outcome{Status: engine.RunCancelled}, nil
	}
	switch {
	case one.err != nil || one.outcome.Status != engine.RunCancelled || one.outcome.Error != "":
	case one.outcome.Context == "" && errors.Is(cause, engine.ErrStopped): // it had not begun
		one.err = errDraining
	default:
		one.outcome.Context, one.outcome.Error, one.outcome.Stopped = one.context, cause.Error(), errors.Is(cause, engine.ErrStopped)
	}
}

// enter waits for a run's turn, and makes it one of the server's.
func (s *Server) enter(ctx, limited context.Context, one *run) error {
	if !one.alone {
		s.queue(one, true)
		defer s.queue(one, false)
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(limited, stop)()
	if err := s.gate.enter(waiting, one.alone); err != nil {
		return err
	}
	s.log.giveBack(s.running, one.context)
	one.began, one.generation = time.Now(), s.config.Host.Generation().Number
	err := s.enlist(waiting, one)
	if err != nil {
		s.gate.leave()
	}
	return err
}

// queue notes that a run waits for its turn, or does so no longer.
func (s *Server) queue(one *run, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waits {
		s.queued[one] = true
	} else {
		delete(s.queued, one)
	}
}

// enlist makes a run one of the server's, unless its context has one already.
func (s *Server) enlist(ctx context.Context, one *run) error {
	for {
		before, err := s.tryEnlist(one)
		if before == nil {
			return err
		}
		if err := s.outlast(ctx, before); err != nil {
			return err
		}
	}
}

// tryEnlist gives the run that is in the way.
func (s *Server) tryEnlist(one *run) (before *run, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return nil, errDraining
	}
	if one.unasked {
		return nil, errCancelled
	}
	if before := s.active[one.context]; before != nil {
		return before, nil
	}
	delete(s.woken, one.context) // it looks at the log from now on
	s.active[one.context] = one
	s.runs.Add(1)
	return nil, nil
}

// outlast waits for a run that is all but over: whoever follows its context may
// know of its end before the server does.
func (s *Server) outlast(ctx context.Context, before *run) error {
	select {
	case <-before.begun:
	case <-before.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	holder, err := s.log.Holder(ctx, before.context)
	if err != nil {
		return err
	}
	if holder != "" {
		return &engine.BusyError{Context: before.context, Holder: "this server"}
	}
	select {
	case <-before.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end lets go of a run.
func (s *Server) end(one *run) {
	s.mu.Lock()
	delete(s.active, one.context)
	pause := s.settled(one)
	again := one.again // whatever comes from now on finds that the run has gone
	s.mu.Unlock()
	s.gate.leave()
	close(one.ended)
	took := time.Since(one.began)
	switch {
	case pause > 0 && errors.As(one.err, new(*engine.BusyError)):
		s.logger.Debug("run in use", "context", one.context, "error", one.err)
		return
	case pause == s.config.lookAgain: // for the first time
		until := "the log can be written"
		if isOfScripts(one.err) {
			until = "its scripts are mended"
		}
		s.logger.Warn("run stuck: it goes on when "+until, "context", one.context, "took", took, "error", one.err)
	case pause > 0:
		s.logger.Debug("run stuck", "context", one.context, "took", took, "error", one.err)
		return
	case errors.Is(one.err, errDraining): // the next server begins it, or whoever asked asks again
		s.logger.Debug("run not begun", "context", one.context, "took", took)
	case one.err != nil:
		s.logger.Warn("run refused", "context", one.context, "took", took, "error", one.err)
	}
	if one.err != nil {
		s.metrics.run("refused", took)
		return
	}
	s.metrics.run(string(one.outcome.Status), took)
	s.logger.Info("run", "context", one.context, "status", one.outcome.Status, "took", took)
	if one.outcome.Status == engine.RunWaiting && (again || s.freed(one.context)) {
		s.goOn(one.context)
	}
}

// runner is an engine with the settings as they are now.
func (s *Server) runner(registry *engine.Registry) *engine.Runner {
	r := s.config.Host.Generation().Settings().Runner(s.log, registry)
	r.Observe = s.metrics.call
	return r
}

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
	if err := read(r, &asked); err != nil {
		return err
	}
	start, err := asked.start()
	if err != nil {
		return err
	}
	one, err := s.begin(r.Context(), start.Context, false, func(ctx context.Context, begun func()) (*engine.Outcome, error) {
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
		start.Request, start.Begun = request, begun
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
	if q.Mode != "" && q.Mode != "eager" && q.Mode != "lazy" {
		return start, wrong("mode %s: it is eager or lazy", quoted(q.Mode))
	}
	if q.Approve != "" {
		if start.Approve, err = engine.ParsePolicy(q.Approve); err != nil {
			return start, wrong("approve %s: %s", quoted(q.Approve), err)
		}
	}
	if start.Context, err = contextFor(q.Context); err != nil {
		return start, err
	}
	if len(q.Input) == 0 || string(q.Input) == "null" {
		return start, nil
	}
	if start.Input, err = store.DecodeJSON(q.Input); err != nil {
		return start, wrong("input: %s", err)
	}
	if _, ok := start.Input.(map[string]any); !ok {
		return start, wrong("input must be an object, not %s", store.Describe(start.Input))
	}
	start.HasInput = true
	return start, nil
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
	return write(w, http.StatusOK, outcomeBody(one.outcome))
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

func stuck(format string, args ...any) error {
	return &problem{status: http.StatusServiceUnavailable, code: "log", message: fmt.Sprintf(format, args...)}
}

func untold(name string) error {
	return stuck("context %s was told to end, which is recorded when the server can write its log", name)
}

// cancelLater notes that a run which is stuck is not wanted any more.
func (s *Server) cancelLater(name string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leftovers[name]
	if l == nil || s.draining || !isUnwritable(err) {
		return err
	}
	l.unwanted = true
	return untold(name)
}

// outcomeBody is how a run stands, for who waited for it.
func outcomeBody(o *engine.Outcome) map[string]any {
	return map[string]any{"context": o.Context, "status": o.Status, "output": o.Output, "error": errorBody(o)}
}

// errorBody is what a run failed of, or null.
func errorBody(o *engine.Outcome) any {
	message, code := why(o)
	if message == "" {
		return nil
	}
	return map[string]any{"code": code, "message": message}
}

// why tells what a run failed of: itself, or the first of its calls that did. One
// that waits may hold such a call too.
func why(o *engine.Outcome) (message, code string) {
	code = string(o.Status)
	if o.Status == engine.RunCancelled {
		message = errCancelled.Error()
		if o.Stopped {
			message, code = engine.ErrStopped.Error(), "stopped"
		}
		return cmp.Or(o.Error, message), code
	}
	if o.Error != "" {
		return o.Error, code
	}
	for _, r := range o.Calls {
		if r.Status != engine.Failed || r.Unstored {
			continue
		}
		text, ok := r.Error["message"].(string)
		if !ok {
			text = string(store.EncodeJSON(r.Error))
		}
		return fmt.Sprintf("call %s (%s): %s", r.Call, r.Tool, text), string(engine.RunFailed)
	}
	return "", code
}

// resumeRequest is the body of POST …/resume.
type resumeRequest struct {
	Retry []string        `json:"retry"`
	Skip  []string        `json:"skip"`
	From  string          `json:"from"` // a call of a fork, to run again with what is downstream
	Set   json.RawMessage `json:"set"`  // corrections of its arguments
	Wait  bool            `json:"wait"`
}

func (s *Server) postResume(w http.ResponseWriter, r *http.Request) error {
	var asked resumeRequest
	if err := read(r, &asked); err != nil {
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
	one, err := s.begin(r.Context(), name, false, s.resuming(engine.Resume{Context: name, Retry: asked.Retry, Skip: asked.Skip, From: asked.From, Set: set}))
	if err != nil {
		return err
	}
	return s.tellRun(w, r, one, asked.Wait)
}

// resuming goes on with a run, by its plan's file as it is now.
func (s *Server) resuming(how engine.Resume) carrier {
	return func(ctx context.Context, begun func()) (*engine.Outcome, error) {
		plan, err := engine.RootPlan(ctx, s.log, how.Context)
		if err != nil {
			return nil, err
		}
		request, registry, unread := s.config.Host.Generation().PlanOf(plan)
		how.Request, how.Begun = request, begun
		outcome, err := s.runner(registry).Resume(ctx, how)
		var refused *engine.PlanError
		var unplanned *engine.NoPlannerError
		if (errors.As(err, &refused) || errors.As(err, &unplanned)) && unread != nil {
			return nil, unread
		}
		return outcome, err
	}
}

func (s *Server) deleteRun(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("context")
	if store.CheckContext(name) != nil {
		return fmt.Errorf("%w: %s", store.ErrNoContext, name)
	}
	one, late, withdrawn := s.unask(name)
	if one != nil {
		one.cancel(errCancelled)
		select {
		case <-one.begun:
		case <-one.ended:
		case <-r.Context().Done():
			return r.Context().Err()
		}
		if late || !one.hasBegun() {
			<-one.ended
		}
		if one.hasBegun() && !(late && one.goesOn()) {
			return s.tellRun(w, r, one, true)
		}
		withdrawn = true // nothing of it is in the log, or it has halted
	}
	err := s.cancelHalted(r.Context(), name)
	if err != nil && !(withdrawn && isOver(err)) {
		return err
	}
	return write(w, http.StatusOK, outcomeBody(cancelled(name)))
}

// unask notes of the runs of a context that somebody has cancelled them: those that
// wait for their turn, which have to do nothing more, and the one that has it, which may
// be all but over.
func (s *Server) unask(name string) (one *run, late, withdrawn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one = s.active[name]
	if one != nil {
		late, one.unasked = one.over, true
	}
	for queued := range s.queued {
		if queued.context == name && queued != one {
			queued.unasked, withdrawn = true, true
			queued.cancel(errCancelled)
		}
	}
	return one, late, withdrawn
}

// cancelHalted cancels the run of a context that nobody is at.
func (s *Server) cancelHalted(ctx context.Context, name string) error {
	s.mu.Lock()
	left := s.leftovers[name]
	s.mu.Unlock()
	s.log.giveBack(s.running, name)
	if err := engine.Cancel(ctx, s.log, name); err != nil {
		return s.cancelLater(name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leftovers[name] == left {
		delete(s.leftovers, name)
	}
	return nil
}

// isOver tells of an error whether there was nothing to cancel.
func isOver(err error) bool {
	return errors.Is(err, store.ErrNoContext) || errors.As(err, new(*engine.NoSuchCallError))
}

// cancelled is how a run stands that was cancelled before it went on.
func cancelled(name string) *engine.Outcome {
	return &engine.Outcome{Context: name, Status: engine.RunCancelled, Error: errCancelled.Error()}
}
