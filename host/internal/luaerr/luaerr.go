// Package luaerr has the errors of scripts, for their authors: with places in the Lua source, and
// without Go.
package luaerr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"obelus/engine/spell"
	"obelus/store"
)

// ScriptError is something wrong with a script, for the script's author: it names the place in the
// Lua source and shows no Go.
type ScriptError struct {
	File    string // below the project, "activities/billing.lua"
	Line    int    // from 1; 0 if it is not known
	Column  int    // in bytes, from 1; 0 if it is not known
	Message string

	// Source is the text of the line where that helps, empty elsewhere.
	Source string
	// Traceback is the Lua stack when a script raised the error, innermost first:
	// "activities/billing.lua:12: in function 'total'".
	Traceback []string

	cause error
}

// Error returns "file:line: message".
func (e *ScriptError) Error() string {
	switch {
	case e.File == "":
		return e.Message
	case e.Line == 0:
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// Class implements the interface of [store.ClassOf].
func (e *ScriptError) Class() store.Class { return store.Usage }

// Trace returns the traceback as text, a line for each call; empty without one.
func (e *ScriptError) Trace() string { return strings.Join(e.Traceback, "\n") }

// Snippet returns the source line with a caret under the column, on two lines, or empty text if the
// line is not known.
func (e *ScriptError) Snippet() string {
	if e.Source == "" {
		return ""
	}
	if e.Column == 0 {
		return "  " + e.Source
	}
	var pad strings.Builder
	for i, r := range e.Source {
		if i >= e.Column-1 {
			break
		}
		if r != '\t' {
			r = ' '
		}
		pad.WriteRune(r)
	}
	return "  " + e.Source + "\n  " + pad.String() + "^"
}

// Unwrap returns the cause of the error, if that is an error of its own: a context that ended, a
// file that can't be read.
func (e *ScriptError) Unwrap() error { return e.cause }

// WithCause sets the cause of e, which errors.Is and errors.As find, and returns e.
func WithCause(e *ScriptError, cause error) *ScriptError {
	e.cause = cause
	return e
}

// WithSource sets the source line of e from text, if text has that line, and returns e.
func WithSource(e *ScriptError, text string) *ScriptError {
	if lines := strings.Split(text, "\n"); e.Line >= 1 && e.Line <= len(lines) {
		e.Source = strings.TrimRight(lines[e.Line-1], "\r")
	}
	return e
}

// From returns the ScriptError that err is or wraps, or else one with its text.
func From(err error) *ScriptError {
	var one *ScriptError
	if !errors.As(err, &one) {
		one = &ScriptError{Message: err.Error()}
	}
	return one
}

// Errors is everything that is wrong with a project, sorted by file and line. It is never empty.
type Errors []*ScriptError

// Error returns a line for each.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Class implements the interface of [store.ClassOf].
func (e Errors) Class() store.Class { return store.Usage }

// Unwrap gives each of them to [errors.As].
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

// Sort sorts errors by file and line, in place, and returns them.
func Sort(e Errors) Errors {
	slices.SortStableFunc(e, func(a, b *ScriptError) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return e
}

// DidYouMean returns the end of an error about an unknown name: ` (did you mean "timeout"?)` if one
// of the candidates is similar, the list of them all if they are few, else nothing.
func DidYouMean(name string, candidates []string) string {
	if near := spell.Nearest(name, candidates); near != "" {
		return ` (did you mean "` + near + `"?)`
	}
	if len(candidates) > 0 && len(candidates) <= 12 {
		return " (one of " + strings.Join(candidates, ", ") + ")"
	}
	return ""
}
