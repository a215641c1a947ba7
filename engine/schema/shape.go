package schema

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"obelus/store"
)

// shape is a schema of types alone: type, properties, required, additionalProperties as a boolean
// and items. Most tools have such a one. It accepts a value without the library, whose checks make
// some six allocations each; where it does not, the library decides and finds the words for an
// error. BenchmarkCallMemory has 15 fewer allocations a call by it, of 152. To switch it off, have
// accepts and outlines return false.
type shape struct {
	types      []string // any if empty
	required   []string
	properties map[string]*shape
	closed     bool   // no other properties
	items      *shape // nil for any
}

// shapeOf returns the shape of a schema; nil for one with other keywords, or that refers to others.
// It keeps the shapes that it has found, nil ones included.
func shapeOf(s *jsonschema.Schema, found map[*jsonschema.Schema]*shape) *shape {
	if known, ok := found[s]; ok {
		return known
	}
	found[s] = nil
	if !hasTypesAlone(s) {
		return nil
	}
	made := &shape{required: s.Required, properties: make(map[string]*shape, len(s.Properties))}
	if s.Types != nil {
		made.types = s.Types.ToStrings()
	}
	if closed, ok := s.AdditionalProperties.(bool); ok {
		made.closed = !closed
	} else if s.AdditionalProperties != nil {
		return nil
	}
	for name, property := range s.Properties {
		if made.properties[name] = shapeOf(property, found); made.properties[name] == nil {
			return nil
		}
	}
	if s.Items2020 != nil {
		if made.items = shapeOf(s.Items2020, found); made.items == nil {
			return nil
		}
	}
	found[s] = made
	return made
}

// otherKeywords are the fields of a schema that a shape does not know, by their places: a field
// that a later version of the library adds is one of them.
var otherKeywords = func() (others []int) {
	known := []string{
		"DraftVersion", "Location", "ID", "Anchor", "Types", "Required", "Properties", "AdditionalProperties", "Items2020",
		"Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated",
	}
	for i, field := range reflect.VisibleFields(reflect.TypeFor[jsonschema.Schema]()) {
		if field.IsExported() && !slices.Contains(known, field.Name) {
			others = append(others, i)
		}
	}
	return others
}()

// hasTypesAlone reports whether a schema has no keyword that a shape does not know.
func hasTypesAlone(s *jsonschema.Schema) bool {
	v := reflect.ValueOf(s).Elem()
	return s.DraftVersion == 2020 && !slices.ContainsFunc(otherKeywords, func(i int) bool { return !v.Field(i).IsZero() })
}

// accepts reports whether a value is certain to satisfy the schema.
func (s *shape) accepts(v any) bool {
	if s == nil {
		return false
	}
	if len(s.types) > 0 && !slices.Contains(s.types, store.TypeName(v)) && !(slices.Contains(s.types, "integer") && hasDigitsAlone(v)) {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		return s.acceptsObject(v)
	case []any:
		return s.items == nil || !slices.ContainsFunc(v, func(e any) bool { return !s.items.accepts(e) })
	}
	return true
}

func (s *shape) acceptsObject(object map[string]any) bool {
	if !s.hasRequired(object) {
		return false
	}
	for name, v := range object {
		property, ok := s.properties[name]
		if ok && !property.accepts(v) || !ok && s.closed {
			return false
		}
	}
	return true
}

func (s *shape) hasRequired(object map[string]any) bool {
	for _, name := range s.required {
		if _, ok := object[name]; !ok {
			return false
		}
	}
	return true
}

// outlines reports whether a value is certain to have the type and the keys of the schema.
func (s *shape) outlines(v any) bool {
	if s == nil || len(s.types) > 0 && !slices.Contains(s.types, store.TypeName(v)) {
		return false
	}
	object, ok := v.(map[string]any)
	return !ok || s.hasRequired(object)
}

// hasDigitsAlone reports whether a value is a number that is written as an integer.
func hasDigitsAlone(v any) bool {
	n, ok := v.(json.Number)
	return ok && len(n) < 20 && strings.Trim(strings.TrimPrefix(string(n), "-"), "0123456789") == "" && n != ""
}
