package schema

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"obelus/engine/internal/jsonvalue"
)

// namesArray reports whether a schema by itself names array as a type.
func namesArray(s *jsonschema.Schema) bool {
	return s.Types != nil && slices.Contains(s.Types.ToStrings(), "array") ||
		s.Const != nil && isArray(*s.Const) || s.Enum != nil && slices.ContainsFunc(s.Enum.Values, isArray)
}

// arrayTrial are the empty arrays, by address, that stand for empty objects while a value is
// validated.
type arrayTrial map[uintptr]*triedArray

type triedArray struct {
	location []string
	naming   []*jsonschema.Schema // those that validate it and name array as a type
}

// array makes one of them. Its capacity gives it an address of its own.
func (t arrayTrial) array(location []string) any {
	array := make([]any, 0, 1)
	t[address(array)] = &triedArray{location: slices.Clone(location)}
	return array
}

func address(array []any) uintptr { return reflect.ValueOf(array).Pointer() }

// record notes that a schema which names array as a type looks at a value.
func (t arrayTrial) record(s *jsonschema.Schema, v any) {
	if array, ok := v.([]any); ok && t != nil {
		if tried := t[address(array)]; tried != nil && !slices.Contains(tried.naming, s) {
			tried.naming = append(tried.naming, s)
		}
	}
}

// takesEmpty reports whether one of the schemas that name array takes an empty one.
func (t *triedArray) takesEmpty() bool {
	return slices.ContainsFunc(t.naming, func(s *jsonschema.Schema) bool { return s.Validate([]any{}) == nil })
}

// placeTree is a set of places in a value.
type placeTree struct {
	here  bool
	below map[string]*placeTree
}

func (p *placeTree) add(location []string) {
	for _, step := range location {
		next := p.below[step]
		if next == nil {
			if p.below == nil {
				p.below = map[string]*placeTree{}
			}
			next = &placeTree{}
			p.below[step] = next
		}
		p = next
	}
	p.here = true
}

func (p *placeTree) has(location []string) bool {
	for _, step := range location {
		if p = p.below[step]; p == nil {
			return false
		}
	}
	return p.here
}

// addErrors adds the places of all that a validation finds wrong.
func (p *placeTree) addErrors(err error) {
	e, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return
	}
	switch e.ErrorKind.(type) {
	case *kind.Contains, *kind.MinContains: // the causes need not hold for each element
		return
	case *kind.PropertyNames, *kind.ContentSchema: // the causes are places in another value
		return
	}
	if len(e.Causes) == 0 {
		p.add(e.InstanceLocation)
	}
	for _, cause := range e.Causes {
		p.addErrors(cause)
	}
}

// replaceEmpty returns a value in which the empty objects at the places are replaced by the results
// of a function of the place. location is the place of the value.
func (p *placeTree) replaceEmpty(v any, location []string, replacement func(location []string) any) any {
	switch given := v.(type) {
	case map[string]any:
		switch {
		case len(given) == 0 && p.here:
			return replacement(location)
		case len(given) == 0 || len(p.below) == 0:
			return v
		}
		object := maps.Clone(given)
		for key, below := range p.below {
			if e, ok := given[key]; ok {
				object[key] = below.replaceEmpty(e, append(location, key), replacement)
			}
		}
		return object
	case []any:
		if len(p.below) == 0 {
			return v
		}
		list := slices.Clone(given)
		for i, e := range given {
			if below := p.below[strconv.Itoa(i)]; below != nil {
				list[i] = below.replaceEmpty(e, append(location, strconv.Itoa(i)), replacement)
			}
		}
		return list
	}
	return v
}

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

// IsEmptyObject reports whether a value is {}.
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
