package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"

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
		if last.compiled, err = NewSchema(schema); err != nil {
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
	schema, _, err := declared.below(path, false, value)
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

// checkDeclared holds what a call has just staged at some paths against what is declared
// there: together, for one may be right with another only.
func (t *tick) checkDeclared(ctx context.Context, call *Call, paths []store.Path) error {
	for _, path := range paths {
		declared, err := t.declared(ctx, path.Kind(), call.Instance)
		if err != nil {
			return err
		}
		if declared == nil {
			continue
		}
		if err := declared.takes(path, t.valueOf(ctx, call.Instance)); err != nil {
			return brokenDeclaration(err)
		}
	}
	return nil
}

// valueOf resolves paths for an instance, as what is staged has them.
func (t *tick) valueOf(ctx context.Context, instance string) func(store.Path) (any, error) {
	return func(at store.Path) (any, error) {
		resolved, err := t.view.Resolver().Resolve(ctx, at, instance)
		if err != nil {
			return nil, &logError{err}
		}
		return resolved.Value, nil
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
// path's kind, as far as that says something of it. value gives what the path, or one
// above it, has come to. What is there at least is asked of the path alone: of what is
// above it and beside it the rest may come later.
func (s *Schema) takes(path store.Path, value func(store.Path) (any, error)) error {
	part, at, err := s.below(path, true, value)
	if part == nil || err != nil {
		return err
	}
	if at != path {
		if err := part.growing().holdsAt(at, value); err != nil {
			return err
		}
		if part, _, err = s.below(path, false, value); part == nil || err != nil {
			return err
		}
	}
	return part.holdsAt(path, value)
}

func (s *Schema) holdsAt(path store.Path, value func(store.Path) (any, error)) error {
	v, err := value(path)
	if err != nil {
		return err
	}
	if err := s.Validate(v, path.String()); err != nil {
		return fmt.Errorf("it breaks the schema declared for %s: %w", path.Kind(), err)
	}
	return nil
}

// below is what the schema that is declared for a path's kind says of the path, nil for
// nothing, or, where that is to be judged, of the first place on the way that it
// says something of as a whole. What a segment is of, an array or an object, is told by
// the value above it.
func (s *Schema) below(path store.Path, judged bool, value func(store.Path) (any, error)) (part *Schema, at store.Path, err error) {
	prefixes := path.Prefixes()
	for n, segment := range path.Segments() {
		above := prefixes[n]
		if judged && s.whole() {
			return s, above, nil
		}
		i, within, container := 0, false, "object"
		if i, within = asIndex(segment); within {
			v, err := value(above)
			if err != nil {
				return nil, at, err
			}
			if _, within = v.([]any); within {
				container = "array"
			}
		}
		if want, ok := s.holds(container); !ok {
			return nil, at, fmt.Errorf("%s: the schema declared for %s wants %s at %s, which holds no %q", path, path.Kind(), want, above, segment)
		}
		allowed := true
		if within {
			s = s.item(i)
		} else if s, allowed = s.property(segment); !allowed {
			return nil, at, fmt.Errorf("%s: the schema declared for %s does not allow %q", path, path.Kind(), segment)
		}
		if s == nil {
			return nil, at, nil
		}
	}
	return s, path, nil
}
