package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"obelus/engine/expr"
	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/logerr"
	"obelus/engine/internal/validate"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/store"
)

// declaredKey is the kind that a schema is declared for, and the instance that declares it.
type declaredKey struct{ kind, instance string }

// declaration is a schema that is declared for a kind. A run keeps the last of each,
// for to compile one takes longer than a step.
type declaration struct {
	schema   any
	compiled *schema.Schema
}

// declared is the schema that is declared for a kind now, for all or for an instance;
// nil for none.
func (vs *values) declared(ctx context.Context, kind, instance string) (*schema.Schema, error) {
	source, of, err := vs.view.Schema(ctx, kind, instance)
	if err != nil {
		return nil, logerr.Wrap(err)
	}
	if source == nil {
		return nil, nil
	}
	key := declaredKey{kind, of}
	last := vs.declarations[key]
	if !jsonvalue.SameObject(last.schema, source) {
		if last.compiled, err = schema.New(source, vs.schemas...); err != nil {
			return nil, &plan.Fault{Code: plan.CodeSchema, Err: err}
		}
		last.schema = source
		vs.declarations[key] = last
	}
	return last.compiled, nil
}

// declaredLists is [schema.Schema.Lists] by the schema that is declared for a path that a call
// writes. A pushed or appended value is checked behind the value there.
func (vs *values) declaredLists(ctx context.Context, call *plan.Call, path store.Path, v any) (any, error) {
	declared, err := vs.declared(ctx, path.Kind(), call.Instance)
	if declared == nil || err != nil {
		return v, err
	}
	value := vs.valueOf(ctx, call.Instance)
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
		return nil, brokenDeclaration(err)
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

// checkDeclared checks the messages that a call has just staged at some paths against the schemas
// declared there: together, since one may be valid only with another.
func (vs *values) checkDeclared(ctx context.Context, call *plan.Call, paths []store.Path, data func(store.Path) any) error {
	for i, path := range paths {
		method := call.JoinMethod()
		if slices.ContainsFunc(paths[i+1:], path.Overlaps) || slices.ContainsFunc(paths[:i], path.Overlaps) {
			method = store.Set // the result of all of them
		}
		declared, err := vs.declared(ctx, path.Kind(), call.Instance)
		if err != nil {
			return err
		}
		if declared == nil {
			continue
		}
		if err := declared.Accepts(path, method, data(path), vs.valueOf(ctx, call.Instance)); err != nil {
			return brokenDeclaration(err)
		}
	}
	return nil
}

// valueOf resolves paths for an instance, staged messages included.
func (vs *values) valueOf(ctx context.Context, instance string) func(store.Path) (any, error) {
	return validate.Values(ctx, vs.view.Resolver(), instance)
}

// brokenDeclaration makes a call's error of a broken schema, unless the log could not be read.
func brokenDeclaration(err error) error {
	if _, ok := logerr.Cause(err); ok || err == nil {
		return err
	}
	return &plan.Fault{Code: plan.CodeSchema, Err: err}
}

// hintEmpty adds to an error what to do where a reference in a template brought an empty
// object that should be an array: an empty table of Lua is one. i is the call that reads, -1
// for the output.
func (vs *values) hintEmpty(ctx context.Context, i int, from *expr.Template, err error) error {
	invalid, ok := errors.AsType[*schema.ValidationError](err)
	if !ok {
		return err
	}
	for _, location := range invalid.EmptyObjects {
		expr, rest := from.ExprAt(location)
		if expr == nil {
			continue
		}
		call, tool := vs.writerOf(ctx, i, expr, rest)
		if call == "" {
			return fmt.Errorf("%w (an empty Lua table is an object: whoever makes the list can use json.array())", err)
		}
		return fmt.Errorf("%w (an empty Lua table is an object: it comes from call %s of tool %q, whose activity can return json.array(), or whose tool can declare _output)", err, call, tool)
	}
	return err
}

// writerOf finds the call that wrote the empty object which an expression of call i, or of
// the output for -1, has brought: "" where that was no call, several, or can't be told.
func (vs *values) writerOf(ctx context.Context, i int, expr *expr.Expr, rest []string) (call, tool string) {
	resolver, instance := vs.view.Resolver(), ""
	if i >= 0 {
		resolver, instance = vs.resolver(i), vs.plan.Calls[i].Instance
	}
	for _, path := range expr.Reads() {
		for _, step := range rest {
			path = path.Child(step)
		}
		resolved, err := resolver.Resolve(ctx, path, instance)
		if err != nil || !schema.IsEmptyObject(resolved.Value) {
			continue
		}
		writers := vs.plan.Graph.SeenBy(instance, func(x *plan.WriterIndex) []int { return x.Above(path) })
		writers = slices.DeleteFunc(slices.Clone(writers), func(w int) bool { return !vs.state.WroteAbove(w, path) })
		if len(writers) == 1 {
			return vs.state.Calls[writers[0]].Record.Call, vs.plan.Calls[writers[0]].Tool
		}
		if seq := journal.NewestSeq(resolved.From); len(writers) == 0 && seq <= vs.event.Start {
			if m, err := journal.In(vs.log, vs.context).MessageAt(ctx, seq); err == nil && m != nil && m.Call != "" {
				producer, _ := m.Producer.(map[string]any)
				tool, _ := producer["_tool"].(string)
				return m.Call, tool
			}
		}
		return "", ""
	}
	return "", ""
}
