package host

import (
	"errors"

	"obelus/engine/plan"
	"obelus/host/internal/luaerr"
)

// Problems gives what is wrong with scripts as check tells it. It gives none for
// an error that is neither a [*ScriptError] nor [Errors].
func Problems(err error) ([]plan.Problem, bool) {
	var all luaerr.Errors
	var one *luaerr.ScriptError
	switch {
	case errors.As(err, &all):
	case errors.As(err, &one):
		all = luaerr.Errors{one}
	default:
		return nil, false
	}
	problems := make([]plan.Problem, len(all))
	for i, e := range all {
		problems[i] = plan.Problem{File: e.File, Line: e.Line, Severity: plan.SeverityError, Code: plan.CodeSyntax, Message: e.Message}
	}
	return problems, true
}
