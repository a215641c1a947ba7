package engine

import (
	"context"
	"fmt"
)

// Try runs a call's activity once, outside of any log, as tests of activities
// do: the call is held to its tool and filled in as in a plan, and so is the
// result. kinds is what there is to be seen; of it the activity gets what the
// call's scopes grant, all if it has none. References are not resolved. Its
// error is a [*PlanError] where the call is refused, a [*Failure] where the
// activity says no.
func Try(ctx context.Context, registry *Registry, call, kinds map[string]any) (Result, error) {
	request, err := (&Request{Calls: []Source{{Call: call}}}).received()
	if err != nil {
		return Result{}, err
	}
	plan, err := compile(request, registry, NothingExists)
	if err != nil {
		return Result{}, err
	}
	c := plan.Calls[0]
	if c.activity == nil || c.activity.Activity == nil {
		return Result{}, fmt.Errorf("%s is run by no activity", c.Tool)
	}
	if kinds, err = receivedObject(kinds, "context"); err != nil {
		return Result{}, err
	}
	granted := kinds
	if _, scoped := c.Issued["_scopes"]; scoped {
		granted = map[string]any{}
		for _, scope := range c.scopes {
			if v, ok := digKind(kinds, scope.Kind(), scope.Segments()); ok {
				put(granted, append([]string{scope.Kind()}, scope.Segments()...), v)
			}
		}
	}
	result, err := once(ctx, c.doer, c.activity.Timeout, 0, c.activity.Activity.Run, Invocation{Call: c.Issued, Context: granted, Tool: c.tool.Schema, Key: "test/1.1", Attempt: 1})
	if err == nil && result.Message == nil {
		result.Value, err = c.result(result.Value, result.Loose)
	}
	return result, err
}

// digKind finds what stands below a kind.
func digKind(kinds map[string]any, kind string, segments []string) (any, bool) {
	v, ok := kinds[kind]
	for _, segment := range segments {
		object, _ := v.(map[string]any)
		if v, ok = object[segment]; !ok {
			return nil, false
		}
	}
	return v, ok
}
