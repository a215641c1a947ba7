package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"obelus/engine/expr"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/schema"
)

// hintEmpty adds to an error what to do where a reference in a template brought an empty
// object that should be an array: an empty table of Lua is one. i is the call that reads, -1
// for the output.
func (vs *values) hintEmpty(ctx context.Context, i int, from *expr.Template, err error) error {
	invalid, ok := errors.AsType[*schema.ValidationError](err)
	if !ok {
		return err
	}
	for _, location := range invalid.EmptyObjects {
		expr, rest := from.ExprAt(location)
		if expr == nil {
			continue
		}
		call, tool := vs.writerOf(ctx, i, expr, rest)
		if call == "" {
			return fmt.Errorf("%w (an empty Lua table is an object: whoever makes the list can use json.array())", err)
		}
		return fmt.Errorf("%w (an empty Lua table is an object: it comes from call %s of tool %q, whose activity can return json.array(), or whose tool can declare _output)", err, call, tool)
	}
	return err
}

// writerOf finds the call that wrote the empty object which an expression of call i, or of
// the output for -1, has brought: "" where that was no call, several, or can't be told.
func (vs *values) writerOf(ctx context.Context, i int, expr *expr.Expr, rest []string) (call, tool string) {
	resolver, instance := vs.view.Resolver(), ""
	if i >= 0 {
		resolver, instance = vs.resolver(i), vs.plan.Calls[i].Instance
	}
	for _, path := range expr.Reads() {
		for _, step := range rest {
			path = path.Child(step)
		}
		resolved, err := resolver.Resolve(ctx, path, instance)
		if err != nil || !schema.IsEmptyObject(resolved.Value) {
			continue
		}
		writers := vs.plan.Graph.SeenBy(instance, func(x *plan.WriterIndex) []int { return x.Above(path) })
		writers = slices.DeleteFunc(slices.Clone(writers), func(w int) bool { return !vs.state.WroteAbove(w, path) })
		if len(writers) == 1 {
			return vs.state.Calls[writers[0]].Record.Call, vs.plan.Calls[writers[0]].Tool
		}
		if seq := journal.NewestSeq(resolved.From); len(writers) == 0 && seq <= vs.event.Start {
			if m, err := journal.In(vs.log, vs.context).MessageAt(ctx, seq); err == nil && m != nil && m.Call != "" {
				producer, _ := m.Producer.(map[string]any)
				tool, _ := producer["_tool"].(string)
				return m.Call, tool
			}
		}
		return "", ""
	}
	return "", ""
}
