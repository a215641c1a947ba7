package engine

import (
	"context"
	"errors"
	"fmt"

	"obelus/engine/expr"
	"obelus/engine/plan"
	"obelus/store"
)

// Try runs a call's activity once, outside of any log, as tests of activities do: the call is
// checked against its tool and completed as in a plan, and so is the result. kinds holds the values
// of the context, to which the expressions in the call refer; the activity gets those that the
// call's scopes grant, all if it has none. It runs now, whatever the call says of a condition or a
// time. The error is a [*plan.PlanError] where the call is refused, a [*plan.Failure] where the
// activity fails.
func Try(ctx context.Context, registry *plan.Registry, call, kinds map[string]any) (plan.Result, error) {
	request, err := (&plan.Request{Calls: []plan.Source{{Call: call}}}).Normalize()
	if err != nil {
		return plan.Result{}, err
	}
	compiled, err := plan.CompileRequest(request, registry, plan.NothingExists)
	if err != nil {
		return plan.Result{}, err
	}
	c := compiled.Calls[0]
	refused := func(code string, err error) (plan.Result, error) {
		return plan.Result{}, &plan.PlanError{Problems: []plan.Problem{{Call: 1, Tool: c.Tool, Severity: plan.SeverityError, Code: code, Message: err.Error()}}}
	}
	if c.Activity == nil || c.Activity.Activity == nil || c.AsksModel {
		return plan.Result{}, fmt.Errorf("%s is run by no activity: what a model or a delegate answers has to be in a plan", c.Tool)
	}
	if kinds, err = plan.NormalizeObject(kinds, "context"); err != nil {
		return plan.Result{}, err
	}
	lookup := expr.LookupIn(kinds)
	arguments, missing, err := c.Resolve(ctx, lookup)
	if missing != nil {
		return refused(plan.CodeUnresolved, fmt.Errorf("%w: give it in the context", missing))
	}
	if fault, ok := errors.AsType[*plan.Fault](err); ok {
		return refused(fault.Code, fault)
	}
	if err != nil {
		return plan.Result{}, err
	}
	granted := kinds
	if _, scoped := c.Issued["_scopes"]; scoped {
		granted = map[string]any{}
		for _, scope := range c.ScopePaths {
			if v, ok, _, _ := lookup(scope); ok {
				granted[scope.Kind()] = store.Joined(granted[scope.Kind()], scope.Segments(), store.Set, v)
			}
		}
	}
	in := plan.Invocation{Call: arguments, Context: granted, Tool: c.Definition.Schema, Allows: c.Definition.Allows(), Key: "test/1.1", Attempt: 1}
	if registry.HasModel() {
		in.Models = &plan.Models{Registry: registry}
	}
	in.Timeout = c.Activity.AttemptsOf(c).Timeout
	result, err := runAttempt(ctx, c.ActivityName, in.Timeout, 0, c.Activity.Activity.Run, in)
	if err == nil && result.Message == nil {
		result.Value, err = c.CheckResult(result.Value, result.Loose)
	}
	return result, err
}
