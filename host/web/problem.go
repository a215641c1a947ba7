package web

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"obelus/engine/plan"
	"obelus/host/supervise"
)

// internalText is the message of an error that only the server's log explains.
const internalText = "something went wrong in the server; its log says what"

// problem is an answer that is an error.
type problem struct {
	status  int
	code    string
	message string
	check   []plan.Problem // the problems of a refused plan, script or message
	retry   int            // seconds until the request may be tried again; 0 says nothing
}

func (p *problem) Error() string { return p.message }

func quoted(text string) string { return strconv.Quote(text) }

// errUnwritable does not name the file, which is the host's own affair.
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

var (
	errFull     = &problem{status: http.StatusTooManyRequests, code: "full", message: supervise.ErrFull.Error(), retry: 1}
	errStopping = &problem{status: http.StatusServiceUnavailable, code: "stopping", message: "the server is being stopped", retry: 5}
)

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// isTemporary reports whether an error of a log, or of reading a file, may pass.
func isTemporary(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && e.Temporary()
}

// wrong returns the answer to a request that makes no sense.
func wrong(format string, args ...any) error {
	return &problem{status: http.StatusBadRequest, code: "request", message: fmt.Sprintf(format, args...)}
}

// pendingProblem returns the answer if a run has begun, or was cancelled, and that can't be
// recorded at present: it must not be started again.
func pendingProblem(e *supervise.PendingError) *problem {
	message := "context %s has been begun, and goes on by itself when the server can write its log: look at it later"
	if e.Cancelled {
		message = "context %s was told to end, which is recorded when the server can write its log"
	}
	return &problem{status: http.StatusServiceUnavailable, code: "log", message: fmt.Sprintf(message, e.Context)}
}
