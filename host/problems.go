package host

import (
	"errors"

	"obelus/engine"
	"obelus/host/internal/luaerr"
)

// Problems gives what is wrong with scripts as check tells it. It gives none for
// an error that is neither a [*ScriptError] nor [Errors].
func Problems(err error) ([]engine.Problem, bool) {
	var all luaerr.Errors
	var one *luaerr.ScriptError
	switch {
	case errors.As(err, &all):
	case errors.As(err, &one):
		all = luaerr.Errors{one}
	default:
		return nil, false
	}
	problems := make([]engine.Problem, len(all))
	for i, e := range all {
		problems[i] = engine.Problem{File: e.File, Line: e.Line, Severity: engine.SeverityError, Code: engine.CodeSyntax, Message: e.Message}
	}
	return problems, true
}
