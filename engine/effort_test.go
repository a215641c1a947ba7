package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/store"
)

// within is a value within others, n deep.
func within(open, value, end string, n int) string {
	return strings.Repeat(open, n) + value + strings.Repeat(end, n)
}

// array is one of n elements.
func array(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	v, err := store.DecodeJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// No schema and value keep the host from its work: the check that nothing would end is
// refused before it begins.
func TestSchemaThatTakesTooLong(t *testing.T) {
	const tooLong = "it would take too long"
	twice := within(`{"a":`, "1", "}", 200)
	for name, c := range map[string]struct{ schema, value, wrong string }{
		"within itself, twice":  {`{"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}`, twice, tooLong},
		"by dynamic references": {`{"$dynamicAnchor": "n", "properties": {"a": {"allOf": [{"$dynamicRef": "#n"}, {"$dynamicRef": "#n"}]}}}`, twice, tooLong},
		"by recursive references": {`{"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": true,
			"properties": {"a": {"allOf": [{"$recursiveRef": "#"}, {"$recursiveRef": "#"}]}}}`, twice, tooLong},
		"in the words of older drafts": {`{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"allOf": [{"$ref": "#"}, {"$ref": "#"}]}]}`,
			within("[", "1", "]", 200), tooLong},
		"by what depends on a key":  {`{"dependentSchemas": {"a": {"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}}}`, twice, tooLong},
		"a large pattern":           {`{"pattern": "^(a|a?){1000}b"}`, `"` + strings.Repeat("a", 200_000) + `"`, tooLong},
		"a condition within itself": {`{"properties": {"a": {"if": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}}`, twice, tooLong},
		"many values to compare":    {`{"items": {"enum": ` + array(3_000, "[1, [1, 2, 3]]") + `}}`, array(3_000, "[1, [1, 2, 4]]"), tooLong},
		"long numbers":              {`{"items": {"multipleOf": 1e-9999}}`, array(20_000, "1.5"), tooLong},
		"large patterns":            {`{"pattern": "` + strings.Repeat("[ab]{1000}", 400) + `"}`, `"a"`, "it takes too much"},
	} {
		t.Run(name, func(t *testing.T) {
			schema, err := engine.NewSchema(decoded(t, c.schema))
			if err == nil {
				err = schema.Validate(decoded(t, c.value), "x")
			}
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("got %v, want %q", err, c.wrong)
			}
		})
	}
}

// What does not take long passes, however large or deep it is.
func TestSchemaThatTakesAWhile(t *testing.T) {
	tree := `{"anyOf": [{"type": "number"}, {"type": "array", "items": {"$ref": "#"}}, {"type": "object", "additionalProperties": {"$ref": "#"}}]}`
	list := `{"if": {"required": ["last"]}, "then": {"properties": {"next": {"$ref": "#"}}}, "else": {"properties": {"next": {"$ref": "#"}}}}`
	row := `{"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "maximum": 9}, "b": {"type": "string", "pattern": "^[a-z]+$"}, "c": {"enum": ["x", "y"]}}}`
	numbers := "0"
	for i := range 20_000 {
		numbers += fmt.Sprintf(",%d", i+1)
	}
	for name, c := range map[string]struct{ schema, value string }{
		"a tree":     {tree, within(`{"a": [`, "1", "]}", 120)},
		"a list":     {list, within(`{"next": `, "1", "}", 250)},
		"conditions": {`{"properties": {"next": {"if": {"$ref": "#"}, "then": {"required": ["next"]}}}}`, within(`{"next": `, "{}", "}", 200)},
		"a table":    {`{"items": ` + row + `}`, array(20_000, `{"a": 1, "b": "hello", "c": "y"}`)},
		"a set":      {`{"uniqueItems": true}`, "[" + numbers + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			schema, err := engine.NewSchema(decoded(t, c.schema))
			if err == nil {
				err = schema.Validate(decoded(t, c.value), "x")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}
