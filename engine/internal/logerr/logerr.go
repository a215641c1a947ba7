// Package logerr tells errors of the log from faults of calls and messages. A call that fails since
// the log can't be read has not failed: the run ends with the error.
package logerr

import "errors"

// Error is an error of the log. It does not unwrap: an error within it is no fault of a call.
type Error struct{ cause error }

func (e *Error) Error() string { return e.cause.Error() }

// Wrap makes an [*Error] of an error of the log.
func Wrap(err error) error { return &Error{err} }

// Cause returns the error of the log within err; ok is false if err is none of the log.
func Cause(err error) (cause error, ok bool) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return nil, false
	}
	return e.cause, true
}
