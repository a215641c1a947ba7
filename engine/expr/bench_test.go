package expr_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"obelus/engine/expr"
	"obelus/store"
)

// BenchmarkExpr compiles expressions and evaluates them: a reference, a choice,
// and what expr computes.
func BenchmarkExpr(b *testing.B) {
	values := map[string]any{"†state.a": json.Number("7"), "†state.items": []any{json.Number("1"), json.Number("20"), json.Number("30")}}
	lookup := func(path store.Path) (any, bool, bool, error) {
		v, ok := values[path.String()]
		return v, ok, false, nil
	}
	for name, text := range map[string]string{
		"reference": "†state.a", "choice": `†state.none || †state.a || "x"`, "arithmetic": "†(†state.a * 3 + 1)", "filter": "†(filter(†state.items, # > 10))",
	} {
		b.Run("compile/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := expr.Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("evaluate/"+name, func(b *testing.B) {
			e, err := expr.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if v, missing, err := e.Eval(context.Background(), lookup); v == nil || missing != nil || err != nil {
					b.Fatal(v, missing, err)
				}
			}
		})
	}
}

// BenchmarkOutput compiles output paths: a reference, which goes past expr, those that expr
// evaluates, and the deepest that the length of an expression allows.
func BenchmarkOutput(b *testing.B) {
	const levels = expr.MaxExpression/len("†a||(†b&&())") - 1
	for name, text := range map[string]string{
		"reference": "†state.a", "alternatives": "†state.a || †state.b", "fan-out": "†state.a && †log.a",
		"distributed": "(†a.x || †a.y) && †a.log", "deepest": strings.Repeat("†a||(†b&&(", levels) + "†a" + strings.Repeat("))", levels),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := expr.ParseOutput(text); (err == nil) == (name == "deepest") {
					b.Fatal(err)
				}
			}
		})
	}
}
