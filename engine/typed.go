package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"obelus/engine/plan"
	"obelus/engine/schema"
)

// Typed makes an activity of a Go function on Go types. Its tool follows from them
// ([plan.Described]): the parameters are the fields of In, a struct, by their JSON names, and
// those without omitempty or omitzero are required; a tag `jsonschema:"…"` describes one. A call
// with any other parameter is refused. In may also be a map with text as keys, whose calls have
// the parameters that they like. A number in a field of type any is an [encoding/json.Number].
// The result is of type Out, which must be what encoding/json writes as the schema of its type
// says.
//
// The function's error is a [*plan.Failure] where the work was done without success, which a
// plan may handle; any other error is a fault. [plan.InvocationOf] gives it the call's key,
// attempt and context. A type that reads or writes its own JSON may have any value there, but for
// those of the standard library whose form is known. Types that have no JSON Schema (channels,
// functions, a type that contains itself), parameters whose names begin with _, and a nil function
// are reported when the activity is registered, and by its calls.
func Typed[In, Out any](f func(ctx context.Context, in In) (Out, error)) plan.Activity {
	tool, err := toolOf(reflect.TypeFor[In](), reflect.TypeFor[Out]())
	if f == nil {
		err = errors.New("it has nothing to run: give it a function")
	}
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
	if err := schema.Decode(params, t.tool, &in); err != nil {
		return plan.Result{}, fmt.Errorf("its parameters are not what the function takes: %w", err)
	}
	out, err := t.f(plan.WithInvocation(ctx, call), in)
	return plan.Result{Value: out}, err
}

// toolOf returns the tool of a function's types.
func toolOf(in, out reflect.Type) (map[string]any, error) {
	params, err := schema.ForDecoding(in)
	if err != nil {
		return nil, fmt.Errorf("its parameters: %w", err)
	}
	if params["type"] != "object" {
		return nil, fmt.Errorf("its parameters are the fields of a struct, not %v", in)
	}
	properties, _ := params["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if strings.HasPrefix(name, "_") {
			return nil, fmt.Errorf("its parameter %s has the name of a meta-property: name it without the _", name)
		}
	}
	output, err := schema.ForEncoding(out)
	if err != nil {
		return nil, fmt.Errorf("its result: %w", err)
	}
	params["_output"] = output
	return params, nil
}
