package history

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"obelus/engine/expr"
	"obelus/engine/journal"
	"obelus/store"
)

// Summary is a context as lists show it (surface.md, contexts).
type Summary struct {
	Context string            `json:"context"`
	Status  journal.RunStatus `json:"status,omitempty"` // of its newest run
	// The run was interrupted as its host stopped or died: a server resumes it.
	Stopped bool   `json:"stopped,omitempty"`
	Plan    string `json:"plan,omitempty"`
	// The context whose delegate it is, or from which it was forked.
	Parent   string `json:"parent,omitempty"`
	At       any    `json:"at,omitempty"` // the parent's call, or for a fork the seq
	Messages int64  `json:"messages"`
	Bytes    int64  `json:"bytes"` // size of the messages as JSON
	Created  string `json:"created"`
	Updated  string `json:"updated"`
	// Why the status of its newest run can't be read.
	Error string `json:"error,omitempty"`
}

// Summarize describes a context. With a [*journal.DamagedError] it returns all that can be read, so
// that one damaged context need not hide the others.
func Summarize(ctx context.Context, log store.Reader, info store.ContextInfo) (Summary, error) {
	run, err := journal.In(log, info.Context).CurrentRun(ctx)
	var damaged *journal.DamagedError
	if err != nil && !errors.As(err, &damaged) {
		return Summary{}, err
	}
	bytes, sizeErr := log.Size(ctx, info.Context)
	s := Summary{
		Context: info.Context, Status: run.Status, Stopped: run.Stopped, Plan: run.Plan,
		Messages: info.Messages, Bytes: bytes, Created: store.FormatDate(info.Created), Updated: store.FormatDate(info.Updated),
	}
	if damaged != nil {
		s.Status, s.Error = "", damaged.Error()
	}
	switch o := info.Origin; {
	case o.Parent != "":
		s.Parent, s.At = o.Parent, o.Call
	case o.Fork != "":
		s.Parent, s.At = o.Fork, o.At
	}
	return s, cmp.Or(sizeErr, err)
}

// ParseRef reads a reference as people type it: without a dagger if it is a plain path, and an
// expression that does not begin with one as it is. Its error is a [*RefError], or an error of
// [expr.Parse].
func ParseRef(text string) (*expr.Expr, error) {
	if !strings.Contains(text, store.Dagger) {
		if _, err := store.ParsePath(store.Dagger + text); err != nil {
			return nil, &RefError{err}
		}
		return expr.Parse(store.Dagger + text)
	}
	if !strings.HasPrefix(text, store.Dagger) {
		text = store.Dagger + "(" + text + ")"
	}
	return expr.Parse(text)
}

// RefError is a reference that can't be read.
type RefError struct{ Err error }

func (e *RefError) Error() string {
	return e.Err.Error() + ` (a key that is no word is quoted: state["first-name"]; in an expression references begin with †)`
}

// Class implements the interface of [store.ClassOf].
func (e *RefError) Class() store.Class { return store.Usage }

func (e *RefError) Unwrap() error { return e.Err }

// Get evaluates an expression over a context, as an instance sees it, as of a seq or, with 0, as of
// now. Its error is a [*MissingError] where the value is missing.
func Get(ctx context.Context, c journal.Context, e *expr.Expr, at int64, instance string) (any, error) {
	v, _, err := get(ctx, c, e, at, instance)
	return v, err
}

// get gives beside the value the paths that it was made of.
func get(ctx context.Context, c journal.Context, e *expr.Expr, at int64, instance string) (v any, found []store.Path, err error) {
	if _, err := c.Log.Head(ctx, c.Name); err != nil {
		return nil, nil, err
	}
	v, missing, err := e.Eval(ctx, finding(ctx, store.Resolver{Log: c.Log, Context: c.Name, At: at}, instance, &found))
	if err == nil && missing != nil {
		err = &MissingError{c.Name, missing}
	}
	return v, found, err
}

// finding looks paths up, and notes once each that is there.
func finding(ctx context.Context, r store.Resolver, instance string, found *[]store.Path) expr.Lookup {
	return func(path store.Path) (any, bool, bool, error) {
		resolved, err := r.Resolve(ctx, path, instance)
		if resolved.Exists && !slices.Contains(*found, path) {
			*found = append(*found, path)
		}
		return resolved.Value, resolved.Exists, false, err
	}
}
