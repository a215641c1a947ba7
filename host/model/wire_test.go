package model

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"obelus/host/model/fit"
)

// TestBodies holds what a provider is sent, to the byte.
func TestBodies(t *testing.T) {
	zero, seed, half := 0.0, int64(0), 0.5
	const schema = `{"type":"object","properties":{"word":{"type":"string"},"number":{"type":"number"}},"required":["word","number"],"additionalProperties":false}`
	const messages = `"messages":[{"role":"system","content":"You answer."},{"role":"user","content":"## Data: †input\n{}\n\n## Call 1.1 judge"}]`
	const format = `"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":` + schema + `}}`
	const end = `"stream":true,"stream_options":{"include_usage":true}}`
	const blocks = `"system":[{"type":"text","text":"You answer."}],"messages":[{"role":"user","content":[` +
		`{"type":"text","text":"## Data: †input\n{}","cache_control":{"type":"ephemeral"}},{"type":"text","text":"## Call 1.1 judge"}]}]`
	for _, test := range []struct {
		name   string
		config Config
		want   string
	}{
		{"openai", Config{Provider: "openai", Params: Params{Temperature: &zero, TopP: &half, Seed: &seed, Effort: "low"}},
			`{"model":"large",` + messages + `,"max_completion_tokens":8192,"temperature":0,"top_p":0.5,"seed":0,"reasoning_effort":"low",` + format + "," + end},
		{"azure", Config{Provider: "azure"}, `{"model":"large",` + messages + `,"max_completion_tokens":8192,` + format + "," + end},
		{"another", Config{Params: Params{MaxTokens: 5}}, `{"model":"large",` + messages + `,"max_tokens":5,` + format + "," + end},
		{"openrouter", Config{Provider: "openrouter"}, `{"model":"large",` + messages + `,"max_tokens":8192,` + format + `,"usage":{"include":true},` + end},
		{"tools", Config{Mode: modeTools}, `{"model":"large",` + messages + `,"max_tokens":8192,"tools":[{"type":"function","function":{"name":"answer","description":"Gives the answer.","parameters":` + schema +
			`}}],"tool_choice":{"type":"function","function":{"name":"answer"}},` + end},
		{"extra", Config{Extra: map[string]any{"provider": map[string]any{"sort": "price"}, "max_tokens": 7, "stream_options": map[string]any{"x": true}}},
			`{"model":"large",` + messages + `,"max_tokens":7,` + format + `,"stream":true,"stream_options":{"include_usage":true,"x":true},"provider":{"sort":"price"}}`},
		{"not streamed", Config{Extra: map[string]any{"stream": false}}, `{"model":"large",` + messages + `,"max_tokens":8192,` + format + `,"stream":false}`},
		{"anthropic", Config{Wire: wireAnthropic, Params: Params{Temperature: &zero}},
			`{"model":"large","max_tokens":8192,` + blocks + `,"temperature":0,"output_config":{"format":{"type":"json_schema","schema":` + schema + `}},"stream":true}`},
		{"anthropic, thinking", Config{Wire: wireAnthropic, Params: Params{Effort: "minimal"}},
			`{"model":"large","max_tokens":8192,` + blocks + `,"thinking":{"type":"adaptive"},"output_config":{"format":{"type":"json_schema","schema":` + schema + `},"effort":"low"},"stream":true}`},
		{"anthropic, tools", Config{Wire: wireAnthropic, Mode: modeTools, Params: Params{Effort: "high"}},
			`{"model":"large","max_tokens":8192,` + blocks + `,"tools":[{"name":"answer","description":"Gives the answer.","input_schema":` + schema +
				`}],"tool_choice":{"type":"tool","name":"answer","disable_parallel_tool_use":true},"stream":true}`},
	} {
		s := newSetUp(t, test.config)
		if _, err := s.Ask(t.Context(), question(), nil); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if got := string(s.server.Requests()[0].Text); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

// TestHeaders holds what goes beside a body.
func TestHeaders(t *testing.T) {
	for _, test := range []struct {
		config Config
		want   map[string]string
	}{
		{Config{}, map[string]string{"Authorization": "Bearer " + testKey, "X-Api-Key": ""}},
		{Config{Provider: "azure"}, map[string]string{"Api-Key": testKey, "Authorization": ""}},
		{Config{Wire: wireAnthropic}, map[string]string{"X-Api-Key": testKey, "Authorization": "", "Anthropic-Version": "2023-06-01"}},
	} {
		s := newSetUp(t, test.config)
		if _, err := s.Ask(t.Context(), question(), nil); err != nil {
			t.Fatal(err)
		}
		test.want["Content-Type"] = "application/json"
		for name, want := range test.want {
			if got := s.server.Requests()[0].Header.Get(name); got != want {
				t.Errorf("%+v: %s: %q, want %q", test.config, name, got, want)
			}
		}
	}
}

// TestBodies_CacheOfSystem holds that the system's text is what is cached where no block is stable.
func TestBodies_CacheOfSystem(t *testing.T) {
	s := newSetUp(t, Config{Wire: wireAnthropic})
	q := question()
	q.Stable = 0
	if _, err := s.Ask(t.Context(), q, nil); err != nil {
		t.Fatal(err)
	}
	if got := string(s.server.Requests()[0].Text); strings.Count(got, "cache_control") != 1 || !strings.Contains(got, `"text":"You answer.","cache_control"`) {
		t.Error(got)
	}
}

// TestBodies_SchemaInPrompt holds where the schema stands in the prompt: of a plan after what stays
// the same, and else at the end.
func TestBodies_SchemaInPrompt(t *testing.T) {
	for purpose, want := range map[string]string{purposePlan: "## Data|## Schema of|## Call", purposeAnswer: "## Data|## Call|## Schema of"} {
		s := newSetUp(t, Config{Wire: wireAnthropic, Mode: modeText})
		q := question()
		q.Purpose = purpose
		if _, err := s.Ask(t.Context(), q, nil); err != nil {
			t.Fatal(err)
		}
		r := s.server.Requests()[0]
		at := 0
		for _, part := range strings.Split(want, "|") {
			i := strings.Index(r.Prompt[at:], part)
			if i < 0 {
				t.Errorf("%s: %s; want %s", purpose, r.Prompt, want)
				break
			}
			at += i
		}
		stable := `"text":"## Data: †input\n{}","cache_control"`
		if purpose == purposePlan {
			stable = `additionalProperties\":false}","cache_control"`
		}
		if !strings.Contains(string(r.Text), stable) || strings.Count(string(r.Text), "cache_control") != 1 {
			t.Errorf("%s: %s; want %s", purpose, r.Text, stable)
		}
	}
}

func TestThinkingBudget(t *testing.T) {
	for _, test := range []struct {
		model, effort string
		most, want    int // 0 if the model chooses itself
	}{
		{"claude-sonnet-4-5", "low", 8192, 1638},
		{"claude-sonnet-4-5-20250929", "medium", 8192, 4096},
		{"claude-haiku-4-5", "high", 8192, 6553},
		{"claude-3-7-sonnet-latest", "minimal", 8192, 1024},
		{"anthropic/claude-opus-4.5", "low", 8192, 1638},
		{"claude-opus-4-20250514", "low", 8192, 1638},
		{"claude-opus-4-6", "low", 8192, 0},
		{"claude-sonnet-5", "low", 8192, 0},
		{"claude-opus-4-7-20260401", "max", 8192, 0},
		{"something", "low", 8192, 0},
	} {
		if got, ok := thinkingBudget(test.model, test.effort, test.most); got != test.want || ok != (test.want > 0) {
			t.Errorf("%s, %s: %d, %v; want %d", test.model, test.effort, got, ok, test.want)
		}
	}
}

func TestMerge(t *testing.T) {
	o := fit.Object{member("a", fit.Object{member("b", 1), member("c", map[string]any{"d": 1})}), member("e", 1), member("f", []any{1})}
	got := merge(o, map[string]any{"a": map[string]any{"c": map[string]any{"x": 2}, "a": 0}, "e": map[string]any{"y": 1}, "f": []any{2}, "g": nil})
	text, err := json.Marshal(got)
	if want := `{"a":{"b":1,"c":{"d":1,"x":2},"a":0},"e":{"y":1},"f":[2],"g":null}`; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	if text, _ := json.Marshal(o); string(text) != `{"a":{"b":1,"c":{"d":1}},"e":1,"f":[1]}` {
		t.Errorf("the object itself became %s", text)
	}
}

func TestParseError(t *testing.T) {
	for _, test := range []struct {
		text, message, code string
		status              int
	}{
		{`{"error":{"message":"m","type":"t","code":"c"}}`, "m", "c", 0},
		{`{"error":{"message":"m","type":"t","code":null}}`, "m", "t", 0},
		{`{"error":{"message":"m","code":429}}`, "m", "", 429},
		{`{"error":"m"}`, "m", "", 0},
		{`{"type":"error","error":{"type":"t","message":"m"}}`, "m", "t", 0},
		{`{"object":"error","message":"m"}`, "m", "", 0},
		{`{"detail":[{"loc":["body"],"msg":"m"}]}`, `[{"loc":["body"],"msg":"m"}]`, "", 0},
		{`{"error":null,"message":"m"}`, "m", "", 0},
		{`{"error":{"other":1}}`, `{"other":1}`, "", 0},
	} {
		e, ok := parseError([]byte(test.text))
		if !ok || e.message != test.message || e.code != test.code || e.status != test.status {
			t.Errorf("%s: %+v, %v", test.text, e, ok)
		}
	}
	for _, text := range []string{"", "[]", `{"a":1}`, "no JSON"} {
		if e, ok := parseError([]byte(text)); ok {
			t.Errorf("%s: %+v", text, e)
		}
	}
}

// TestAnswers_OfOtherServers reads what servers send that follow the wires less closely.
func TestAnswers_OfOtherServers(t *testing.T) {
	for _, test := range []struct {
		name, wire, mode, text string
		want                   string
		finish                 string
	}{
		{"a call at once, without an id", wireOpenAI, modeTools,
			`data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"answer","arguments":"{\"a\":1}"}}]}}]}` + "\n\n" + `data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n", `{"a":1}`, "tool_calls"},
		{"a second call", wireOpenAI, modeTools,
			`data: {"choices":[{"delta":{"tool_calls":[{"id":"1","function":{"arguments":"{}"}},{"id":"2","function":{"arguments":"{}"}}]},"finish_reason":"stop"}]}` + "\n\n", `{}`, "stop"},
		{"a call without arguments", wireAnthropic, modeTools,
			`data: {"type":"content_block_start","content_block":{"type":"tool_use","input":{}}}` + "\n\n" + `data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}` + "\n\n", `{}`, "tool_use"},
		{"parts of content", wireOpenAI, modeSchema,
			`data: {"choices":[{"delta":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"[1"},{"type":"text","text":"]"}]},"finish_reason":"stop"}]}` + "\n\n", `[1]`, "stop"},
		{"no reason for the end", wireOpenAI, modeSchema, `data: {"choices":[{"delta":{"content":"[1]"}}]}` + "\n\ndata: [DONE]", `[1]`, ""},
		{"no end beside the reason", wireOpenAI, modeSchema, `data: {"choices":[{"delta":{"content":"[1]"},"finish_reason":"stop"}]}`, `[1]`, "stop"},
		{"reasoning beside", wireOpenAI, modeSchema, `data: {"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"[1]"},"finish_reason":"stop"}]}`, `[1]`, "stop"},
		{"another choice", wireOpenAI, modeSchema, `data: {"choices":[{"index":1,"delta":{"content":"[2]"}},{"index":0,"delta":{"content":"[1]"},"finish_reason":"stop"}]}`, `[1]`, "stop"},
		{"thinking", wireAnthropic, modeSchema, `data: {"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"[1]"}}` + "\n\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n", `[1]`, "end_turn"},
	} {
		c, err := NewClient(Config{Name: "wise", Wire: test.wire, Mode: test.mode, Model: "m", URL: "http://localhost/v1"}, Options{Transport: saying(test.text)})
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.Ask(t.Context(), question(), nil)
		if err != nil || !a.Value.Set || a.Text != test.want || a.Usage.Finish != test.finish || !a.Usage.Estimated || a.Usage.Requests != 1 {
			t.Errorf("%s: %+v, %v", test.name, a, err)
		}
	}
	for name, text := range map[string]string{
		"another interface": `{"response":"hello"}`, "an array": `[]`, "an error with 200": `{"error":{"message":"no such model","type":"invalid_request_error"}}`,
		"an error within": "data: " + `{"error":{"message":"context is too long","code":400}}` + "\n\n",
	} {
		c, err := NewClient(Config{Name: "wise", Model: "m", URL: "http://localhost/v1", Tries: 1}, Options{Transport: saying(text)})
		if err != nil {
			t.Fatal(err)
		}
		if a, err := c.Ask(t.Context(), question(), nil); err == nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// FuzzRead holds that nothing that a provider sends is more than an error.
func FuzzRead(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n"), false)
	f.Add([]byte(`{"type":"message","content":[{"type":"text","text":"{}"}],"stop_reason":"end_turn"}`), true)
	f.Fuzz(func(t *testing.T, text []byte, other bool) {
		wire := wireOpenAI
		if other {
			wire = wireAnthropic
		}
		c, err := NewClient(Config{Name: "wise", Wire: wire, Model: "m", URL: "http://localhost/v1", Tries: 1, Mode: modeText}, Options{Transport: saying(string(text))})
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.Ask(t.Context(), question(), nil)
		if (a == nil) == (err == nil) || a != nil && (a.Usage.Input == 0 || a.Value.Set == (a.Problem != "" || a.Refusal != "")) {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

// saying is a transport that answers a text to whatever is asked.
type saying string

// RoundTrip implements [http.RoundTripper].
func (s saying) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(s))), Request: r}, nil
}
