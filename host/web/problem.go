package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"

	"obelus/engine/plan"
)

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

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// notFound tells whether a plan is refused because its file is not there.
func notFound(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func wrong(format string, args ...any) error {
	return &problem{status: http.StatusBadRequest, code: "request", message: fmt.Sprintf(format, args...)}
}

func stuck(format string, args ...any) error {
	return &problem{status: http.StatusServiceUnavailable, code: "log", message: fmt.Sprintf(format, args...)}
}

func untold(name string) error {
	return stuck("context %s was told to end, which is recorded when the server can write its log", name)
}
