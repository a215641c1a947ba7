// Package declared checks writes of calls against the schemas that messages of the context declare
// for its kinds.
package declared

import (
	"context"
	"slices"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/logerr"
	"obelus/engine/internal/validate"
	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/store"
)

// Schemas are the schemas that are declared in a context, as a view of it has them. They are
// compiled once: to compile one takes longer than a step.
type Schemas struct {
	View    *store.View
	Options []schema.Option // of all schemas of the run

	compiled map[key]declaration // the last of each
}

// key is the kind that a schema is declared for, and the instance that declares it.
type key struct{ kind, instance string }

// declaration is a schema that is declared for a kind.
type declaration struct {
	schema   any
	compiled *schema.Schema
}

// of returns the schema that is declared for a kind now, for all or for an instance; nil for none.
func (s *Schemas) of(ctx context.Context, kind, instance string) (*schema.Schema, error) {
	source, by, err := s.View.Schema(ctx, kind, instance)
	if err != nil {
		return nil, logerr.Wrap(err)
	}
	if source == nil {
		return nil, nil
	}
	at := key{kind, by}
	last := s.compiled[at]
	if !jsonvalue.SameObject(last.schema, source) {
		if last.compiled, err = schema.New(source, s.Options...); err != nil {
			return nil, &plan.Fault{Code: plan.CodeSchema, Err: err}
		}
		last.schema = source
		if s.compiled == nil {
			s.compiled = map[key]declaration{}
		}
		s.compiled[at] = last
	}
	return last.compiled, nil
}

// Lists is [schema.Schema.Lists] by the schema that is declared for a path that a call writes. A
// pushed or appended value is checked behind the value there.
func (s *Schemas) Lists(ctx context.Context, call *plan.Call, path store.Path, v any) (any, error) {
	declared, err := s.of(ctx, path.Kind(), call.Instance)
	if declared == nil || err != nil {
		return v, err
	}
	value := s.values(ctx, call.Instance)
	if len(declared.PartialSchemas) > 0 { // the whole value decides which alternative applies
		whole, err := value(store.KindPath(path.Kind()))
		if err != nil {
			return nil, err
		}
		listed := declared.Lists(store.Joined(whole, path.Segments(), call.JoinMethod(), v))
		return arraysOf(v, schema.ValueAt(listed, path.Segments()), call.JoinMethod()), nil
	}
	expected, err := declared.Below(path, value, nil)
	if err != nil {
		return nil, broken(err)
	}
	if expected == nil || call.Method != store.Push && call.Method != store.Concat {
		return expected.Lists(v), nil
	}
	resolved, err := value(path)
	if err != nil {
		return nil, err
	}
	there, _ := resolved.([]any)
	if call.Method == store.Push {
		return expected.Item(len(there)).Lists(v), nil
	}
	list, isList := v.([]any)
	if !isList {
		return expected.Lists(v), nil
	}
	all := make([]any, len(list))
	for i, e := range list {
		all[i] = expected.Item(len(there) + i).Lists(e)
	}
	return all, nil
}

// arraysOf replaces the empty objects of a value by the empty arrays that they became in the value
// that it joined by a method.
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

// Check checks the messages that a call has just staged at some paths against the schemas declared
// there: together, since one may be valid only with another.
func (s *Schemas) Check(ctx context.Context, call *plan.Call, paths []store.Path, data func(store.Path) any) error {
	for i, path := range paths {
		method := call.JoinMethod()
		if slices.ContainsFunc(paths[i+1:], path.Overlaps) || slices.ContainsFunc(paths[:i], path.Overlaps) {
			method = store.Set // the result of all of them
		}
		declared, err := s.of(ctx, path.Kind(), call.Instance)
		if err != nil {
			return err
		}
		if declared == nil {
			continue
		}
		if err := declared.Accepts(path, method, data(path), s.values(ctx, call.Instance)); err != nil {
			return broken(err)
		}
	}
	return nil
}

// values resolves paths for an instance, staged messages included.
func (s *Schemas) values(ctx context.Context, instance string) func(store.Path) (any, error) {
	return validate.Values(ctx, s.View.Resolver(), instance)
}

// broken makes a call's error of a broken schema, unless the log could not be read.
func broken(err error) error {
	if _, ok := logerr.Cause(err); ok || err == nil {
		return err
	}
	return &plan.Fault{Code: plan.CodeSchema, Err: err}
}
