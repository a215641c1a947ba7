package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"obelus/engine/expr"
	"obelus/engine/internal/capture"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/store"
)

// givenOutput is the output of an anonymous delegate: what its one call gave back.
func (vs *values) givenOutput() any {
	if vs.event.Plan != plan.Anonymous || len(vs.state.Calls) != 1 || vs.state.Calls[0].Record.Status != journal.Done {
		return nil
	}
	result, err := capture.Unpack(vs.state.Calls[0].Record.Given)
	var failure *plan.Failure
	if errors.As(err, &failure) {
		return failure.Fields
	}
	if result.Message != nil {
		return result.Message["data"]
	}
	return result.Value
}

// output resolves the final output. A problem is one of the plan's, and makes
// it null.
func (vs *values) output(ctx context.Context) (v any, problem, err error) {
	if vs.plan.Output == nil {
		return vs.givenOutput(), nil, nil
	}
	resolver := vs.view.Resolver()
	before := false // a missing value exists as of before
	v, problem, err = evalOutput(ctx, vs.plan.Output, func(path store.Path) (any, bool, bool, error) {
		resolved, err := resolver.Resolve(ctx, path, "")
		if err != nil || !resolved.Exists {
			return nil, false, false, err
		}
		stale, err := vs.isStale(ctx, path, resolved.From)
		before = before || stale
		return resolved.Value, !stale, false, err
	})
	if fault, ok := errors.AsType[*plan.Fault](problem); ok && before && fault.Code == plan.CodeUnresolved {
		problem = plan.Faultf(plan.CodeUnresolved, "%w in this run; what is there is of before", fault.Err)
	}
	if problem != nil || err != nil {
		return nil, problem, err
	}
	v, problem = holdOutput(v, vs.event.Choice, vs.plan.Schema, func(err error) error { return vs.hintEmpty(ctx, -1, vs.plan.Output, err) })
	return v, problem, nil
}

// evalOutput resolves the references of a final output.
func evalOutput(ctx context.Context, output *expr.Template, lookup expr.Lookup) (v any, problem, err error) {
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

// holdOutput holds a final output to its schema; hint may add to what is wrong. A choice that fails
// has the message of its failure.
func holdOutput(v any, choice *plan.Choice, fits *schema.Schema, hint func(error) error) (output any, problem error) {
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

// checkOutput says what is wrong with the output of a model's solution, where no call of the
// solution can bear on it: that is mended before the tick begins. Its error is the log's.
func (l solver) checkOutput(ctx context.Context, request plan.Request, solution *plan.Solution) (problem, err error) {
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
		if fits, bad = schema.New(request.Schema, l.runner.Registry.Schemas...); bad != nil {
			return nil, nil // the request is refused for it
		}
	}
	resolver := l.view.Resolver()
	v, problem, err := evalOutput(ctx, output, func(path store.Path) (any, bool, bool, error) {
		resolved, err := resolver.Resolve(ctx, path, "")
		return resolved.Value, resolved.Exists, false, err
	})
	if problem != nil || err != nil {
		return problem, err
	}
	_, problem = holdOutput(v, request.Choice, fits, func(err error) error { return err })
	return problem, nil
}

// isStale reports whether a value is from before the tick, and does not count for the output: a
// call of the tick may write there, as for another call (protocol §7), and none has, nor has a
// foreign message since the tick began.
func (vs *values) isStale(ctx context.Context, path store.Path, from []int64) (bool, error) {
	writers := vs.plan.Graph.Writers[""].Above(path)
	if len(writers) == 0 || slices.ContainsFunc(writers, func(i int) bool { return vs.state.WroteAbove(i, path) }) {
		return false, nil
	}
	staged := vs.view.Staged()
	for _, seq := range from {
		var m *store.Message
		switch at := seq - vs.view.Committed(); {
		case seq <= vs.event.Start:
			continue
		case at > 0:
			m = &staged[at-1]
		default:
			var err error
			if m, err = journal.In(vs.log, vs.context).MessageAt(ctx, seq); err != nil {
				return false, err
			}
		}
		if m != nil && m.Call == "" {
			return false, nil
		}
	}
	return true, nil
}
