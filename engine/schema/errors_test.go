package schema_test

import (
	"strings"
	"testing"

	"obelus/engine/schema"
	"obelus/store"
)

// TestSchema_ReasonsInOrder holds that what is wrong with a value is told alike each time.
func TestSchema_ReasonsInOrder(t *testing.T) {
	text := map[string]any{"type": "string"}
	schema, err := schema.New(map[string]any{
		"properties": map[string]any{"a": text, "b": text, "c": text, "d": text, "l": map[string]any{"items": text}}, "additionalProperties": false})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ value, want string }{
		{`{"d":1,"c":1,"b":1,"a":1}`, "v.a: got number, want string; v.b: got number, want string; v.c: got number, want string; and 1 more"},
		{`{"z":1,"y":1,"x":1}`, `v: unknown "x", "y", "z"`},
		{`{"l":["","",1,"","","","","","","",2]}`, "v.l[2]: got number, want string; v.l[10]: got number, want string"},
	} {
		v, err := store.DecodeJSON([]byte(test.value))
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			if err := schema.Validate(v, "v"); err == nil || strings.ReplaceAll(err.Error(), " and \"", ", \"") != test.want {
				t.Fatalf("%s: %v, not %s", test.value, err, test.want)
			}
		}
	}
}

// TestSchema_Chains holds that one whose check would take all of the stack is refused.
func TestSchema_Chains(t *testing.T) {
	chained := func(n int) map[string]any {
		s := map[string]any{"type": "string"}
		for range n {
			s = map[string]any{"allOf": []any{s}}
		}
		return map[string]any{"properties": map[string]any{"x": s}}
	}
	if _, err := schema.New(chained(90)); err != nil {
		t.Error(err)
	}
	if _, err := schema.New(chained(110)); err == nil || !strings.Contains(err.Error(), "more than 100 schemas") {
		t.Errorf("a chain of 110 is told of by %v", err)
	}
	if _, err := schema.New(map[string]any{"properties": map[string]any{"x": map[string]any{"$ref": "#"}}}); err != nil {
		t.Error(err)
	}
}
