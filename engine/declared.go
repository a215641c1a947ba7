package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"obelus/store"
)

// declaredKey is for what a schema is declared, and by which instance.
type declaredKey struct{ kind, instance string }

// declaration is a schema that is declared for a kind. A run keeps the last of each,
// for to compile one takes longer than a step.
type declaration struct {
	schema   any
	compiled *Schema
}

// declared is the schema that is declared for a kind now, for all or for an instance;
// nil for none.
func (t *tick) declared(ctx context.Context, kind, instance string) (*Schema, error) {
	schema, of, err := t.view.Schema(ctx, kind, instance)
	if err != nil {
		return nil, &logError{err}
	}
	if schema == nil {
		return nil, nil
	}
	key := declaredKey{kind, of}
	last := t.loop.declared[key]
	if !sameObject(last.schema, schema) {
		if last.compiled, err = NewSchema(schema, t.runner.Registry.Schemas...); err != nil {
			return nil, &fault{CodeSchema, err}
		}
		last.schema = schema
		t.loop.declared[key] = last
	}
	return last.compiled, nil
}

// sameObject tells whether two values are one and the same object.
func sameObject(a, b any) bool {
	x, one := a.(map[string]any)
	y, other := b.(map[string]any)
	return one && other && reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer()
}

// declaredLists is [Schema.Lists] by the schema that is declared for a path to which
// a call writes. What is pushed or appended stands behind what is there.
func (t *tick) declaredLists(ctx context.Context, call *Call, path store.Path, v any) (any, error) {
	declared, err := t.declared(ctx, path.Kind(), call.Instance)
	if declared == nil || err != nil {
		return v, err
	}
	value := t.valueOf(ctx, call.Instance)
	if len(declared.wholes) > 0 { // which of its alternatives counts is told by the whole
		whole, err := value(store.KindPath(path.Kind()))
		if err != nil {
			return nil, err
		}
		listed := declared.Lists(store.Joined(whole, path.Segments(), call.method(), v))
		return arraysOf(v, valueAt(listed, path.Segments()), call.method()), nil
	}
	schema, err := declared.below(path, value, nil)
	if err != nil {
		return nil, brokenDeclaration(err)
	}
	if schema == nil || call.Method != store.Push && call.Method != store.Concat {
		return schema.Lists(v), nil
	}
	resolved, err := value(path)
	if err != nil {
		return nil, err
	}
	there, _ := resolved.([]any)
	if call.Method == store.Push {
		return schema.item(len(there)).Lists(v), nil
	}
	list, isList := v.([]any)
	if !isList {
		return schema.Lists(v), nil
	}
	all := make([]any, len(list))
	for i, e := range list {
		all[i] = schema.item(len(there) + i).Lists(e)
	}
	return all, nil
}

// arraysOf gives a value with the empty arrays that stand for its empty objects in what it has
// joined by a method.
func arraysOf(v, joined any, method store.Method) any {
	list, _ := joined.([]any)
	given, isList := v.([]any)
	switch {
	case method == store.Push && len(list) > 0:
		return emptyArraysOf(v, list[len(list)-1])
	case method == store.Concat && isList && len(list) >= len(given):
		return emptyArraysOf(v, list[len(list)-len(given):])
	}
	return emptyArraysOf(v, joined)
}

func emptyArraysOf(v, listed any) any {
	switch given := v.(type) {
	case map[string]any:
		if list, ok := listed.([]any); ok && len(given) == 0 && len(list) == 0 {
			return list
		}
		from, ok := listed.(map[string]any)
		if !ok {
			return v
		}
		object := make(map[string]any, len(given))
		for key, e := range given {
			object[key] = emptyArraysOf(e, from[key])
		}
		return object
	case []any:
		from, ok := listed.([]any)
		if !ok || len(from) < len(given) {
			return v
		}
		list := make([]any, len(given))
		for i, e := range given {
			list[i] = emptyArraysOf(e, from[i])
		}
		return list
	}
	return v
}

// checkDeclared holds what a call has just staged at some paths against what is declared
// there: together, for one may be right with another only.
func (t *tick) checkDeclared(ctx context.Context, call *Call, paths []store.Path, data func(store.Path) any) error {
	for i, path := range paths {
		method := call.method()
		if slices.ContainsFunc(paths[i+1:], path.Overlaps) || slices.ContainsFunc(paths[:i], path.Overlaps) {
			method = store.Set // it has become what all of them made
		}
		declared, err := t.declared(ctx, path.Kind(), call.Instance)
		if err != nil {
			return err
		}
		if declared == nil {
			continue
		}
		if err := declared.takes(path, method, data(path), t.valueOf(ctx, call.Instance)); err != nil {
			return brokenDeclaration(err)
		}
	}
	return nil
}

// valueOf resolves paths for an instance, as what is staged has them.
func (t *tick) valueOf(ctx context.Context, instance string) func(store.Path) (any, error) {
	return resolving(ctx, t.view.Resolver(), instance)
}

// resolving gives the values of paths for an instance.
func resolving(ctx context.Context, r store.Resolver, instance string) func(store.Path) (any, error) {
	return func(at store.Path) (any, error) {
		v, err := r.Value(ctx, at, instance)
		if err != nil {
			return nil, &logError{err}
		}
		return v, nil
	}
}

// brokenDeclaration makes an error of a call of what a schema says that is declared,
// unless the log could not be read.
func brokenDeclaration(err error) error {
	if _, log := errors.AsType[*logError](err); log || err == nil {
		return err
	}
	return &fault{CodeSchema, err}
}

// takes holds what is written at a path against the schema that is declared for the
// path's kind, as far as that says something of it, and of what is above it as a whole.
// value gives what the path, or one above it, has come to by the write: by a method that
// lets data join what was there, that is what is looked at.
func (s *Schema) takes(path store.Path, method store.Method, data any, value func(store.Path) (any, error)) error {
	part, err := s.below(path, value, func(s *Schema, above store.Path) error {
		for at := range s.parts() {
			whole := s.wholes[at]
			if whole == nil {
				continue
			}
			v, err := value(above)
			if err != nil {
				return err
			}
			if err := s.part(whole).holdsAt(above, v); err != nil {
				return err
			}
		}
		return nil
	})
	if part == nil || err != nil {
		return err
	}
	v, err := value(path)
	if err != nil {
		return err
	}
	return part.takesIn(path, method, data, v)
}

// takesIn holds what has joined a value by a method, and of the value what is said of it
// without what is in it: of all of it that would take longer with each that joins.
func (s *Schema) takesIn(path store.Path, method store.Method, data, v any) error {
	if s.dynamic {
		return s.holdsAt(path, v)
	}
	switch v := v.(type) {
	case []any:
		n := 1
		if list, ok := data.([]any); ok && method == store.Concat {
			n = len(list)
		} else if method != store.Push {
			return s.holdsAt(path, v)
		}
		for i := max(len(v)-n, 0); i < len(v); i++ {
			if item := s.item(i); item != nil {
				if err := item.holdsAt(path.Child(strconv.Itoa(i)), v[i]); err != nil {
					return err
				}
			}
		}
	case map[string]any:
		object, ok := data.(map[string]any)
		if !ok || method != store.Assign && method != store.Merge {
			return s.holdsAt(path, v)
		}
		inner := method
		if method == store.Assign {
			inner = store.Set
		}
		for _, key := range sortedKeys(object) {
			property, err := s.fieldAt(key, path.Child(key), path)
			if property != nil && err == nil {
				err = property.takesIn(path.Child(key), inner, object[key], v[key])
			}
			if err != nil {
				return err
			}
		}
	default:
		return s.holdsAt(path, v)
	}
	for at := range s.parts() {
		if err := s.part(outer(at)).holdsAt(path, v); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schema) holdsAt(path store.Path, v any) error {
	if err := s.Validate(v, path.String()); err != nil {
		return fmt.Errorf("it breaks the schema declared for %s: %w", path.Kind(), err)
	}
	return nil
}

// below is what the schema that is declared for a path's kind says of the path, nil for
// nothing. What a segment is of, an array or an object, is told by the value above it.
// The schemas on the way are given to a function, which may be nil.
func (s *Schema) below(path store.Path, value func(store.Path) (any, error), pass func(s *Schema, above store.Path) error) (*Schema, error) {
	prefixes := path.Prefixes()
	for n, segment := range path.Segments() {
		above := prefixes[n]
		if pass != nil {
			if err := pass(s, above); err != nil {
				return nil, err
			}
		}
		i, isIndex := asIndex(segment)
		if isIndex {
			v, err := value(above)
			if err != nil {
				return nil, err
			}
			_, isIndex = v.([]any)
		}
		var err error
		if isIndex {
			s, err = s.elementAt(i, path, above)
		} else {
			s, err = s.fieldAt(segment, path, above)
		}
		if s == nil || err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Schema) elementAt(i int, path, above store.Path) (*Schema, error) {
	if want, ok := s.holds("array"); !ok {
		return nil, fmt.Errorf("%s: the schema declared for %s wants %s at %s, which holds no elements", path, path.Kind(), want, above)
	}
	return s.item(i), nil
}

func (s *Schema) fieldAt(name string, path, above store.Path) (*Schema, error) {
	if want, ok := s.holds("object"); !ok {
		return nil, fmt.Errorf("%s: the schema declared for %s wants %s at %s, which holds no %q", path, path.Kind(), want, above, name)
	}
	for at := range s.parts() {
		if at.PropertyNames == nil {
			continue
		}
		if err := s.part(at.PropertyNames).Validate(name, ""); err != nil {
			return nil, fmt.Errorf("%s: the schema declared for %s does not allow the key %q: %w", path, path.Kind(), name, err)
		}
	}
	property, allowed := s.property(name)
	if !allowed {
		return nil, fmt.Errorf("%s: the schema declared for %s does not allow %q", path, path.Kind(), name)
	}
	return property, nil
}
