package schema_test

import (
	"strings"
	"testing"

	"obelus/engine/schema"
	"obelus/store"
)

// FuzzSchema holds that no schema and no value break the check, or keep it from its end.
func FuzzSchema(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"], "additionalProperties": false}`, `{"a": {"b": 1}}`},
		{`{"$defs": {"n": {"$dynamicAnchor": "x"}}, "items": {"$dynamicRef": "#x"}, "uniqueItems": true, "contains": {"const": 1.0}}`, `[1, [1], {"a": null}]`},
		{`{"if": {"type": "string", "pattern": "^(a|b)*$"}, "then": {"maxLength": 3}, "else": {"enum": [1e3, [2], {"a": 1}]}}`, `"abab"`},
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"multipleOf": 1e-9}], "additionalItems": {"not": {"type": "null"}}, "dependencies": {"a": ["b"], "c": {}}}`, `[1e9, null]`},
		{`{"anyOf": [{"unevaluatedProperties": {"type": "integer"}}, {"unevaluatedItems": false, "prefixItems": [true]}], "propertyNames": {"minLength": 1}, "patternProperties": {"^a": false}}`, `{"a": 1.5, "": 2}`},
		{`{"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": true, "dependentSchemas": {"a": {"$recursiveRef": "#"}}}`, `{"a": {}}`},
		{`{"pattern": "^(?=a)(\\w|[\\s\\S-x]){2,}\\1\\p{Lu}$", "anyOf": [{"type": "array"}, {"required": ["a"]}]}`, `"aaA"`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		s, err := store.DecodeJSON([]byte(text))
		if err != nil {
			return
		}
		v, err := store.DecodeJSON([]byte(value))
		if err != nil {
			return
		}
		made, err := schema.New(s)
		if err == nil {
			err = made.Validate(v, "value")
			made.Lists(v)
		}
		if err != nil && strings.Contains(err.Error(), "broke") {
			t.Errorf("%s holding %s: %v", text, value, err)
		}
	})
}
