package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"obelus/engine/plan"
	"obelus/host/model/fit"
	"obelus/host/model/modeltest"
	"obelus/store"
)

// testKey has characters that JSON, URLs and regular expressions escape.
const testKey = `sk-"te\st"/+key<é>&$1`

// testEnv has the key.
func testEnv(name string) (string, bool) {
	v, ok := map[string]string{"OPENAI_API_KEY": testKey, "ANTHROPIC_API_KEY": testKey, "TEST_KEY": testKey, "TEST_HEADER": "header-secret"}[name]
	return v, ok
}

// setUp is a client of a server without a network, with what it warned of.
type setUp struct {
	*Client
	server *modeltest.Server
	mu     sync.Mutex
	warned []string
}

func newSetUp(t *testing.T, c Config) *setUp {
	t.Helper()
	s := &setUp{server: modeltest.NewTransport(t)}
	c.Name, c.Model = "wise", "large"
	if c.URL == "" {
		c.URL = s.server.URL
	}
	if c.Wire == "" {
		c.Wire = wireOpenAI
	}
	if c.Key == "" {
		c.Key = "TEST_KEY"
	}
	var err error
	s.Client, err = NewClient(c, Options{Env: testEnv, Transport: s.server, Warn: func(text string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.warned = append(s.warned, text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// faults makes faults of the first requests.
func (s *setUp) faults(list ...modeltest.Fault) {
	s.server.Fault = func(r *modeltest.Request) modeltest.Fault {
		if r.Number <= len(list) {
			return list[r.Number-1]
		}
		return modeltest.NoFault
	}
}

// modes are the modes of the requests that the server got.
func (s *setUp) modes() (modes []string) {
	for _, r := range s.server.Requests() {
		modes = append(modes, r.Mode)
	}
	return modes
}

// question is a request for an object with a word and a number.
func question() *Request {
	return &Request{
		Purpose: purposeAnswer, Model: "wise", System: "You answer.", Blocks: []string{"## Data: †input\n{}", "", "## Call 1.1 judge"}, Stable: 1,
		Schema: fit.Object{member("type", "object"), member("properties", fit.Object{member("word", fit.Object{member("type", "string")}), member("number", fit.Object{member("type", "number")})}),
			member("required", []any{"word", "number"}), member("additionalProperties", false)},
		Key: "main/1.1",
	}
}

// worded is the answer that the tests' servers give.
func worded(*modeltest.Request) modeltest.Reply {
	return modeltest.Reply{Text: `{"word": "née 🙂 † \"quoted\"", "number": 12345678901234567890.10}`, Input: 100, Output: 20, CacheRead: 60, CacheWrite: 10, Reasoning: 7}
}

var wordedValue = map[string]any{"word": `née 🙂 † "quoted"`, "number": json.Number("12345678901234567890.10")}

func TestClient_EveryModeOfEachWire(t *testing.T) {
	for _, wire := range []string{wireOpenAI, wireAnthropic} {
		for _, mode := range []string{modeSchema, modeTools, modeJSON, modeText} {
			for _, fault := range []modeltest.Fault{modeltest.NoFault, modeltest.Plain, modeltest.Split, modeltest.CRLF, modeltest.NoUsage} {
				if wire == wireAnthropic && mode == modeJSON {
					continue
				}
				t.Run(fmt.Sprint(wire, mode, fault), func(t *testing.T) {
					s := newSetUp(t, Config{Wire: wire, Mode: mode})
					s.server.Answer = worded
					s.faults(fault)
					var shown strings.Builder
					meter := plan.NewMeter(nil, func(text string) { shown.WriteString(text) })
					a, err := s.Ask(t.Context(), question(), meter)
					if err != nil {
						t.Fatal(err)
					}
					if !reflect.DeepEqual(a.Value, store.Some(wordedValue)) {
						t.Errorf("%+v", a)
					}
					if mode != modeTools && shown.String() != a.Text {
						t.Errorf("shown as it came: %q; the answer: %q", shown.String(), a.Text)
					}
					u := a.Usage
					if u.Mode != mode || u.Model != "wise" || u.Served != "large-served" || u.Finish == "" || u.Requests != 1 || u.Request != question().Hash() {
						t.Errorf("%+v", u)
					}
					if fault == modeltest.NoUsage {
						if !u.Estimated || u.Input < 50 || u.Output < 10 {
							t.Errorf("%+v", u)
						}
					} else if u.Estimated || u.Input != 100 || u.Output != 20 || u.CacheRead != 60 || u.CacheWrite != 10 || wire == wireOpenAI && u.Reasoning != 7 {
						t.Errorf("%+v", u)
					}
					if used := meter.Used(); used.Requests != 1 || used.Input != u.Input {
						t.Errorf("the meter has %+v", used)
					}
					sent := s.server.Requests()[0]
					if sent.Mode != mode || !sent.Stream || sent.Schema == nil || sent.System != "You answer." || !strings.HasPrefix(sent.Prompt, "## Data: †input\n{}\n\n## Call 1.1 judge") {
						t.Errorf("%s", sent.Text)
					}
				})
			}
		}
	}
}

func TestClient_FitsOpenAIsContract(t *testing.T) {
	zero, seed := 0.0, int64(0)
	for _, c := range []Config{
		{Mode: modeSchema}, {Mode: modeTools}, {Mode: modeJSON}, {Mode: modeText}, {Provider: "azure"}, {Provider: "ollama"},
		{Provider: "openai", Params: Params{Temperature: &zero, TopP: &zero, Seed: &seed, MaxTokens: 5, Effort: "low"}},
	} {
		for _, fault := range []modeltest.Fault{modeltest.NoFault, modeltest.Plain, modeltest.Refuses, modeltest.Length} {
			s := newSetUp(t, c)
			s.server.HoldToOpenAI()
			s.faults(fault)
			if _, err := s.Ask(t.Context(), question(), nil); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestClient_ContractIsHeld holds that a body with a field that is misspelt would be noticed.
func TestClient_ContractIsHeld(t *testing.T) {
	s := newSetUp(t, Config{Extra: map[string]any{"temperature": "hot"}})
	s.server.HoldToOpenAI()
	check := s.server.Check
	s.server.Check = func(r *modeltest.Request) error {
		if check(r) == nil {
			t.Errorf("nothing is wrong with %s", r.Text)
		}
		return nil
	}
	if _, err := s.Ask(t.Context(), question(), nil); err != nil {
		t.Error(err)
	}
}

func TestClient_Ladder(t *testing.T) {
	const refuses, deaf = modeltest.RefusesSchema, modeltest.Deaf
	for _, test := range []struct {
		name    string
		config  Config
		purpose string
		faults  []modeltest.Fault
		modes   string // of the requests, the last one a second question
		used    string // mode of the first answer
		warned  []string
		err     string
	}{
		{"a schema that is refused", Config{}, "", []modeltest.Fault{refuses}, "schema tools tools", "tools", []string{"mode schema does not work: Invalid schema for response_format"}, ""},
		{"a function as well", Config{}, "", []modeltest.Fault{refuses, refuses}, "schema tools json json", "json", []string{"mode schema", "mode tools"}, ""},
		{"a deaf server", Config{}, "", []modeltest.Fault{deaf, deaf}, "schema tools json json", "json", []string{"the answer is not JSON", "from now on it is asked in mode json"}, ""},
		{"without JSON on the wire", Config{Wire: wireAnthropic}, "", []modeltest.Fault{refuses, refuses}, "schema tools text text", "text", []string{"in mode tools", "in mode text"}, ""},
		{"strict", Config{Strict: true}, "", []modeltest.Fault{refuses}, "schema schema", "", nil, "strict = true"},
		{"strict and deaf", Config{Strict: true}, "", []modeltest.Fault{deaf}, "schema schema", "", nil, "does not hold the model to the schema"},
		{"a plan, in its loose form", Config{}, purposePlan, []modeltest.Fault{refuses}, "schema schema schema", "loose", []string{"asked in mode loose"}, ""},
		{"a plan, loose and beyond", Config{}, purposePlan, []modeltest.Fault{refuses, refuses, refuses}, "schema schema tools json json", "json", []string{"asked in mode loose", "mode loose does", "mode tools does"}, ""},
		{"a plan that is too large", Config{MaxSchema: 20}, purposePlan, nil, "schema schema", "loose", []string{"bytes, and plain takes 20"}, ""},
		{"an answer that is too large", Config{MaxSchema: 20}, "", nil, "schema schema", "schema", nil, ""},
		{"a plan that is too large, strictly", Config{MaxSchema: 20, Strict: true}, purposePlan, nil, "schema schema", "schema", nil, ""},
		{"from the middle", Config{Mode: modeJSON}, "", nil, "json json", "json", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSetUp(t, test.config)
			s.faults(test.faults...)
			q := question()
			if test.purpose != "" {
				q.Purpose = test.purpose
				q.Loose = question()
				q.Loose.Purpose = test.purpose
				q.Loose.Blocks = []string{"in another form"}
				q.Loose.Schema = fit.Object{member("type", "array"), member("items", fit.Object{member("type", "string")})}
			}
			a, err := s.Ask(t.Context(), q, nil)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("%v", err)
				}
			} else if err != nil || !a.Value.Set || a.Usage.Mode != test.used || a.Usage.Requests != len(test.faults)+1 {
				t.Errorf("%+v, %v", a, err)
			}
			if _, err = s.Ask(t.Context(), q, nil); err != nil {
				t.Error(err)
			}
			if a != nil {
				_, isList := a.Value.Value.([]any)
				if text := s.server.Requests()[len(test.faults)].Prompt; a.Loose != isList || isList != strings.HasPrefix(text, "in another form") {
					t.Errorf("%+v of %s", a, text)
				}
			}
			if got := strings.Join(s.modes(), " "); got != test.modes {
				t.Errorf("modes: %s; want %s", got, test.modes)
			}
			warned := strings.Join(s.warned, "\n")
			for _, want := range test.warned {
				if !strings.Contains(warned, want) {
					t.Errorf("warned: %s; want %s", warned, want)
				}
			}
			if len(test.warned) == 0 && warned != "" {
				t.Errorf("warned: %s", warned)
			}
		})
	}
}

// TestClient_LadderIsTakenOnce holds that requests side by side go down one step together.
func TestClient_LadderIsTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetUp(t, Config{})
		s.server.Fault = func(*modeltest.Request) modeltest.Fault {
			time.Sleep(time.Second) // so that all are asked before the first is refused
			return modeltest.RefusesSchema
		}
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				if a, err := s.Ask(t.Context(), question(), nil); err != nil || a.Usage.Mode != modeJSON {
					t.Errorf("%+v, %v", a, err)
				}
			})
		}
		wait.Wait()
		if len(s.warned) != 2 {
			t.Errorf("warned: %q", s.warned)
		}
	})
}

func TestClient_Answers(t *testing.T) {
	length := func(wire string) string {
		return map[string]string{wireOpenAI: "length", wireAnthropic: "max_tokens"}[wire]
	}
	for _, wire := range []string{wireOpenAI, wireAnthropic} {
		for _, test := range []struct {
			name  string
			mode  string
			fault modeltest.Fault
			reply modeltest.Reply
			want  func(a *Answer) bool
		}{
			{name: "refusal", fault: modeltest.Refuses, want: func(a *Answer) bool {
				return a.Refusal == "I can't help with that." || a.Refusal == "the model refused (refusal): I can't help with that."
			}},
			{name: "filter", reply: modeltest.Reply{Text: "…", Finish: map[string]string{wireOpenAI: "content_filter", wireAnthropic: "refusal"}[wire]}, want: func(a *Answer) bool {
				return strings.HasPrefix(a.Refusal, "the model refused (") && !a.Value.Set
			}},
			{name: "cut off", reply: modeltest.Reply{Text: `{"word":"a`, Finish: length(wire)}, want: func(a *Answer) bool {
				return a.CutOff && !a.Value.Set && a.Text == `{"word":"a` && a.Usage.Requests == 1
			}},
			{name: "fences", mode: modeText, fault: modeltest.Fences, reply: modeltest.Reply{Value: map[string]any{"a": 1}}, want: func(a *Answer) bool {
				return reflect.DeepEqual(a.Value.Value, map[string]any{"a": json.Number("1")}) && strings.HasPrefix(a.Text, "Here it is")
			}},
			{name: "no JSON", mode: modeText, reply: modeltest.Reply{Text: "I don't know."}, want: func(a *Answer) bool {
				return !a.Value.Set && a.Text == "I don't know." && strings.Contains(a.Problem, "the answer is not JSON")
			}},
			{name: "the same key twice", reply: modeltest.Reply{Text: `{"a":1,"a":2}`}, want: func(a *Answer) bool {
				return !a.Value.Set && strings.Contains(a.Problem, `"a" stands twice`) && a.Usage.Mode == modeSchema
			}},
			{name: "half a character", reply: modeltest.Reply{Text: `{"a":"\ud83d"}`}, want: func(a *Answer) bool {
				return !a.Value.Set && strings.Contains(a.Problem, "half a character") && a.Usage.Mode == modeSchema
			}},
			{name: "null", reply: modeltest.Reply{Text: ` null `}, want: func(a *Answer) bool { return a.Value == store.Some(nil) }},
			{name: "empty", mode: modeText, reply: modeltest.Reply{Text: " "}, want: func(a *Answer) bool {
				return !a.Value.Set && a.Problem == "the answer is empty"
			}},
		} {
			t.Run(wire+" "+test.name, func(t *testing.T) {
				s := newSetUp(t, Config{Wire: wire, Mode: test.mode})
				s.server.Answer = func(*modeltest.Request) modeltest.Reply { return test.reply }
				s.faults(test.fault)
				a, err := s.Ask(t.Context(), question(), nil)
				if err != nil || !test.want(a) {
					t.Errorf("%+v, %v", a, err)
				}
			})
		}
	}
}

// TestClient_WithoutSchema holds that any text is an answer where there is no schema.
func TestClient_WithoutSchema(t *testing.T) {
	s := newSetUp(t, Config{})
	s.server.Answer = func(*modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: "a poem"} }
	a, err := s.Ask(t.Context(), &Request{Purpose: purposeAsk, Blocks: []string{"a poem, please"}}, nil)
	if err != nil || a.Value != store.Some("a poem") || s.modes()[0] != modeText {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := s.Ask(t.Context(), &Request{Purpose: purposeAsk, Schema: true}, nil); err != nil { // no block, and a schema that is no object
		t.Error(err)
	}
}

func TestClient_Cost(t *testing.T) {
	const own = 0.25
	for _, test := range []struct {
		name  string
		price *Price
		cost  float64 // that the provider tells
		want  float64 // negative for none
	}{
		{"no price", nil, 0, -1},
		{"the provider's", nil, own, own},
		{"the settings'", &Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 4}, own, (30*3 + 20*15 + 60*0.3 + 10*4) / 1e6},
		{"without one of the cache", &Price{Input: 3, Output: 15}, 0, (100*3 + 20*15) / 1e6},
		{"free", &Price{}, 0, 0},
	} {
		s := newSetUp(t, Config{Price: test.price})
		s.server.Answer = func(r *modeltest.Request) modeltest.Reply {
			reply := worded(r)
			reply.Cost = test.cost
			return reply
		}
		a, err := s.Ask(t.Context(), question(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if c := a.Usage.Cost; (c == nil) != (test.want < 0) || c != nil && (*c-test.want > 1e-12 || test.want-*c > 1e-12) {
			t.Errorf("%s: %+v, want %v", test.name, a.Usage, test.want)
		}
	}
}

// account is a ledger that allows some requests.
type account struct {
	left  int
	spent []plan.Usage
}

func (a *account) Reserve(context.Context, plan.Usage) (func(plan.Usage), error) {
	if a.left == 0 {
		return nil, plan.Faultf("budget", "the budget is used up")
	}
	a.left--
	return a.Spend, nil
}

func (a *account) Spend(u plan.Usage) { a.spent = append(a.spent, u) }

func TestClient_BudgetIsAskedBeforeEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetUp(t, Config{Concurrency: 1, RPM: 4})
		s.faults(modeltest.Overloaded, modeltest.Cut, modeltest.RefusesSchema)
		ledger := &account{left: 3}
		_, err := s.Ask(t.Context(), question(), plan.NewMeter(ledger, nil))
		if fault, ok := err.(*plan.Fault); !ok || fault.Code != "budget" || len(s.server.Requests()) != 3 {
			t.Errorf("%v after %d requests", err, len(s.server.Requests()))
		}
		if len(ledger.spent) != 3 || ledger.spent[0].Input != 0 || !ledger.spent[1].Estimated || ledger.spent[1].Input == 0 || ledger.spent[1].Output == 0 || ledger.spent[2].Input != 0 {
			t.Errorf("%+v", ledger.spent)
		}
		started := time.Now() // what was not sent takes no place
		if _, err := s.Ask(t.Context(), question(), nil); err != nil || time.Since(started) != 0 {
			t.Errorf("%v after %v", err, time.Since(started))
		}
	})
}

// TestClient_FailedRequestsCount holds that an answer's usage is that of all its requests.
func TestClient_FailedRequestsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetUp(t, Config{})
		s.server.Answer = worded
		s.faults(modeltest.TooManyRequests, modeltest.NoFault)
		a, err := s.Ask(t.Context(), question(), nil)
		if err != nil || a.Usage.Requests != 2 || a.Usage.Input != 100 || a.Usage.Took < 0 {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

// TestClient_OverTheNetwork asks a server on a port: a connection serves one request after another.
func TestClient_OverTheNetwork(t *testing.T) {
	server := modeltest.NewServer(t)
	server.Answer = worded
	connections := map[string]bool{}
	for _, wire := range []string{wireOpenAI, wireAnthropic} {
		c, err := NewClient(Config{Name: "wise", Model: "large", URL: server.URL, Wire: wire}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			a, err := c.Ask(t.Context(), question(), nil)
			if err != nil || !reflect.DeepEqual(a.Value.Value, wordedValue) {
				t.Fatalf("%+v, %v", a, err)
			}
		}
	}
	for _, r := range server.Requests() {
		connections[r.Remote] = true
	}
	if len(connections) != 1 {
		t.Errorf("%d connections for 10 requests", len(connections))
	}
}

func TestClient_Cancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetUp(t, Config{})
		s.faults(modeltest.Slow)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, nil)
		defer cancel()
		_, err := s.Ask(ctx, question(), nil)
		want := `model "wise": no answer from ` + s.server.URL + ` within 1s: is the server at work, and url right? A slow model needs a larger timeout`
		if err == nil || err.Error() != want || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if n := len(s.server.Requests()); n != 1 {
			t.Errorf("%d requests", n)
		}
		s = newSetUp(t, Config{}) // the request before may still be at the server
		s.faults(modeltest.Overloaded, modeltest.Slow)
		ctx, cancel = context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err = s.Ask(ctx, question(), nil); err == nil || !strings.Contains(err.Error(), " needs a larger timeout; the try before: ") || strings.Contains(err.Error(), "within 20s") {
			t.Error(err)
		}
		s = newSetUp(t, Config{})
		s.faults(modeltest.Stuck)
		ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err = s.Ask(ctx, question(), nil); err == nil || !strings.Contains(err.Error(), " was not complete within 2s: a slow model needs a larger timeout") {
			t.Error(err)
		}
	})
}

func TestConfig_Check(t *testing.T) {
	warm := 0.5
	for _, test := range []struct {
		config Config
		want   string // empty if it is right
	}{
		{Config{Provider: "openai", Model: "m"}, ""},
		{Config{Provider: "ollama", Model: "m"}, ""},
		{Config{URL: "http://[::1]:1/v1", Model: "m"}, ""},
		{Config{URL: "http://localhost/v1", Model: "m"}, ""},
		{Config{URL: "http://example.com/v1", Model: "m", Insecure: true}, ""},
		{Config{URL: "http://example.com/v1", Model: "m"}, "insecure = true"},
		{Config{URL: "http://127.evil.com/v1", Model: "m"}, "insecure = true"},
		{Config{URL: "ftp://example.com", Model: "m"}, "url is not an address"},
		{Config{URL: "https://me:secret@example.com", Model: "m"}, "url holds a name or a password"},
		{Config{Provider: "opnai", Model: "m"}, `there is no provider "opnai" (did you mean "openai"?): it is one of anthropic, azure`},
		{Config{Provider: "azure", Model: "m"}, "url is missing: azure has one"},
		{Config{Model: "m"}, "provider or url is missing"},
		{Config{Provider: "openai"}, "model is missing"},
		{Config{Provider: "openai", Model: "m", Wire: "anthropc"}, `(did you mean "anthropic"?)`},
		{Config{Provider: "openai", Model: "m", Dialect: "opnai"}, `there is no dialect "opnai" (did you mean "openai"?)`},
		{Config{Provider: "openai", Model: "m", Mode: "shema"}, `(did you mean "schema"?)`},
		{Config{Provider: "openai", Model: "m", Params: Params{Effort: "hihg"}}, `(did you mean "high"?)`},
		{Config{Provider: "anthropic", Model: "m", Mode: modeJSON}, "mode json is not there"},
		{Config{Provider: "openai", Model: "m", Key: "sk-abc-123"}, "key names an environment variable"},
		{Config{Provider: "openai", Model: "m", Headers: []Header{{Name: "x", Env: "a b"}}}, "the header x names an environment variable that cannot be"},
		{Config{Provider: "openai", Model: "m", RPM: -1}, "rpm is negative"},
		{Config{Provider: "openai", Model: "m", Price: &Price{Input: -1}}, "price is negative"},
		{Config{Provider: "anthropic", Model: "claude-sonnet-4-5", Params: Params{Effort: "low", Temperature: &warm}}, "takes no temperature"},
		{Config{Provider: "anthropic", Model: "claude-sonnet-4-5", Params: Params{Effort: "low", MaxTokens: 1000}}, "leaves no room for an answer"},
	} {
		test.config.Name = "wise"
		err := test.config.Check()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), `model "wise": `)) {
			t.Errorf("%+v: %v; want %s", test.config, err, test.want)
		}
		if err != nil && (strings.Contains(err.Error(), "sk-abc-123") || strings.Contains(err.Error(), "secret@")) {
			t.Errorf("%v: the secret is told", err)
		}
		if _, made := NewClient(test.config, Options{}); (made == nil) != (err == nil) {
			t.Errorf("%+v: checked: %v; made: %v", test.config, err, made)
		}
	}
	all := Config{Provider: "opnai", Wire: "x", Mode: "y"}.Check()
	if n := strings.Count(all.Error(), "\n"); n < 3 {
		t.Errorf("not all at once: %v", all)
	}
}

// TestConfig_KeyGoesToItsProvider holds that the key of a provider is not sent to another address.
func TestConfig_KeyGoesToItsProvider(t *testing.T) {
	for _, test := range []struct {
		config Config
		key    string
	}{
		{Config{Provider: "openai"}, "OPENAI_API_KEY"},
		{Config{Provider: "openai", URL: "https://example.com/v1"}, ""},
		{Config{Provider: "openai", URL: "https://example.com/v1", Key: "MINE"}, "MINE"},
		{Config{Provider: "azure", URL: "https://x.openai.azure.com/openai/v1"}, "AZURE_OPENAI_API_KEY"},
		{Config{Provider: "ollama"}, ""},
	} {
		if got := test.config.WithDefaults().Key; got != test.key {
			t.Errorf("%+v: %q, want %q", test.config, got, test.key)
		}
	}
}
