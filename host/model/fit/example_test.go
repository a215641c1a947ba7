package fit_test

import (
	"fmt"

	"obelus/host/model/fit"
)

func ExampleSchema() {
	dialect, _ := fit.DialectOf("openai")
	fitted, err := fit.Schema(map[string]any{
		"type":       "object",
		"properties": map[string]any{"name": map[string]any{"type": "string", "minLength": 1}, "note": map[string]any{"type": "string"}},
		"required":   []any{"name"},
	}, dialect)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(fitted.Notes)
	fmt.Println(fitted.Undo(map[string]any{"name": "Ada", "note": nil}))
	// Output:
	// [name: minLength is said in the description]
	// map[name:Ada] <nil>
}
