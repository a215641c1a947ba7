package expr

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/phrase"
	"obelus/store"
)

// ExprAt returns the expression that makes the value at a place of a template, and the steps from
// the expression's value to there; nil for none.
func (t *Template) ExprAt(location []string) (expr *Expr, rest []string) {
	for n, step := range location {
		switch {
		case t.Expr != nil:
			return t.Expr, location[n:]
		case t.Object[step] != nil:
			t = t.Object[step]
		default:
			i, ok := jsonvalue.Index(step)
			if !ok || i >= len(t.Array) {
				return nil, nil
			}
			t = t.Array[i]
		}
	}
	return t.Expr, nil
}

// Template is a JSON value in which some strings are expressions.
type Template struct {
	Value  any // where there are none below; else as it was given
	Expr   *Expr
	Object map[string]*Template
	Array  []*Template
}

// ParseTemplate compiles the expressions in a value called name. An error carries the place of its
// expression in the value.
func ParseTemplate(v any, name string) (*Template, error) {
	switch v := v.(type) {
	case string:
		return parseText(v, name)
	case []any:
		t := &Template{Value: v, Array: make([]*Template, len(v))}
		for i, e := range v {
			element, err := ParseTemplate(e, phrase.Place(name, []string{strconv.Itoa(i)}))
			if err != nil {
				return nil, err
			}
			t.Array[i] = element
		}
		return t.settle(), nil
	case map[string]any:
		t := &Template{Value: v, Object: make(map[string]*Template, len(v))}
		for _, key := range jsonvalue.SortedKeys(v) {
			element, err := ParseTemplate(v[key], phrase.Place(name, []string{key}))
			if err != nil {
				return nil, err
			}
			t.Object[key] = element
		}
		return t.settle(), nil
	}
	return &Template{Value: v}, nil
}

func parseText(text, name string) (*Template, error) {
	if IsExpr(text) {
		expr, err := Parse(text)
		if err != nil {
			return nil, &PlacedError{name, err}
		}
		return &Template{Expr: expr}, nil
	}
	if rest, ok := strings.CutPrefix(text, store.Dagger+store.Dagger); ok {
		text = store.Dagger + rest
	}
	return &Template{Value: text}, nil
}

// settle makes plain values of parts that hold no expressions, so that they
// are shared and not built at every call.
func (t *Template) settle() *Template {
	fixed := true
	for _, e := range t.Object {
		fixed = fixed && e.IsFixed()
	}
	for _, e := range t.Array {
		fixed = fixed && e.IsFixed()
	}
	if !fixed {
		return t
	}
	v, _, _ := t.Eval(context.Background(), nil)
	return &Template{Value: v}
}

// IsFixed reports whether the template holds no expressions.
func (t *Template) IsFixed() bool { return t.Expr == nil && t.Object == nil && t.Array == nil }

// Reads lists the paths that its expressions refer to, each once.
func (t *Template) Reads() []store.Path {
	var all []store.Path
	t.Each(func(e *Expr) {
		for _, path := range e.Reads() {
			if !slices.Contains(all, path) {
				all = append(all, path)
			}
		}
	})
	return all
}

// Each calls f for every expression in the template, in the order of keys and indices.
func (t *Template) Each(f func(e *Expr)) {
	if t.Expr != nil {
		f(t.Expr)
	}
	for _, key := range jsonvalue.SortedKeys(t.Object) {
		t.Object[key].Each(f)
	}
	for _, e := range t.Array {
		e.Each(f)
	}
}

// Eval returns the value with every expression resolved. Where several are missing, it reports all
// of them together: the value needs each.
func (t *Template) Eval(ctx context.Context, lookup Lookup) (any, *Missing, error) {
	switch {
	case t.Expr != nil:
		return t.Expr.Eval(ctx, lookup)
	case t.Object != nil:
		out := make(map[string]any, len(t.Object))
		var lacking *Missing
		for _, key := range jsonvalue.SortedKeys(t.Object) {
			v, m, err := t.Object[key].Eval(ctx, lookup)
			if err != nil {
				return nil, nil, err
			}
			lacking = lacking.And(m)
			out[key] = v
		}
		return out, lacking, nil
	case t.Array != nil:
		out := make([]any, len(t.Array))
		var lacking *Missing
		for i, e := range t.Array {
			v, m, err := e.Eval(ctx, lookup)
			if err != nil {
				return nil, nil, err
			}
			lacking = lacking.And(m)
			out[i] = v
		}
		return out, lacking, nil
	}
	return t.Value, nil, nil
}

// And returns the references that are missing in m or in another; nil stands for none.
func (m *Missing) And(other *Missing) *Missing {
	switch {
	case m == nil:
		return other
	case other == nil:
		return m
	}
	return &Missing{slices.Concat(m.Paths, other.Paths), m.Open && other.Open, cmp.Or(m.Member, other.Member)}
}

// PlacedError is an error about a part of a call.
type PlacedError struct {
	Place string
	Err   error
}

func (e *PlacedError) Error() string { return e.Place + ": " + e.Err.Error() }

func (e *PlacedError) Unwrap() error { return e.Err }

// MissingIn lists the references without which a value can't be complete when
// only paths that are known can exist.
func (t *Template) MissingIn(known func(store.Path) bool) []store.Path {
	var all []store.Path
	t.Each(func(e *Expr) {
		if possible(e.root, known) {
			return
		}
		for _, path := range e.Reads() {
			if !known(path) && !slices.Contains(all, path) {
				all = append(all, path)
			}
		}
	})
	return all
}
