package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"obelus/engine/plan"
	"obelus/store"
)

// Typed makes an activity of a Go function on Go types. Its tool follows from them
// ([plan.Described]): the parameters are the fields of In, a struct, by their JSON names, and
// those without omitempty or omitzero are required; a tag `jsonschema:"…"` describes one. The
// result is of type Out, which must be what encoding/json writes as the schema of its type says.
//
// The function's error is a [*plan.Failure] where the work was done without success, which a
// plan may handle; any other error is a fault. [plan.InvocationOf] gives it the call's key,
// attempt and context. Types that have no JSON Schema (channels, functions, a type that contains
// itself) are reported when the activity is registered, and by its calls.
func Typed[In, Out any](f func(ctx context.Context, in In) (Out, error)) plan.Activity {
	tool, err := toolOf[In, Out]()
	return &typed[In, Out]{f, tool, err}
}

type typed[In, Out any] struct {
	f    func(context.Context, In) (Out, error)
	tool map[string]any
	err  error // of the tool
}

// Tool implements [plan.Described].
func (t *typed[In, Out]) Tool() (any, error) { return t.tool, t.err }

// Run implements [plan.Activity].
func (t *typed[In, Out]) Run(ctx context.Context, call plan.Invocation) (plan.Result, error) {
	if t.err != nil {
		return plan.Result{}, t.err
	}
	params := maps.Clone(call.Call)
	maps.DeleteFunc(params, func(name string, _ any) bool { return strings.HasPrefix(name, "_") })
	var in In
	if err := json.Unmarshal(store.EncodeJSON(params), &in); err != nil {
		return plan.Result{}, fmt.Errorf("its parameters are not what the function takes: %w", err)
	}
	out, err := t.f(plan.WithInvocation(ctx, call), in)
	return plan.Result{Value: out}, err
}

// toolOf returns the tool of a function's types.
func toolOf[In, Out any]() (map[string]any, error) {
	params, err := schemaOf[In]()
	if err != nil {
		return nil, fmt.Errorf("its parameters: %w", err)
	}
	if params["type"] != "object" {
		return nil, fmt.Errorf("its parameters are the fields of a struct, not %T", *new(In))
	}
	output, err := schemaOf[Out]()
	if err != nil {
		return nil, fmt.Errorf("its result: %w", err)
	}
	params["_output"] = output
	return params, nil
}

func schemaOf[T any]() (map[string]any, error) {
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	read, err := store.DecodeJSON(text)
	object, _ := read.(map[string]any)
	if object == nil { // a schema of any value may be true
		object = map[string]any{}
	}
	return object, err
}
