package supervise

import (
	"errors"
	"fmt"
)

// Errors of requests for runs.
var (
	ErrFull     = errors.New("too many runs wait for their turn")
	ErrStopping = errors.New("the supervisor is being shut down")
)

// PendingError is the error of a run that has begun, or that was cancelled, while its end could not
// be recorded: the supervisor goes on with it, or records that it is cancelled, when it can write
// the log.
type PendingError struct {
	Context   string
	Cancelled bool
	Err       error // of the log
}

// Error names the pending request.
func (e *PendingError) Error() string {
	if e.Cancelled {
		return fmt.Sprintf("that context %s is cancelled can't be recorded at present: %s", e.Context, e.Err)
	}
	return fmt.Sprintf("the run of context %s has begun and can't be recorded at present: %s", e.Context, e.Err)
}

// Unwrap returns the error of the log.
func (e *PendingError) Unwrap() error { return e.Err }

// UnwritableError is the error of a log to which nothing can be appended for now, as on a full
// disk.
type UnwritableError struct{ Err error }

// Error returns the error of the log.
func (e *UnwritableError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the log.
func (e *UnwritableError) Unwrap() error { return e.Err }

// isUnwritable reports whether an error is an [*UnwritableError].
func isUnwritable(err error) bool { return errors.As(err, new(*UnwritableError)) }

// isTemporary reports whether an error of a log, or of reading a file, may pass.
func isTemporary(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && e.Temporary()
}
