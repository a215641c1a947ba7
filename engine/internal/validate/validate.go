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
	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/store"
)

// Stage stages messages on a view if each of them fits the value that it joins and breaks no
// schema; else it stages none. A message that is refused gives a [*plan.MessageError].
func Stage(ctx context.Context, view *store.View, messages []store.Message, options []schema.Option) error {
	number, err := stageChecked(ctx, view, messages, options)
	var log *logError
	switch {
	case errors.As(err, &log):
		view.Drop()
		return log.err
	case err != nil:
		view.Drop()
		return &plan.MessageError{Number: number, Of: len(messages), Err: err}
	}
	return nil
}

// stageChecked stages messages one after the other. Its error is about one of them,
// whose number it gives, unless it is a [*logError].
func stageChecked(ctx context.Context, view *store.View, messages []store.Message, options []schema.Option) (number int, err error) {
	entered := &batchCheck{view: view, first: view.Seq(), arrivals: map[string][]arrival{}, options: options}
	for i, m := range messages {
		if err := ctx.Err(); err != nil {
			return 0, &logError{err}
		}
		if err := plan.NormalizeMessage(&m); err != nil {
			return i + 1, err
		}
		if m.Schema != nil {
			if _, err := schema.New(m.Schema); err != nil {
				return i + 1, err
			}
			if n, err := entered.checkKind(ctx, m.Kind); err != nil {
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
				return i + 1, &logError{err}
			}
		}
		if m.Producer != nil && m.Written == "" {
			m.Written = store.FormatDate(time.Now())
		}
		view.Stage(m)
		if ok {
			entered.add(op, i)
		}
	}
	return entered.checkAll(ctx)
}

// batchCheck is data that has been staged and not been held to a schema yet:
// several messages may make one value together, so it is the value that they
// have made that counts, by the schema that was in force when they came.
type batchCheck struct {
	view     *store.View
	first    int64                // the seq before the first message
	arrivals map[string][]arrival // by kind

	options []schema.Option
}

// arrival is an operation and the message that it came with, from 0.
type arrival struct {
	op      store.Op
	message int
}

func (e *batchCheck) add(op store.Op, message int) {
	kind := op.Path.Kind()
	e.arrivals[kind] = append(e.arrivals[kind], arrival{op, message})
}

// checkKind checks the messages of a kind that were added against the schemas in force, before
// another schema is.
func (e *batchCheck) checkKind(ctx context.Context, kind string) (number int, err error) {
	type value struct {
		path     store.Path
		instance string
	}
	schemas, checked := map[string]*schema.Schema{}, map[value]bool{}
	for _, a := range e.arrivals[kind] {
		v := value{a.op.Path, a.op.Instance}
		if checked[v] {
			continue
		}
		checked[v] = true
		if err := ctx.Err(); err != nil {
			return 0, &logError{err}
		}
		declared, of, err := e.view.Schema(ctx, kind, v.instance)
		if err != nil {
			return 0, &logError{err}
		}
		if declared == nil {
			continue
		}
		compiled := schemas[of]
		if compiled == nil {
			if compiled, err = schema.New(declared, e.options...); err != nil {
				return 0, err
			}
			schemas[of] = compiled
		}
		if err := e.checkJoined(ctx, compiled, a.op, 0); err != nil {
			if e.brokenBefore(ctx, declared, compiled, a.op) {
				continue
			}
			return e.culprit(ctx, compiled, a.op), err
		}
	}
	delete(e.arrivals, kind)
	return 0, nil
}

// brokenBefore reports whether a value breaks its schema by formats alone and did so before the
// messages came, as one that an older version took, which looked at no formats.
func (e *batchCheck) brokenBefore(ctx context.Context, declared any, compiled *schema.Schema, op store.Op) bool {
	if e.first == 0 || e.checkJoined(ctx, compiled, op, e.first) == nil {
		return false
	}
	lenient, err := schema.New(declared, append(slices.Clip(e.options), schema.IgnoreFormats)...)
	return err == nil && e.checkJoined(ctx, lenient, op, 0) == nil
}

func (e *batchCheck) checkAll(ctx context.Context) (number int, err error) {
	asTheyCame := func(a, b string) int { return e.arrivals[a][0].message - e.arrivals[b][0].message }
	for _, kind := range slices.SortedFunc(maps.Keys(e.arrivals), asTheyCame) {
		if number, err := e.checkKind(ctx, kind); err != nil {
			return number, err
		}
	}
	return 0, nil
}

// checkJoined holds what operations at a path have made, as of a seq, against the
// schema that is declared for its kind.
func (e *batchCheck) checkJoined(ctx context.Context, schema *schema.Schema, op store.Op, at int64) error {
	resolver := e.view.Resolver()
	resolver.At = at
	var there store.Resolved
	var err error
	if at == 0 {
		there.Value, err = resolver.Value(ctx, op.Path, op.Instance)
		there.Exists = there.Value != nil
	}
	if err == nil && !there.Exists {
		there, err = resolver.Resolve(ctx, op.Path, op.Instance)
	}
	if err != nil {
		return &logError{err}
	}
	if !there.Exists { // as of a seq before it came, or later messages have replaced it
		return nil
	}
	return schema.Accepts(op.Path, store.Set, there.Value, resolving(ctx, resolver, op.Instance))
}

// culprit finds the number of the message from which on the value of an operation
// breaks the schema, among those that bear on it and came under the schema.
func (e *batchCheck) culprit(ctx context.Context, schema *schema.Schema, op store.Op) int {
	var bearing []int
	for _, a := range e.arrivals[op.Path.Kind()] {
		if a.op.Path.Overlaps(op.Path) && (a.op.Instance == "" || a.op.Instance == op.Instance) {
			bearing = append(bearing, a.message)
		}
	}
	last := len(bearing) - 1 // the last one does: the result of all of them was checked before
	i := sort.Search(last, func(i int) bool {
		return e.checkJoined(ctx, schema, op, e.first+int64(bearing[i])+1) != nil
	})
	return bearing[i] + 1
}

// checkContent holds definitions of tools, and the calls of a plan, to their form.
func checkContent(m *store.Message) error {
	switch m.Type {
	case store.TypeTool:
		definitions, _ := m.Data.Value.(map[string]any)
		for _, name := range jsonvalue.SortedKeys(definitions) {
			if _, err := plan.NewTool(name, definitions[name]); err != nil {
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

// logError is a log that can't be read, and no fault of a message.
type logError struct{ err error }

func (e *logError) Error() string { return e.err.Error() }

// resolving gives the values of paths for an instance.
func resolving(ctx context.Context, r store.Resolver, instance string) func(store.Path) (any, error) {
	return func(at store.Path) (any, error) {
		v, err := r.Value(ctx, at, instance)
		if err != nil {
			return nil, &logError{err}
		}
		return v, nil
	}
}
