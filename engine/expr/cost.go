package expr

import (
	"strings"

	"github.com/expr-lang/expr/vm/runtime"
)

// countedFunctions are functions that may take long, and so charge for the values that they look
// at.
var countedFunctions = map[string]func(ev *evaluation, args []any) (any, error){
	"==": func(ev *evaluation, args []any) (any, error) {
		return ev.equalNoted(args[0], args[1]), ev.spend(0)
	},
	"!=": func(ev *evaluation, args []any) (any, error) {
		return !ev.equalNoted(args[0], args[1]), ev.spend(0)
	},
	"<":         comparison(less),
	"<=":        comparison(func(a, b any) bool { return runtime.LessOrEqual(alike(a, b)) }),
	">":         comparison(func(a, b any) bool { return runtime.More(alike(a, b)) }),
	">=":        comparison(func(a, b any) bool { return runtime.MoreOrEqual(alike(a, b)) }),
	"matches":   matches,
	"string":    asText,
	"costOfAll": func(ev *evaluation, args []any) (any, error) { return args[0], ev.spend(walked(args[0])) },
	"costOfText": func(ev *evaluation, args []any) (any, error) {
		text, _ := args[0].(string)
		return args[0], ev.spend(extent(text))
	},
	"trim": func(ev *evaluation, args []any) (any, error) {
		if len(args) == 1 {
			return strings.TrimSpace(args[0].(string)), nil
		}
		text, cut := args[0].(string), args[1].(string)
		if err := ev.spend(len(text) / 16 * len(cut)); err != nil {
			return nil, err
		}
		return strings.Trim(text, cut), nil
	},
}

func comparison(holds func(a, b any) bool) func(ev *evaluation, args []any) (any, error) {
	return func(ev *evaluation, args []any) (any, error) {
		if err := ev.spend(compared(args[0], args[1])); err != nil {
			return nil, err
		}
		return holds(args[0], args[1]), nil
	}
}

// walked is the cost of a function that walks over a value, nested arrays included.
func walked(v any) int {
	n := extent(v)
	array, _ := v.([]any)
	for _, e := range array {
		if inner, ok := e.([]any); ok {
			n += walked(inner)
		}
	}
	return n
}
