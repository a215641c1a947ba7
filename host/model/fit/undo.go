package fit

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"obelus/engine/lazyregexp"
	"obelus/store"
)

// maxUndo bounds the steps in which one value is undone.
const maxUndo = 1_000_000

var errUndo = errors.New("it takes too many steps to find out which alternatives of its schema the answer has")

// undoer converts one value that a model wrote to a value for the original schema.
type undoer struct {
	*walker
	steps int
}

func (u *undoer) undo(source, v any, at string) (any, error) {
	s, ok := u.choose(source, v)
	switch {
	case u.steps < 0:
		return nil, errUndo
	case !ok:
		return v, nil
	case u.isText(s):
		return read(s, v, at)
	}
	switch v := v.(type) {
	case map[string]any:
		return u.undoObject(s, v, at)
	case []any:
		made := slices.Clone(v)
		for i, e := range v {
			var err error
			if made[i], err = u.undo(s.Get("items"), e, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return nil, err
			}
		}
		return made, nil
	}
	return v, nil
}

func (u *undoer) undoObject(s Object, v map[string]any, at string) (any, error) {
	made := maps.Clone(v)
	properties := u.propertiesOf(s)
	u.steps -= len(properties)
	for _, p := range properties {
		given, ok := v[p.Name]
		switch isMissing := given == nil && u.dialect.AllRequired && !isRequired(s, p.Name); {
		case !ok:
		case isMissing && !u.takesNull(p.Value):
			delete(made, p.Name)
		default:
			var err error
			if made[p.Name], err = u.undo(p.Value, given, placeOf(at, p.Name)); err != nil {
				return nil, err
			}
		}
	}
	return made, nil
}

// choose returns the alternative of a schema that a value is of: the first that it fits, else one
// of JSON texts, else the first of its type and constants. ok is false if it is of none.
func (u *undoer) choose(source, v any) (s Object, ok bool) {
	leaves := u.alternatives(source)
	u.steps -= len(leaves)
	if len(leaves) == 1 {
		return leaves[0], true
	}
	_, isText := v.(string)
	for _, fits := range []func(Object) bool{
		func(leaf Object) bool { return !u.isText(leaf) && resembles(leaf, v) && u.hasProperties(leaf, v) },
		func(leaf Object) bool { return isText && u.isText(leaf) },
		func(leaf Object) bool { return !u.isText(leaf) && resembles(leaf, v) },
	} {
		if i := slices.IndexFunc(leaves, fits); i >= 0 {
			return leaves[i], true
		}
	}
	return nil, false
}

// hasProperties reports whether a value, if it is an object, has the properties that are always
// written, and no others.
func (u *undoer) hasProperties(s Object, v any) bool {
	object, isObject := v.(map[string]any)
	properties := u.propertiesOf(s)
	u.steps -= len(properties)
	for _, p := range properties {
		if _, ok := object[p.Name]; isObject && !ok && (u.dialect.AllRequired || isRequired(s, p.Name)) {
			return false
		}
	}
	for name := range object {
		if !properties.Has(name) {
			return false
		}
	}
	return true
}

// read reads a JSON text. A value that is no text stays as it is, as does a text that is no JSON
// where the original schema may take a text.
func read(s Object, v any, at string) (any, error) {
	text, ok := v.(string)
	if !ok {
		return v, nil
	}
	made, err := store.DecodeJSON([]byte(text))
	types := typesOf(s)
	mayBeText := len(types) == 0 || slices.Contains(types, "string")
	switch {
	case err == nil:
		return made, nil
	case mayBeText:
		return v, nil
	case at == "":
		at = "the answer"
	}
	return nil, fmt.Errorf("%s: the text is not JSON: %w", at, err)
}

// isOfType reports whether a value is of a type of JSON Schema.
func isOfType(v any, typ string) bool {
	switch typ {
	case "integer":
		return store.TypeName(v) == "number" && integral().Match(store.EncodeJSON(v))
	case "number":
		return store.TypeName(v) == "number" || store.TypeName(v) == "integer"
	}
	return store.TypeName(v) == typ
}

// integral matches the text of a number that is an integer, as most are written.
var integral = lazyregexp.New(`^-?[0-9]+(\.0+)?([eE]\+?[0-9]+)?$`)
