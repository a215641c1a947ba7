package schema_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"obelus/engine/schema"
	"obelus/store"
)

// BenchmarkSchema takes the time of a check of one value.
func BenchmarkSchema(b *testing.B) {
	row := `{"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "maximum": 9}, "b": {"type": "string", "pattern": "^[a-z]+$"},
		"c": {"enum": ["x", "y"]}, "l": {"type": "array", "items": {"type": "string"}}, "o": {"type": "object"}}}`
	union := `{"oneOf": [{"properties": {"k": {"const": 1}, "l": {"type": "array"}}}, {"properties": {"k": {"const": 2}, "l": {"type": "object"}}}]}`
	plain := `{"a": 1, "b": "hello", "c": "y", "l": ["x"], "o": {"z": 1}}`
	rows := "["
	for i := range 1000 {
		rows += fmt.Sprintf(`{"a": %d, "b": "hello", "c": "y"},`, i%9)
	}
	rows += plain + "]"
	for _, c := range []struct{ name, schema, value string }{
		{"plain", row, plain},
		{"rows", `{"items": ` + row + `}`, rows},
		{"empty object that stays", row, `{"a": 1, "o": {}}`},
		{"empty object for an array", row, `{"a": 1, "l": {}}`},
		{"empty object in a union", union, `{"k": 1, "l": {}}`},
		{"pattern", `{"pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"}`, `"c0a8012e-7c1f-4b5e-9d0a-0123456789ab"`},
	} {
		b.Run(c.name, func(b *testing.B) {
			var source any
			if err := json.Unmarshal([]byte(c.schema), &source); err != nil {
				b.Fatal(err)
			}
			schema, err := schema.New(source)
			if err != nil {
				b.Fatal(err)
			}
			value, err := store.DecodeJSON([]byte(c.value))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := schema.Validate(schema.Lists(value), ""); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+", compile", func(b *testing.B) {
			source, err := store.DecodeJSON([]byte(c.schema))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := schema.New(source); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
