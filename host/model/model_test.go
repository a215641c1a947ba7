package model_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/host/model"
	"obelus/host/model/fit"
	"obelus/store"
)

// script is an [model.Asker] that gives one answer after another, and keeps what it was asked.
type script struct {
	t       testing.TB
	answers []any // a text of JSON, an Answer or an error
	asked   []*model.Request
	meters  []*plan.Meter
}

func (s *script) Ask(_ context.Context, r *model.Request, meter *plan.Meter) (*model.Answer, error) {
	s.asked, s.meters = append(s.asked, r), append(s.meters, meter)
	if len(s.asked) > len(s.answers) {
		s.t.Fatalf("it was asked once more than there are answers: %s", r.Blocks)
	}
	switch answer := s.answers[len(s.asked)-1].(type) {
	case error:
		return nil, answer
	case model.Answer:
		return &answer, nil
	case string:
		v, err := store.DecodeJSON([]byte(answer))
		if err != nil {
			return &model.Answer{Text: answer}, nil
		}
		return &model.Answer{Text: answer, Value: store.Some(v)}, nil
	}
	panic("no answer")
}

func (s *script) end() {
	s.t.Helper()
	if len(s.asked) != len(s.answers) {
		s.t.Errorf("it was asked %d times, want %d", len(s.asked), len(s.answers))
	}
}

// lastBlocks is what the nth request ends with.
func (s *script) lastBlocks(n int) string {
	return strings.Join(s.asked[n].Blocks[s.asked[n].Stable:], "\n")
}

// outcome is a reply as text: its path and value, or its error.
func outcome(reply plan.Reply) string {
	if failure, ok := errors.AsType[*plan.Failure](reply.Err); ok {
		return "failure " + string(store.EncodeJSON(failure.Fields))
	}
	if fault, ok := errors.AsType[*plan.Fault](reply.Err); ok {
		return "fault " + fault.Code + ": " + fault.Error()
	}
	if reply.Err != nil {
		return "error " + reply.Err.Error()
	}
	return strings.TrimSpace(reply.Result.To + " " + string(store.EncodeJSON(reply.Result.Value)))
}

func latent(t testing.TB, id, schema string, alternatives ...string) plan.Question {
	q := plan.Question{ID: id, Key: "c/" + id, Call: map[string]any{"_tool": "t" + id}, Tool: map[string]any{}, Alternatives: alternatives}
	if schema != "" {
		q.Schema = decoded(t, schema)
	}
	return q
}

const number = `{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}`

func TestAnswerAll(t *testing.T) {
	refusal := model.Answer{Refusal: "not this"}
	for _, test := range []struct {
		name      string
		config    model.Config
		questions []plan.Question
		answers   []any
		want      []string // outcomes; a text that ends with … is a beginning
		again     []string // texts that the second request ends with
	}{
		{
			name: "all fit", questions: []plan.Question{latent(t, "1.1", number), latent(t, "1.2", "")},
			answers: []any{`{"1.1": {"n": 1}, "1.2": "hello"}`}, want: []string{`{"n":1}`, `"hello"`},
		},
		{
			name: "those that do not fit are asked again", questions: []plan.Question{latent(t, "1.1", number), latent(t, "1.2", ""), latent(t, "1.3", number), latent(t, "1.4", number)},
			answers: []any{`{"1.1": {"n": "x"}, "1.2": "hello", "1.3": {"n": 3}}`, `{"1.1": {"n": 1}, "1.4": {"n": 4}}`}, want: []string{`{"n":1}`, `"hello"`, `{"n":3}`, `{"n":4}`},
			again: []string{"## Call 1.1 t1.1", "## Your last answer to 1.1\n" + `{"n":"x"}` + "\nIt was refused: the answer.n: got string, want integer", "## Call 1.4 t1.4", "there is no answer for call 1.4"},
		},
		{
			name: "a text where none is asked for is checked", questions: []plan.Question{latent(t, "1.2", "")},
			answers: []any{`{"1.2": 5}`, `{"1.2": "5"}`}, want: []string{`"5"`},
		},
		{
			name: "no JSON", questions: []plan.Question{latent(t, "1.1", number)},
			answers: []any{"I think it is 1.", `{"1.1": {"n": 1}}`}, want: []string{`{"n":1}`},
			again: []string{"I think it is 1.\nIt was refused: the answer is not JSON"},
		},
		{
			name: "a problem that the provider names", questions: []plan.Question{latent(t, "1.1", number)},
			answers: []any{model.Answer{Text: "{", Problem: "1.1: the text is not JSON"}, `[]`, `{"1.1": {"n": 1}}`}, want: []string{`{"n":1}`},
			again: []string{"{\nIt was refused: 1.1: the text is not JSON"},
		},
		{
			name: "to the end", questions: []plan.Question{latent(t, "1.1", number), latent(t, "1.2", "")},
			answers: []any{`{"1.2": "hello"}`, `{"1.1": {}}`, `{"1.1": {"n": "` + strings.Repeat("x", 5000) + `"}}`},
			want:    []string{`fault schema: the model's answer is not what was asked for, also when it was asked again (2 of 2 repairs): the answer.n: got string, want integer; its last answer: {"n":"xxx…`, `"hello"`},
		},
		{
			name: "without repairs", config: model.Config{Repairs: -1}, questions: []plan.Question{latent(t, "1.1", number)},
			answers: []any{`{"1.1": {}}`}, want: []string{`fault schema: the model's answer is not what was asked for: the answer: it lacks "n"; its last answer: {}`},
		},
		{
			name: "refused", questions: []plan.Question{latent(t, "1.1", number)},
			answers: []any{refusal}, want: []string{`failure {"code":"refused","message":"the model refused: not this"}`},
		},
		{
			name: "refused together", questions: []plan.Question{latent(t, "1.1", number), latent(t, "1.2", "")},
			answers: []any{refusal, `{"1.1": {"n": 1}}`, refusal}, want: []string{`{"n":1}`, `failure {"code":"refused","message":"the model refused: not this"}`},
		},
		{
			name: "cut off", questions: []plan.Question{latent(t, "1.1", number)},
			answers: []any{model.Answer{CutOff: true, Text: "{"}}, want: []string{`fault max_tokens: the model's answer was cut off at max_tokens = 8192: raise max_tokens, or ask for less at once`},
		},
		{
			name: "an error", questions: []plan.Question{latent(t, "1.1", number), latent(t, "1.2", "")},
			answers: []any{errors.New("503")}, want: []string{`error 503`, `error 503`},
		},
		{
			name: "an error of several lines", questions: []plan.Question{latent(t, "1.1", number), latent(t, "1.2", "")},
			answers: []any{errors.New("none\nnear")}, want: []string{"error none\nnear", `error none (call 1.1 has all of it)`},
		},
		{
			name: "a failure of several lines", questions: []plan.Question{latent(t, "1.1", number), latent(t, "1.2", "")},
			answers: []any{&plan.Failure{Fields: map[string]any{"code": "unavailable", "message": "503\nbusy"}}},
			want:    []string{`failure {"code":"unavailable","message":"503\nbusy"}`, `failure {"code":"unavailable","message":"503 (call 1.1 has all of it)"}`},
		},
		{
			name: "an error at a repair", questions: []plan.Question{latent(t, "1.1", number), latent(t, "1.2", "")},
			answers: []any{`{"1.2": "x"}`, plan.Faultf("budget", "too dear")}, want: []string{`fault budget: too dear`, `"x"`},
		},
		{
			name: "a branch is chosen", questions: []plan.Question{
				latent(t, "1.1", number, "†a.x && †log.all", "†a.y"), latent(t, "1.2", number, "†a.x", "†a.y", "†a.z"), latent(t, "1.3", "", "†a.x", "†a.y"), latent(t, "1.4", "", "†log && †a.x", "†log && †b.x", "†c")},
			answers: []any{`{"1.1": {"to": "†a.x && †log.all", "value": {"n": 1}}, "1.2": {"to": "†a.y", "value": {"n": 2}}, "1.3": {"to": "†a.y", "message": "no"}, "1.4": {"to": "†log && †b.x", "value": "x"}}`},
			want:    []string{`†a.x && †log.all {"n":1}`, `†a.y {"n":2}`, `failure {"message":"no"}`, `†log && †b.x "x"`},
		},
		{
			name: "a branch that is none", questions: []plan.Question{latent(t, "1.1", "", "†a.x", "†a.y"), latent(t, "1.2", number, "†a.x", "†a.y"), latent(t, "1.3", "", "†a.x", "†a.y")},
			answers: []any{`{"1.1": {"to": "†b", "value": "x"}, "1.2": {"to": "†a.x", "value": {}}, "1.3": {"to": "†a.y"}}`, `{"1.1": {"to": "†a.x", "value": "x"}, "1.2": {"to": "†a.x", "value": {"n": 1}}, "1.3": {"to": "†a.y", "message": "no"}}`},
			want:    []string{`†a.x "x"`, `†a.x {"n":1}`, `failure {"message":"no"}`},
			again:   []string{`where to is one of ["†a.x","†a.y"]`, `value: it lacks "n"`, `value is missing, or for a failure "message", a text`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			asker := &script{t: t, answers: test.answers}
			replies := model.New(test.config, asker).AnswerAll(t.Context(), test.questions)
			asker.end()
			var got []string
			for i, reply := range replies {
				text := outcome(reply)
				if begin, ok := strings.CutSuffix(test.want[i], "…"); ok && strings.HasPrefix(text, begin) && len(text) < 3000 {
					text = test.want[i]
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			for _, text := range test.again {
				if !strings.Contains(asker.lastBlocks(1), text) {
					t.Errorf("the second request has no %q:\n%s", text, asker.lastBlocks(1))
				}
			}
		})
	}
}

// TestAnswerAll_RepairIsOfItsCall holds that a repair shows the context and its own call alone, and
// asks for its own answer alone.
func TestAnswerAll_RepairIsOfItsCall(t *testing.T) {
	meter := plan.NewMeter(nil, nil)
	asked := questions(t)
	asked[0].Meter = meter
	asker := &script{t: t, answers: []any{`{"1.2": {"to": "†a.x", "value": {"mood": "good"}}}`, `{"1.3": "Dear Ada"}`}}
	replies := model.New(model.Config{}, asker).AnswerAll(t.Context(), asked)
	asker.end()
	if got := outcome(replies[0]) + outcome(replies[1]); got != `†a.x {"mood":"good"}"Dear Ada"` {
		t.Error(got)
	}
	second := asker.asked[1]
	if whole := strings.Join(second.Blocks, "\n"); strings.Contains(whole, "## Call 1.2") || !strings.Contains(whole, "## Data: †state") || !strings.Contains(whole, "## Call 1.3") {
		t.Error(whole)
	}
	if got := text(t, second.Schema.(fit.Object).Get("required")); got != `["1.3"]` {
		t.Error(got)
	}
	if asker.meters[0] != meter || asker.meters[1] != meter {
		t.Error("not all is counted by the meter of the first question")
	}
}

func TestAnswer_Single(t *testing.T) {
	asker := &script{t: t, answers: []any{`{"1.1": {"n": 1}}`, model.Answer{Refusal: "no"}}}
	m := model.New(model.Config{Think: true}, asker)
	v, err := m.Answer(t.Context(), latent(t, "1.1", number))
	if result, ok := v.(plan.Result); err != nil || !ok || text(t, result.Value) != `{"n":1}` {
		t.Errorf("got %v, %v", v, err)
	}
	if got := text(t, asker.asked[0].Schema.(fit.Object).Get("required")); got != `["thinking","1.1"]` || asker.asked[0].Key != "c/1.1" || asker.asked[0].Params.MaxTokens != 8192 {
		t.Errorf("asked %s as %s", got, asker.asked[0].JSON())
	}
	if _, err = m.Answer(t.Context(), latent(t, "1.1", number)); err == nil {
		t.Error("a refusal is no error")
	}
}

func TestModel_Settings(t *testing.T) {
	m := model.New(model.Config{}, nil)
	if limit, across := m.Batch(); limit != 16 || across || m.Timeout() != plan.DefaultModelTimeout {
		t.Errorf("%d, %v, %v", limit, across, m.Timeout())
	}
	m = model.New(model.Config{Batch: 1, AcrossInstances: true, Timeout: time.Second}, nil)
	if limit, across := m.Batch(); limit != 1 || !across || m.Timeout() != time.Second {
		t.Errorf("%d, %v, %v", limit, across, m.Timeout())
	}
	if replies := m.AnswerAll(t.Context(), nil); len(replies) != 0 {
		t.Error(replies)
	}
}

func TestModel_Window(t *testing.T) {
	asker := &script{t: t}
	m := model.New(model.Config{Window: 2000}, asker)
	q := latent(t, "1.1", number)
	q.Scopes = []store.Path{store.MustParsePath("†large")}
	scoped := func(s *plan.Shown) { s.Scoped = true } // what a call reads is shown whole
	q.Kinds = []plan.Shown{kind(t, "small", `1`), kind(t, "large", `"`+strings.Repeat("x", 9000)+`"`, scoped), kind(t, "input", `"`+strings.Repeat("x", 3000)+`"`, func(s *plan.Shown) { s.Instance = "①" })}
	_, err := m.Answer(t.Context(), q)
	want := ", and may have 1000: the window of the model, 2000, less the room for its answer: the largest kinds are †large with 8 KB, †input ① with 2 KB, †small with 19 bytes: keep less"
	if fault, ok := errors.AsType[*plan.Fault](err); !ok || fault.Code != "window" || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want it to have %q", err, want)
	}
	if _, err := m.Propose(t.Context(), plan.Proposal{Kinds: q.Kinds, Prose: []plan.Prose{{Text: strings.Repeat("y", 9000)}}}); err == nil || !strings.Contains(err.Error(), "†large with 8 KB") {
		t.Errorf("got %v", err)
	}
	if _, err := m.Ask(t.Context(), model.AskInput{Prompt: strings.Repeat("y", 9000)}, nil); err == nil || !strings.Contains(err.Error(), "2000, less the room for its answer: keep less") {
		t.Errorf("got %v", err)
	}
}

func TestPropose(t *testing.T) {
	loose := func(text string) model.Answer {
		return model.Answer{Text: text, Loose: true, Value: store.Some(decoded(t, text))}
	}
	for _, test := range []struct {
		name    string
		config  model.Config
		answers []any
		calls   string
		output  string
		err     string // a beginning
		again   string
	}{
		{
			name:    "calls",
			answers: []any{`{"thinking": "x", "calls": [{"_tool": "decide", "_reasoningForCall": "R", "amount": "†input.amount", "_outputPath": null, "note": null, "_if": null, "_after": null, "_at": null, "_in": null, "_timeout": null, "_retries": null, "_backoff": null}, {"_tool": "judge", "_output": null}], "output": null}`},
			calls:   `[{"_reasoningForCall":"R","_tool":"decide","amount":"†input.amount","note":null},{"_tool":"judge"}]`, output: `null`,
		},
		{name: "an output alone", answers: []any{`{"output": {"letter": "†state.letter"}}`}, calls: `[]`, output: `{"letter":"†state.letter"}`},
		{
			name: "loose", answers: []any{loose(`{"calls": [{"_tool": "decide", "args": "{\"amount\": 5, \"_tool\": \"pay\"}"}, {"_tool": "any", "x": 1}], "output": null}`)},
			calls: `[{"_tool":"decide","amount":5},{"_tool":"any","x":1}]`, output: `null`,
		},
		{
			name: "exact, with a parameter args", answers: []any{`{"calls": [{"_tool": "sh", "args": "{}"}]}`},
			calls: `[{"_tool":"sh","args":"{}"}]`, output: `null`,
		},
		{
			name: "loose and broken", answers: []any{loose(`{"calls": [{"_tool": "decide", "args": "{"}]}`), loose(`{"calls": [{"_tool": "decide", "args": "[]"}]}`), loose(`{"calls": [{"_tool": "decide", "args": "{}"}]}`)},
			calls: `[{"_tool":"decide"}]`, output: `null`, again: "calls[0]: args: the text is not JSON",
		},
		{name: "no JSON", answers: []any{"Sure!", `{"calls": []}`}, calls: `[]`, output: `null`, again: "## Your last answer\nSure!\nIt was refused: the answer is not JSON"},
		{
			name: "to the end", answers: []any{`[]`, `{"call": []}`, `{"calls": ["decide"]}`},
			err: `plan: the model's answer is not what was asked for, also when it was asked again (2 of 2 repairs): calls[0]: expected an object with _tool, found a string; its last answer: {"calls": ["decide"]}`, again: `expected {"calls": […], "output": …}, found an array`,
		},
		{name: "without repairs", config: model.Config{Repairs: -1}, answers: []any{`{"calls": {}}`}, err: `plan: the model's answer is not what was asked for: calls: expected a list, found an object`},
		{name: "refused", answers: []any{model.Answer{Refusal: "no"}}, err: `the model refused: no`},
		{name: "cut off", answers: []any{model.Answer{CutOff: true}}, err: `the model's answer was cut off at max_tokens = 8192`},
		{name: "an error", answers: []any{errors.New("503")}, err: `503`},
	} {
		t.Run(test.name, func(t *testing.T) {
			asker := &script{t: t, answers: test.answers}
			solution, err := model.New(test.config, asker).Propose(t.Context(), proposal(t))
			asker.end()
			if test.again != "" && (!strings.Contains(asker.lastBlocks(1), test.again) || !strings.HasSuffix(asker.asked[1].Loose.Blocks[len(asker.asked[1].Loose.Blocks)-1], "so that it is right.")) {
				t.Errorf("the second request has no %q:\n%s", test.again, asker.lastBlocks(1))
			}
			if test.err != "" {
				text := ""
				if err != nil {
					text = err.Error()
				}
				if _, ok := errors.AsType[*plan.PlanError](err); ok {
					text = "plan: " + text
				}
				if !strings.HasPrefix(text, test.err) {
					t.Errorf("got %s, want %s", text, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			calls := []any{}
			for _, source := range solution.Calls {
				calls = append(calls, source.Call)
			}
			if got := string(store.EncodeJSON(calls)); got != test.calls {
				t.Errorf("got %s, want %s", got, test.calls)
			}
			if got := string(store.EncodeJSON(solution.Output)); got != test.output {
				t.Errorf("got %s, want %s", got, test.output)
			}
		})
	}
}

func TestAsk(t *testing.T) {
	for _, test := range []struct {
		name    string
		config  model.Config
		in      model.AskInput
		answers []any
		want    string
	}{
		{name: "a text", answers: []any{`5`, `"five"`}, want: `"five"`},
		{name: "a schema", in: model.AskInput{Schema: decoded(t, number)}, answers: []any{`{"n": "x"}`, `{"n": 5}`}, want: `{"n":5}`},
		{name: "thinking", config: model.Config{Think: true}, in: model.AskInput{Schema: decoded(t, number)}, answers: []any{`{"n": 5}`, `{"thinking": "…", "value": {"n": 5}}`}, want: `{"n":5}`},
		{name: "to the end", config: model.Config{Repairs: 1}, in: model.AskInput{Schema: decoded(t, number)}, answers: []any{`1`, `2`}, want: `fault schema: the model's answer is not what was asked for, also when it was asked again (1 of 1 repairs): the answer: got number, want object; its last answer: 2`},
		{name: "refused", answers: []any{model.Answer{Refusal: "no"}}, want: `failure {"code":"refused","message":"the model refused: no"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			asker := &script{t: t, answers: test.answers}
			v, err := model.New(test.config, asker).Ask(t.Context(), test.in, nil)
			asker.end()
			if got := outcome(plan.Reply{Result: plan.Result{Value: v}, Err: err}); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestAnswer_OptionsOfSchemas holds that an answer is held to its schema as the run holds it.
func TestAnswer_OptionsOfSchemas(t *testing.T) {
	for _, ignored := range []bool{false, true} {
		s := &script{t: t, answers: []any{`{"1.1": "tomorrow"}`}}
		q := plan.Question{ID: "1.1", Call: map[string]any{"_tool": "when"}, Schema: map[string]any{"type": "string", "format": "date"}}
		if ignored {
			q.Schemas = []schema.Option{schema.IgnoreFormats}
		}
		_, err := model.New(model.Config{Name: "m", Repairs: -1}, s).Answer(t.Context(), q)
		if ignored != (err == nil) {
			t.Errorf("formats are ignored: %t: %v", ignored, err)
		}
	}
}
