package schema_test

import (
	"strings"
	"testing"

	"obelus/engine/schema"
	"obelus/store"
)

// TestNode_Admits: a schema rules a part of its value out, names it, or leaves it open beside others.
func TestNode_Admits(t *testing.T) {
	for _, test := range []struct {
		schema, path string
		want         schema.Admission
	}{
		{`{}`, "a.b", schema.Admitted},
		{`true`, "a", schema.Admitted},
		{`false`, "", schema.RuledOut},
		{`{"type": "object"}`, "a", schema.Admitted},
		{`{"type": "string"}`, "", schema.Admitted},
		{`{"type": "string"}`, "a", schema.RuledOut},
		{`{"type": ["string", "object"]}`, "a", schema.Admitted},
		{`{"properties": {"a": {}}}`, "a.b", schema.Admitted},
		{`{"properties": {"a": {"type": "integer"}}}`, "a.b", schema.RuledOut},
		{`{"properties": {"a": {}}}`, "b", schema.Unnamed},
		{`{"properties": {"a": {}}, "additionalProperties": false}`, "b", schema.RuledOut},
		{`{"properties": {"a": {}}, "additionalProperties": true}`, "b.c", schema.Admitted},
		{`{"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}`, "b.c", schema.RuledOut},
		{`{"properties": {"a": {}}, "patternProperties": {"^x": {}}}`, "b", schema.Admitted},
		{`{"type": "array", "items": {"properties": {"n": {}}}}`, "0.n", schema.Admitted},
		{`{"type": "array", "items": {"properties": {"n": {}}}}`, "0.m", schema.Unnamed},
		{`{"prefixItems": [{"type": "string"}], "items": false}`, "1", schema.RuledOut},
		{`{"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {}}}}}`, "x", schema.Admitted},
		{`{"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {}}}}}`, "y", schema.Unnamed},
		{`{"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]}`, "b", schema.Admitted},
		{`{"properties": {"a": {}}, "allOf": [{"required": ["b"]}]}`, "b", schema.Admitted},
		{`{"properties": {"a": {}}, "allOf": [{"required": ["a"]}]}`, "b", schema.Unnamed},
		{`{"anyOf": [{"properties": {"a": {}}, "additionalProperties": false}, {"properties": {"b": {}}, "additionalProperties": false}]}`, "b", schema.Admitted},
		{`{"anyOf": [{"properties": {"a": {}}, "additionalProperties": false}, {"type": "null"}]}`, "b", schema.RuledOut},
		{`{"$ref": "#"}`, "a", schema.Admitted},
		// What additionalProperties says is about objects.
		{`{"type": "array", "additionalProperties": false}`, "0", schema.Admitted},
		{`{"type": "array", "prefixItems": [{}], "additionalProperties": false}`, "1", schema.Admitted},
		{`{"type": ["array", "object"], "properties": {"a": {}}, "additionalProperties": false}`, "0", schema.Admitted},
		{`{"type": "object", "properties": {"a": {}}, "additionalProperties": false}`, "0", schema.RuledOut},
		// What is not understood admits all.
		{`{"properties": {"a": {}}, "if": {}, "then": {"properties": {"b": {}}}}`, "b", schema.Admitted},
		{`{"properties": {"a": {}}, "dependentSchemas": {"a": {"properties": {"b": {}}}}}`, "b", schema.Admitted},
		{`{"properties": {"a": {}}, "$ref": "#base"}`, "b", schema.Admitted},
		{`{"properties": {"a": {}}, "$ref": "other.json"}`, "b", schema.Admitted},
		{`{"properties": {"a": {}}, "$dynamicRef": "#x"}`, "b", schema.Admitted},
		{`{"properties": {"a": {}}, "unevaluatedProperties": {"type": "string"}}`, "b", schema.Admitted},
		{`{"properties": {"a": {}}, "required": ["b"]}`, "b", schema.Admitted},
		{`{"properties": {"a": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}`, "b", schema.Admitted},
		{`{"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"properties": {"x": {}}}}}`, "y", schema.Unnamed},
		{`{"properties": {"a": {"$id": "http://x/y", "$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}}`, "a.b", schema.Admitted},
	} {
		v, err := store.DecodeJSON([]byte(test.schema))
		if err != nil {
			t.Fatal(err)
		}
		var segments []string
		if test.path != "" {
			segments = strings.Split(test.path, ".")
		}
		if got := (schema.Node{Root: v, At: v}).Admits(segments); got != test.want {
			t.Errorf("%s says %d of %q, want %d", test.schema, got, test.path, test.want)
		}
	}
}
