package engine_test

import (
	"strings"
	"testing"

	"obelus/engine"
	"obelus/store"
)

// TestReasonsInOrder holds that what is wrong with a value is told alike each time.
func TestReasonsInOrder(t *testing.T) {
	text := map[string]any{"type": "string"}
	schema, err := engine.NewSchema(map[string]any{
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
