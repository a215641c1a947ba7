// Package exit holds the exit statuses of the command, and the error for a wrong use of it.
package exit

import (
	"fmt"
	"syscall"

	"obelus/store"
)

// Status is an exit status. It is also an error, without text, that ends a command which has
// already printed its error.
type Status int

// The statuses. SURFACE.md explains them.
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

// UsageError is a wrong use of a command.
type UsageError struct{ message string }

func (e *UsageError) Error() string { return e.message }

// Class implements the interface of [store.ClassOf].
func (e *UsageError) Class() store.Class { return store.Usage }

// Usage returns a [UsageError] with a text.
func Usage(text string) error { return &UsageError{text} }

// Usagef returns a [UsageError] with a text that fmt.Sprintf makes.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }
