package model

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/host/model/fit"
	"obelus/host/model/modeltest"
	"obelus/store"
	"obelus/store/memory"
)

// story is a task with the plans and the answers of a model that understands it.
type story struct {
	tools      map[string]string // name to schema
	delegates  map[string]*plan.Delegate
	activities map[string]func(call map[string]any) (any, error)
	context    []store.Message
	plans      map[string][]string // by context, "" for the run's own: tick for tick
	answers    map[string]string   // by tool
	schema     string              // of the output; empty for any
	output     string
	answered   map[string]string // by call, how; missing where it was not to be asked
	prompts    []string          // texts that a prompt about a call has
}

// article is a text of which the end matters.
var article = strings.Repeat("Nothing of note happened, and the river went on. ", 2000) + "In the end the bridge fell."

// stories are those that the protocol is for: data that is not there yet, a choice, and a clean room.
var stories = map[string]story{
	"fetch, summarise, send": {
		tools: map[string]string{
			"fetch":     `{"properties": {"id": {"type": "integer"}}, "required": ["id"], "_output": {"type": "object", "properties": {"text": {"type": "string"}}}}`,
			"summarise": `{"description": "Says in a sentence\nwhat a text says.", "properties": {"text": {"type": "string"}}, "required": ["text"], "_output": {"type": "string"}, "examples": [{"text": "†state.page.text"}]}`,
			"send":      `{"properties": {"text": {"type": "string"}, "urgent": {"type": "boolean"}}, "required": ["text"]}`,
		},
		activities: map[string]func(map[string]any) (any, error){
			"fetch": func(call map[string]any) (any, error) {
				return map[string]any{"text": fmt.Sprintf("Order %v is late.", call["id"])}, nil
			},
			"send": func(call map[string]any) (any, error) { return "sent: " + call["text"].(string), nil },
		},
		context: []store.Message{{Type: store.TypeData, Kind: "input", Data: store.Some(map[string]any{"id": 7})}},
		plans: map[string][]string{"": {
			`{"calls": [{"_tool": "fetch", "id": "†input.id", "_outputPath": "†state.order"}, {"_tool": "summarise", "text": "†state.order.text", "_outputPath": "†state.summary"}, {"_tool": "send", "text": "†state.summary", "_outputPath": "†state.sent"}], "output": null}`,
			`{"calls": [], "output": "†state.sent"}`,
		}},
		answers:  map[string]string{"summarise": `"It is late."`},
		output:   `"sent: It is late."`,
		answered: map[string]string{"1.2": journal.WhenAsked},
		prompts:  []string{"Order 7 is late."},
	},
	"sunny or rainy": {
		tools: map[string]string{
			"weather": `{"properties": {"town": {"type": "string"}}, "required": ["town"]}`,
			"decide":  `{"properties": {"weather": {}}, "required": ["weather"], "_outputPath": {"const": "†state.sunny || †state.rainy"}, "_output": {"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"]}}`,
			"picnic":  `{"properties": {"because": {"type": "string"}}, "required": ["because"]}`,
			"museum":  `{"properties": {"because": {"type": "string"}}, "required": ["because"]}`,
		},
		activities: map[string]func(map[string]any) (any, error){
			"weather": func(map[string]any) (any, error) { return "showers", nil },
			"picnic":  func(map[string]any) (any, error) { return "to the park", nil },
			"museum":  func(call map[string]any) (any, error) { return "to the museum: " + call["because"].(string), nil },
		},
		context: []store.Message{{Type: store.TypeData, Kind: "input", Data: store.Some(map[string]any{"town": "Trier"})}},
		plans: map[string][]string{"": {
			`{"calls": [{"_tool": "weather", "town": "†input.town", "_outputPath": "†state.weather"}, {"_tool": "decide", "weather": "†state.weather"}, {"_tool": "picnic", "because": "†state.sunny.why", "_outputPath": "†state.trip"}, {"_tool": "museum", "because": "†state.rainy.why", "_outputPath": "†state.trip"}], "output": "†state.trip"}`,
		}},
		answers:  map[string]string{"decide": `{"to": "†state.rainy", "value": {"why": "it rains"}}`},
		output:   `"to the museum: it rains"`,
		answered: map[string]string{"1.2": journal.WhenAsked},
		prompts:  []string{`"showers"`, "Goes to: †state.sunny or †state.rainy"},
	},
	"a summariser in a clean room": {
		tools: map[string]string{
			"note":      `{"properties": {"text": {"type": "string"}}, "required": ["text"], "_output": {"type": "string"}, "_scopes": ["input.article"], "_focus": "only"}`,
			"summarise": `{"_delegate": "summariser", "_scopes": ["input.article"], "properties": {"length": {"type": "integer"}}}`,
		},
		delegates: map[string]*plan.Delegate{"summariser": {Request: &plan.Request{
			Name: "summariser", Planner: &plan.Planning{Offer: []string{}},
			Context: []store.Message{{Type: store.TypeSystem, Data: store.Some("You are an expert summariser.")}},
			Schema:  map[string]any{"type": "object", "properties": map[string]any{"summary": map[string]any{"type": "string"}}, "required": []any{"summary"}},
		}}},
		context: []store.Message{
			{Type: store.TypeData, Kind: "input", Data: store.Some(map[string]any{"article": article, "other": "not for the summariser"})},
		},
		plans: map[string][]string{
			"":           {`{"calls": [{"_tool": "summarise", "length": 1, "_outputPath": "†state.short"}, {"_tool": "note", "text": "†state.short.summary", "_outputPath": "†state.note"}], "output": ["†state.short.summary", "†state.note"]}`},
			"summariser": {`{"calls": [], "output": {"summary": "The bridge fell."}}`},
		},
		answers:  map[string]string{"note": `"noted"`},
		schema:   `{"type": "array", "items": {"type": "string"}}`,
		output:   `["The bridge fell.","noted"]`,
		answered: map[string]string{"1.2": journal.WhenAsked},
		prompts:  []string{"In the end the bridge fell."},
	},
}

// teller answers the requests of a story: by what that says, written as the schema that was sent has it;
// whatever that leaves open is at random.
type teller struct {
	t     testing.TB
	of    story
	seed  uint64
	asked map[string]int // plans, by context
}

var callHeading = regexp.MustCompile(`(?m)^## Call (\S+) (\S+)`)

func (s *teller) answer(r *modeltest.Request) modeltest.Reply {
	s.seed++
	w := &writer{t: s.t, root: r.Schema.(map[string]any), seed: s.seed}
	var value any
	if calls := callHeading.FindAllStringSubmatch(r.Prompt, -1); calls != nil {
		answers := map[string]any{}
		for _, call := range calls {
			answers[call[1]] = decodeText(s.t, s.of.answers[call[2]])
		}
		for _, text := range s.of.prompts {
			if !strings.Contains(r.Prompt, text) {
				s.t.Errorf("the question has no %q:\n%.2000s", text, r.Prompt)
			}
		}
		value = w.write(w.root, answers)
	} else {
		context := ""
		if strings.Contains(r.System, "summariser") {
			context = "summariser"
			if !strings.Contains(r.Prompt, article) || strings.Contains(r.Prompt, "not for the summariser") {
				s.t.Error("the summariser does not see the article whole, and nothing else")
			}
		}
		n := s.asked[context]
		s.asked[context]++
		if n >= len(s.of.plans[context]) {
			s.t.Errorf("it is asked for another plan:\n%.3000s", r.Prompt[max(0, len(r.Prompt)-3000):])
			return modeltest.Reply{Value: modeltest.Generate(w.root, s.seed)}
		}
		value = w.write(w.root, decodeText(s.t, s.of.plans[context][n]))
	}
	compiled, err := schema.New(w.root)
	if err != nil {
		s.t.Error(err)
	} else if err := compiled.Validate(w.plain(value), ""); err != nil {
		s.t.Errorf("the schema does not permit %s: %v", jsonText(value), err)
	}
	return modeltest.Reply{Value: value}
}

// writer writes a value as a schema has it.
type writer struct {
	t    testing.TB
	root map[string]any
	seed uint64
}

func decodeText(t testing.TB, text string) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Errorf("%v: %q", err, text)
	}
	return v
}

// plain returns a value as JSON has it.
func (w *writer) plain(v any) any { return decodeText(w.t, jsonText(v)) }

func (w *writer) resolved(at any) map[string]any {
	o, _ := at.(map[string]any)
	for range 10 {
		ref, ok := o["$ref"].(string)
		if !ok {
			return o
		}
		defs, _ := w.root["$defs"].(map[string]any)
		o, _ = defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	return o
}

// random returns whatever a schema permits.
func (w *writer) random(at any) any {
	w.seed++
	whole := map[string]any{"$defs": w.root["$defs"]}
	for name, v := range w.resolved(at) {
		whole[name] = v
	}
	return modeltest.Generate(whole, w.seed)
}

// write writes a value by a schema, in the branch that takes it. Of a call, the members that the story
// does not name are at random where they are its result or its reason, and else left out.
func (w *writer) write(at any, v any) any {
	o := w.resolved(at)
	for _, keyword := range []string{"anyOf", "oneOf"} {
		branches, _ := o[keyword].([]any)
		for _, branch := range branches {
			if written := w.write(branch, v); w.fits(branch, written) {
				return written
			}
		}
	}
	if list, ok := v.([]any); ok && o["items"] != nil {
		written := []any{}
		for _, e := range list {
			written = append(written, w.write(o["items"], e))
		}
		return written
	}
	object, ok := v.(map[string]any)
	properties, declared := o["properties"].(map[string]any)
	if !ok || !declared {
		return v
	}
	if _, loose := properties["args"]; loose && object["_tool"] != nil {
		args := map[string]any{}
		for name, v := range object {
			if name != "_tool" {
				args[name] = v
			}
		}
		object = map[string]any{"_tool": object["_tool"], "args": jsonText(args)}
	}
	required, _ := o["required"].([]any)
	written := map[string]any{}
	for name, property := range properties {
		given, has := object[name]
		switch {
		case has:
			written[name] = w.write(property, given)
		case name == "_output" || name == "_reasoningForCall":
			made := w.random(property)
			if outcome, ok := made.(map[string]any); ok && outcome["to"] != nil && object["_outputPath"] != nil {
				outcome["to"] = object["_outputPath"] // another is an error of the plan
			}
			written[name] = made
		case slices.Contains(required, any(name)):
			written[name] = nil
		}
	}
	for name := range object {
		if _, ok := properties[name]; !ok {
			written[name] = object[name]
		}
	}
	return written
}

// fits reports whether a schema takes a value.
func (w *writer) fits(at, v any) bool {
	whole := map[string]any{"$defs": w.root["$defs"]}
	for name, v := range w.resolved(at) {
		whole[name] = v
	}
	if whole["$defs"] == nil {
		delete(whole, "$defs")
	}
	compiled, err := schema.New(whole)
	return err == nil && compiled.Validate(w.plain(v), "") == nil
}

// runner returns a runner of the story with a model.
func (s story) runner(t testing.TB, m *Model) *engine.Runner {
	registry := plan.NewRegistry()
	for name, text := range s.tools {
		tool, err := plan.NewTool(name, decodeText(t, text))
		if err != nil {
			t.Fatal(err)
		}
		registry.Tools[name] = tool
	}
	for name, run := range s.activities {
		registry.Activities[name] = &plan.Registered{Name: name, Activity: plan.ActivityFunc(func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			v, err := run(in.Call)
			return plan.Result{Value: v}, err
		})}
	}
	for name, d := range s.delegates {
		registry.Delegates[name] = &plan.Delegate{Request: d.Request}
	}
	registry.Model = m
	return &engine.Runner{Log: memory.New(), Registry: registry, Ticks: 4, Parallel: 4}
}

// TestStories has a model tell each story, by what the schema that is sent to it permits and no more, in
// each dialect and form: what it makes up before there is data is set aside, and it is asked.
func TestStories(t *testing.T) {
	for name, of := range stories {
		for _, dialect := range fit.Dialects() {
			for _, loose := range []bool{false, true} {
				for seed := range 8 {
					t.Run(fmt.Sprintf("%s/%s/loose=%t/%d", name, dialect, loose, seed), func(t *testing.T) { tellStory(t, of, dialect, loose, uint64(seed)) })
				}
			}
		}
	}
}

func tellStory(t *testing.T, of story, dialect string, loose bool, seed uint64) {
	server := modeltest.NewTransport(t)
	server.Answer = (&teller{t: t, of: of, seed: seed * 1000, asked: map[string]int{}}).answer
	c := Config{Name: "m", URL: "https://models.example/v1", Model: "m", Dialect: dialect, Repairs: -1, Batch: 1}
	if dialect == "anthropic" {
		c.Wire = dialect
	}
	if loose {
		c.MaxSchema = 1
	}
	client, err := NewClient(c, Options{Transport: server})
	if err != nil {
		t.Fatal(err)
	}
	r := of.runner(t, New(c, client))
	request := &plan.Request{Planner: &plan.Planning{}, Context: of.context}
	if of.schema != "" {
		request.Schema = decodeText(t, of.schema)
	}
	outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
	if err != nil || outcome.Status != journal.RunDone || string(store.EncodeJSON(outcome.Output)) != of.output {
		t.Fatalf("%+v, %v", outcome, err)
	}
	records, err := journal.In(r.Log, "c").Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records {
		how := ""
		if record.Answered != nil {
			how = record.Answered.How
		}
		if how != of.answered[record.Call] {
			t.Errorf("call %s was answered %q, want %q", record.Call, how, of.answered[record.Call])
		}
	}
}

// TestPeer_OllamaTells sends the questions of the stories to a real server, whose model types what the
// schema allows: no form of a question is refused, and none has to be asked for again.
func TestPeer_OllamaTells(t *testing.T) {
	tellPeer(t, Config{Name: "here", Provider: "ollama", URL: ollama(t), Model: deafMonkey})
}

// TestPeer_LlamaCppTells is the same with llama.cpp.
func TestPeer_LlamaCppTells(t *testing.T) {
	tellPeer(t, Config{Name: "here", Provider: "llama", URL: llamaCpp(t), Model: "monkey"})
}

func tellPeer(t *testing.T, c Config) {
	t.Helper()
	hot := 1.3
	c.Temperature, c.MaxTokens, c.Window, c.Strict, c.Repairs = &hot, 400, 1<<20, true, 1
	for name, of := range stories {
		client, err := NewClient(c, Options{Warn: func(text string) { t.Errorf("%s: %s", name, text) }})
		if err != nil {
			t.Fatal(err)
		}
		r := of.runner(t, New(c, client))
		r.Ticks = 2
		request := &plan.Request{Planner: &plan.Planning{}, Context: of.context}
		outcome, err := r.Run(t.Context(), engine.Start{Context: "c", Request: request})
		if err != nil || strings.Contains(outcome.Error, "does not work") || strings.Contains(outcome.Error, "400") {
			t.Errorf("%s: %+v, %v", name, outcome, err)
		}
		t.Logf("%s: %s", name, outcome.Status)
	}
}
