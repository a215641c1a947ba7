package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestShape_NeverDiffers: a value that the shape of a schema accepts is accepted by the library too,
// and both take most values that are right.
func TestShape_NeverDiffers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	accepted, right := 0, 0
	for range 20_000 {
		source, v := randomSchema(r, 3), randomValue(r, 3)
		s, err := New(source)
		if err != nil {
			t.Fatal(source, err)
		}
		fast := s.shapes[s.compiled]
		err = s.alone(func(s *Schema) error { return s.compiled.Validate(v) })
		if err == nil {
			right++
		}
		if fast.accepts(v) {
			accepted++
			if err != nil {
				t.Fatalf("the shape of %v accepts %v: %v", source, v, err)
			}
		}
		if fast.outlines(v) {
			if err := s.withoutShapes().Outline(v, ""); err != nil {
				t.Fatalf("by the shape of %v %v has its outline: %v", source, v, err)
			}
		}
	}
	if accepted < right*8/10 || accepted < 1000 {
		t.Errorf("of %d right values the shapes accept %d", right, accepted)
	}
}

func (s *Schema) withoutShapes() *Schema {
	plain := *s
	plain.shapes = nil
	return &plain
}

// TestShape_OtherKeywords: a schema with any other keyword has no shape.
func TestShape_OtherKeywords(t *testing.T) {
	for _, text := range []string{
		`{"type": "string", "format": "date"}`, `{"type": "string", "minLength": 1}`, `{"enum": [1]}`, `{"const": 1}`, `{"not": {}}`,
		`{"properties": {"a": {"pattern": "a"}}}`, `{"items": {"minimum": 1}}`, `{"$ref": "#/$defs/a", "$defs": {"a": {}}}`, `true`, `false`,
		`{"anyOf": [{}]}`, `{"allOf": [{}]}`, `{"prefixItems": [{}]}`, `{"uniqueItems": true}`, `{"additionalProperties": {"type": "string"}}`,
		`{"propertyNames": {}}`, `{"patternProperties": {"a": {}}}`, `{"dependentRequired": {"a": ["b"]}}`, `{"maxItems": 1}`, `{"contains": {}}`,
		`{"unevaluatedProperties": false}`, `{"$dynamicRef": "#"}`, `{"if": {}, "then": false}`, `{"minProperties": 1}`, `{"multipleOf": 2}`,
		`{"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"}`,
	} {
		var source any
		if err := json.Unmarshal([]byte(text), &source); err != nil {
			t.Fatal(err)
		}
		s, err := New(source)
		if err != nil {
			t.Fatal(text, err)
		}
		if s.shapes[s.compiled] != nil {
			t.Errorf("%s has a shape", text)
		}
	}
}

var types = []string{"null", "boolean", "number", "integer", "string", "array", "object"}

func randomSchema(r *rand.Rand, depth int) map[string]any {
	s := map[string]any{"description": "a value"}
	switch r.IntN(4) {
	case 0:
	case 1:
		s["type"] = []any{types[r.IntN(3)], types[3+r.IntN(4)]}
	default:
		s["type"] = types[r.IntN(len(types))]
	}
	if depth == 0 {
		return s
	}
	if r.IntN(2) == 0 {
		properties := map[string]any{}
		for i := range r.IntN(3) {
			properties[fmt.Sprint("k", i)] = randomSchema(r, depth-1)
		}
		s["properties"] = properties
		if names := slices.Sorted(maps.Keys(properties)); len(names) > 0 && r.IntN(2) == 0 {
			s["required"] = []any{names[0]}
		}
		if r.IntN(3) == 0 {
			s["additionalProperties"] = r.IntN(2) == 0
		}
	}
	if r.IntN(3) == 0 {
		s["items"] = randomSchema(r, depth-1)
	}
	return s
}

func randomValue(r *rand.Rand, depth int) any {
	n := 8
	if depth == 0 {
		n = 6
	}
	switch r.IntN(n) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return json.Number([]string{"1", "-7", "0", "12345678901234567890123", "1e2", "1.0", "-0", "1.5", "1e400"}[r.IntN(9)])
	case 3, 4, 5:
		return "text"
	case 6:
		list := make([]any, r.IntN(3))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	object := map[string]any{}
	for range r.IntN(4) {
		object[fmt.Sprint("k", r.IntN(3))] = randomValue(r, depth-1)
	}
	return object
}
