package store

import (
	"context"
	"fmt"
)

// FitError is a write that does not fit what it would be written onto
// (protocol §3). Nothing has been appended.
type FitError struct {
	Path    Path
	Method  Method
	Blocked Path   // the array above Path that has no room for it; else zero
	Current string // the type of the value at Path, "missing", or an array's length
	New     string // the type of the new value; empty if it is not known yet
}

func (e *FitError) Error() string {
	what := "a value"
	if e.New != "" {
		what = article(e.New)
	}
	if !e.Blocked.IsZero() {
		return fmt.Sprintf("can't %s %s at %s: %s is an array, and below an array only an index from 0 to its length fits", e.Method, what, e.Path, e.Blocked)
	}
	return fmt.Sprintf("can't %s %s at %s, which is %s: %s", e.Method, what, e.Path, article(e.Current), needs[e.Method])
}

var needs = map[Method]string{
	Assign: "assign needs two objects",
	Push:   "push needs an array",
	Concat: "concat needs two arrays or two strings",
}

// CheckMethod tells whether a method can fit the value at a path, before the
// new value is known. The error is a [*FitError].
func (r Resolver) CheckMethod(ctx context.Context, path Path, instance string, method Method) error {
	if path.Kind() == KindError { // each of its messages replaces the one before
		return nil
	}
	return r.check(ctx, Op{Path: path, Instance: instance, Method: method}, false)
}

// CheckOp tells whether an operation fits the value that it would join. The
// error is a [*FitError].
func (r Resolver) CheckOp(ctx context.Context, op Op) error { return r.check(ctx, op, true) }

func (r Resolver) check(ctx context.Context, op Op, known bool) error {
	if fits, err := r.fitsNewest(ctx, op); fits || err != nil {
		return err
	}
	current, err := r.Resolve(ctx, op.Path, op.Instance)
	if err != nil {
		return err
	}
	e := &FitError{Path: op.Path, Method: op.Method, Blocked: current.blocked, Current: "missing value"}
	if current.Exists {
		e.Current = TypeName(current.Value)
	}
	if !e.Blocked.IsZero() {
		above, err := r.Resolve(ctx, e.Blocked, op.Instance)
		if err != nil {
			return err
		}
		if _, ok := above.Value.([]any); !ok {
			e.Blocked = Path{}
		}
	}
	if known {
		e.New = TypeName(op.Value)
	}
	if !e.Blocked.IsZero() || !e.fits(current.Value == nil) {
		return e
	}
	return nil
}

// fitsNewest tells whether the newest operation that bears on the path shows by
// itself that a write fits: what was pushed to can be pushed to again, what was
// set or merged can be so again, and where there is none, each of the three fits.
// So a list that grows by pushes need not be read at every push.
func (r Resolver) fitsNewest(ctx context.Context, op Op) (bool, error) {
	if op.Method == Assign || op.Method == Concat {
		return false, nil
	}
	if anchor, err := r.anchor(ctx, op.Path, op.Instance); err != nil || anchor != op.Path {
		return false, err
	}
	for _, i := range instancesOf(op.Instance) {
		for last, err := range r.Log.Touching(ctx, Query{Context: r.Context, Path: op.Path, Instance: i, At: r.At}) {
			if err != nil {
				return false, err
			}
			s, kind := last.seenFrom(op.Path)
			if kind == passes {
				continue
			}
			there := len(s.below) == 0 && s.method != clear // so what is above has room for it
			return there && (op.Method != Push || s.method == Push), nil
		}
	}
	return true, nil
}

func (e *FitError) fits(empty bool) bool {
	known := e.New != ""
	switch e.Method {
	case Assign:
		return (empty || e.Current == "object") && (!known || e.New == "object")
	case Push:
		return empty || e.Current == "array"
	case Concat:
		joins := func(t string) bool { return t == "array" || t == "string" }
		return (empty || joins(e.Current)) && (!known || joins(e.New)) && (empty || !known || e.Current == e.New)
	}
	return true
}

// After is the value that a path will have once an operation has joined it,
// or a [*FitError].
func (r Resolver) After(ctx context.Context, op Op) (any, error) {
	if err := r.CheckOp(ctx, op); err != nil {
		return nil, err
	}
	current, err := r.Resolve(ctx, op.Path, op.Instance)
	if err != nil {
		return nil, err
	}
	v, _ := join(current.Value, op.Method, op.Value)
	return freeze(v), nil
}
