package store

import "errors"

// Class is the kind of an error, by which a program decides what to do about it: which exit
// status a command ends with, which status an HTTP response has. Errors of this module that are
// not failures of the machine or of the program have one; [ClassOf] finds it.
type Class string

// The classes. An error without one is a failure of the machine, of the program, or of an
// activity.
const (
	Usage    Class = "usage"     // the request is not well formed: a name, a path, an expression, a script
	Refused  Class = "refused"   // the request is well formed, and its content or its target does not allow it
	NotFound Class = "not-found" // the context, call or file that it names does not exist
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
