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
	v, lacking, err := vs.plan.Output.Eval(ctx, func(path store.Path) (any, bool, bool, error) {
		resolved, err := resolver.Resolve(ctx, path, "")
		if err != nil || !resolved.Exists {
			return nil, false, false, err
		}
		stale, err := vs.isStale(ctx, path, resolved.From)
		before = before || stale
		return resolved.Value, !stale, false, err
	})
	var bad *expr.Error
	switch {
	case errors.As(err, &bad):
		return nil, plan.Faultf(plan.CodeExpression, "output: %w", err), nil
	case err != nil:
		return nil, nil, err
	case lacking != nil:
		if lacking.Member != nil {
			return nil, plan.Faultf(plan.CodeExpression, "output: %w", lacking), nil
		}
		what := "the output is missing: nothing wrote " + strings.Join(lacking.Names(), " or ")
		if before {
			what += " in this run; what is there is of before"
		}
		return nil, plan.Faultf(plan.CodeUnresolved, "%s", what), nil
	}
	if err := store.CheckDepth(v); err != nil {
		return nil, plan.Faultf(plan.CodeSchema, "the final output is %w", err), nil
	}
	if choice := vs.event.Choice; choice != nil && choice.Fails {
		message, ok := v.(string)
		if !ok || message == "" {
			return nil, plan.Faultf("output", "output: the message of a failure is a text, not %s", store.EncodeJSON(v)), nil
		}
		return map[string]any{"message": message}, nil, nil
	}
	if vs.plan.Schema != nil {
		if err := vs.plan.Schema.Validate(v, "output"); err != nil {
			err = vs.hintEmpty(ctx, -1, vs.plan.Output, err)
			return nil, plan.Faultf(plan.CodeSchema, "the final output breaks its schema: %w", err), nil
		}
	}
	return v, nil, nil
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
