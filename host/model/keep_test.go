package model

import (
	"context"
	"errors"
	"strings"
	"testing"

	"obelus/engine/plan"
	"obelus/store"
)

// TestParseRequest holds that a request that is written and read again has the same hash, whatever
// its schema.
func TestParseRequest(t *testing.T) {
	third := 1.0 / 3
	for i, schema := range append(append(randomSchemas(200), parsed(t, exactSchemas)...), nil) {
		r := &Request{Purpose: purposeAsk, Model: "m", System: "<s>&\u2028", Blocks: []string{"†a", "\x00 \\u0041"}, Schema: schema, Params: Params{Temperature: &third, MaxTokens: 3}}
		again, err := ParseRequest(r.JSON())
		if err != nil {
			t.Fatal(err)
		}
		if again.Hash() != r.Hash() {
			t.Errorf("%d: %s is read as %s", i, r.JSON(), again.JSON())
		}
	}
	for _, text := range []string{"", "[]", `{"schema":{]}`, `{"blocks":1}`} {
		if r, err := ParseRequest([]byte(text)); err == nil {
			t.Errorf("%s is read as %s", text, r.JSON())
		}
	}
}

// askerFunc makes an asker of a function.
type askerFunc func(*Request, *plan.Meter) (*Answer, error)

func (f askerFunc) Ask(_ context.Context, r *Request, meter *plan.Meter) (*Answer, error) {
	return f(r, meter)
}

// TestKeep holds what is kept of a request: answers, refusals and errors, without secrets, and nothing
// where nothing was sent.
func TestKeep(t *testing.T) {
	scrub := func(text string) string { return strings.ReplaceAll(text, "key", "[secret]") }
	q := question()
	q.Blocks = append(q.Blocks, "the key")
	sent := plan.Usage{Model: "m", Served: "s", Requests: 1, Output: 3, Finish: "stop", Request: q.Hash()}
	for name, test := range map[string]struct {
		ask    askerFunc
		answer string // that is kept; empty for none
		failed string
		kept   bool
	}{
		"answer": {func(_ *Request, meter *plan.Meter) (*Answer, error) {
			meter.Spend(sent)
			return &Answer{Text: `"a key"`, Value: store.Some("a key"), Usage: sent}, nil
		}, `"a [secret]"`, "", true},
		"refusal": {func(_ *Request, meter *plan.Meter) (*Answer, error) {
			meter.Spend(sent)
			return &Answer{Refusal: "no", Usage: sent}, nil
		}, "no", "", true},
		"error": {func(_ *Request, meter *plan.Meter) (*Answer, error) {
			meter.Spend(sent)
			return nil, errors.New("503 with a key")
		}, "", "503 with a [secret]", true},
		"nothing sent": {func(*Request, *plan.Meter) (*Answer, error) { return nil, errors.New("the budget is spent") }, "", "", false},
	} {
		meter := plan.NewMeter(nil, nil)
		answer, err := Keep(test.ask, scrub).Ask(t.Context(), q, meter)
		if (answer == nil) == (err == nil) {
			t.Errorf("%s: %v, %v", name, answer, err)
		}
		kept, rest := meter.Used().TakeExchanges()
		if !test.kept {
			if len(kept) > 0 {
				t.Errorf("%s: %+v is kept", name, kept)
			}
			continue
		}
		if len(kept) != 1 || rest.Exchanges != nil || rest.Requests != 1 {
			t.Fatalf("%s: %+v is kept, beside %+v", name, kept, rest)
		}
		if x := kept[0]; x.Hash != q.Hash() || x.Answer != test.answer || x.Error != test.failed || x.Request != scrub(string(q.JSON())) || !strings.Contains(x.Usage, `"requests":1`) {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

// TestRequest_Calls holds that the calls of a request are known from it alone.
func TestRequest_Calls(t *testing.T) {
	m := New(Config{Name: "m", Think: true}, nil)
	r := m.AnswerRequest([]plan.Question{{ID: "1.2"}, {ID: "1.3"}})
	again, err := ParseRequest(r.JSON())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Request{r, again} {
		if calls := strings.Join(r.Calls(), " "); calls != "1.2 1.3" {
			t.Errorf("its calls are %s", calls)
		}
	}
	if calls := m.AskRequest(AskInput{Prompt: "Which?"}).Calls(); calls != nil {
		t.Errorf("a script's question has the calls %v", calls)
	}
}
