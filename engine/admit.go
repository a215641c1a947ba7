package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"obelus/store"
)

// MessageError is a message that is refused. Nothing has been appended.
type MessageError struct {
	Number int // among those that were given, from 1
	Of     int
	Input  bool // it is the run's input
	Err    error
}

func (e *MessageError) Error() string {
	if e.Input {
		return "input: " + e.Err.Error()
	}
	if e.Of == 1 {
		return "message: " + e.Err.Error()
	}
	return fmt.Sprintf("message %d: %s", e.Number, e.Err)
}

func (e *MessageError) Unwrap() error { return e.Err }

// maxConflicts is how often an append that others get in before is tried
// again.
const maxConflicts = 1000

// Append adds messages to a context, all of them or none, creating it if it is
// absent. Each is checked against what it joins and against the schemas that
// are declared; one that does not fit gives a [*MessageError]. Others may
// append to the context at the same time.
func Append(ctx context.Context, log store.Log, name string, messages []store.Message) (store.Appended, error) {
	for range maxConflicts {
		view, err := store.OpenView(ctx, log, name)
		if err != nil {
			return store.Appended{}, err
		}
		if err := admit(ctx, view, messages); err != nil {
			return store.Appended{}, err
		}
		appended, err := log.Append(ctx, store.Batch{
			Context:   name,
			ExpectSeq: view.Committed(),
			Create:    &store.Origin{},
			Messages:  view.Staged(),
			Journal:   []store.Entry{{Event: eventAppend, Data: encode(map[string]any{"messages": len(messages)})}},
		})
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) {
			return appended, err
		}
	}
	return store.Appended{}, fmt.Errorf("context %s is appended to by others all the time: gave up after %d tries", name, maxConflicts)
}

// admit stages messages on a view if every one of them fits and breaks no
// schema. It stages none otherwise.
func admit(ctx context.Context, view *store.View, messages []store.Message) error {
	number, err := stage(ctx, view, messages)
	if err != nil {
		view.Drop()
		return &MessageError{Number: number, Of: len(messages), Err: err}
	}
	return nil
}

func stage(ctx context.Context, view *store.View, messages []store.Message) (number int, err error) {
	for i, m := range messages {
		if m.Schema != nil {
			if _, err := NewSchema(m.Schema); err != nil {
				return i + 1, err
			}
		}
		if m.Type == store.TypeTool {
			if err := checkTools(m.Data); err != nil {
				return i + 1, err
			}
		}
		if op, ok := m.Op(); ok {
			if err := view.Resolver().CheckOp(ctx, op); err != nil {
				return i + 1, err
			}
		}
		if m.Producer != nil && m.Written == "" {
			m.Written = date(time.Now())
		}
		view.Stage(m)
	}
	// Schemas are for values, and several messages may make one together.
	for i, m := range messages {
		op, ok := m.Op()
		if !ok {
			continue
		}
		if err := checkJoined(ctx, view, op, 0); err != nil {
			return blame(ctx, view, messages, op, i) + 1, err
		}
	}
	return 0, nil
}

// checkJoined holds what an operation has made, as of a seq, against the
// schema that is declared for it.
func checkJoined(ctx context.Context, view *store.View, op store.Op, at int64) error {
	resolver := view.Resolver()
	resolver.At = at
	value, err := resolver.Resolve(ctx, op.Path, op.Instance)
	if err != nil {
		return err
	}
	return checkDeclared(ctx, view, op.Path, value.Value)
}

// blame finds the message from which on the value of an operation, that of
// message i, breaks its schema.
func blame(ctx context.Context, view *store.View, messages []store.Message, op store.Op, i int) int {
	blamed := -1
	for n := len(messages) - 1; n >= i; n-- {
		other, ok := messages[n].Op()
		if !ok || !other.Path.Overlaps(op.Path) || other.Instance != "" && other.Instance != op.Instance {
			continue
		}
		if blamed >= 0 && checkJoined(ctx, view, op, view.Committed()+int64(n)+1) == nil {
			break
		}
		blamed = n
	}
	return blamed
}

func checkTools(data any) error {
	definitions, _ := data.(map[string]any)
	for _, name := range sortedKeys(definitions) {
		if _, err := NewTool(name, definitions[name]); err != nil {
			return err
		}
	}
	return nil
}

// checkDeclared holds the value that a path is to have against the schema that
// is declared for its kind, as far as that says something of the path.
func checkDeclared(ctx context.Context, view *store.View, path store.Path, value any) error {
	declared, err := view.Schema(ctx, path.Kind())
	if err != nil || declared == nil {
		return err
	}
	schema, err := NewSchema(declared)
	if err != nil {
		return err
	}
	for _, segment := range path.Segments() {
		property, allowed := schema.property(segment)
		if !allowed {
			return fmt.Errorf("%s: the schema declared for %s does not allow %q", path, path.Kind(), segment)
		}
		if property == nil {
			property = schema.item()
		}
		if schema = property; schema == nil {
			return nil
		}
	}
	if err := schema.Validate(value, path.String()); err != nil {
		return fmt.Errorf("it breaks the schema declared for %s: %w", path.Kind(), err)
	}
	return nil
}
