package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/engine"
	"obelus/engine/journal"
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
	type loop struct{ Next *loop }
	type embedded struct {
		order `json:"order"`
	}
	type quoted struct {
		N int `json:"n,string"`
	}
	type base struct {
		A int `json:"n"`
	}
	type twice struct {
		base
		B int `json:"n"`
	}
	type hidden struct {
		Key string `json:"_key"`
	}
	type readers struct{ R io.Reader }
	for want, a := range map[string]plan.Activity{
		"it has nothing to run: give it a function":                     engine.Typed[order, parcel](nil),
		"its parameters are the fields of a struct, not interface {}":   engine.Typed(func(context.Context, any) (int, error) { return 0, nil }),
		"its parameters are the fields of a struct, not time.Time":      engine.Typed(func(context.Context, time.Time) (int, error) { return 0, nil }),
		"its parameter _key has the name of a meta-property":            engine.Typed(func(context.Context, hidden) (int, error) { return 0, nil }),
		"its parameters: nothing can be read from JSON into io.Reader":  engine.Typed(func(context.Context, readers) (int, error) { return 0, nil }),
		"its parameters: the embedded field engine_test.embedded.order": engine.Typed(func(context.Context, embedded) (int, error) { return 0, nil }),
		"its parameters: the field engine_test.quoted.N is a text":      engine.Typed(func(context.Context, quoted) (int, error) { return 0, nil }),
		"its result: engine_test.twice has two fields":                  engine.Typed(func(context.Context, order) (twice, error) { return twice{}, nil }),
		"its result: ForType(engine_test.loop)":                         engine.Typed(func(context.Context, order) (loop, error) { return loop{}, nil }),
		"its parameters are the fields of a struct, not string":         engine.Typed(func(context.Context, string) (int, error) { return 0, nil }),
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

// Types that encoding/json does not have as their kind says.
type ownForms struct {
	Bytes  []byte          `json:"bytes"`
	Raw    json.RawMessage `json:"raw"`
	Number json.Number     `json:"number"`
	Addr   netip.Addr      `json:"addr"`
	Maybe  *netip.Addr     `json:"maybe"`
	Time   time.Time       `json:"time"`
	Large  *big.Int        `json:"large"`
	Own    ownForm         `json:"own"`
	Any    any             `json:"any"`
	Texts  []level         `json:"texts"`
}

type ownForm struct{ n int }

func (o ownForm) MarshalJSON() ([]byte, error)     { return fmt.Appendf(nil, "[%d]", o.n), nil }
func (o *ownForm) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &[]*int{&o.n}) }

// needsA takes no object without a field a.
type needsA struct{}

func (needsA) MarshalJSON() ([]byte, error) { return []byte(`{"a":1}`), nil }
func (*needsA) UnmarshalJSON(text []byte) error {
	if !strings.Contains(string(text), `"a":`) {
		return errors.New("a is missing")
	}
	return nil
}

type level uint8

func (l level) MarshalText() ([]byte, error) { return []byte(strings.Fields("low high")[l]), nil }
func (l *level) UnmarshalText(text []byte) error {
	*l = level(slices.Index(strings.Fields("low high"), string(text)))
	return nil
}

func TestTyped_TypesWithTheirOwnForm(t *testing.T) {
	echo := engine.Typed(func(_ context.Context, in ownForms) (ownForms, error) { return in, nil })
	registry := typedRegistry(t, "echo", echo)
	const params = `"addr":"192.0.2.1","any":12345678901234567890123,"bytes":"AP8=","large":100000000000000000000,"maybe":null,` +
		`"number":1.50,"own":[7],"raw":{"a":1.0},"texts":["low","high"],"time":"2025-10-26T12:00:00Z"`
	call, err := store.DecodeJSON([]byte(`{"_tool": "echo", "_outputPath": "†state.echo", ` + params + `}`))
	if err != nil {
		t.Fatal(err)
	}
	r := &engine.Runner{Log: memory.New(), Registry: registry}
	outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{Calls: []plan.Source{{Call: call}}}})
	if err != nil {
		t.Fatal(err)
	}
	value, err := store.Resolver{Log: r.Log, Context: "c"}.Resolve(t.Context(), store.MustParsePath("†state.echo"), "")
	if got := string(store.EncodeJSON(value.Value)); err != nil || got != "{"+params+"}" {
		t.Errorf("%s, %v, %v", got, err, outcome.Calls[0].Error)
	}
}

// TestTyped_NamesTheParameter holds that the error for a value that the Go type does not take names
// its place, whether the tool's schema refuses it or the decoding.
func TestTyped_NamesTheParameter(t *testing.T) {
	type inner struct {
		When time.Time `json:"when"`
	}
	type parameters struct {
		List  []inner            `json:"list,omitempty"`
		Float map[string]float32 `json:"float,omitempty"`
		Int   int64              `json:"i,omitempty"`
		Bytes []byte             `json:"b,omitempty"`
		Small int32              `json:"small,omitempty"`
		Own   []ownForm          `json:"own,omitempty"`
		Needs needsA             `json:"needs,omitempty"`
	}
	a := engine.Typed(func(context.Context, parameters) (int, error) { return 0, nil })
	registry := typedRegistry(t, "a", a)
	const when = `"when": "2025-10-26T12:00:00Z"`
	for _, test := range []struct{ params, refused, failed string }{
		{`{"list": [{` + when + `}, {"when": "yesterday"}]}`, "call 1 (a): list[1].when: not a valid date-time: ", "list[1].when: not a date and time as in 2006-01-02T15:04:05Z"},
		{`{"i": 1e19}`, "", "i: got number 10000000000000000000, which does not fit into 64 bits"},
		{`{"float": {"a": 1, "b": 1e39}}`, "", "float.b: got number 1e39, which does not fit into 32 bits"},
		{`{"b": "%%"}`, "", "b: illegal base64 data at input byte 0"},
		{`{"small": 3000000000}`, "call 1 (a): small: must be at most ", "small: got number 3000000000, which does not fit into 32 bits"},
		{`{"own": [[1], [2], "x"]}`, "", "own[2]: got string, which does not fit"},
		{`{"needs": {"b": {"c": 1}}}`, "", "needs: a is missing"},
		{`{"b": "AP8=", "i": 1e2, "list": [{` + when + `}]}`, "", ""},
	} {
		params, err := store.DecodeJSON([]byte(test.params))
		if err != nil {
			t.Fatal(err)
		}
		call := params.(map[string]any)
		failed := ""
		if _, err := a.Run(t.Context(), plan.Invocation{Call: call}); err != nil {
			failed = strings.TrimPrefix(err.Error(), "its parameters are not what the function takes: ")
		}
		if failed != test.failed {
			t.Errorf("%s: %q", test.params, failed)
		}
		call["_tool"] = "a"
		_, err = (&engine.Runner{Log: memory.New(), Registry: registry}).Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{Calls: []plan.Source{{Call: call}}}})
		if (err != nil) != (test.refused != "") || err != nil && !strings.HasPrefix(err.Error(), test.refused) {
			t.Errorf("%s: %v", test.params, err)
		}
	}
}

func TestTyped_IntegersHoweverTheyAreWritten(t *testing.T) {
	type numbers struct {
		N    int              `json:"n"`
		Many []*int           `json:"many"`
		By   map[string]uint8 `json:"by"`
		Any  any              `json:"any"`
	}
	sum := engine.Typed(func(_ context.Context, in numbers) (string, error) {
		return fmt.Sprintf("%d, %d, %d, %v", in.N, *in.Many[0], in.By["a"], in.Any), nil
	})
	call, err := store.DecodeJSON([]byte(`{"n": 1.0, "many": [1e2], "by": {"a": 20e-1}, "any": 1.0}`))
	if err != nil {
		t.Fatal(err)
	}
	result, err := sum.Run(t.Context(), plan.Invocation{Call: call.(map[string]any)})
	if err != nil || result.Value != "1, 100, 2, 1.0" {
		t.Errorf("%v, %v", result.Value, err)
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

// TestTyped_InRegistry holds that a function's tool counts also where nothing but its activity was
// registered.
func TestTyped_InRegistry(t *testing.T) {
	type pay struct {
		Amount float64 `json:"amount"`
	}
	registry := plan.NewRegistry()
	registry.Activities["pay"] = &plan.Registered{Name: "pay", Activity: engine.Typed(func(_ context.Context, p pay) (pay, error) { return p, nil })}
	runner := &engine.Runner{Log: memory.New(), Registry: registry}
	for params, want := range map[string]string{
		`, "ammount": 5`:              `unknown parameter "ammount"`,
		`, "amount": 5, "more": 1`:    `unknown parameter "more"`,
		``:                            `"amount"`,
		`, "amount": "5"`:             "amount: got string, want number",
		`, "amount": "†input.amount"`: "",
	} {
		calls := `[{"_tool": "pay", "_outputPath": "†state.a"` + params + `}]`
		outcome, err := runner.Run(t.Context(), engine.Start{Context: "c", Request: readPlan(t, calls), Input: store.Some(map[string]any{"amount": 5})})
		if want == "" && (err != nil || outcome.Status != journal.RunDone) {
			t.Errorf("%s: %+v, %v", params, outcome, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %+v, %v, not %s", params, outcome, err, want)
		}
	}
}
