package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"obelus/engine"
	"obelus/engine/expr"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
)

// All that people read of this package is here or in a problem's message: in
// lower case, about what the client sent, with what to do. Of the host it says
// nothing; what went wrong there is for its log.

const internalText = "something went wrong in the server; its log says what"

// problem is an answer that is an error.
type problem struct {
	status  int
	code    string
	message string
	check   []plan.Problem // of a plan or a message that is refused
	retry   int            // seconds after which it may be tried again; 0 for never
}

func (p *problem) Error() string { return p.message }

func quoted(text string) string { return strconv.Quote(text) }

// fail answers with an error. Once an answer has begun, it can only be broken
// off.
func (s *Server) fail(w *response, r *http.Request, err error) {
	if w.status != 0 || errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		if w.status == 0 {
			w.status = 499 // nobody is there to read it; for the log
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

// errUnwritable says nothing of the file, which is the host's.
var errUnwritable = &problem{
	status: http.StatusServiceUnavailable, code: "log", retry: 5,
	message: "the server can't write its log at present, as when its disk is full: try again later",
}

var errUnreadable = &problem{
	status: http.StatusServiceUnavailable, code: "log", retry: 5,
	message: "the server can't read its log at present: try again later",
}

var errUnflushable = &problem{
	status: http.StatusInternalServerError, code: "internal",
	message: "no events can be sent: a handler around this one hides how its answers are flushed: give the writer around this handler an Unwrap method",
}

// told are errors whose own words are for whoever asked.
var told = []struct {
	is     func(error) bool
	status int
	code   string
}{
	{is[*expr.Error], http.StatusUnprocessableEntity, "expression"},
	{is[*history.RefError], http.StatusUnprocessableEntity, "expression"},
	{is[*plan.PolicyError], http.StatusUnprocessableEntity, "policy"},
	{is[*store.ForkError], http.StatusUnprocessableEntity, "fork"},
	{is[*history.MissingError], http.StatusNotFound, "missing"},
	{is[*engine.NoPlannerError], http.StatusConflict, "planner"},
	{func(err error) bool { return errors.Is(err, store.ErrExists) }, http.StatusConflict, "exists"},
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// problem is the one place where errors become answers.
func (s *Server) problem(r *http.Request, err error) *problem {
	var own *problem
	var large *http.MaxBytesError
	var slow net.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &large):
		return &problem{status: http.StatusRequestEntityTooLarge, code: "too-large", message: fmt.Sprintf("the request has more than %d bytes", large.Limit)}
	case is[*plan.PlanError](err), isScript(err):
		return faulty(err)
	case errors.Is(err, context.DeadlineExceeded) && r.Context().Err() != nil: // of a handler around this one
		return &problem{status: http.StatusGatewayTimeout, code: "time", message: "there was no answer in the time that the request has", retry: 1}
	case errors.As(err, &slow) && slow.Timeout():
		return &problem{status: http.StatusRequestTimeout, code: "slow", message: "the body did not come in time"}
	}
	if p := faulty(err); p != nil {
		return p
	}
	if p := s.refused(r, err); p != nil {
		return p
	}
	for _, e := range told {
		if e.is(err) {
			return &problem{status: e.status, code: e.code, message: err.Error()}
		}
	}
	s.logger.Error("a request failed", "path", r.URL.Path, "error", err)
	if isUnwritable(err) {
		return errUnwritable
	}
	if isTemporary(err) {
		return errUnreadable
	}
	return &problem{status: http.StatusInternalServerError, code: "internal", message: internalText}
}

// isScript tells of an error of a script, which may be that it ran out of time.
func isScript(err error) bool {
	_, ok := host.Problems(err)
	return ok
}

// faulty is the answer where a plan, a message or a script is at fault, with each place
// in it; nil where none of them is.
func faulty(err error) *problem {
	var refused *plan.PlanError
	if errors.As(err, &refused) {
		return &problem{status: http.StatusUnprocessableEntity, code: "plan", message: err.Error(), check: refused.Problems}
	}
	problems, scripts := host.Problems(err)
	switch {
	case scripts && isTemporary(err): // too many files are open, say
		return &problem{status: http.StatusServiceUnavailable, code: "internal", message: err.Error(), retry: 5}
	case scripts:
		return &problem{status: http.StatusUnprocessableEntity, code: "script", message: err.Error(), check: problems}
	case is[*plan.MessageError](err), is[*journal.CorrectionError](err):
		problems = []plan.Problem{{Severity: plan.SeverityError, Code: plan.CodeSchema, Message: err.Error()}}
		return &problem{status: http.StatusUnprocessableEntity, code: "message", message: err.Error(), check: problems}
	}
	return nil
}

// refused is the answer where a context is not there, or does not stand as the request
// would have it; nil where it does.
func (s *Server) refused(r *http.Request, err error) *problem {
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
		message, _, _ := strings.Cut(err.Error(), ": go on")
		return &problem{status: http.StatusConflict, code: "unfinished", message: message + fmt.Sprintf(": go on with it by POST /v1/contexts/%s/resume", unfinished.Context)}
	case is[*engine.DelegateError](err):
		return &problem{status: http.StatusConflict, code: "delegate", message: err.Error()}
	case errors.As(err, &call) && call.Absent:
		return &problem{status: http.StatusNotFound, code: "no-call", message: err.Error()}
	case errors.As(err, &call):
		return &problem{status: http.StatusConflict, code: "call", message: overHTTP(call.Message)}
	}
	return nil
}

// forks finds advice to fork by a command.
var forks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`obelus fork -c ([^ ,]+)( --at (\d+))?`) })

// overHTTP has advice say which request to make, in place of a command.
func overHTTP(message string) string {
	message = strings.Replace(message, "name its context (-c): ", "ask for its own context: ", 1)
	return forks().ReplaceAllStringFunc(message, func(command string) string {
		parts := forks().FindStringSubmatch(command)
		request := fmt.Sprintf("POST /v1/contexts/%s/fork", parts[1])
		if parts[3] != "" {
			request += fmt.Sprintf(" {\"at\":%s}", parts[3])
		}
		return request
	})
}

// notFound tells whether a plan is refused because its file is not there.
func notFound(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func wrong(format string, args ...any) error {
	return &problem{status: http.StatusBadRequest, code: "request", message: fmt.Sprintf(format, args...)}
}
