package trace_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host/trace"
	"obelus/store"
	"obelus/store/memory"
	"obelus/store/sqlite"
)

// fake answers calls together, and plans once.
type fake struct{}

func (f *fake) use(m *plan.Meter, n int64) {
	cost := 0.25
	m.Spend(plan.Usage{Model: "fast", Served: "gpt-5-mini-2026", Requests: 1, Mode: "schema", Finish: "stop", Input: 100 * n, Output: n, CacheRead: 7, CacheWrite: 8, Reasoning: 9, Cost: &cost, Took: 5 * time.Millisecond})
}

func (f *fake) Answer(_ context.Context, q plan.Question) (any, error) {
	f.use(q.Meter, 1)
	return "fine", nil
}

func (f *fake) Batch() (int, bool) { return 8, false }

func (f *fake) AnswerAll(_ context.Context, questions []plan.Question) []plan.Reply {
	f.use(questions[0].Meter, 2)
	replies := make([]plan.Reply, len(questions))
	for i := range replies {
		replies[i].Result.Value = "fine"
	}
	return replies
}

func (f *fake) Propose(_ context.Context, p plan.Proposal) (*plan.Solution, error) {
	f.use(p.Meter, 3)
	if p.Tick > 1 {
		return &plan.Solution{Output: "over"}, nil
	}
	return &plan.Solution{Calls: []plan.Source{{Call: map[string]any{"_tool": "good", "_outputPath": "†state.x", "secret": "of the plan"}}}}, nil
}

// registry has an activity that works and one that fails, a tool that a model answers, and a delegate
// that a model plans.
func registry(t testing.TB) *plan.Registry {
	t.Helper()
	r := plan.NewRegistry()
	r.Model = &fake{}
	r.Models = map[string]plan.Model{"fast": r.Model}
	for name, do := range map[string]plan.ActivityFunc{
		"good": func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{Value: "secret result"}, nil
		},
		"bad": func(context.Context, plan.Invocation) (plan.Result, error) {
			return plan.Result{}, &plan.Failure{Fields: map[string]any{"message": "secret reason", "code": "declined"}}
		},
	} {
		r.Activities[name] = &plan.Registered{Name: name, Activity: do}
	}
	judge, err := plan.NewTool("judge", map[string]any{"_output": map[string]any{"type": "string"}})
	if err != nil {
		t.Fatal(err)
	}
	r.Tools["judge"] = judge
	r.Delegates["inner"] = &plan.Delegate{Request: &plan.Request{Name: "inner", Planner: &plan.Planning{Offer: []string{"good"}}}}
	return r
}

// run runs a plan with all of that, twice, so that the newest run is not the first.
func run(t testing.TB, log store.Log, name string) {
	t.Helper()
	calls := []plan.Source{
		{Call: map[string]any{"_tool": "good", "_outputPath": "†state.a", "secret": "argument"}},
		{Call: map[string]any{"_tool": "bad", "_outputPath": "†state.b || †state.failed"}},
		{Call: map[string]any{"_tool": "judge", "_outputPath": "†state.c"}},
		{Call: map[string]any{"_tool": "judge", "_outputPath": "†state.d"}},
		{Call: map[string]any{"_tool": "inner", "_delegate": "inner", "_outputPath": "†state.e"}},
		{Call: map[string]any{"_tool": "bad", "_outputPath": "†state.g"}},
		{Call: map[string]any{"_tool": "good", "after": "†state.g", "_outputPath": "†state.h"}},
	}
	r := &engine.Runner{Log: log, Registry: registry(t)}
	for range 2 {
		out, err := r.Run(t.Context(), engine.Start{Context: name, Request: &plan.Request{Name: "plans/all.lua", Calls: calls}})
		if err != nil || out.Status != journal.RunFailed && out.Status != journal.RunDone {
			t.Fatal(out, err)
		}
	}
}

var models = map[string]trace.ModelInfo{"fast": {Provider: "azure", Model: "gpt-5-mini"}}

func of(t testing.TB, log store.Log, name string, content bool) *trace.Trace {
	t.Helper()
	tr, err := trace.Of(t.Context(), journal.In(log, name), trace.Options{Models: models, Content: content})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// decode reads a trace by the messages of OpenTelemetry, which refuse unknown fields. Ids are in hex
// in the JSON of OTLP, and in base64 in that of Protobuf.
func decode(t testing.TB, text []byte) *otlp.TracesData {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	var fix func(v any)
	fix = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				fix(e)
			}
		case map[string]any:
			for key, e := range v {
				if key == "traceId" || key == "spanId" || key == "parentSpanId" {
					id, err := hex.DecodeString(e.(string))
					if err != nil {
						t.Fatal(err)
					}
					v[key] = base64.StdEncoding.EncodeToString(id)
				}
				fix(e)
			}
		}
	}
	fix(v)
	fixed, _ := json.Marshal(v)
	data := &otlp.TracesData{}
	if err := protojson.Unmarshal(fixed, data); err != nil {
		t.Fatal(err)
	}
	return data
}

// attributes are those of a span by name, as texts.
func attributes(s *otlp.Span) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		all[a.Key] = strings.TrimSpace(protojsonText(a.Value))
	}
	return all
}

func protojsonText(v *common.AnyValue) string {
	if text, ok := v.Value.(*common.AnyValue_StringValue); ok {
		return text.StringValue
	}
	text, _ := protojson.Marshal(v)
	return strings.ReplaceAll(string(text), " ", "")
}

// TestOf_Decodes holds that OpenTelemetry reads a trace, in which each span is within its parent.
func TestOf_Decodes(t *testing.T) {
	for _, name := range []string{"memory", "sqlite"} {
		t.Run(name, func(t *testing.T) {
			var log store.Log = memory.New()
			if name == "sqlite" {
				opened, err := sqlite.Open(filepath.Join(t.TempDir(), "log.db"), sqlite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				log = opened
			}
			defer log.Close()
			run(t, log, "c")
			checkDecoded(t, of(t, log, "c", false))
		})
	}
}

func checkDecoded(t *testing.T, tr *trace.Trace) {
	t.Helper()
	text, err := json.Marshal(tr)
	if err != nil || strings.Contains(string(text), "secret") {
		t.Fatalf("%v, and in it is content: %s", err, text)
	}
	scope := decode(t, text).ResourceSpans[0].ScopeSpans[0]
	if scope.SchemaUrl != "https://opentelemetry.io/schemas/1.41.0" || scope.Scope.Name != "obelus" {
		t.Error(scope.SchemaUrl, scope.Scope)
	}
	byID, names := map[string]*otlp.Span{}, map[string]int{}
	for _, s := range scope.Spans {
		if len(s.TraceId) != 16 || len(s.SpanId) != 8 || byID[string(s.SpanId)] != nil {
			t.Errorf("the ids of %s", s)
		}
		byID[string(s.SpanId)] = s
		a := attributes(s)
		names[s.Name]++
		parent := byID[string(s.ParentSpanId)]
		if root := strings.HasPrefix(s.Name, "invoke_workflow"); root != (parent == nil) {
			t.Errorf("the parent of %s", s)
		}
		if parent != nil && (s.StartTimeUnixNano < parent.StartTimeUnixNano || s.EndTimeUnixNano > parent.EndTimeUnixNano) {
			t.Errorf("%s is not within %s", s, parent)
		}
		if operation, _, _ := strings.Cut(s.Name, " "); a["gen_ai.operation.name"] != operation || a["obelus.context"] == "" || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s", s)
		}
		failed := s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR
		if failed != (a["error.type"] != "") || s.GetStatus().GetMessage() != "" {
			t.Errorf("the failure of %s", s)
		}
		switch {
		case s.Name == "execute_tool bad" && a["error.type"] != "declined":
			t.Errorf("%s", s)
		case strings.HasPrefix(s.Name, "chat") != (s.Kind == otlp.Span_SPAN_KIND_CLIENT):
			t.Errorf("the kind of %s", s)
		}
	}
	want := map[string]int{
		"invoke_workflow plans/all.lua": 1, "execute_tool good": 2, "execute_tool bad": 2, "execute_tool judge": 2, "execute_tool inner": 1,
		"invoke_agent inner": 1, "chat gpt-5-mini": 3, // of the group, and for the plans of the delegate
	}
	if !maps.Equal(names, want) {
		t.Errorf("%v, not %v", names, want)
	}
	checkChats(t, scope.Spans)
}

func checkChats(t *testing.T, spans []*otlp.Span) {
	t.Helper()
	var inputs []string
	for _, s := range spans {
		a := attributes(s)
		if a["gen_ai.operation.name"] != "chat" {
			continue
		}
		inputs = append(inputs, a["gen_ai.usage.input_tokens"])
		for key, want := range map[string]string{
			"gen_ai.provider.name": "azure.ai.openai", "gen_ai.request.model": "gpt-5-mini", "gen_ai.response.model": "gpt-5-mini-2026",
			"gen_ai.response.finish_reasons": `{"arrayValue":{"values":[{"stringValue":"stop"}]}}`, "gen_ai.usage.cache_read.input_tokens": `{"intValue":"7"}`,
			"gen_ai.usage.cache_creation.input_tokens": `{"intValue":"8"}`, "gen_ai.usage.reasoning.output_tokens": `{"intValue":"9"}`,
			"obelus.cost": `{"doubleValue":0.25}`, "obelus.requests": `{"intValue":"1"}`, "obelus.model": "fast",
		} {
			if a[key] != want {
				t.Errorf("%s is %q, not %q", key, a[key], want)
			}
		}
		if took := s.EndTimeUnixNano - s.StartTimeUnixNano; took > 6e6 {
			t.Errorf("it took %d ns", took)
		}
	}
	slices.Sort(inputs)
	if want := []string{`{"intValue":"200"}`, `{"intValue":"300"}`, `{"intValue":"300"}`}; !slices.Equal(inputs, want) {
		t.Errorf("%v, not %v", inputs, want)
	}
}

// TestOf_SameIDs holds that the ids of a run are the same whenever it is traced, also by way of a
// delegate in it, and those of another run are others.
func TestOf_SameIDs(t *testing.T) {
	log := memory.New()
	run(t, log, "c")
	run(t, log, "d")
	ids := func(tr *trace.Trace) (all []string) {
		for _, s := range tr.Spans {
			all = append(all, tr.ID.String()+s.ID.String())
		}
		return all
	}
	first := ids(of(t, log, "c", false))
	if again := ids(of(t, log, "c", true)); !slices.Equal(first, again) {
		t.Errorf("%v, then %v", first, again)
	}
	var inner string
	for info := range log.Contexts(t.Context(), store.ContextFilter{Prefix: "c."}) {
		if info.Origin.Call == "2.5" {
			inner = info.Context
		}
	}
	if again := ids(of(t, log, inner, true)); !slices.Equal(first, again) {
		t.Errorf("%v, and of %s %v", first, inner, again)
	}
	for _, id := range ids(of(t, log, "d", false)) {
		if slices.Contains(first, id) {
			t.Errorf("%s is of both", id)
		}
	}
	if want := "837e3131fc22a73b"; !strings.HasPrefix(first[0], want) {
		t.Errorf("%s does not begin with %s: ids must stay what they are", first[0], want)
	}
}

func TestOf_Content(t *testing.T) {
	log := memory.New()
	run(t, log, "c")
	got := map[string]bool{}
	for _, s := range of(t, log, "c", true).Spans {
		got[s.Message] = true
		for _, a := range s.Attributes {
			if text, ok := a.Value.(string); ok {
				got[a.Key+" "+text] = true
			}
		}
	}
	for _, want := range []string{
		"secret reason", `gen_ai.tool.call.arguments {"secret":"argument"}`, `gen_ai.tool.call.result {"a":"secret result"}`,
		`gen_ai.tool.call.arguments {"secret":"of the plan"}`, `obelus.output "over"`,
	} {
		if !got[want] {
			t.Errorf("there is no %q among %v", want, slices.Sorted(maps.Keys(got)))
		}
	}
}

func TestOf_Absent(t *testing.T) {
	log := memory.New()
	if _, err := trace.Of(t.Context(), journal.In(log, "none"), trace.Options{}); !errors.Is(err, trace.ErrNoRun) && !errors.Is(err, store.ErrNoContext) {
		t.Error(err)
	}
}

// TestOf_Unfinished holds that a run that waits has a trace, in which a call that has not begun has
// no span.
func TestOf_Unfinished(t *testing.T) {
	log := memory.New()
	r := &engine.Runner{Log: log, Registry: registry(t)}
	calls := []plan.Source{
		{Call: map[string]any{"_tool": "good", "_outputPath": "†state.a"}},
		{Call: map[string]any{"_tool": "good", "n": "†input.n", "_outputPath": "†state.b"}},
	}
	if _, err := r.Run(t.Context(), engine.Start{Context: "c", Request: &plan.Request{Name: "plans/all.lua", Calls: calls}}); err != nil {
		t.Fatal(err)
	}
	tr := of(t, log, "c", false)
	if len(tr.Spans) != 2 || tr.Spans[0].Failed || !slices.Contains(tr.Spans[0].Attributes, trace.Attribute{Key: "obelus.status", Value: "waiting"}) {
		t.Errorf("%+v", tr.Spans)
	}
}
