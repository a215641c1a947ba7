package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"obelus/engine"
	"obelus/engine/expr"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/spell"
	"obelus/host"
	"obelus/host/once"
	"obelus/host/prompts"
	"obelus/host/supervise"
	"obelus/store"
)

// The texts for clients are here or in a problem's message. They are in lower
// case, are about the client's request, and say what to do. They say nothing
// about the host, whose errors are for its own log.

// fail answers with an error. If a part of the answer has been sent, it breaks the answer off.
func (s *Server) fail(w *response, r *http.Request, err error) {
	if w.status != 0 || errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		if w.status == 0 {
			w.status = 499 // for the log, since the client has gone
		} else if r.Context().Err() == nil {
			s.logger.Error("an answer broke off", "path", r.URL.Path, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	p := s.problem(r, err)
	if p.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.retry))
	}
	if p.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	body := map[string]any{"code": p.code, "message": p.message}
	if p.check != nil {
		body["check"] = p.check
	}
	_ = write(w, p.status, map[string]any{"error": body})
}

// reportedErrors are errors whose own text is sent to the client.
var reportedErrors = []struct {
	is     func(error) bool
	status int
	code   string
}{
	{is[*expr.Error], http.StatusUnprocessableEntity, "expression"},
	{is[*history.RefError], http.StatusUnprocessableEntity, "expression"},
	{is[*plan.PolicyError], http.StatusUnprocessableEntity, "policy"},
	{is[*store.ForkError], http.StatusUnprocessableEntity, "fork"},
	{is[*prompts.NotFoundError], http.StatusNotFound, "no-prompt"},
	{is[*prompts.TooLargeError], http.StatusUnprocessableEntity, "prompt"},
	{is[*prompts.SlowError], http.StatusServiceUnavailable, "prompt"},
	{func(err error) bool { return errors.Is(err, prompts.ErrNoModels) }, http.StatusUnprocessableEntity, "prompt"},
	{is[*history.MissingError], http.StatusNotFound, "missing"},
	{is[*engine.NoPlannerError], http.StatusConflict, "planner"},
	{is[*once.OtherRunError], http.StatusConflict, "exists"},
	{func(err error) bool { return errors.Is(err, store.ErrExists) }, http.StatusConflict, "exists"},
}

// problem turns an error into an answer. No other function does.
func (s *Server) problem(r *http.Request, err error) *problem {
	var own *problem
	var large *http.MaxBytesError
	var slow net.Error
	var pending *supervise.PendingError
	var filter *history.FilterError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &filter):
		return &problem{status: http.StatusBadRequest, code: "request", message: filter.Error() + spell.DidYouMean(filter.Value, filter.Known)}
	case errors.Is(err, supervise.ErrFull):
		return errFull
	case errors.Is(err, supervise.ErrStopping):
		return errStopping
	case errors.As(err, &pending):
		return pendingProblem(pending)
	case errors.As(err, &large):
		return &problem{status: http.StatusRequestEntityTooLarge, code: "too-large", message: fmt.Sprintf("the request has more than %d bytes", large.Limit)}
	case is[*plan.PlanError](err), isScript(err):
		return inputProblem(err)
	case errors.Is(err, context.DeadlineExceeded) && r.Context().Err() != nil: // a handler around this one has set the deadline
		return &problem{status: http.StatusGatewayTimeout, code: "time", message: "there was no answer in the time that the request has", retry: 1}
	case errors.As(err, &slow) && slow.Timeout():
		return &problem{status: http.StatusRequestTimeout, code: "slow", message: "the body did not come in time"}
	}
	if p := inputProblem(err); p != nil {
		return p
	}
	if p := s.stateProblem(r, err); p != nil {
		return p
	}
	for _, e := range reportedErrors {
		if e.is(err) {
			return &problem{status: e.status, code: e.code, message: err.Error()}
		}
	}
	s.logger.Error("a request failed", "path", r.URL.Path, "error", err)
	if is[*supervise.UnwritableError](err) {
		return errUnwritable
	}
	if isTemporary(err) {
		return errUnreadable
	}
	return &problem{status: http.StatusInternalServerError, code: "internal", message: internalText}
}

// isScript reports whether an error is a script's, which includes running out of time.
func isScript(err error) bool {
	_, ok := host.Problems(err)
	return ok
}

// inputProblem returns the answer to an error of a plan, a message or a script, with each place in
// it, or nil.
func inputProblem(err error) *problem {
	var refused *plan.PlanError
	if errors.As(err, &refused) {
		return &problem{status: http.StatusUnprocessableEntity, code: "plan", message: err.Error(), check: refused.Problems}
	}
	problems, scripts := host.Problems(err)
	switch {
	case scripts && isTemporary(err): // as when too many files are open
		return &problem{status: http.StatusServiceUnavailable, code: "internal", message: err.Error(), retry: 5}
	case scripts:
		return &problem{status: http.StatusUnprocessableEntity, code: "script", message: err.Error(), check: problems}
	case is[*plan.MessageError](err), is[*journal.CorrectionError](err):
		problems = []plan.Problem{{Severity: plan.SeverityError, Code: plan.CodeSchema, Message: err.Error()}}
		return &problem{status: http.StatusUnprocessableEntity, code: "message", message: err.Error(), check: problems}
	}
	return nil
}

// stateProblem returns the answer if a context does not exist, or is not in the state that the
// request needs, or nil.
func (s *Server) stateProblem(r *http.Request, err error) *problem {
	var unfinished *engine.UnfinishedError
	var busy *engine.BusyError
	var call *journal.NoSuchCallError
	switch {
	case errors.Is(err, store.ErrNoContext):
		return &problem{status: http.StatusNotFound, code: "no-context", message: fmt.Sprintf("there is no context %s", r.PathValue("context"))}
	case errors.As(err, &busy):
		s.logger.Info("a context is in use", "context", busy.Context, "holder", busy.Holder)
		return &problem{status: http.StatusConflict, code: "busy", message: fmt.Sprintf("context %s is in use: wait until its run has come to its end or to a halt", busy.Context)}
	case errors.As(err, &unfinished):
		return &problem{status: http.StatusConflict, code: "unfinished", message: err.Error() + fmt.Sprintf(": go on with it by POST /v1/contexts/%s/resume", unfinished.Context)}
	case is[*engine.DelegateError](err):
		return &problem{status: http.StatusConflict, code: "delegate", message: err.Error()}
	case errors.As(err, &call) && call.Absent:
		return &problem{status: http.StatusNotFound, code: "no-call", message: err.Error()}
	case errors.As(err, &call):
		return &problem{status: http.StatusConflict, code: "call", message: withRequest(call)}
	}
	return nil
}

// withRequest adds to the text of an error the request that it may be followed by.
func withRequest(call *journal.NoSuchCallError) string {
	switch hint := call.Hint; {
	case len(hint.Contexts) > 0:
		return call.Message + ": ask for its own context: " + strings.Join(hint.Contexts, ", ")
	case hint.Plan != "":
		return fmt.Sprintf("%s, by POST /v1/contexts/%s/approve or reject", call.Message, hint.Plan)
	case hint.At > 0:
		return fmt.Sprintf("%s: fork where that tick had ended, by POST /v1/contexts/%s/fork {\"at\":%d}, and run it again there", call.Message, hint.Fork, hint.At)
	case hint.Fork != "":
		return fmt.Sprintf("%s: make one by POST /v1/contexts/%s/fork, and run calls again there", call.Message, hint.Fork)
	}
	return call.Message
}
