package host

import (
	"errors"

	"obelus/engine/plan"
	"obelus/host/internal/luaerr"
)

// ScriptError is something wrong with a script, for the script's author: it names the place in the
// Lua source and shows no Go.
type ScriptError = luaerr.ScriptError

// Errors is everything that is wrong with a project, sorted by file and line. [Open] fails with it;
// it is never empty.
type Errors = luaerr.Errors

// Problems returns the problems of scripts in an error, as check shows them. ok is false for an
// error that is neither a [*ScriptError] nor [Errors].
func Problems(err error) ([]plan.Problem, bool) {
	var all Errors
	var one *ScriptError
	switch {
	case errors.As(err, &all):
	case errors.As(err, &one):
		all = Errors{one}
	default:
		return nil, false
	}
	problems := make([]plan.Problem, len(all))
	for i, e := range all {
		problems[i] = plan.Problem{File: e.File, Line: e.Line, Severity: plan.SeverityError, Code: plan.CodeSyntax, Message: e.Message}
	}
	return problems, true
}
