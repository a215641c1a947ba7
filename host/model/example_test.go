package model_test

import (
	"context"
	"fmt"

	"obelus/engine/plan"
	"obelus/host/model"
	"obelus/host/model/fit"
	"obelus/store"
)

// parrot is an asker that always gives one answer, as a client of a provider would.
type parrot struct{ text string }

func (p parrot) Ask(_ context.Context, r *model.Request, _ *plan.Meter) (*model.Answer, error) {
	dialect, _ := fit.DialectOf("openai")
	fitted, err := fit.Schema(r.Schema, dialect)
	if err != nil {
		return nil, err
	}
	answer, err := store.DecodeJSON([]byte(p.text))
	if err != nil {
		return &model.Answer{Text: p.text}, nil
	}
	if answer, err = fitted.Undo(answer); err != nil {
		return &model.Answer{Text: p.text, Problem: err.Error()}, nil
	}
	return &model.Answer{Text: p.text, Value: store.Some(answer)}, nil
}

func Example() {
	m := model.New(model.Config{Name: "wise"}, parrot{`{"1.1": {"mood": "good", "why": null}}`})
	answer, err := m.Answer(context.Background(), plan.Question{
		ID:   "1.1",
		Call: map[string]any{"_tool": "sentiment", "text": "This is the best!"},
		Tool: map[string]any{"description": "Analyzes the sentiment of a text."},
		Schema: map[string]any{
			"type":       "object",
			"properties": map[string]any{"mood": map[string]any{"enum": []any{"good", "bad"}}, "why": map[string]any{"type": "string"}},
			"required":   []any{"mood"},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.(plan.Result).Value)
	// Output: map[mood:good]
}

func ExampleModel_Propose() {
	m := model.New(model.Config{NoReasons: true}, parrot{`{"calls": [{"_tool": "pay", "amount": "†input.amount", "_outputPath": "†state.receipt"}], "output": null}`})
	solution, err := m.Propose(context.Background(), plan.Proposal{
		Tools: []plan.Offer{{Name: "pay", Schema: map[string]any{
			"properties": map[string]any{"amount": map[string]any{"type": "number"}}, "required": []any{"amount"},
		}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(store.EncodeJSON(solution.Calls[0].Call)))
	// Output: {"_outputPath":"†state.receipt","_tool":"pay","amount":"†input.amount"}
}
