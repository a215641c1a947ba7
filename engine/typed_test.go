package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"obelus/engine"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
)

type order struct {
	Item  string   `json:"item"`
	Count int      `json:"count,omitempty" jsonschema:"how many"`
	Tags  []string `json:"tags,omitempty"`
}

type parcel struct {
	Label string `json:"label"`
	Key   string `json:"key"`
}

func ship(ctx context.Context, o order) (parcel, error) {
	switch o.Item {
	case "":
		return parcel{}, plan.NewFailure("there is nothing to ship")
	case "broken":
		return parcel{}, errors.New("the printer is out of paper")
	}
	return parcel{fmt.Sprintf("%d %s %v", o.Count, o.Item, o.Tags), plan.InvocationOf(ctx).Key}, nil
}

// typedRegistry registers a typed activity with its own tool.
func typedRegistry(t testing.TB, name string, a plan.Activity) *plan.Registry {
	t.Helper()
	schema, err := a.(plan.Described).Tool()
	if err != nil {
		t.Fatal(err)
	}
	tool, err := plan.NewTool(name, schema)
	if err != nil {
		t.Fatal(err)
	}
	registry := plan.NewRegistry()
	registry.Tools[name], registry.Activities[name] = tool, &plan.Registered{Activity: a}
	return registry
}

func TestTyped_ToolOfTypes(t *testing.T) {
	schema, err := engine.Typed(ship).(plan.Described).Tool()
	if err != nil {
		t.Fatal(err)
	}
	want, err := store.DecodeJSON([]byte(`{"type": "object", "required": ["item"], "additionalProperties": false,
		"properties": {"item": {"type": "string"}, "count": {"type": "integer", "description": "how many"}, "tags": {"type": ["null", "array"], "items": {"type": "string"}}},
		"_output": {"type": "object", "required": ["label", "key"], "additionalProperties": false, "properties": {"label": {"type": "string"}, "key": {"type": "string"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, schema); diff != "" {
		t.Error(diff)
	}
}

func TestTyped_Runs(t *testing.T) {
	registry := typedRegistry(t, "ship", engine.Typed(ship))
	for _, test := range []struct{ call, want string }{
		{`{"_tool": "ship", "_outputPath": "†state.parcel", "item": "tea", "count": 3, "tags": ["hot"]}`, `{"key":"c/1.1","label":"3 tea [hot]"}`},
		{`{"_tool": "ship", "_outputPath": "†state.parcel", "item": "tea"}`, `{"key":"c/1.1","label":"0 tea []"}`},
		{`{"_tool": "ship", "_outputPath": "†state.parcel", "item": ""}`, "there is nothing to ship"},
		{`{"_tool": "ship", "_outputPath": "†state.parcel", "item": "broken"}`, "the printer is out of paper"},
		{`{"_tool": "ship", "_outputPath": "†state.parcel"}`, "refused"},
		{`{"_tool": "ship", "_outputPath": "†state.parcel", "item": "tea", "weight": 2}`, "refused"},
		{`{"_tool": "ship", "_outputPath": "†state.parcel", "item": "tea", "count": 1.5}`, "refused"},
	} {
		call, err := store.DecodeJSON([]byte(test.call))
		if err != nil {
			t.Fatal(err)
		}
		r := &engine.Runner{Log: memory.New(), Registry: registry}
		request := &plan.Request{Calls: []plan.Source{{Call: call}}}
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
		if err != nil {
			if _, refused := errors.AsType[*plan.PlanError](err); !refused || test.want != "refused" {
				t.Errorf("%s: %v", test.call, err)
			}
			continue
		}
		value, err := store.Resolver{Log: r.Log, Context: "c"}.Resolve(t.Context(), store.MustParsePath("†state.parcel"), "")
		got := string(store.EncodeJSON(value.Value))
		if message, ok := outcome.Calls[0].Error["message"].(string); ok {
			got = message
		}
		if err != nil || got != test.want {
			t.Errorf("%s: %s, %v, want %s", test.call, got, err, test.want)
		}
	}
}

func TestTyped_FailureIsAnOutcome(t *testing.T) {
	_, err := engine.Typed(ship).Run(t.Context(), plan.Invocation{Call: map[string]any{"_tool": "ship", "item": ""}})
	if failure, ok := errors.AsType[*plan.Failure](err); !ok || failure.Error() != "there is nothing to ship" {
		t.Error(err)
	}
}

func TestTyped_TypesWithoutASchema(t *testing.T) {
	for want, a := range map[string]plan.Activity{
		"its parameters are the fields of a struct, not string": engine.Typed(func(context.Context, string) (int, error) { return 0, nil }),
		"its result: ": engine.Typed(func(context.Context, struct{}) (chan int, error) { return nil, nil }),
	} {
		registered := plan.Registered{Activity: a}
		if err := registered.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if _, err := a.Run(t.Context(), plan.Invocation{}); err == nil {
			t.Error("it ran")
		}
	}
}

// An activity on Go types, with the tool that follows from them.
func ExampleTyped() {
	double := engine.Typed(func(_ context.Context, in struct {
		N int `json:"n"`
	}) (int, error) {
		return 2 * in.N, nil
	})
	result, err := double.Run(context.Background(), plan.Invocation{Call: map[string]any{"_tool": "double", "n": 21}})
	fmt.Println(result.Value, err)
	// Output: 42 <nil>
}
