package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"obelus/engine/lazyregexp"
	"obelus/engine/plan"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/setting"
	"obelus/host/model"
)

// secretText looks like a key, as providers make them; secretName is a name of a header, a
// parameter or a field that has one.
var (
	secretText = lazyregexp.New(`(?i)\b(bearer\s|(sk|gsk|rk|xai|hf|pplx)[-_][a-z0-9_-]{6}|aiza[a-z0-9_-]{10})`)
	secretName = lazyregexp.New(`(?i)(^|[-_])(authorization|token|secret|password|(api-?_?)?key)$`)
)

// refuseSecrets refuses a text in a model's table that looks like a key, without repeating it: keys
// come from the environment.
func refuseSecrets(v any) setting.Errors {
	looksLikeKey := setting.Errorf("looks like a key, which does not belong into this file: name the environment variable that has it, as in key = { env = \"NAME\" }")
	switch v := v.(type) {
	case string:
		if secretText().MatchString(v) {
			return setting.At(looksLikeKey)
		}
	case []any:
		for _, e := range v {
			if errs := refuseSecrets(e); errs != nil {
				return errs
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if _, text := v[name].(string); text && secretName().MatchString(name) {
				return setting.At(looksLikeKey, name)
			}
			if errs := refuseSecrets(v[name]); errs != nil {
				return setting.At(errs, name)
			}
		}
	}
	return nil
}

// defaultModel is the name of a model that the setting model describes by itself.
const defaultModel = "default"

// checkModel completes a model whose fields are right, and returns what is wrong with it, beside
// texts in its table that look like keys.
func checkModel(c *model.Config, table any) error {
	if c.Batch == batchInstances {
		c.Batch, c.AcrossInstances = 0, true
	}
	if errs := refuseSecrets(table); errs != nil {
		return errs
	}
	return setting.Complete(c.Check())
}

// checkModels applies the program's choices in place of the settings, and makes sure that the
// default model is among the models, and that a bound on the cost means something. The error is
// [setting.Errors], or a [*ScriptError] without a place about a choice of the program, which names
// the flag of the command that makes it.
func (s *Settings) checkModels(use string, budget plan.Budget) error {
	s.Model = cmp.Or(use, s.Model)
	s.Budget = plan.Budget{
		Requests: cmp.Or(budget.Requests, s.Budget.Requests), Tokens: cmp.Or(budget.Tokens, s.Budget.Tokens), Cost: cmp.Or(budget.Cost, s.Budget.Cost),
	}
	inline := s.Model != "" && !s.hasModel(s.Model)
	if inline {
		if err := s.addInline(); err != nil {
			if use != "" {
				return flagError("--%s", err) // which begins with "model"
			}
			return setting.At(setting.Complete(err), "model")
		}
	}
	if err := s.checkBudget(budget.Cost > 0, inline && use != ""); err != nil {
		return err
	}
	return s.checkNames(s.Allow, "allow")
}

// flagError returns the error about the value of a flag of the command, which the text names.
func flagError(format string, args ...any) *ScriptError {
	return &ScriptError{Message: fmt.Sprintf(format, args...)}
}

// addInline adds the default model, which a text like "openai/gpt-5-mini" describes.
func (s *Settings) addInline() error {
	if provider, name, ok := strings.Cut(s.Model, "/"); ok && provider != "" && name != "" {
		c := model.Config{Name: s.Model, Provider: provider, Model: name}
		if err := c.Check(); err != nil {
			return err
		}
		s.Models = append(s.Models, c)
		return nil
	}
	return fmt.Errorf("model: there is no model %q%s: it is the name of one of models, or a text like %q",
		s.Model, luaerr.DidYouMean(s.Model, s.modelNames()), "openai/gpt-5-mini")
}

func (s *Settings) modelNames() (names []string) {
	for _, c := range s.Models {
		names = append(names, c.Name)
	}
	return names
}

func (s *Settings) hasModel(name string) bool {
	return slices.ContainsFunc(s.Models, func(c model.Config) bool { return c.Name == name })
}

// checkBudget refuses a bound on the cost that a model without a price would never reach. The
// arguments report whether flags give the bound, and a default model that the settings lack.
func (s *Settings) checkBudget(boundByFlag, modelByFlag bool) error {
	if s.Budget.Cost == 0 {
		return nil
	}
	const hint = "describe it in models with price = { input = …, output = … }, in US dollars for a million tokens"
	for _, c := range s.Models {
		switch {
		case c.Price != nil || c.Provider == "openrouter":
		case boundByFlag:
			return flagError("--budget bounds the cost, and model %q has no price: %s, or bound tokens=N or requests=N", c.Name, hint)
		case modelByFlag && c.Name == s.Model:
			return flagError("--model %s has no price, and the setting budget.cost bounds the cost: %s", c.Name, hint)
		default:
			return setting.At(setting.Errorf("bounds the cost, and model %q has no price: %s", c.Name, hint), "budget", "cost")
		}
	}
	return nil
}

// defaultModel is the name of the default model; empty for one that the embedding program brings.
func (g *Generation) defaultModel() string {
	if g.config.Model != nil {
		return ""
	}
	return g.settings.Model
}
