package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"obelus/store"
)

// template is a JSON value in which some strings are expressions.
type template struct {
	value  any // where there are none below; else as it was given
	expr   *Expr
	object map[string]*template
	array  []*template
}

// parseTemplate compiles the expressions in a value. An error is told with the
// place of its expression in the value, which is called name.
func parseTemplate(v any, name string) (*template, error) {
	switch v := v.(type) {
	case string:
		return parseText(v, name)
	case []any:
		t := &template{value: v, array: make([]*template, len(v))}
		for i, e := range v {
			element, err := parseTemplate(e, place(name, []string{strconv.Itoa(i)}))
			if err != nil {
				return nil, err
			}
			t.array[i] = element
		}
		return t.settle(), nil
	case map[string]any:
		t := &template{value: v, object: make(map[string]*template, len(v))}
		for _, key := range sortedKeys(v) {
			element, err := parseTemplate(v[key], place(name, []string{key}))
			if err != nil {
				return nil, err
			}
			t.object[key] = element
		}
		return t.settle(), nil
	}
	return &template{value: v}, nil
}

func parseText(text, name string) (*template, error) {
	if IsExpr(text) {
		expr, err := ParseExpr(text)
		if err != nil {
			return nil, &placedError{name, err}
		}
		return &template{expr: expr}, nil
	}
	if rest, ok := strings.CutPrefix(text, store.Dagger+store.Dagger); ok {
		text = store.Dagger + rest
	}
	return &template{value: text}, nil
}

// settle makes plain values of parts that hold no expressions, so that they
// are shared and not built at every call.
func (t *template) settle() *template {
	fixed := true
	for _, e := range t.object {
		fixed = fixed && e.fixed()
	}
	for _, e := range t.array {
		fixed = fixed && e.fixed()
	}
	if !fixed {
		return t
	}
	v, _, _ := t.eval(context.Background(), nil)
	return &template{value: v}
}

// fixed tells whether there are no expressions in it.
func (t *template) fixed() bool { return t.expr == nil && t.object == nil && t.array == nil }

// checkTemplate validates against a schema, nil for none, the part of a value that is known
// before its expressions are resolved.
func checkTemplate(t *template, s *Schema, name string) error {
	switch {
	case s == nil || t.expr != nil:
		return nil
	case t.fixed():
		return s.Validate(t.value, name)
	}
	if err := s.outline(t.value, name); err != nil {
		return err
	}
	for _, key := range sortedKeys(t.object) {
		property, allowed := s.property(key)
		if !allowed {
			return fmt.Errorf("%s: unknown %q", name, key)
		}
		if err := checkTemplate(t.object[key], property, place(name, []string{key})); err != nil {
			return err
		}
	}
	for i, e := range t.array {
		if err := checkTemplate(e, s.item(i), place(name, []string{strconv.Itoa(i)})); err != nil {
			return err
		}
	}
	return nil
}

// reads lists the paths that its expressions refer to, each once.
func (t *template) reads() []store.Path {
	var all []store.Path
	t.each(func(e *Expr) {
		for _, path := range e.Reads() {
			if !slices.Contains(all, path) {
				all = append(all, path)
			}
		}
	})
	return all
}

func (t *template) each(f func(e *Expr)) {
	if t.expr != nil {
		f(t.expr)
	}
	for _, key := range sortedKeys(t.object) {
		t.object[key].each(f)
	}
	for _, e := range t.array {
		e.each(f)
	}
}

// eval gives the value with every expression resolved. Where some are missing,
// it tells of all of them together: the value can come only if each can.
func (t *template) eval(ctx context.Context, lookup Lookup) (any, *Missing, error) {
	switch {
	case t.expr != nil:
		return t.expr.Eval(ctx, lookup)
	case t.object != nil:
		out := make(map[string]any, len(t.object))
		var lacking *Missing
		for _, key := range sortedKeys(t.object) {
			v, m, err := t.object[key].eval(ctx, lookup)
			if err != nil {
				return nil, nil, err
			}
			lacking = lacking.and(m)
			out[key] = v
		}
		return out, lacking, nil
	case t.array != nil:
		out := make([]any, len(t.array))
		var lacking *Missing
		for i, e := range t.array {
			v, m, err := e.eval(ctx, lookup)
			if err != nil {
				return nil, nil, err
			}
			lacking = lacking.and(m)
			out[i] = v
		}
		return out, lacking, nil
	}
	return t.value, nil, nil
}

func (m *Missing) and(other *Missing) *Missing {
	switch {
	case m == nil:
		return other
	case other == nil:
		return m
	}
	return &Missing{slices.Concat(m.Paths, other.Paths), m.Open && other.Open, cmp.Or(m.member, other.member)}
}

// placedError is an error about a part of a call.
type placedError struct {
	place string
	err   error
}

func (e *placedError) Error() string { return e.place + ": " + e.err.Error() }
func (e *placedError) Unwrap() error { return e.err }

// lacking lists the references without which a value can't be complete when
// only paths that are known can exist.
func (t *template) lacking(known func(store.Path) bool) []store.Path {
	var all []store.Path
	t.each(func(e *Expr) {
		if e.root.possible(known) {
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
