package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/host/internal/luacall"
	"obelus/host/model"
	"obelus/luastd"
)

// asker is a model that answers the questions of scripts. A model of the embedding program that is
// none answers them as it does latent calls.
type asker interface {
	Ask(ctx context.Context, in model.AskInput, meter *plan.Meter) (any, error)
}

var _ asker = (*model.Model)(nil)

// Errors of questions for which nothing can be asked.
var (
	errNotCalled = errors.New("a model can be asked only by an activity that a run calls: put the question there")
	errNoModels  = errors.New("the project has no models: name one in obelus.lua (obelus help models)")
)

// askModel answers model.ask for the script that runs.
func (s *session) askModel(ctx context.Context, q luastd.ModelQuestion) (any, error) {
	switch {
	case !s.called:
		return nil, errNotCalled
	case s.gen.askHost != nil:
		return s.gen.askHost(ctx, q)
	}
	return askModel(ctx, s.models, q)
}

// checkSchema returns an error for the schema of a question that is no JSON Schema.
func (s *session) checkSchema(v any) error {
	_, err := schema.New(luacall.Listed(v, luacall.ToolSchema), s.gen.registry.Schemas...)
	return err
}

// askModel puts a question to a model of a run, and checks the answer.
func askModel(ctx context.Context, models *plan.Models, q luastd.ModelQuestion) (any, error) {
	if models == nil {
		return nil, errNoModels
	}
	m, err := models.Registry.ModelNamed(q.Model)
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return nil, fmt.Errorf("no model is the default one: name one of models, as model = %q", "fast")
	}
	fits := func(any) error { return nil }
	if q.Schema != nil {
		q.Schema = luacall.Listed(q.Schema, luacall.ToolSchema)
		compiled, err := schema.New(q.Schema, models.Registry.Schemas...)
		if err != nil { // before anything is paid for
			return nil, fmt.Errorf("schema: %w", err)
		}
		fits = func(v any) error { return compiled.Validate(v, "the answer") }
	}
	answer, err := answerOf(ctx, m, q, models)
	if err == nil {
		err = fits(answer)
	}
	return answer, err
}

// answerOf returns the answer of a model to a question, as JSON.
func answerOf(ctx context.Context, m plan.Model, q luastd.ModelQuestion, models *plan.Models) (any, error) {
	if m, ok := m.(asker); ok {
		return m.Ask(ctx, model.AskInput{Prompt: q.Prompt, Data: q.Data, Schema: q.Schema, Schemas: models.Registry.Schemas}, models.Meter)
	}
	call := map[string]any{"_tool": "model.ask", "prompt": q.Prompt}
	if q.Data != nil {
		call["data"] = q.Data
	}
	v, err := m.Answer(ctx, plan.Question{Call: call, Schema: q.Schema, Meter: models.Meter, Schemas: models.Registry.Schemas})
	result, ok := v.(plan.Result)
	if !ok {
		result = plan.Result{Value: v}
	}
	result, err = plan.NormalizeResult("model.ask", result, err)
	return result.Value, err
}

// askFor returns the function that answers the questions of a call in a worker, which has neither
// models nor keys. The permission is checked again here: a worker is not trusted.
func (g *Generation) askFor(grants *luastd.Grants, models *plan.Models) func(ctx context.Context, q luastd.ModelQuestion) (any, error) {
	return func(ctx context.Context, q luastd.ModelQuestion) (any, error) {
		if message := grants.ModelRefusal(cmp.Or(q.Model, g.project.DefaultModel)); message != "" {
			return nil, errors.New(message)
		}
		return askModel(ctx, models, q)
	}
}
