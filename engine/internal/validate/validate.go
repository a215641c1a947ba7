// Package validate checks messages that are to be appended to a context: their form, the values
// that they join, and the schemas that are declared.
package validate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"obelus/engine/internal/jsonvalue"
	"obelus/engine/internal/logerr"
	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/store"
)

// Stage stages messages on a view if each of them fits the value that it joins and breaks no
// schema; else it stages none. Its error is a [*plan.MessageError] if a message is refused.
func Stage(ctx context.Context, view *store.View, messages []store.Message, options []schema.Option) error {
	number, err := stageChecked(ctx, view, messages, options)
	if err == nil {
		return nil
	}
	view.Drop()
	if cause, ok := logerr.Cause(err); ok {
		return cause
	}
	return &plan.MessageError{Number: number, Of: len(messages), Err: err}
}

// stageChecked stages messages one after the other. Unless its error is a [*logerr.Error], it is
// about the message with the number, counted from 1.
func stageChecked(ctx context.Context, view *store.View, messages []store.Message, options []schema.Option) (number int, err error) {
	batch := &batchCheck{view: view, before: view.Seq(), unchecked: map[string][]stagedOp{}, options: options}
	for i, m := range messages {
		if err := ctx.Err(); err != nil {
			return 0, logerr.Wrap(err)
		}
		if err := plan.NormalizeMessage(&m); err != nil {
			return i + 1, err
		}
		if m.Schema != nil {
			if _, err := schema.New(m.Schema); err != nil {
				return i + 1, err
			}
			if n, err := batch.checkKind(ctx, m.Kind); err != nil {
				return n, err
			}
		}
		if err := checkContent(&m); err != nil {
			return i + 1, err
		}
		op, ok := m.Op()
		if ok {
			var misfit *store.FitError
			if err := view.Resolver().CheckOp(ctx, op); errors.As(err, &misfit) {
				return i + 1, err
			} else if err != nil {
				return i + 1, logerr.Wrap(err)
			}
		}
		if m.Producer != nil && m.Written == "" {
			m.Written = store.FormatDate(time.Now())
		}
		view.Stage(m)
		if ok {
			batch.add(op, i)
		}
	}
	return batch.checkAll(ctx)
}

// batchCheck checks the values that a batch of messages makes against the declared schemas. Several
// messages may make one value together, so values are checked once all messages of a kind are
// staged, or before a message declares another schema for the kind.
type batchCheck struct {
	view      *store.View
	before    int64                 // the seq before the first message
	unchecked map[string][]stagedOp // by kind
	options   []schema.Option
}

// stagedOp is an operation, with the index of its message in the batch.
type stagedOp struct {
	op      store.Op
	message int
}

func (b *batchCheck) add(op store.Op, message int) {
	kind := op.Path.Kind()
	b.unchecked[kind] = append(b.unchecked[kind], stagedOp{op, message})
}

// checkKind checks the values that the unchecked operations of a kind have made against the schemas
// in force. Its error is about the message with the number, counted from 1.
func (b *batchCheck) checkKind(ctx context.Context, kind string) (number int, err error) {
	type value struct {
		path     store.Path
		instance string
	}
	schemas, checked := map[string]*schema.Schema{}, map[value]bool{}
	for _, staged := range b.unchecked[kind] {
		v := value{staged.op.Path, staged.op.Instance}
		if checked[v] {
			continue
		}
		checked[v] = true
		if err := ctx.Err(); err != nil {
			return 0, logerr.Wrap(err)
		}
		declared, of, err := b.view.Schema(ctx, kind, v.instance)
		if err != nil {
			return 0, logerr.Wrap(err)
		}
		if declared == nil {
			continue
		}
		compiled := schemas[of]
		if compiled == nil {
			if compiled, err = schema.New(declared, b.options...); err != nil {
				return 0, err
			}
			schemas[of] = compiled
		}
		if err := b.checkValue(ctx, compiled, staged.op, 0); err != nil {
			if b.brokenBefore(ctx, declared, compiled, staged.op) {
				continue
			}
			return b.firstBreaking(ctx, compiled, staged.op), err
		}
	}
	delete(b.unchecked, kind)
	return 0, nil
}

// brokenBefore reports whether a value breaks its schema by formats alone, and did so before the
// batch: an older version, which did not check formats, accepted it.
func (b *batchCheck) brokenBefore(ctx context.Context, declared any, compiled *schema.Schema, op store.Op) bool {
	if b.before == 0 || b.checkValue(ctx, compiled, op, b.before) == nil {
		return false
	}
	lenient, err := schema.New(declared, append(slices.Clip(b.options), schema.IgnoreFormats)...)
	return err == nil && b.checkValue(ctx, lenient, op, 0) == nil
}

// checkAll checks all kinds, in the order of their first messages.
func (b *batchCheck) checkAll(ctx context.Context) (number int, err error) {
	byMessage := func(x, y string) int { return b.unchecked[x][0].message - b.unchecked[y][0].message }
	for _, kind := range slices.SortedFunc(maps.Keys(b.unchecked), byMessage) {
		if number, err := b.checkKind(ctx, kind); err != nil {
			return number, err
		}
	}
	return 0, nil
}

// checkValue checks the value at the path of an operation, as of a seq, or with all messages for 0,
// against the schema that is declared for its kind.
func (b *batchCheck) checkValue(ctx context.Context, declared *schema.Schema, op store.Op, at int64) error {
	resolver := b.view.Resolver()
	resolver.At = at
	var resolved store.Resolved
	var err error
	if at == 0 {
		resolved.Value, err = resolver.Value(ctx, op.Path, op.Instance)
		resolved.Exists = resolved.Value != nil
	}
	if err == nil && !resolved.Exists {
		resolved, err = resolver.Resolve(ctx, op.Path, op.Instance)
	}
	if err != nil {
		return logerr.Wrap(err)
	}
	if !resolved.Exists { // the seq is before its message, or later messages have replaced it
		return nil
	}
	return declared.Accepts(op.Path, store.Set, resolved.Value, Values(ctx, resolver, op.Instance))
}

// firstBreaking returns the number of the message with which the value of an operation begins to
// break the schema, among the unchecked ones that change the value.
func (b *batchCheck) firstBreaking(ctx context.Context, declared *schema.Schema, op store.Op) int {
	var changing []int
	for _, staged := range b.unchecked[op.Path.Kind()] {
		if staged.op.Path.Overlaps(op.Path) && (staged.op.Instance == "" || staged.op.Instance == op.Instance) {
			changing = append(changing, staged.message)
		}
	}
	last := len(changing) - 1 // with it the value is broken, as the caller knows
	i := sort.Search(last, func(i int) bool {
		return b.checkValue(ctx, declared, op, b.before+int64(changing[i])+1) != nil
	})
	return changing[i] + 1
}

// checkContent checks the form of tools' definitions and of a plan's calls.
func checkContent(m *store.Message) error {
	switch m.Type {
	case store.TypeTool:
		definitions, _ := m.Data.Value.(map[string]any)
		for _, name := range jsonvalue.SortedKeys(definitions) {
			tool, err := plan.NewTool(name, definitions[name])
			if err == nil {
				err = tool.CheckBrought()
			}
			if err != nil {
				return err
			}
		}
	case store.TypePlan:
		calls, _ := m.Data.Value.([]any)
		for i, call := range calls {
			object, ok := call.(map[string]any)
			if !ok {
				return fmt.Errorf("plan[%d]: a call is an object with _tool, not %s", i, store.Describe(call))
			}
			if tool, _ := object["_tool"].(string); tool == "" {
				return fmt.Errorf("plan[%d]: %s", i, plan.NoTool(object))
			}
		}
	}
	return nil
}

// Values returns a function that reads the values of paths for an instance. Its errors are of
// package logerr.
func Values(ctx context.Context, r store.Resolver, instance string) func(store.Path) (any, error) {
	return func(at store.Path) (any, error) {
		v, err := r.Value(ctx, at, instance)
		if err != nil {
			return nil, logerr.Wrap(err)
		}
		return v, nil
	}
}
