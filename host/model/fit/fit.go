package fit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fitted is a schema as a provider takes it.
type Fitted struct {
	Schema any // an [Object]

	// Undo converts a value that fits Schema to a value for the original schema: it parses JSON texts,
	// and drops nulls that stand for missing properties. It changes nothing where a value does not
	// fit. Its error is about a text that is no JSON, and names its place.
	Undo func(any) (any, error)

	Notes []string // the parts of the schema that Schema does not express, each with its place
	Size  int      // of the schema, in bytes

	// Excess says which limit of the dialect the schema is over; empty if it is over none. Beyond
	// them a provider refuses a schema, or heeds it no more.
	Excess string
}

// Schema fits a schema to a dialect. The fitted schema takes each value that the original takes,
// written as [Fitted.Undo] reads it, if its objects have declared properties alone. It may take
// more: an answer has to be validated against the original once it is undone. Only a pattern of
// references takes less in the dialects of grammars, which can't write quotes.
func Schema(schema any, d Dialect) (Fitted, error) {
	root, err := Order(schema)
	if err != nil {
		return Fitted{}, fmt.Errorf("the schema can't be sent: %w", err)
	}
	f := &fitter{dialect: d, root: root, defs: map[string]*node{}, names: map[string]string{}, inlined: map[string]int{}, nullables: map[string]string{}}
	top := f.build(root, "")
	wrapped := d.RootObject && !f.isObject(top)
	fitted := top.schema
	if wrapped {
		fitted = Object{{"type", "object"}, {"properties", Object{{wrapper, fitted}}}, {"required", []any{wrapper}}, {"additionalProperties", false}}
	} else if d.RootObject && fitted.Has("$ref") {
		fitted = f.follow(top).schema
	}
	if defs := f.definitions(); len(defs) > 0 {
		fitted = append(fitted.Without("$defs"), Member{"$defs", defs})
	}
	size := measure(fitted)
	return Fitted{Schema: fitted, Notes: f.notes, Size: size.size, Excess: d.excess(size), Undo: func(v any) (any, error) {
		if object, ok := v.(map[string]any); wrapped && ok && len(object) == 1 {
			if inner, ok := object[wrapper]; ok {
				v = inner
			}
		}
		u := undoer{fitter: f, steps: maxUndo}
		return u.undo(top, v, "")
	}}, nil
}

// wrapper is the property that holds an answer that is no object, where a root has to be one.
const wrapper = "value"

// isObject reports whether a node takes objects alone, as one schema and no union.
func (f *fitter) isObject(n *node) bool {
	n = f.follow(n)
	return n != nil && n.branches == nil && len(Types(n.schema)) == 1 && Types(n.schema)[0] == "object"
}

// definitions returns the schemas that the fitted one refers to.
func (f *fitter) definitions() Object {
	var defs Object
	for _, ref := range f.order {
		defs = append(defs, Member{f.names[ref], f.defs[ref].schema})
	}
	for _, name := range slices.Sorted(maps.Keys(f.nullables)) {
		defs = append(defs, Member{f.nullables[name], Object{{"anyOf", []any{Object{{"$ref", "#/$defs/" + name}}, Object{{"type", "null"}}}}}})
	}
	return defs
}

// note records a part of the schema that the fitted one does not express.
func (f *fitter) note(at, format string, args ...any) {
	if at == "" {
		at = "the root"
	}
	f.notes = append(f.notes, at+": "+fmt.Sprintf(format, args...))
}

// placeOf returns a place within a schema, for notes.
func placeOf(at, step string) string { return strings.TrimPrefix(at+"."+step, ".") }
