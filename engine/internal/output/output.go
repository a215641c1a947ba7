// Package output computes the final output of a run: of a tick that has ended, and of a solution
// whose calls have no bearing on it.
package output

import (
	"context"
	"errors"
	"slices"
	"strings"

	"obelus/engine/expr"
	"obelus/engine/internal/capture"
	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/store"
)

// Tick is a tick whose calls have settled.
type Tick struct {
	Plan     *plan.Plan
	Event    *journal.PlanEvent
	State    *sched.State
	Resolver store.Resolver // of the context as the tick ends
	// MessageAt returns the message at a seq after the tick's start, nil where there is none.
	MessageAt func(seq int64) (*store.Message, error)
	// Explain adds a remedy to the error of an output that breaks its schema.
	Explain func(error) error
}

// given is the output of an anonymous delegate: what its one call gave back.
func (t *Tick) given() any {
	if t.Event.Plan != plan.Anonymous || len(t.State.Calls) != 1 || t.State.Calls[0].Record.Status != journal.Done {
		return nil
	}
	result, err := capture.Unpack(t.State.Calls[0].Record.Given)
	var failure *plan.Failure
	if errors.As(err, &failure) {
		return failure.Fields
	}
	if result.Message != nil {
		return result.Message["data"]
	}
	return result.Value
}

// Value resolves the final output. A problem is one of the plan's, and makes it null.
func (t *Tick) Value(ctx context.Context) (v any, problem, err error) {
	if t.Plan.Output == nil {
		return t.given(), nil, nil
	}
	before := false // a missing value exists as of before
	v, problem, err = evaluate(ctx, t.Plan.Output, func(path store.Path) (any, bool, bool, error) {
		resolved, err := t.Resolver.Resolve(ctx, path, "")
		if err != nil || !resolved.Exists {
			return nil, false, false, err
		}
		stale, err := t.isStale(path, resolved.From)
		before = before || stale
		return resolved.Value, !stale, false, err
	})
	if fault, ok := errors.AsType[*plan.Fault](problem); ok && before && fault.Code == plan.CodeUnresolved {
		problem = plan.Faultf(plan.CodeUnresolved, "%w in this run; what is there is of before", fault.Err)
	}
	if problem != nil || err != nil {
		return nil, problem, err
	}
	v, problem = hold(v, t.Event.Choice, t.Plan.Schema, t.Explain)
	return v, problem, nil
}

// evaluate resolves the references of a final output.
func evaluate(ctx context.Context, output *expr.Template, lookup expr.Lookup) (v any, problem, err error) {
	v, lacking, err := output.Eval(ctx, lookup)
	var bad *expr.Error
	switch {
	case errors.As(err, &bad):
		return nil, plan.Faultf(plan.CodeExpression, "output: %w", err), nil
	case err != nil:
		return nil, nil, err
	case lacking == nil:
		return v, nil, nil
	case lacking.Member != nil:
		return nil, plan.Faultf(plan.CodeExpression, "output: %w", lacking), nil
	}
	return nil, plan.Faultf(plan.CodeUnresolved, "the output is missing: nothing wrote %s", strings.Join(lacking.Names(), " or ")), nil
}

// hold holds a final output to its schema; hint may add to what is wrong. A choice that fails has
// the message of its failure.
func hold(v any, choice *plan.Choice, fits *schema.Schema, hint func(error) error) (output any, problem error) {
	if err := store.CheckDepth(v); err != nil {
		return nil, plan.Faultf(plan.CodeSchema, "the final output is %w", err)
	}
	if choice != nil && choice.Fails {
		message, ok := v.(string)
		if !ok || message == "" {
			return nil, plan.Faultf("output", "output: the message of a failure is a text, not %s", store.EncodeJSON(v))
		}
		return map[string]any{"message": message}, nil
	}
	if fits != nil {
		if err := fits.Validate(v, "output"); err != nil {
			return nil, plan.Faultf(plan.CodeSchema, "the final output breaks its schema: %w", hint(err))
		}
	}
	return v, nil
}

// Check returns what is wrong with the output of a solution to a request, where no call of the
// solution can bear on it: that is mended before the tick begins. Its error is the log's.
func Check(ctx context.Context, request plan.Request, solution *plan.Solution, resolver store.Resolver, options []schema.Option) (problem, err error) {
	if solution.Output == nil {
		return nil, nil
	}
	request.Output, request.Choice = store.Some(solution.Output), nil
	if err := request.Choose(); err != nil {
		return err, nil
	}
	output, bad := expr.ParseTemplate(request.Output.Value, "output")
	if bad != nil || len(output.Reads()) > 0 && len(solution.Calls) > 0 {
		return bad, nil
	}
	var fits *schema.Schema
	if request.Schema != nil {
		if fits, bad = schema.New(request.Schema, options...); bad != nil {
			return nil, nil // the request is refused for it
		}
	}
	v, problem, err := evaluate(ctx, output, func(path store.Path) (any, bool, bool, error) {
		resolved, err := resolver.Resolve(ctx, path, "")
		return resolved.Value, resolved.Exists, false, err
	})
	if problem != nil || err != nil {
		return problem, err
	}
	_, problem = hold(v, request.Choice, fits, func(err error) error { return err })
	return problem, nil
}

// isStale reports whether a value is from before the tick, and does not count for the output: a
// call of the tick may write there, as for another call (protocol §7), and none has, nor has a
// foreign message since the tick began.
func (t *Tick) isStale(path store.Path, from []int64) (bool, error) {
	writers := t.Plan.Graph.Writers[""].Above(path)
	if len(writers) == 0 || slices.ContainsFunc(writers, func(i int) bool { return t.State.WroteAbove(i, path) }) {
		return false, nil
	}
	for _, seq := range from {
		if seq <= t.Event.Start {
			continue
		}
		if m, err := t.MessageAt(seq); err != nil || m != nil && m.Call == "" {
			return false, err
		}
	}
	return true, nil
}
