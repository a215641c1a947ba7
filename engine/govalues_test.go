package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
	"obelus/store/memory"
	"obelus/store/sqlite"
)

// bill is a value as a Go program has it.
type bill struct {
	Total int            `json:"total"`
	Lines []string       `json:"lines"`
	ByDay map[string]int `json:"by_day"`
	Due   time.Time      `json:"due"`
	Note  *string        `json:"note"`
}

var aBill = bill{Total: 42, Lines: []string{"a"}, ByDay: map[string]int{"mon": 3}, Due: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}

const billJSON = `{"by_day":{"mon":3},"due":"2026-03-01T00:00:00Z","lines":["a"],"note":null,"total":42}`

// logs are both kinds of logs.
func logs(t *testing.T) map[string]store.Log {
	t.Helper()
	file, err := sqlite.Open(filepath.Join(t.TempDir(), "log.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return map[string]store.Log{"memory": memory.New(), "sqlite": file}
}

// gives is an activity that gives back one thing.
func gives(v any) activity {
	return func(context.Context, plan.Invocation) (plan.Result, error) { return plan.Result{Value: v}, nil }
}

// TestGoValues_SameAfterResume holds that what an activity in Go gave back
// looks alike to who reads it in the same run and to who reads it from the log.
func TestGoValues_SameAfterResume(t *testing.T) {
	for name, c := range map[string]struct {
		give plan.Result
		err  error
	}{
		"struct":  {give: plan.Result{Value: aBill}},
		"pointer": {give: plan.Result{Value: &aBill}},
		"map":     {give: plan.Result{Value: map[string]any{"total": 42, "lines": []string{"a"}, "by_day": map[string]int{"mon": 3}, "due": aBill.Due, "note": nil}}},
		"raw":     {give: plan.Result{Value: json.RawMessage(billJSON)}},
		"message": {give: plan.Result{Message: map[string]any{"type": "data", "kind": "state", "data": map[string]bill{"order": aBill}}}},
		"failure": {err: &plan.Failure{Fields: map[string]any{"total": int8(42), "lines": [1]string{"a"}, "by_day": map[string]uint{"mon": 3}, "due": &aBill.Due, "note": (*bill)(nil)}}},
	} {
		for kind, interrupted := range map[string]bool{"undisturbed": false, "interrupted": true} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				log, seen := memory.New(), map[string]any{}
				ctx, cancel := context.WithCancel(t.Context())
				r := newRunner(log, map[string]activity{
					"bill": func(context.Context, plan.Invocation) (plan.Result, error) {
						if interrupted {
							cancel()
						}
						return c.give, c.err
					},
					"see": func(_ context.Context, in plan.Invocation) (plan.Result, error) {
						seen = in.Call
						return plan.Result{Value: in.Context["state"]}, nil
					},
				})
				s := start(t, `{"calls": [{"_tool": "bill", "_outputPath": "†state.order || †state.order"},
					{"_tool": "see", "total": "†state.order.total", "sum": "†(†state.order.by_day.mon + 1)", "line": "†state.order.lines[0]", "all": "†state.order", "_scopes": ["state"], "_outputPath": "†seen"}],
					"output": "†seen.order"}`)
				r.Drain = time.Second
				outcome, err := r.Run(ctx, s)
				if interrupted {
					expect(t, outcome, err, journal.RunInterrupted, "1.1 bill done → †state.order", "1.2 see blocked")
					outcome, err = r.Resume(t.Context(), engine.Resume{Context: "c"})
				}
				expect(t, outcome, err, journal.RunDone, "1.1 bill done → †state.order", "1.2 see done → †seen")
				want, _ := store.DecodeJSON([]byte(billJSON))
				if diff := cmp.Diff([]any{want, json.Number("42"), json.Number("4"), "a"}, []any{seen["all"], seen["total"], seen["sum"], seen["line"]}); diff != "" {
					t.Errorf("an activity sees (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(want, outcome.Output); diff != "" {
					t.Errorf("the output (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestGoValues_NotJSONFailsTheCall holds protocol §7: one call's failure
// takes down neither another branch nor the host.
func TestGoValues_NotJSONFailsTheCall(t *testing.T) {
	price := map[string]any{"items": []any{0, 1, 2, map[string]any{"price": math.NaN()}}}
	for name, log := range logs(t) {
		for i, c := range []struct {
			give plan.Result
			err  error
			want string
		}{
			{plan.Result{Value: price}, nil, "result.items[3].price: NaN is not a JSON number"},
			{plan.Result{Value: math.Inf(1)}, nil, "result: infinity is not a JSON number"},
			{plan.Result{Value: make(chan int)}, nil, "result: a channel is not a JSON value"},
			{plan.Result{Value: []any{func() {}}}, nil, "result[0]: a function is not a JSON value"},
			{plan.Result{Value: json.Number("abc")}, nil, `result: "abc" is not a JSON number`},
			{plan.Result{Value: "caf\xe9"}, nil, "result: the text is not valid UTF-8"},
			{plan.Result{Value: 1, To: "†state.x", Message: map[string]any{"type": "data", "data": price}}, nil, "result.data.items[3].price: NaN is not a JSON number"},
			{plan.Result{}, &plan.Failure{Fields: price}, "error.items[3].price: NaN is not a JSON number"},
			{plan.Result{}, fmt.Errorf("order 7: %w", &plan.Failure{Fields: map[string]any{"message": "no", "price": math.NaN()}}), "error.price: NaN is not a JSON number; the failure says: order 7: no"},
			{plan.Result{}, &plan.Failure{Fields: map[string]any{"message": "caf\xe9", "to": make(chan int)}}, "error.to: a channel is not a JSON value; the failure says: caf\ufffd"},
		} {
			in := fmt.Sprint(i)
			r := newRunner(log, map[string]activity{"value": value, "broken": func(context.Context, plan.Invocation) (plan.Result, error) { return c.give, c.err }})
			r.Registry.Activities["broken"].Retries = 2
			r.Registry.Activities["broken"].Script = "broken.lua" // around which something in Go has been put
			s := start(t, `[{"_tool": "broken", "_outputPath": "†state.x || †state.failed"}, {"_tool": "broken"}, {"_tool": "value", "value": 1, "_outputPath": "†state.y"}]`)
			s.Context, r.Drain = in, time.Second
			outcome, err := r.Run(t.Context(), s)
			want := "failed ! runtime: activity broken: " + c.want
			expect(t, outcome, err, journal.RunFailed, "1.1 broken "+want, "1.2 broken "+want, "1.3 value done → †state.y")
			last, err := journal.In(log, in).LastRun(t.Context())
			if err != nil || last.Status != journal.RunFailed || outcome.Calls[0].Attempts != 1 {
				t.Errorf("%s, %d: %+v, %v", name, i, last, err)
			}
		}
	}
}

// TestGoValues_FailureWithBadText holds that it stays the failure that it is.
func TestGoValues_FailureWithBadText(t *testing.T) {
	typed := struct{ Name string }{"caf\xe9"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{plan.NewFailure("server said: caf\xe9"), `{"message":"server said: caf�"}`},
		{fmt.Errorf("wrapped: %w", plan.NewFailure("caf\xe9")), `{"message":"caf�"}`},
		{&plan.Failure{Fields: map[string]any{"message": "no", "a\xff": 1, "said": []any{typed, "\xff"}, "raw": json.RawMessage("\"\xff\""), "half": json.RawMessage(`{"a":"\ud83d","n":1.50}`)}}, `{"a�":1,"half":{"a":"�","n":1.50},"message":"no","raw":"�","said":[{"Name":"caf�"},"�"]}`},
	} {
		log := memory.New()
		r := newRunner(log, map[string]activity{"broken": func(context.Context, plan.Invocation) (plan.Result, error) { return plan.Result{}, c.err }})
		r.Drain = time.Minute
		outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "broken", "_outputPath": "†state.a || †state.failed"}, {"_tool": "broken"}]`))
		message, _ := outcome.Calls[1].Error["message"].(string)
		expect(t, outcome, err, journal.RunDone, "1.1 broken done → †state.failed", "1.2 broken failed ! "+message)
		if got := get(t, log, "†state.failed"); got != c.want || string(store.EncodeJSON(map[string]any(outcome.Calls[1].Error))) != c.want {
			t.Errorf("it wrote %s and failed of %v, not %s", got, outcome.Calls[1].Error, c.want)
		}
	}
}

// TestActivity_NameIsItsKey: its own may be missing, or another where it
// stands under several.
func TestActivity_NameIsItsKey(t *testing.T) {
	for _, own := range []string{"", "other"} {
		r := newRunner(memory.New(), map[string]activity{"value": func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{Value: math.NaN()}, nil
		}})
		r.Registry.Activities["value"].Name = own
		outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "_outputPath": "†state.x"}]`))
		expect(t, outcome, err, journal.RunFailed, "1.1 value failed ! runtime: activity value: result: NaN is not a JSON number")
	}
}

func TestGoValues_OfModel(t *testing.T) {
	for _, c := range []struct {
		give any
		want string
	}{{aBill, "1.1 think done → †state.x"}, {math.NaN(), "1.1 think failed ! runtime: activity model: result: NaN is not a JSON number"}} {
		log := memory.New()
		r := newRunner(log, nil)
		r.Registry.Model = plan.ModelFunc(func(context.Context, plan.Question) (any, error) { return c.give, nil })
		r.Registry.Tools["think"] = &plan.Tool{Name: "think"}
		outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "think", "_outputPath": "†state.x"}]`))
		expect(t, outcome, err, outcome.Status, c.want)
	}
}

// typedCall is a call as a struct.
type typedCall struct {
	Tool   string `json:"_tool"`
	Value  any    `json:"value"`
	Output string `json:"_outputPath"`
}

// TestGoValues_OfRequest holds that whatever a request, its input and what a
// planner gives are made of becomes JSON on its way in.
func TestGoValues_OfRequest(t *testing.T) {
	request := func() *plan.Request {
		return &plan.Request{
			Context: []store.Message{{Type: store.TypeData, Kind: "state", Data: store.Some(map[string]bill{"order": aBill}), Schema: map[string]any{"required": []string{"order"}}}},
			Tools:   map[string]any{"value": map[string]any{"required": []string{"value"}, "properties": map[string]map[string]string{"value": {"type": "object"}}}},
			Calls: []plan.Source{
				{Call: typedCall{"value", aBill, "†state.a"}},
				{Call: map[string]any{"_tool": "value", "value": map[string]string{"x": "†input.bill.total", "y": "†state.order.lines[0]"}, "_outputPath": "†state.b", "_scopes": []string{"state"}}},
			},
			Schema: map[string]any{"type": []string{"object"}},
			Output: store.Some(map[string]string{"a": "†state.a.total", "b": "†state.b.x"}),
		}
	}
	planner := request()
	planner.Planner = plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
		return &plan.Solution{Calls: request().Calls, Output: request().Output.Value}, nil
	})
	planner.Calls = nil
	planner.Output = store.Optional{}
	for kind, log := range logs(t) {
		for name, request := range map[string]*plan.Request{"list": request(), "planner": planner} {
			r := newRunner(log, map[string]activity{"value": value})
			s := engine.Start{Context: name, Request: request, Input: store.Some(map[string]*bill{"bill": &aBill})}
			if _, err := r.Check(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			outcome, err := r.Run(t.Context(), s)
			expect(t, outcome, err, journal.RunDone, "1.1 value done → †state.a", "1.2 value done → †state.b")
			if diff := cmp.Diff(map[string]any{"a": json.Number("42"), "b": json.Number("42")}, outcome.Output); diff != "" {
				t.Errorf("%s, %s: the output (-want +got):\n%s", kind, name, diff)
			}
		}
	}
}

func TestGoValues_NotJSONIsRefused(t *testing.T) {
	good, nan := []plan.Source{{Call: typedCall{"value", 1, "†state.a"}}}, map[string]any{"items": []float64{0, math.NaN()}}
	bad := []store.Message{{Type: store.TypeSystem, Data: store.Some("x")}, {Type: store.TypeData, Kind: "state", Data: store.Some(nan)}}
	for kind, log := range logs(t) {
		for name, c := range map[string]struct {
			start engine.Start
			as    any
			want  string
		}{
			"input":        {engine.Start{Request: &plan.Request{Calls: good}, Input: store.Some(nan)}, new(*plan.MessageError), "input: †input.items[1]: NaN is not a JSON number"},
			"channel":      {engine.Start{Request: &plan.Request{Calls: good}, Input: store.Some(make(chan int))}, new(*plan.MessageError), "input: †input: a channel is not a JSON value"},
			"message":      {engine.Start{Request: &plan.Request{Calls: good, Context: bad}}, new(*plan.MessageError), "message 2: †state.items[1]: NaN is not a JSON number"},
			"kind":         {engine.Start{Request: &plan.Request{Calls: good, Context: []store.Message{{Type: store.TypeData, Kind: "a b", Data: store.Some(1)}}}}, new(*plan.MessageError), `message: bad kind "a b": a kind is letters, digits and _`},
			"call":         {engine.Start{Request: &plan.Request{Name: "p", Calls: []plan.Source{good[0], {Call: map[string]any{"_tool": "value", "value": nan}, Line: 3}}}}, new(*plan.PlanError), "p:3: call 2 (value): value.items[1]: NaN is not a JSON number"},
			"typed":        {engine.Start{Request: &plan.Request{Calls: []plan.Source{{Call: typedCall{"value", "\xff", ""}}}}}, new(*plan.PlanError), "call 1: value: the text is not valid UTF-8"},
			"output":       {engine.Start{Request: &plan.Request{Output: store.Some(nan)}}, new(*plan.PlanError), "output.items[1]: NaN is not a JSON number"},
			"schema":       {engine.Start{Request: &plan.Request{Schema: nan}}, new(*plan.PlanError), "schema.items[1]: NaN is not a JSON number"},
			"tools":        {engine.Start{Request: &plan.Request{Tools: map[string]any{"value": nan}}}, new(*plan.PlanError), `tool "value": items[1]: NaN is not a JSON number`},
			"mode":         {engine.Start{Request: &plan.Request{Name: "p", Calls: good, Mode: "x"}}, new(*plan.PlanError), `p: mode: it is "x", and must be eager or lazy`},
			"unset input":  {engine.Start{Request: &plan.Request{Calls: good}, Input: store.Optional{Value: 1}}, new(*plan.MessageError), "input: it has data that are not set: store.Some sets them"},
			"unset output": {engine.Start{Request: &plan.Request{Calls: good, Output: store.Optional{Value: 1}}}, new(*plan.PlanError), "output: it has a value that is not set: store.Some sets it"},
			"nothing":      {engine.Start{}, nil, "there is nothing to run: the start needs a request, with calls or a planner"},
		} {
			r := newRunner(log, map[string]activity{"value": value})
			c.start.Context = strings.ReplaceAll(name, " ", "-")
			_, err := r.Run(t.Context(), c.start)
			_, checked := r.Check(t.Context(), c.start)
			if fmt.Sprint(err) != c.want || fmt.Sprint(checked) != c.want || c.as != nil && !errors.As(err, c.as) {
				t.Errorf("%s, %s: it says %q (%T), and check %q", kind, name, err, err, checked)
			}
			if _, err := log.Head(t.Context(), c.start.Context); !errors.Is(err, store.ErrNoContext) {
				t.Errorf("%s, %s: it leaves a context: %v", kind, name, err)
			}
		}
	}
	var refused *plan.PlanError
	if _, err := plan.Compile(&plan.Request{Calls: good, Context: bad}, newRunner(nil, nil).Registry, plan.NothingExists); !errors.As(err, &refused) {
		t.Error(err)
	}
}

// TestGoValues_MessagesHaveTheirForm: what no JSON says is refused when a program in Go
// gives it, before it is in a log that could not be read any more.
func TestGoValues_MessagesHaveTheirForm(t *testing.T) {
	state := store.KindPath("state")
	one, by := map[string]any{"a": 1}, map[string]any{"_tool": "t"}
	good := []store.Message{
		{Type: store.TypeData, Kind: "state", Data: store.Some(nil)},
		{Type: store.TypeData, Kind: "state", Schema: map[string]any{}, Description: "d", Instance: "①", Date: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)},
		{Type: store.TypeData, Kind: "state", Data: store.Some(one), Producer: by, Path: state.Child("a"), Method: store.Set, Call: "1.1", Written: "2025-10-26T12:00:00Z"},
		{Type: store.TypePlan, Data: store.Some([]map[string]any{by}), Mode: "lazy"},
		{Type: store.TypeTool, Data: store.Some(map[string]any{"t": map[string]any{}})},
		{Type: store.TypeText, Data: store.Some("t")},
	}
	bad := map[string]store.Message{
		`unknown type "state" (one of data, tool, plan, system, text; state, input and meta are kinds of data)`:      {Type: "state", Kind: "state", Data: store.Some(one)},
		`unknown type "" (one of data, tool, plan, system, text; state, input and meta are kinds of data)`:           {Data: store.Some(one)},
		`it has data that are not set: store.Some sets them`:                                                         {Type: store.TypeData, Kind: "cfg", Data: store.Optional{Value: 1}},
		`it has neither data nor a schema`:                                                                           {Type: store.TypeData, Kind: "cfg"},
		`what a message of type "tool" holds must be an object, not null`:                                            {Type: store.TypeTool},
		`what a message of type "text" holds must be a string, not a number`:                                         {Type: store.TypeText, Data: store.Some(1)},
		`its mode is "weird": that of a plan is "eager" or "lazy", and nothing else has one`:                         {Type: store.TypePlan, Data: store.Some([]any{}), Mode: "weird"},
		`its mode is "lazy": that of a plan is "eager" or "lazy", and nothing else has one`:                          {Type: store.TypeText, Data: store.Some("t"), Mode: "lazy"},
		`only data has a kind, an instance, a schema, a description or a call that wrote it, and its type is "text"`: {Type: store.TypeText, Data: store.Some("t"), Instance: "①"},
		`its instance "\xff" is not valid UTF-8`:                                                                     {Type: store.TypeData, Kind: "state", Data: store.Some(nil), Instance: "\xff"},
		`its date 12000-01-01 00:00:00 +0000 UTC has no year of four digits`:                                         {Type: store.TypeData, Kind: "state", Data: store.Some(nil), Date: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)},
		`a call, a path, a method and a time of writing are for messages that a call wrote: it has no producer`:      {Type: store.TypeData, Kind: "state", Data: store.Some(nil), Method: store.Push},
		`its producer must be an object, not a number`:                                                               {Type: store.TypeData, Kind: "state", Data: store.Some(one), Producer: 1, Path: state},
		`unknown method "bogus" (one of set, merge, assign, push, concat)`:                                           {Type: store.TypeData, Kind: "state", Data: store.Some(one), Producer: by, Path: state, Method: "bogus"},
		`its path "†input.a" names no value that the message of kind state holds`:                                    {Type: store.TypeData, Kind: "state", Data: store.Some(one), Producer: by, Path: store.KindPath("input").Child("a")},
		`its path "†state.b" names no value that the message of kind state holds`:                                    {Type: store.TypeData, Kind: "state", Data: store.Some(one), Producer: by, Path: state.Child("b")},
		`its path "" names no value that the message of kind state holds`:                                            {Type: store.TypeData, Kind: "state", Data: store.Some(one), Producer: by},
		`when it was written is not an RFC 3339 time: "today"`:                                                       {Type: store.TypeData, Kind: "state", Data: store.Some(one), Producer: by, Path: state, Written: "today"},
		`a call wrote it, but it holds no data`:                                                                      {Type: store.TypeData, Kind: "state", Schema: one, Producer: by, Path: state},
	}
	for kind, log := range logs(t) {
		for want, m := range bad {
			var refused *plan.MessageError
			if _, err := engine.Append(t.Context(), log, "bad", []store.Message{m}); !errors.As(err, &refused) || err.Error() != "message: "+want {
				t.Errorf("%s: append says %v, not %s", kind, err, want)
			}
			request := &plan.Request{Context: []store.Message{m}}
			if _, err := newRunner(log, nil).Run(t.Context(), engine.Start{Context: "bad", Request: request}); !errors.As(err, &refused) || err.Error() != "message: "+want {
				t.Errorf("%s: run says %v, not %s", kind, err, want)
			}
			if _, err := log.Head(t.Context(), "bad"); !errors.Is(err, store.ErrNoContext) {
				t.Fatalf("%s: %s: it leaves a context: %v", kind, want, err)
			}
		}
		if _, err := engine.Append(t.Context(), log, "good", good); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		for _, err := range log.Messages(t.Context(), store.Filter{Context: "good"}) {
			if err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// TestGoValues_NilPointersAsErrors: a nil pointer in an error is a mistake of who gives it, and
// is told so, as is a delegate that there is none of.
func TestGoValues_NilPointersAsErrors(t *testing.T) {
	const wrong = "its error is a nil pointer, which is not nil: it must give nil itself where nothing is wrong"
	r := newRunner(memory.New(), map[string]activity{"act": func(context.Context, plan.Invocation) (plan.Result, error) {
		var failure *plan.Failure
		return plan.Result{}, failure
	}})
	outcome, err := r.Run(t.Context(), start(t, `[{"_tool": "act", "_outputPath": "†a"}]`))
	if err != nil || outcome.Status != journal.RunFailed || outcome.Calls[0].Error["message"] != "activity act: "+wrong {
		t.Errorf("%+v, %v", outcome, err)
	}
	r.Registry.Activities["act"].Activity = plan.ActivityFunc(func(context.Context, plan.Invocation) (plan.Result, error) {
		var foreign *os.PathError // whose Unwrap takes no nil
		return plan.Result{}, foreign
	})
	outcome, err = r.Run(t.Context(), engine.Start{Context: "foreign", Request: readPlan(t, `[{"_tool": "act", "_outputPath": "†a"}]`)})
	if err != nil || outcome.Status != journal.RunFailed || outcome.Calls[0].Error["message"] != "activity act: "+wrong {
		t.Errorf("%+v, %v", outcome, err)
	}
	r.Registry.Activities["act"].Activity = plan.ActivityFunc(func(context.Context, plan.Invocation) (plan.Result, error) {
		return plan.Result{}, errors.Join(errors.New("x"), (*plan.Failure)(nil))
	})
	outcome, err = r.Run(t.Context(), engine.Start{Context: "joined", Request: readPlan(t, `[{"_tool": "act", "_outputPath": "†a"}]`)})
	if err != nil || outcome.Status != journal.RunFailed || outcome.Calls[0].Error["message"] != "activity act: "+wrong {
		t.Errorf("%+v, %v", outcome, err)
	}
	planner := plan.PlannerFunc(func(context.Context, plan.Ask) (*plan.Solution, error) {
		var refused *plan.PlanError
		return nil, refused
	})
	outcome, err = r.Run(t.Context(), engine.Start{Context: "planned", Request: &plan.Request{Planner: planner}})
	if err != nil || outcome.Status != journal.RunFailed || !strings.Contains(outcome.Error, wrong) {
		t.Errorf("%+v, %v", outcome, err)
	}
	r.Registry.File = func(string) (*plan.Delegate, error) { return nil, nil }
	r.Registry.Delegates["none"] = nil
	for _, name := range []string{"none", "a.lua"} {
		_, err := r.Run(t.Context(), start(t, `[{"_tool": "x", "_delegate": "`+name+`", "_outputPath": "†a"}]`))
		if err == nil || !strings.Contains(err.Error(), `"`+name+`" has nothing to run: give it a request`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRetry_LongestBackoff: any pause may be doubled, and none comes to nothing by that.
func TestRetry_LongestBackoff(t *testing.T) {
	for range 20 { // chance has a say in how long it is
		ctx, cancel := context.WithCancel(t.Context())
		r := newRunner(memory.New(), map[string]activity{"act": func(context.Context, plan.Invocation) (plan.Result, error) {
			time.AfterFunc(time.Millisecond, cancel)
			return plan.Result{}, plan.NewFailure("no")
		}})
		r.Registry.Activities["act"].Retries, r.Registry.Activities["act"].Backoff = 2, math.MaxInt64
		outcome, err := r.Run(ctx, start(t, `[{"_tool": "act", "_outputPath": "†a"}]`))
		if err != nil || outcome.Status != journal.RunInterrupted || outcome.Calls[0].Attempts != 1 {
			t.Errorf("%+v, %v", outcome, err)
		}
		cancel()
	}
}

// countedSchema is a schema that counts how often it is made JSON.
type countedSchema struct{ made *int }

func (c countedSchema) MarshalJSON() ([]byte, error) {
	*c.made++
	return []byte(`{}`), nil
}

// TestRequest_IsNormalizedOnce holds that a tick makes nothing anew of what does not
// change with it: neither of the run's request nor of those of its delegates.
func TestRequest_IsNormalizedOnce(t *testing.T) {
	own, inner, log := 0, 0, memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	r.Registry.Delegates["inner"] = &plan.Delegate{Request: readPlan(t, `{"calls": [{"_tool": "value", "value": 1, "_outputPath": "†a"}], "output": "†a"}`)}
	r.Registry.Delegates["inner"].Request.Schema = countedSchema{&inner}
	planner := plan.PlannerFunc(func(_ context.Context, ask plan.Ask) (*plan.Solution, error) {
		calls := []plan.Source{{Call: map[string]any{"_tool": "x", "_delegate": "inner", "_outputPath": "†state.a"}}}
		if ask.Tick%4 > 0 {
			return &plan.Solution{Calls: calls}, nil
		}
		return &plan.Solution{Output: "done"}, nil
	})
	request := &plan.Request{Planner: planner, Schema: countedSchema{&own}}
	for n := 1; n <= 2; n++ {
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
		if err != nil || outcome.Status != journal.RunDone || own != n || inner != 3*n+1 {
			t.Errorf("run %d: %+v, %v: made JSON %d times, and its delegate's, which ran %d times, %d times", n, outcome, err, own, 3*n, inner)
		}
	}
}

// TestGoValues_PlannerWithoutJSON holds that it ends its own run, as one in Lua
// does.
func TestGoValues_PlannerWithoutJSON(t *testing.T) {
	for kind, log := range logs(t) {
		for name, c := range map[string]struct {
			solution plan.Solution
			err      error
			want     string
		}{
			"output":  {plan.Solution{Output: map[string]any{"price": math.NaN()}}, nil, "output.price: NaN is not a JSON number"},
			"call":    {plan.Solution{Calls: []plan.Source{{Call: typedCall{"value", math.Inf(1), ""}}}}, nil, "call 1.value: infinity is not a JSON number"},
			"failure": {plan.Solution{}, &plan.Failure{Fields: map[string]any{"price": math.NaN()}}, "error.price: NaN is not a JSON number"},
			"typed":   {plan.Solution{}, &plan.Failure{Fields: map[string]any{"message": "no", "bill": aBill}}, "no"},
			"wrapped": {plan.Solution{}, fmt.Errorf("asking the model about order 7: %w", plan.NewFailure("rate limited")), "asking the model about order 7: rate limited"},
			"text":    {plan.Solution{}, fmt.Errorf("order 7: %w", plan.NewFailure("caf\xe9")), "order 7: caf\ufffd"},
			"fault":   {plan.Solution{}, errors.New("caf\xe9"), "caf\ufffd"},
		} {
			r := newRunner(log, map[string]activity{"value": value})
			planner := plan.PlannerFunc(func(context.Context, plan.Ask) (*plan.Solution, error) { return &c.solution, c.err })
			outcome, err := r.Run(t.Context(), engine.Start{Context: name, Request: &plan.Request{Planner: planner}})
			if err != nil || outcome.Status != journal.RunFailed || outcome.Error != c.want {
				t.Errorf("%s, %s: %+v, %v", kind, name, outcome, err)
			}
		}
	}
}

func TestGoValues_OfCorrections(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{"value": value})
	s := start(t, `[{"_tool": "value", "value": 1, "_outputPath": "†state.a"}]`)
	s.Approve.Always = true
	outcome, err := r.Run(t.Context(), s)
	expect(t, outcome, err, journal.RunWaiting, "1.1 value held")
	var refused *journal.CorrectionError
	decision := journal.Decision{Context: "c", Call: "1.1", Arguments: map[string]any{"value": math.NaN()}}
	if err := r.Decide(t.Context(), decision); !errors.As(err, &refused) || err.Error() != "call 1.1: value: NaN is not a JSON number" {
		t.Error(err)
	}
	decision.Arguments["value"] = aBill
	if err := r.Decide(t.Context(), decision); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resume(t.Context(), engine.Resume{Context: "c"}); err != nil || get(t, log, "†state.a") != billJSON {
		t.Errorf("%v: %s", err, get(t, log, "†state.a"))
	}
	if _, err := journal.Fork(t.Context(), log, "c", 0, "fork"); err != nil {
		t.Fatal(err)
	}
	again := engine.Resume{Context: "fork", From: "1.1", Set: map[string]any{"value": make(chan int)}}
	if _, err := r.Resume(t.Context(), again); !errors.As(err, &refused) {
		t.Error(err)
	}
	again.Set["value"] = []int{7}
	if outcome, err := r.Resume(t.Context(), again); err != nil || !reflect.DeepEqual(outcome.Calls[0].Hold.Arguments["value"], []any{json.Number("7")}) {
		t.Errorf("%+v, %v", outcome, err)
	}
}

func TestGoValues_OfTry(t *testing.T) {
	registry := newRunner(nil, map[string]activity{"bill": gives(aBill), "bad": gives(math.NaN())}).Registry
	result, err := engine.Try(t.Context(), registry, map[string]any{"_tool": "bill"}, map[string]any{"state": aBill})
	if text := string(store.EncodeJSON(result.Value)); err != nil || text != billJSON || reflect.TypeOf(result.Value) != reflect.TypeFor[map[string]any]() {
		t.Errorf("%s, %v", text, err)
	}
	registry.Activities["echo"] = &plan.Registered{Activity: plan.ActivityFunc(func(_ context.Context, in plan.Invocation) (plan.Result, error) {
		return plan.Result{Value: []any{in.Call["v"], in.Context}}, nil
	})}
	call := map[string]any{"_tool": "echo", "v": []string{"†state.a.N", "††x"}, "_scopes": []string{"input"}}
	result, err = engine.Try(t.Context(), registry, call, map[string]any{"state": map[string]any{"a": struct{ N int }{7}}, "input": 1})
	if text := string(store.EncodeJSON(result.Value)); err != nil || text != `[[7,"†x"],{"input":1}]` {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := engine.Try(t.Context(), registry, map[string]any{"_tool": "bad"}, nil); fmt.Sprint(err) != "activity bad: result: NaN is not a JSON number" {
		t.Error(err)
	}
}

// reason is an error of an activity's own.
type reason struct{ code int }

func (e *reason) Error() string { return fmt.Sprint("reason ", e.code) }

// TestTry_Errors holds that what an activity wrapped is found in what is given.
func TestTry_Errors(t *testing.T) {
	own, base := &reason{7}, errors.New("base")
	for name, fields := range map[string]map[string]any{
		"as it is": {"message": "no"},
		"typed":    {"message": "no", "bill": aBill},
		"text":     {"message": "no", "said": "caf\xe9"},
	} {
		given := fmt.Errorf("%w, %w: %w", own, base, &plan.Failure{Fields: fields})
		registry := newRunner(nil, map[string]activity{"bad": func(context.Context, plan.Invocation) (plan.Result, error) { return plan.Result{}, given }}).Registry
		_, err := engine.Try(t.Context(), registry, map[string]any{"_tool": "bad"}, nil)
		var found *reason
		var failure *plan.Failure
		if !errors.Is(err, base) || !errors.As(err, &found) || found != own || !errors.As(err, &failure) || err.Error() != given.Error() {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want, _ := store.DecodeJSON(store.EncodeJSON(fields)); !reflect.DeepEqual(want, any(failure.Fields)) {
			t.Errorf("%s: %v", name, failure.Fields)
		}
	}
}

// wrapped is an error as people write them, which does not look whether there is one inside.
type wrapped struct{ error }

func (w *wrapped) Error() string { return "wrapped: " + w.error.Error() }

// TestGoValues_UnreadableErrors: an error that breaks down as its text is read, or has none, is
// the fault of that call alone, whoever gave it.
func TestGoValues_UnreadableErrors(t *testing.T) {
	log := memory.New()
	r := newRunner(log, map[string]activity{
		"broken": func(context.Context, plan.Invocation) (plan.Result, error) { return plan.Result{}, &wrapped{} },
		"silent": func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{}, errors.New("")
		},
		"empty": func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{}, &plan.Failure{}
		},
		"inner": func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{}, &plan.Failure{Fields: map[string]any{"message": errors.New("no room")}}
		},
		"value": value,
	})
	outcome, err := r.Run(t.Context(), start(t, `[
		{"_tool": "broken", "_outputPath": "†a"}, {"_tool": "silent", "_outputPath": "†b"}, {"_tool": "empty", "_outputPath": "†c"},
		{"_tool": "inner", "_outputPath": "†d"}, {"_tool": "value", "value": 1, "_outputPath": "†e"}]`))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, c := range outcome.Calls {
		said[c.Tool] = fmt.Sprint(c.Status, " ", c.Error["message"])
	}
	for tool, want := range map[string]string{
		"broken": "failed the activity broken broke down", "silent": "failed it failed, and its error says nothing",
		"empty": "failed failed", "inner": "failed no room", "value": "done",
	} {
		if !strings.HasPrefix(said[tool], want) {
			t.Errorf("%s: %s, not %s", tool, said[tool], want)
		}
	}
	s := start(t, `[]`)
	s.Request.Planner = plan.PlannerFunc(func(context.Context, plan.Ask) (*plan.Solution, error) { return nil, &wrapped{} })
	s.Context = "planned"
	if outcome, err = r.Run(t.Context(), s); err != nil || outcome.Status != journal.RunFailed || !strings.Contains(outcome.Error, "the planner broke down") {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// TestClock_OutOfRange: what the log could not give back is not written.
func TestClock_OutOfRange(t *testing.T) {
	r := newRunner(memory.New(), map[string]activity{"value": value})
	r.Now = func() time.Time { return time.Unix(1e12, 0) }
	if _, err := r.Run(t.Context(), start(t, `[{"_tool": "value", "value": 1, "_outputPath": "†e"}]`)); err == nil || !strings.Contains(err.Error(), "the runner's clock can't be right: 33658-") {
		t.Error(err)
	}
}
