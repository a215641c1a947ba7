// Package fit makes of a JSON Schema one that a provider of language models takes, and reads the
// values that fit it as values of the original.
//
// Providers take different parts of JSON Schema: a [Dialect] lists the keywords of one, and its
// limits. [Schema] fits a schema to a dialect:
//
//	dialect, _ := fit.DialectOf("openai")
//	fitted, err := fit.Schema(schema, dialect)
//
// The fitted schema is strict wherever the dialect has a form for a part of the original. A bound
// that it lacks is said in the description; a property that may be missing is null where all are
// required. A part without a form is loose: any value is taken there, written as JSON text where
// the dialect has no schema for any value. Loose are values of any type, maps and tuples where the
// dialect lacks them, unions whose alternatives can't be told apart, and conjunctions of several
// schemas. [Fitted.Notes] lists what is not expressed.
//
// [Fitted.Undo] reads a model's answer back: it parses the texts and drops the nulls. The result
// must then be validated against the original schema, since the fitted one may take more.
//
// Schemas are [Object] values, which keep the order of their members: a model writes its answer in
// the order of the properties. [Order] makes one of any schema.
package fit

import (
	"cmp"
	"fmt"
	"slices"
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

// wrapper is the property that holds an answer that is no object, where a root has to be one.
const wrapper = "value"

// Schema fits a schema to a dialect. The fitted schema takes each value that the original takes,
// written as [Fitted.Undo] reads it, if its objects have declared properties alone. It may take
// more: an answer has to be validated against the original once it is undone. Only a pattern of
// references takes less in the dialects of grammars, which can't write quotes.
func Schema(schema any, d Dialect) (Fitted, error) {
	root, err := Order(schema)
	if err != nil {
		return Fitted{}, fmt.Errorf("the schema can't be sent: %w", err)
	}
	w := newWalker(root, d)
	fitted := w.walk(root, "")
	isWrapped := d.RootObject && !w.isObject(root)
	if isWrapped {
		fitted = closedObject(Object{{wrapper, fitted}}, []any{wrapper})
	}
	for name, ok := definitionOf(fitted); d.RootObject && ok; name, ok = definitionOf(fitted) {
		fitted = w.defs.Object(name)
	}
	if defs := w.definitions(); len(defs) > 0 {
		fitted = append(slices.Clip(fitted), Member{"$defs", defs})
	}
	size := measure(fitted)
	return Fitted{Schema: fitted, Notes: w.notes, Size: size.size, Excess: cmp.Or(w.excess, d.excess(size)), Undo: func(v any) (any, error) {
		if object, ok := v.(map[string]any); isWrapped && ok && len(object) == 1 {
			if inner, ok := object[wrapper]; ok {
				v = inner
			}
		}
		if d.Untyped {
			return v, nil // nothing but the root is written otherwise
		}
		u := undoer{walker: newWalker(root, d), steps: maxUndo}
		return u.undo(root, v, "")
	}}, nil
}
