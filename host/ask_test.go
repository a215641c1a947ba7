package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/host/model"
	"obelus/luastd"
	"obelus/store"
	"obelus/store/memory"
)

// answerer answers each question by its number, or by what its schema is, and counts.
type answerer struct {
	mu       sync.Mutex
	requests []*model.Request
	wait     bool // for the end of the call
}

func (a *answerer) Ask(ctx context.Context, r *model.Request, meter *plan.Meter) (*model.Answer, error) {
	settle, err := meter.Reserve(ctx, plan.Usage{Model: r.Model, Input: 10, Output: 1})
	if err != nil {
		return nil, err
	}
	if a.wait {
		<-ctx.Done()
		settle(plan.Usage{})
		return nil, ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r)
	settle(plan.Usage{Model: r.Model, Requests: 1, Input: 10, Output: 1, Took: time.Millisecond})
	var v any = fmt.Sprintf("answer %d", len(a.requests))
	if text, _ := json.Marshal(r.Schema); strings.Contains(string(text), "angry") {
		v = map[string]any{"angry": true, "by": []any{}}
	} else if strings.Contains(string(text), "null") {
		v = nil
	}
	return &model.Answer{Value: store.Some(v)}, nil
}

const askSettings = `model = "fast", models = {
	fast = { provider = "openai", model = "gpt-5-mini" }, wise = { provider = "openai", model = "gpt-5" } }`

// ask runs an activity with a body in a run of its own.
func ask(t *testing.T, a *answerer, settings, body string) (*journal.Outcome, []journal.Record) {
	t.Helper()
	h, err := Open(Config{
		FS: project(map[string]string{
			"obelus.lua":       "return { " + askSettings + ", " + settings + " }",
			"activities/a.lua": `Activity.register("a", function(call) local model = require("model") ` + body + ` end)`,
		}),
		Asker: func(model.Config, model.Asker) model.Asker { return a },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	log, g := memory.New(), h.Generation()
	request := &plan.Request{Calls: []plan.Source{{Call: map[string]any{"_tool": "a", "_outputPath": "†state.a"}}}, Output: store.Some(any("†state.a"))}
	outcome, err := g.Settings().Runner(log, g.Registry()).Run(t.Context(), engine.Start{Context: "c", Request: request})
	if err != nil {
		t.Fatal(err)
	}
	records, err := journal.In(log, "c").Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return outcome, records
}

// isolations are the ways in which an activity runs.
var isolations = []string{`isolate = false`, `isolate = "process"`}

// TestAsk_Answers holds what a script gets, in this process and in a worker, and that what it used
// is in the record of its call.
func TestAsk_Answers(t *testing.T) {
	for _, isolate := range isolations {
		for body, want := range map[string]string{
			`return model.ask { prompt = "x" }`: `"answer 1"`,
			`model.ask { prompt = "x" } return model.ask { prompt = "y", model = "wise", data = { n = 1.5 } }`:                                                                `"answer 2"`,
			`return model.ask { prompt = "x", schema = { type = "object", properties = { angry = { type = "boolean" }, by = { type = "array" } }, required = { "angry" } } }`: `{"angry":true,"by":[]}`,
			`local v, err = model.ask { prompt = "x", schema = { type = "null" } } return { v == require("json").null, err == nil }`:                                          `[true,true]`,
			`return model.ask { prompt = "x", schema = { type = "object", required = {}, properties = { angry = {} } } }`:                                                     `{"angry":true,"by":[]}`,
		} {
			a := &answerer{}
			outcome, records := ask(t, a, isolate+`, allow = { model = { "fast", "wise" } }`, body)
			if got := string(store.EncodeJSON(outcome.Output)); got != want {
				t.Errorf("%s: %s gave %s, not %s: %s", isolate, body, got, want, records[0].Error)
			}
			used := records[0].Model
			if used == nil || used.Requests != len(a.requests) || used.Input != int64(10*len(a.requests)) || used.MS < 1 {
				t.Errorf("%s: %s: its record has %+v", isolate, body, used)
			}
			if last := a.requests[len(a.requests)-1]; last.Purpose != "ask" || strings.Contains(body, "data") && (last.Model != "wise" || !slices.Contains(last.Blocks, "## Data\n{\"n\":1.5}")) {
				t.Errorf("%+v", last)
			}
		}
	}
}

// TestAsk_WrongArgumentsRaise holds that a wrong argument raises at the place of the question, before
// anything is asked.
func TestAsk_WrongArgumentsRaise(t *testing.T) {
	for _, isolate := range isolations {
		for question, want := range map[string]string{
			`{ prompt = "x", schema = { type = "nothing" } }`:                                                `schema: not a JSON Schema: type: value must be one of 'array', `,
			`{ prompt = "x", schema = { properties = { a = { type = "object", required = "b" } } } }`:        `schema: not a JSON Schema: properties.a.required: got string, want array`,
			`{ prompt = "x", schema = { properties = { a = { ["$ref"] = "#/$defs/b" } } }, model = "wise" }`: `schema: not a JSON Schema: properties.a: $ref "#/$defs/b" leads nowhere`,
			`{ prompt = "x\255" }`:                         `prompt: the text is not valid UTF-8`,
			`{ prompt = "x", model = "fa\255st" }`:         `model: the text is not valid UTF-8`,
			`{ prompt = "x", data = { a = { "\255" } } }`:  `data.a[1]: the text is not valid UTF-8`,
			`{ prompt = "x", schema = { enum = "\255" } }`: `schema.enum: the text is not valid UTF-8`,
		} {
			a := &answerer{}
			outcome, records := ask(t, a, isolate+`, allow = { model = true }`, `return model.ask`+question)
			text, _ := records[0].Error["message"].(string)
			if !strings.Contains(text, "activities/a.lua:") || !strings.Contains(text, "bad argument #1 to model.ask: "+want) || len(a.requests) > 0 {
				t.Errorf("%s: %s: %v %v, %d were asked", isolate, question, outcome.Output, records[0].Error, len(a.requests))
			}
		}
	}
}

// TestAsk_Refused holds which questions are not asked, and why.
func TestAsk_Refused(t *testing.T) {
	allowed := `allow = { model = { "fast" } }`
	for _, isolate := range isolations {
		for _, test := range [][3]string{
			{``, `{ prompt = "x" }`, `asking the model "fast" is not allowed: run with --allow-model=fast or set allow.model in obelus.lua`},
			{`allow = true`, `{ prompt = "x" }`, `asking the model "fast" is not allowed`},
			{allowed, `{ prompt = "x", model = "wise" }`, `asking the model "wise" is not allowed: run with --allow-model=wise`},
			{`allow = { model = true }`, `{ prompt = "x", model = "wiser" }`, `unknown model "wiser" (did you mean "wise"?)`},
		} {
			a := &answerer{}
			outcome, records := ask(t, a, isolate+", "+test[0], `local v, err = model.ask`+test[1]+` assert(v == nil) return err`)
			if text, _ := outcome.Output.(string); !strings.Contains(text, test[2]) || len(a.requests) > 0 || records[0].Model != nil {
				t.Errorf("%s: %s: %v, %d were asked, %+v", isolate, test, outcome.Output, len(a.requests), records[0].Error)
			}
		}
	}
	for body, want := range map[string]string{
		`{}`: "prompt is a text that is not empty", `{ prompt = "" }`: "prompt is a text that is not empty", `{ prompt = "x", model = 1 }`: "model is a text",
		`{ prompt = "x", schema = { "a" } }`: "schema is a JSON Schema", `{ prompt = "x", shema = {} }`: "unknown option shema", `{ prompt = "x", data = print }`: "data: ",
	} {
		_, records := ask(t, &answerer{}, allowed, `return model.ask`+body)
		if text := fmt.Sprint(records[0].Error["message"]); !strings.Contains(text, want) {
			t.Errorf("%s: %s, not %s", body, text, want)
		}
	}
}

// TestAsk_Budget holds that questions of scripts count for the budget of the run.
func TestAsk_Budget(t *testing.T) {
	for _, isolate := range isolations {
		a := &answerer{}
		outcome, records := ask(t, a, isolate+`, allow = { model = true }, budget = { requests = 2 }`,
			`local all = {} for i = 1, 3 do local v, err = model.ask { prompt = "x" } all[i] = v or err end return all`)
		got := string(store.EncodeJSON(outcome.Output))
		if !strings.HasPrefix(got, `["answer 1","answer 2","the run's budget for models is spent`) || len(a.requests) != 2 || records[0].Model.Requests != 2 {
			t.Errorf("%s: %s after %d requests, %+v", isolate, got, len(a.requests), records[0].Model)
		}
	}
}

// TestAsk_FailedCall holds that the record of a call that fails has what it used, in all attempts.
func TestAsk_FailedCall(t *testing.T) {
	a := &answerer{}
	h, err := Open(Config{
		FS: project(map[string]string{
			"obelus.lua": "return { " + askSettings + ", allow = { model = true } }",
			"activities/a.lua": `Activity.register("a", { retries = 2, backoff = 0.001 }, function()
				require("model").ask { prompt = "x" } return nil, "no luck" end)`,
		}),
		Asker: func(model.Config, model.Asker) model.Asker { return a },
	})
	if err != nil {
		t.Fatal(err)
	}
	log, g := memory.New(), h.Generation()
	request := &plan.Request{Calls: []plan.Source{{Call: map[string]any{"_tool": "a", "_outputPath": "†state.a"}}}}
	if _, err := g.Settings().Runner(log, g.Registry()).Run(t.Context(), engine.Start{Context: "c", Request: request}); err != nil {
		t.Fatal(err)
	}
	in := journal.In(log, "c")
	records, _ := in.Records(t.Context())
	if r := records[0]; r.Status != journal.Failed || r.Attempts != 3 || r.Model == nil || r.Model.Requests != 3 {
		t.Errorf("%+v, %+v", r, r.Model)
	}
	if spent, err := journal.SpentOn(t.Context(), in, 1); err != nil || spent.Requests != 3 {
		t.Errorf("%+v, %v", spent, err)
	}
}

// TestAsk_InTime holds that a question takes of its call's time, also in a worker, which is used
// again afterwards.
func TestAsk_InTime(t *testing.T) {
	for _, isolate := range isolations {
		_, records := ask(t, &answerer{wait: true}, isolate+`, timeout = 0.2, allow = { model = true }`, `return model.ask { prompt = "x" }`)
		if records[0].Error["code"] != "timeout" {
			t.Errorf("%s: %+v", isolate, records[0].Error)
		}
	}
}

// TestAsk_NotInARun holds that nothing is asked outside of a call in a run.
func TestAsk_NotInARun(t *testing.T) {
	a := &answerer{}
	h, err := Open(Config{
		FS: project(map[string]string{
			"obelus.lua": "return { " + askSettings + ", allow = { model = true } }",
			"activities/a.lua": `Activity.register("a", function() return select(2, require("model").ask { prompt = "x" }) end)
				Activity.register("top", function() require("top") end)`,
			"lib/top.lua":      `return require("model").ask { prompt = "x" }`,
			"plans/plan.lua":   `return function() return { output = select(2, require("model").ask { prompt = "x" }) } end`,
			"plans/script.lua": `return { calls = {}, output = select(2, require("model").ask { prompt = "x" }) }`,
		}),
		Asker: func(model.Config, model.Asker) model.Asker { return a },
	})
	if err != nil {
		t.Fatal(err)
	}
	g := h.Generation()
	if v, err := runA(g, plan.Invocation{}); err != nil || !strings.Contains(fmt.Sprint(v), "the project has no models") {
		t.Error(v, err)
	}
	request, registry, err := g.Plan("plans/plan.lua")
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := g.Settings().Runner(memory.New(), registry).Run(t.Context(), engine.Start{Context: "c", Request: request})
	if err != nil || !strings.Contains(fmt.Sprint(outcome.Output, outcome.Error), "only by an activity that a run calls") {
		t.Error(outcome, err)
	}
	if _, _, err := g.Plan("plans/script.lua"); err == nil || !strings.Contains(err.Error(), "model.ask is refused") {
		t.Error(err)
	}
	if len(a.requests) > 0 {
		t.Errorf("%d were asked", len(a.requests))
	}
}

// TestAsk_OfTheProgram holds that a model of the embedding program answers scripts as it answers
// calls, if all models are granted.
func TestAsk_OfTheProgram(t *testing.T) {
	h, err := Open(Config{
		FS:     project(map[string]string{"activities/a.lua": `Activity.register("a", function() return require("model").ask { prompt = "x", data = { 1 }, schema = { type = "integer" } } end)`}),
		Grants: &luastd.Grants{Model: luastd.Grant{All: true}},
		Model: plan.ModelFunc(func(_ context.Context, q plan.Question) (any, error) {
			if q.Call["prompt"] != "x" || q.Schema == nil {
				return nil, fmt.Errorf("%v", q.Call)
			}
			return 7, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	g := h.Generation()
	v, err := runA(g, plan.Invocation{Models: &plan.Models{Registry: g.Registry()}})
	if fmt.Sprint(v) != "7" || err != nil {
		t.Error(v, err)
	}
}

func TestAsk_Settings(t *testing.T) {
	_, err := Open(Config{FS: project(map[string]string{"obelus.lua": "return { " + askSettings + `, allow = { model = { "fsat" } } }`})})
	if err == nil || !strings.Contains(err.Error(), `allow.model: there is no model "fsat" (did you mean "fast"?)`) {
		t.Error(err)
	}
	wide, narrow := luastd.Grants{Model: luastd.Grant{All: true}}, luastd.Grants{Model: luastd.Grant{List: []string{"fast"}}}
	if !wide.Widens(narrow) || narrow.Widens(wide) || !slices.Equal(wide.Within(narrow).Model.List, []string{"fast"}) {
		t.Error("a grant for all models is no wider than one for a model")
	}
}

// TestAsk_Replayed holds that a replay never asks: neither does the one that asks the models about
// plans and latent calls again.
func TestAsk_Replayed(t *testing.T) {
	a := &answerer{}
	h, err := Open(Config{
		FS: project(map[string]string{
			"obelus.lua":       "return { " + askSettings + ", allow = { model = true } }",
			"activities/a.lua": `Activity.register("a", function() return require("model").ask { prompt = "x" } end)`,
		}),
		Asker: func(model.Config, model.Asker) model.Asker { return a },
	})
	if err != nil {
		t.Fatal(err)
	}
	log, g := memory.New(), h.Generation()
	request := func() *plan.Request {
		return &plan.Request{Calls: []plan.Source{{Call: map[string]any{"_tool": "a", "_outputPath": "†state.a"}}}, Output: store.Some(any("†state.a"))}
	}
	runner := g.Settings().Runner(log, g.Registry())
	if _, err := runner.Run(t.Context(), engine.Start{Context: "c", Request: request()}); err != nil {
		t.Fatal(err)
	}
	for name, again := range map[string]func(context.Context, *engine.Runner, string, *plan.Request) (*replay.Replayed, error){"run": replay.Run, "ask": replay.Ask} {
		replayed, err := again(t.Context(), g.Settings().Runner(log, g.Registry()), "c", request())
		if err != nil || len(replayed.Differences) > 0 || len(a.requests) != 1 {
			t.Errorf("%s: %+v, %v, and %d were asked", name, replayed, err, len(a.requests))
		}
	}
}
