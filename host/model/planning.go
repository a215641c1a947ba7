package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/host/model/fit"
	"obelus/store"
)

// Propose implements [plan.PlanModel]. Its error is a [*plan.PlanError] if no answer of the model
// was a plan, after all repairs.
func (m *Model) Propose(ctx context.Context, p plan.Proposal) (*plan.Solution, error) {
	m = m.Knowing(ctx)
	r, isLoose := m.PlanRequest(p), false
	err := m.fitsWindow(r, p.Kinds, true)
	switch fits := r.Loose != nil && m.fitsWindow(r.Loose, p.Kinds, true) == nil; {
	case !fits:
		r.Loose = nil
	case err != nil: // the exact form alone is too large
		r, isLoose, err = r.Loose, true, nil
	}
	if err != nil {
		return nil, err
	}
	var solution *plan.Solution
	var failed error // of what holds the output to the request
	last, problem, err := m.ask(ctx, r, p.Meter, func(answer *Answer) (wrong error) {
		if solution = nil; !answer.Value.Set {
			return errors.New(problemOf(answer))
		}
		if solution, wrong = solutionOf(answer.Value.Value, answer.Loose || isLoose); wrong != nil {
			return wrong
		}
		if solution.Cut = r.Cut; answer.Loose {
			solution.Cut = r.Loose.Cut
		}
		if p.CheckOutput != nil {
			wrong, failed = p.CheckOutput(solution)
		}
		return wrong
	})
	switch {
	case err != nil || failed != nil:
		return nil, cmp.Or(failed, err)
	case problem != nil && solution == nil:
		return nil, &plan.PlanError{Problems: []plan.Problem{{Severity: plan.SeverityError, Code: plan.CodeSchema, Message: unfit(problem, last, m.repairs())}}}
	}
	return solution, nil // its output may still be wrong, which its tick will tell
}

// nullableMeta are the meta-properties that a model may leave out by null.
var nullableMeta = []string{"_outputPath", "_outputMethod", "_instance", "_scopes", "_model", "_delegate", "_if", "_after", "_timeout", "_retries", "_backoff", "_at", "_in", "_reasoningForCall", "_output"}

// solutionOf reads the answer to a question for a plan. Its calls are checked when they are
// compiled.
func solutionOf(value any, loose bool) (*plan.Solution, error) {
	answer, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf(`expected {"calls": […], "output": …}, found %s`, store.Describe(value))
	}
	given, hasCalls := answer["calls"]
	output, hasOutput := answer["output"]
	if !hasCalls && !hasOutput {
		return nil, errors.New(`the answer has neither "calls" nor "output"`)
	}
	list, ok := given.([]any)
	if !ok && given != nil {
		return nil, fmt.Errorf("calls: expected a list, found %s", store.Describe(given))
	}
	solution := &plan.Solution{Output: output}
	for i, each := range list {
		call, ok := each.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("calls[%d]: expected an object with _tool, found %s", i, store.Describe(each))
		}
		if loose {
			var err error
			if call, err = parseLooseCall(call); err != nil {
				return nil, fmt.Errorf("calls[%d]: %w", i, err)
			}
		}
		solution.Calls = append(solution.Calls, plan.Source{Call: withoutNulls(call)})
	}
	return solution, nil
}

// parseLooseCall returns a call whose arguments are one JSON text with the arguments beside _tool.
// A call that has them there stays as it is.
func parseLooseCall(call map[string]any) (map[string]any, error) {
	args, ok := call["args"]
	if !ok {
		return call, nil
	}
	if text, isText := args.(string); isText {
		var err error
		if args, err = store.DecodeJSON([]byte(text)); err != nil {
			return nil, fmt.Errorf("args: the text is not JSON: %w", err)
		}
	}
	arguments, ok := args.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("args: expected the JSON text of an object, found %s", store.Describe(args))
	}
	made := maps.Clone(arguments)
	for name, v := range call {
		if name != "args" {
			made[name] = v
		}
	}
	return made, nil
}

// withoutNulls returns a call without the meta-properties that are null.
func withoutNulls(call map[string]any) map[string]any {
	made := maps.Clone(call)
	for _, name := range nullableMeta {
		if v, ok := made[name]; ok && v == nil {
			delete(made, name)
		}
	}
	return made
}

// thinkingField is the field of an answer for the model's reasoning, where it is to think first.
const thinkingField = "thinking"

// answerField is the field of the answer to a question of a script, beside the model's reasoning.
const answerField = "value"

// AskInput is a question of a script.
type AskInput struct {
	Schemas []schema.Option // options of the schema
	Prompt  string
	Data    any // shown as data; nil for none
	Schema  any // of the answer; nil for a text
}

// AskRequest returns the request that asks a question of a script. It asks nothing.
func (m *Model) AskRequest(in AskInput) *Request {
	r := &Request{
		Version: RequestVersion, Window: m.said, Purpose: "ask", Model: m.config.Name, Params: m.config.Params,
		System: joinRules([]rule{{askPrimer, true}, {thinkRule, m.config.Think}}), Schema: anyText,
	}
	if in.Data != nil {
		r.Blocks = append(r.Blocks, "## Data\n"+jsonText(in.Data))
	}
	r.Blocks = append(r.Blocks, in.Prompt)
	if in.Schema != nil {
		r.Schema = ordered(in.Schema)
	}
	if m.config.Think {
		c := &composer{names: map[string]string{}}
		value := (&scope{composer: c, name: answerField, root: r.Schema}).moved(r.Schema)
		r.Schema = closedObject(fit.Object{member(thinkingField, anyText), member(answerField, value)}, nil, c.defs)
	}
	return r
}

// Ask asks a question of a script, and returns an answer that fits its schema. Its error is a
// [*plan.Failure] where the model refuses, or can't be reached.
func (m *Model) Ask(ctx context.Context, in AskInput, meter *plan.Meter) (any, error) {
	m = m.Knowing(ctx)
	r := m.AskRequest(in)
	if err := m.fitsWindow(r, nil, false); err != nil {
		return nil, err
	}
	var value any
	last, problem, err := m.ask(ctx, r, meter, func(answer *Answer) error {
		if !answer.Value.Set {
			return errors.New(problemOf(answer))
		}
		if value = answer.Value.Value; m.config.Think {
			object, _ := value.(map[string]any)
			inner, ok := object[answerField]
			if !ok {
				return fmt.Errorf(`expected {"thinking": …, "%s": …}`, answerField)
			}
			value = inner
		}
		return breaks(in.Schema, value, "the answer", in.Schemas)
	})
	switch {
	case err != nil:
		return nil, err
	case problem != nil:
		return nil, plan.Faultf(plan.CodeSchema, "%s", unfit(problem, last, m.repairs()))
	}
	return value, nil
}
