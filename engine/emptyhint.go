package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// invalidError is what is wrong with a value by its schema.
type invalidError struct {
	message string
	empty   [][]string // where in the value an empty object stands and an array is wanted
}

func (e *invalidError) Error() string { return e.message }

// emptyForArray lists the places at which an error wants an array and the value has an empty
// object.
func emptyForArray(e *jsonschema.ValidationError, v any) (places [][]string) {
	switch e.ErrorKind.(type) {
	case *kind.PropertyNames, *kind.ContentSchema: // the causes are places in another value
		return nil
	}
	if wantsArray(e.ErrorKind) && isEmptyObject(valueAt(v, e.InstanceLocation)) {
		places = append(places, e.InstanceLocation)
	}
	for _, cause := range e.Causes {
		places = append(places, emptyForArray(cause, v)...)
	}
	return places
}

func wantsArray(k jsonschema.ErrorKind) bool {
	switch k := k.(type) {
	case *kind.Type:
		return slices.Contains(k.Want, "array")
	case *kind.Const:
		return isArray(k.Want)
	case *kind.Enum:
		return slices.ContainsFunc(k.Want, isArray)
	case *kind.Format:
		m, ok := k.Err.(misfit)
		return ok && wantsArray(m.ErrorKind)
	}
	return false
}

func isArray(v any) bool {
	_, ok := v.([]any)
	return ok
}

func isEmptyObject(v any) bool {
	object, ok := v.(map[string]any)
	return ok && len(object) == 0
}

// valueAt is what a value holds at a place, nil for nothing.
func valueAt(v any, location []string) any {
	for _, step := range location {
		switch within := v.(type) {
		case map[string]any:
			v = within[step]
		case []any:
			if i, ok := asIndex(step); ok && i < len(within) {
				v = within[i]
			} else {
				return nil
			}
		default:
			return nil
		}
	}
	return v
}

// hintEmpty adds to an error what to do where a reference in a template brought an empty
// object that should be an array: an empty table of Lua is one. i is the call that reads, -1
// for the output.
func (t *tick) hintEmpty(ctx context.Context, i int, from *template, err error) error {
	invalid, ok := errors.AsType[*invalidError](err)
	if !ok {
		return err
	}
	for _, location := range invalid.empty {
		expr, rest := from.exprAt(location)
		if expr == nil {
			continue
		}
		call, tool := t.writerOf(ctx, i, expr, rest)
		if call == "" {
			return fmt.Errorf("%w (an empty Lua table is an object: whoever makes the list can use json.array())", err)
		}
		return fmt.Errorf("%w (an empty Lua table is an object: it comes from call %s of tool %q, whose activity can return json.array(), or whose tool can declare _output)", err, call, tool)
	}
	return err
}

// exprAt is the expression that makes what a template holds at a place, and the steps from its
// value to there; nil for none.
func (t *template) exprAt(location []string) (expr *Expr, rest []string) {
	for n, step := range location {
		switch {
		case t.expr != nil:
			return t.expr, location[n:]
		case t.object[step] != nil:
			t = t.object[step]
		default:
			i, ok := asIndex(step)
			if !ok || i >= len(t.array) {
				return nil, nil
			}
			t = t.array[i]
		}
	}
	return t.expr, nil
}

// writerOf finds the call that wrote the empty object which an expression of call i, or of
// the output for -1, has brought: "" where that was no call, several, or can't be told.
func (t *tick) writerOf(ctx context.Context, i int, expr *Expr, rest []string) (call, tool string) {
	resolver, instance := t.view.Resolver(), ""
	if i >= 0 {
		resolver, instance = t.resolver(i), t.plan.Calls[i].Instance
	}
	for _, path := range expr.Reads() {
		for _, step := range rest {
			path = path.Child(step)
		}
		resolved, err := resolver.Resolve(ctx, path, instance)
		if err != nil || !isEmptyObject(resolved.Value) {
			continue
		}
		writers := t.plan.graph.seenBy(instance, func(x *writerIndex) []int { return x.above(path) })
		writers = slices.DeleteFunc(slices.Clone(writers), func(w int) bool { return !t.wroteAbove(w, path) })
		if len(writers) == 1 {
			return t.calls[writers[0]].record.Call, t.plan.Calls[writers[0]].Tool
		}
		if seq := newestOf(resolved.From); len(writers) == 0 && seq <= t.event.Start {
			if m, err := messageAt(ctx, t.runner.Log, t.context, seq); err == nil && m != nil && m.Call != "" {
				producer, _ := m.Producer.(map[string]any)
				tool, _ := producer["_tool"].(string)
				return m.Call, tool
			}
		}
		return "", ""
	}
	return "", ""
}
