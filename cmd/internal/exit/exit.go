// Package exit turns the end of a command into the exit status of the process: the one place where
// errors become statuses.
package exit

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"obelus/engine"
	"obelus/engine/expr"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
	"obelus/store/sqlite"
)

// Status is an exit status. As an error it ends a command that has already printed what there was
// to say: its text is empty.
type Status int

// The statuses, as SURFACE.md has them.
const (
	Done        Status = 0
	Failed      Status = 1 // a call or the run failed, a test failed, or a value is missing
	Refused     Status = 2 // usage, or a plan or message that is refused
	Waiting     Status = 3 // something waits, is held or in doubt
	Busy        Status = 4 // another process has the context or the log
	Interrupted Status = 128 + Status(syscall.SIGINT)
	Terminated  Status = 128 + Status(syscall.SIGTERM)
)

func (Status) Error() string { return "" }

// UsageError is a command that was called wrongly.
type UsageError struct{ message string }

func (e *UsageError) Error() string { return e.message }

// Usage returns a [UsageError] with a text.
func Usage(text string) error { return &UsageError{text} }

// Usagef returns a [UsageError] with a text that fmt.Sprintf makes.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Of returns the status for the error that a command ended with, which may be nil.
func Of(err error) Status {
	if status := Status(0); errors.As(err, &status) {
		return status
	}
	switch {
	case err == nil:
		return Done
	case isBusy(err):
		return Busy
	case isRefused(err):
		return Refused
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return Failed
}

// isBusy reports whether another process or run stands in the way.
func isBusy(err error) bool {
	return errors.Is(err, sqlite.ErrLocked) || is[*engine.BusyError](err) || is[*store.HeldError](err)
}

// isRefused reports whether the error is about what the user asked for, or about the log itself.
func isRefused(err error) bool {
	for _, refused := range []error{sqlite.ErrNotOurs, sqlite.ErrNewer, sqlite.ErrDamaged, sqlite.ErrReadOnly, store.ErrExists, store.ErrNoContext} {
		if errors.Is(err, refused) {
			return true
		}
	}
	return is[*UsageError](err) ||
		is[*plan.PlanError](err) || is[*plan.MessageError](err) || is[*engine.UnfinishedError](err) ||
		is[*journal.NoSuchCallError](err) || is[*engine.DelegateError](err) || is[*plan.PolicyError](err) ||
		is[*journal.CorrectionError](err) || is[*engine.NoPlannerError](err) || is[*expr.Error](err) ||
		is[*history.RefError](err) || is[*journal.DamagedError](err) ||
		is[*store.PathError](err) || is[*store.ForkError](err) || is[*store.NeededError](err) ||
		is[*sqlite.QueryError](err) || is[host.Errors](err) || is[*host.ScriptError](err)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
