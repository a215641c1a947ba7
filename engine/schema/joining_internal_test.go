package schema

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"obelus/store"
	"obelus/store/memory"
)

// TestAcceptsIn_AsTheWhole: where a value was right, that which joins it is
// refused if and only if the value breaks its schema by it.
func TestAcceptsIn_AsTheWhole(t *testing.T) {
	var schemas []*Schema
	for _, text := range []string{
		`{"type": "array", "items": {"type": "integer"}, "maxItems": 3}`,
		`{"prefixItems": [{"type": "string"}, true], "items": {"type": "integer"}}`,
		`{"prefixItems": [{"type": "string"}], "items": false, "minItems": 1}`,
		`{"items": {"type": "integer"}, "uniqueItems": true, "contains": {"minimum": 2}}`,
		`{"allOf": [{"items": {"type": "integer"}}, {"$ref": "#/$defs/few"}], "$defs": {"few": {"maxItems": 2}}}`,
		`{"prefixItems": [{"type": "integer"}], "unevaluatedItems": {"type": "string"}}`,
		`{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}], "additionalItems": {"type": "string"}}`,
		`{"$schema": "http://json-schema.org/draft-07/schema#", "items": {"type": "integer"}}`,
		`{"type": ["array", "string"], "maxLength": 2}`,
		`{"anyOf": [{"items": {"type": "integer"}}, {"type": "object", "maxProperties": 2}]}`,
		`{"type": "object", "properties": {"a": {"type": "integer"}, "o": {"properties": {"b": {"type": "integer"}}, "maxProperties": 2}}, "additionalProperties": {"type": ["string", "object"]}}`,
		`{"properties": {"a": {"type": "integer"}}, "unevaluatedProperties": false}`,
		`{"allOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"o": {"additionalProperties": false, "properties": {"a": true}}}}], "minProperties": 1, "required": ["a"]}`,
		`{"propertyNames": {"maxLength": 1}, "patternProperties": {"^a": {"type": "integer"}}, "maxProperties": 3, "dependentRequired": {"a": ["b"]}}`,
		`{"if": {"required": ["a"]}, "then": {"properties": {"b": {"type": "integer"}}}, "else": {"maxProperties": 2}, "not": {"required": ["o", "b"]}}`,
		`{"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "dependentSchemas": {"o": {"required": ["a"]}}}`,
		`{"properties": {"o": {"$ref": "#"}, "a": {"type": "integer"}}, "additionalProperties": {"enum": [1, "x"]}}`,
		`{"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": true, "type": ["array", "integer"], "items": {"$recursiveRef": "#"}, "maxItems": 2}`,
		`{"$id": "https://e.org/strict", "$dynamicAnchor": "n", "$ref": "list", "maxItems": 2, "$defs": {"list": {"$id": "list", "$dynamicAnchor": "n", "type": ["array", "integer"], "items": {"$dynamicRef": "#n"}}}}`,
		`{"$id": "https://e.org/strict", "$dynamicAnchor": "n", "$ref": "tree", "maxProperties": 2, "$defs": {"tree": {"$id": "tree", "$dynamicAnchor": "n", "type": ["object", "integer"], "additionalProperties": {"$dynamicRef": "#n"}}}}`,
		`false`, `true`,
	} {
		source, err := store.DecodeJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(source)
		if err != nil {
			t.Fatal(text, err)
		}
		schemas = append(schemas, s)
	}
	leaf := rapid.SampledFrom([]any{json.Number("1"), json.Number("2"), json.Number("3"), "x", "yy", nil, true})
	value := func(depth int) *rapid.Generator[any] { return leaf }
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return leaf
		}
		inner := value(depth - 1)
		return rapid.OneOf(leaf,
			rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(inner, 0, 4).Draw(t, "list") }),
			rapid.Custom(func(t *rapid.T) any {
				return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "o", "ab"}), inner, 0, 4).Draw(t, "object")
			}))
	}
	path := store.MustParsePath("†s.here")
	right, wrong := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(schemas).Draw(t, "schema")
		there, data := value(2).Draw(t, "there"), value(2).Draw(t, "data")
		method := rapid.SampledFrom([]store.Method{store.Push, store.Concat, store.Assign, store.Merge, store.Set}).Draw(t, "method")
		if s.Validate(there, "") != nil {
			return
		}
		view, err := store.OpenView(t.Context(), memory.New(), "c")
		if err != nil {
			t.Fatal(err)
		}
		m := store.Message{Type: store.TypeData, Kind: "s", Path: path, Method: store.Set, Data: store.Wrap(path, there), HasData: true, Producer: true}
		view.Stage(m)
		m.Method, m.Data = method, store.Wrap(path, data)
		op, _ := m.Op()
		if view.Resolver().CheckOp(t.Context(), op) != nil {
			return // it is refused for itself
		}
		view.Stage(m)
		now, err := view.Resolver().Value(t.Context(), path, "")
		if err != nil {
			t.Fatal(err)
		}
		whole, part := s.Validate(now, ""), s.AcceptsIn(path, method, data, now)
		if whole == nil {
			right++
		} else {
			wrong++
		}
		if (whole == nil) != (part == nil) {
			t.Fatalf("%s %s onto %s: as a whole %v, what has joined %v", method, store.EncodeJSON(data), store.EncodeJSON(there), whole, part)
		}
	})
	if right == 0 || wrong == 0 {
		t.Errorf("%d values were right, and %d wrong", right, wrong)
	}
}
