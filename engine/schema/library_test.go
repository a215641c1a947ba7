package schema_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"obelus/engine/schema"
	"obelus/store"
)

// randomSchemas makes schemas and values of a few names and numbers, so that they meet.
type randomSchemas struct{ *rand.Rand }

func (r randomSchemas) pick(of ...any) any { return of[r.IntN(len(of))] }

func (r randomSchemas) name() string { return r.pick("a", "b", "ab").(string) }

func (r randomSchemas) value(depth int) any {
	n := 9
	if depth == 0 {
		n = 7
	}
	switch r.IntN(n) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2, 3, 4:
		return json.Number(r.pick("1", "1.0", "10e-1", "-0.0", "0", "2.5", "100", "1e2", "-3").(string))
	case 5, 6:
		return r.pick("a", "ab", "", "é")
	case 7:
		array := []any{}
		for range r.IntN(4) {
			array = append(array, r.value(depth-1))
		}
		return array
	}
	object := map[string]any{}
	for range r.IntN(4) {
		object[r.name()] = r.value(depth - 1)
	}
	return object
}

func (r randomSchemas) schema(depth int) any {
	if depth == 0 || r.IntN(12) == 0 {
		return r.pick(true, false, map[string]any{}, map[string]any{"type": "integer"}, map[string]any{"$ref": "#"})
	}
	schema := map[string]any{}
	several := func() []any { return []any{r.schema(depth - 1), r.schema(depth - 1)} }
	for range 1 + r.IntN(3) {
		switch key := r.pick("const", "enum", "uniqueItems", "type", "properties", "items", "prefixItems", "allOf", "anyOf", "oneOf", "not", "if",
			"required", "pattern", "patternProperties", "additionalProperties", "contains", "propertyNames", "dependentSchemas",
			"unevaluatedProperties", "unevaluatedItems", "maximum", "multipleOf", "minLength", "format", "$ref").(string); key {
		case "const":
			schema[key] = r.value(2)
		case "enum":
			schema[key] = []any{r.value(1), r.value(2), r.value(2)}
		case "uniqueItems":
			schema[key] = true
		case "type":
			schema[key] = []any{r.pick("array", "object"), r.pick("string", "number", "integer", "null")}
		case "properties", "dependentSchemas":
			schema[key] = map[string]any{r.name(): r.schema(depth - 1), r.name(): r.schema(depth - 1)}
		case "prefixItems", "allOf", "anyOf", "oneOf":
			schema[key] = several()
		case "if":
			schema[key], schema["then"], schema["else"] = r.schema(depth-1), r.schema(depth-1), r.schema(depth-1)
		case "required":
			schema[key] = []any{r.name()}
		case "pattern":
			schema[key] = r.pick("^a", "b$", "^[ab]{1,2}$")
		case "patternProperties":
			schema[key] = map[string]any{"^a": r.schema(depth - 1)}
		case "maximum", "multipleOf":
			schema[key] = r.pick(json.Number("2"), json.Number("0.5"), json.Number("1e2"))
		case "minLength":
			schema[key] = json.Number("1")
		case "format":
			schema[key] = r.pick("regex", "date")
		case "$ref":
			schema[key] = "#"
		default:
			schema[key] = r.schema(depth - 1)
		}
	}
	if r.IntN(80) == 0 { // what is none
		schema[r.pick("type", "minLength", "required", "title", "format", "definitions", "multipleOf", "properties", "enum").(string)] =
			r.pick("strng", json.Number("0"), json.Number("-1"), []any{}, nil, map[string]any{"a": json.Number("5")})
	}
	if r.IntN(10) == 0 {
		schema["$schema"] = r.pick("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema")
	}
	return schema
}

// TestSchema_AgreesWithTheLibrary: what is looked up in place of the library, and the steps that it
// is asked for, change nothing of what fits.
func TestSchema_AgreesWithTheLibrary(t *testing.T) {
	fit, misfit, none := 0, 0, 0
	for seed := range uint64(6000) {
		r := randomSchemas{rand.New(rand.NewPCG(seed, 1))}
		s := r.schema(3)
		library := jsonschema.NewCompiler()
		library.DefaultDraft(jsonschema.Draft2020)
		library.AssertFormat()
		var theirs *jsonschema.Schema
		err := library.AddResource("x:///s.json", s)
		if err == nil {
			theirs, err = library.Compile("x:///s.json")
		}
		ours, err2 := schema.New(s)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%s: %v, and the library %v", store.EncodeJSON(s), err2, err)
		}
		if err != nil {
			none++
			continue
		}
		for range 8 {
			v := r.value(3)
			want, got := theirs.Validate(v), ours.Validate(v, "x")
			if (want == nil) != (got == nil) {
				t.Errorf("%s holding %s: %v, and the library %v", store.EncodeJSON(s), store.EncodeJSON(v), got, want)
			}
			if want == nil {
				fit++
			} else {
				misfit++
			}
		}
	}
	if fit < 1000 || misfit < 1000 || none < 50 {
		t.Errorf("%d fit, %d do not, and %d schemas are none", fit, misfit, none)
	}
}
