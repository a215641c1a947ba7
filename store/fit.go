package store

import (
	"context"
	"fmt"
)

// FitError is a write whose method does not fit the value there (protocol §3). Nothing has been
// appended.
type FitError struct {
	Path    Path
	Method  Method
	Blocked Path   // the array above Path that has no room for it; else zero
	Current string // type of the value at Path, "missing", or an array's length
	New     string // type of the new value; empty if it is not known yet
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

// CheckMethod reports whether a method can fit the value at a path, before the new value is known.
// The error is a [*FitError].
func (r Resolver) CheckMethod(ctx context.Context, path Path, instance string, method Method) error {
	if path.Kind() == KindError { // each of its messages replaces the one before
		return nil
	}
	return r.check(ctx, Op{Path: path, Instance: instance, Method: method}, "")
}

// CheckOp reports whether an operation fits the value that it would join. The error is a
// [*FitError].
func (r Resolver) CheckOp(ctx context.Context, op Op) error {
	return r.check(ctx, op, TypeName(op.Value))
}

// check is of a new value whose type is typ; empty where it is not known yet.
func (r Resolver) check(ctx context.Context, op Op, typ string) error {
	if fits, err := r.fitsNewest(ctx, op, typ); fits || err != nil {
		return err
	}
	current, err := r.there(ctx, op.Path, op.Instance)
	if err != nil {
		return err
	}
	e := &FitError{Path: op.Path, Method: op.Method, Blocked: current.blocked, Current: "missing value", New: typ}
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
	if !e.Blocked.IsZero() || !fits(op.Method, TypeName(current.Value), typ) {
		return e
	}
	return nil
}

// there is [Resolver.Resolve] without where the value comes from. Of an array that a view
// holds it takes no longer the more of its elements have been written.
func (r Resolver) there(ctx context.Context, path Path, instance string) (Resolved, error) {
	if r.currentView() == nil {
		return r.Resolve(ctx, path, instance)
	}
	anchor, err := r.anchor(ctx, path, instance)
	if anchor == path || err != nil {
		return r.Resolve(ctx, path, instance)
	}
	whole, err := r.Value(ctx, anchor, instance)
	if whole == nil || err != nil {
		return r.Resolve(ctx, path, instance)
	}
	res := Resolved{Value: whole, Exists: true}
	res.descend(anchor, path)
	return res, nil
}

// fitsNewest reports whether the newest operation that bears on the path shows by itself that a
// write fits: it shows the type of the value, or there is no operation and the write fits a missing
// value. A value that grows by many writes need not be read at each.
func (r Resolver) fitsNewest(ctx context.Context, op Op, typ string) (bool, error) {
	if view, ok := r.Log.(*View); ok && view.isUntouched(op.Instance, op.Path) { // as most new values
		return fits(op.Method, "null", typ), nil
	}
	if anchor, err := r.anchor(ctx, op.Path, op.Instance); err != nil || anchor != op.Path {
		return false, err
	}
	return r.fitsAfter(ctx, op, typ)
}

// fitsAfter is fitsNewest for a path that operations may touch.
func (r Resolver) fitsAfter(ctx context.Context, op Op, typ string) (bool, error) {
	for _, i := range instancesOf(op.Instance) {
		for last, err := range r.Log.Touching(ctx, Query{Context: r.Context, Path: op.Path, Instance: i, At: r.At}) {
			if err != nil {
				return false, err
			}
			s, kind := last.seenFrom(op.Path)
			if kind == passes {
				continue
			}
			if s.method == clear { // a container above may have no room for it
				return false, nil
			}
			if len(s.below) > 0 { // a value of some type is there
				return needs[op.Method] == "", nil
			}
			there := TypeName(s.value)
			if s.method == Push {
				there = "array"
			}
			return fits(op.Method, there, typ), nil
		}
	}
	return fits(op.Method, "null", typ), nil
}

// fits reports whether a value of one type joins one of another by a method. Null counts as
// missing; typ is empty where it is not known yet.
func fits(method Method, there, typ string) bool {
	empty, known := there == "null", typ != ""
	switch method {
	case Assign:
		return (empty || there == "object") && (!known || typ == "object")
	case Push:
		return empty || there == "array"
	case Concat:
		joins := func(t string) bool { return t == "array" || t == "string" }
		return (empty || joins(there)) && (!known || joins(typ)) && (empty || !known || there == typ)
	}
	return true
}
