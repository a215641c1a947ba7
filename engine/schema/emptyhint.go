package schema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"obelus/engine/internal/jsonvalue"
)

// ValidationError describes a value that breaks its schema.
type ValidationError struct {
	message string
	// Places in the value where an empty object stands and an array is wanted.
	EmptyObjects [][]string
}

func (e *ValidationError) Error() string { return e.message }

// emptyForArray lists the places at which an error wants an array and the value has an empty
// object.
func emptyForArray(e *jsonschema.ValidationError, v any) (places [][]string) {
	switch e.ErrorKind.(type) {
	case *kind.PropertyNames, *kind.ContentSchema: // the causes are places in another value
		return nil
	}
	if wantsArray(e.ErrorKind) && IsEmptyObject(ValueAt(v, e.InstanceLocation)) {
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

func IsEmptyObject(v any) bool {
	object, ok := v.(map[string]any)
	return ok && len(object) == 0
}

// ValueAt returns the value at a place within another, nil if there is none.
func ValueAt(v any, location []string) any {
	for _, step := range location {
		switch within := v.(type) {
		case map[string]any:
			v = within[step]
		case []any:
			if i, ok := jsonvalue.Index(step); ok && i < len(within) {
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
