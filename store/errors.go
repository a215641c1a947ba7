package store

import "errors"

// Class is the kind of an error, for a caller that treats errors alike whose types it does not
// know. The command's exit status follows from it: one status for [Busy], one for all other
// classes, and one for errors without a class. Which errors have one is said by their types;
// [ClassOf] finds it.
type Class string

// The classes. An error without one may be a failure of the machine, of the program or of an
// activity, a value that is not there, or an error that a caller handles itself, such as a
// [*ConflictError].
const (
	// The request is not well formed: a name, a path, an expression, a script.
	Usage Class = "usage"
	// The request is well formed, and its content or its target does not allow it.
	Refused  Class = "refused"
	NotFound Class = "not-found" // the context or call that it names does not exist
	Busy     Class = "busy"      // another process or run has it: try again later
	Damaged  Class = "damaged"   // the log is not as this version writes it
)

// ClassOf returns the class of an error, or of the first error within it that has one; empty
// for any other error, and for nil.
func ClassOf(err error) Class {
	var classed interface {
		error
		Class() Class
	}
	if errors.As(err, &classed) {
		return classed.Class()
	}
	return ""
}

// NewError returns an error with a class and a text. Like an error of [errors.New] it equals no
// other.
func NewError(class Class, text string) error { return &classedError{class, text} }

type classedError struct {
	class Class
	text  string
}

func (e *classedError) Error() string { return e.text }

// Class returns the class.
func (e *classedError) Class() Class { return e.class }
