package plan

import (
	"obelus/engine/expr"
	"obelus/store"
)

// parseCondition reads a call's _if: a Boolean, or a text that is always an expression. It is nil
// for a call that runs in any case.
func parseCondition(issued map[string]any) (*expr.Template, error) {
	switch v := issued["_if"].(type) {
	case nil:
		if _, given := issued["_if"]; !given {
			return nil, nil
		}
	case bool:
		if v {
			return nil, nil
		}
		return &expr.Template{Value: false}, nil
	case string:
		if err := refuseEscaped(v); err != nil {
			return nil, Faultf(CodeExpression, "_if: %w", err)
		}
		e, err := expr.ParseCondition(v)
		if err != nil {
			return nil, &Fault{CodeExpression, &expr.PlacedError{Place: "_if", Err: err}}
		}
		return &expr.Template{Expr: e}, nil
	}
	return nil, Faultf(CodeSchema, "_if: expected true, false or an expression, found %s", store.EncodeJSON(issued["_if"]))
}
