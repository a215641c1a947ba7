package host

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"obelus/engine/lazyregexp"
	"obelus/engine/plan"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/setting"
	"obelus/host/model"
)

// modelFields reads each field of a model, in sorted order.
var modelFields = []struct {
	name string
	read func(c *model.Config, v any) error
}{
	{"batch", readBatch},
	{"concurrency", func(c *model.Config, v any) (err error) { c.Concurrency, err = setting.Positive(v); return err }},
	{"dialect", func(c *model.Config, v any) (err error) { c.Dialect, err = setting.Text(v); return err }},
	{"effort", func(c *model.Config, v any) (err error) { c.Effort, err = setting.Text(v); return err }},
	{"extra", readExtra},
	{"headers", readHeaders},
	{"insecure", func(c *model.Config, v any) (err error) { c.Insecure, err = readBool(v); return err }},
	{"keep", func(c *model.Config, v any) (err error) { c.Keep, err = readBool(v); return err }},
	{"key", func(c *model.Config, v any) (err error) { c.Key, err = readKey(v); return err }},
	{"max_schema", func(c *model.Config, v any) (err error) { c.MaxSchema, err = setting.Size(v); return err }},
	{"max_tokens", func(c *model.Config, v any) (err error) { c.MaxTokens, err = setting.Positive(v); return err }},
	{"mode", func(c *model.Config, v any) (err error) { c.Mode, err = setting.Text(v); return err }},
	{"model", func(c *model.Config, v any) (err error) { c.Model, err = setting.Text(v); return err }},
	{"price", readPrice},
	{"provider", func(c *model.Config, v any) (err error) { c.Provider, err = setting.Text(v); return err }},
	{"reasons", func(c *model.Config, v any) error {
		reasons, err := readBool(v)
		c.NoReasons = !reasons
		return err
	}},
	{"repairs", readRepairs},
	{"rpm", func(c *model.Config, v any) (err error) { c.RPM, err = setting.Positive(v); return err }},
	{"seed", readSeed},
	{"strict", func(c *model.Config, v any) (err error) { c.Strict, err = readBool(v); return err }},
	{"temperature", func(c *model.Config, v any) (err error) { c.Temperature, err = readFraction(v, 0, 2); return err }},
	{"think", func(c *model.Config, v any) (err error) { c.Think, err = readBool(v); return err }},
	{"timeout", func(c *model.Config, v any) (err error) { c.Timeout, err = setting.PositiveDuration(v); return err }},
	{"top_p", func(c *model.Config, v any) (err error) { c.TopP, err = readFraction(v, 0, 1); return err }},
	{"tpm", func(c *model.Config, v any) (err error) { c.TPM, err = setting.Positive(v); return err }},
	{"tries", func(c *model.Config, v any) (err error) { c.Tries, err = setting.Positive(v); return err }},
	{"url", func(c *model.Config, v any) (err error) { c.URL, err = setting.Text(v); return err }},
	{"window", func(c *model.Config, v any) (err error) { c.Window, err = setting.Positive(v); return err }},
	{"wire", func(c *model.Config, v any) (err error) { c.Wire, err = setting.Text(v); return err }},
}

// secretText looks like a key, as providers make them; secretName is a name of a header, a
// parameter or a field that has one.
var (
	secretText = lazyregexp.New(`(?i)\b(bearer\s|(sk|gsk|rk|xai|hf|pplx)[-_][a-z0-9_-]{6}|aiza[a-z0-9_-]{10})`)
	secretName = lazyregexp.New(`(?i)(^|[-_])(authorization|token|secret|password|(api-?_?)?key)$`)
)

// refuseSecrets refuses a text in a model's table that looks like a key, without repeating it: keys
// come from the environment. Its error is a [*settingError].
func refuseSecrets(place string, v any) error {
	const hint = " looks like a key, which does not belong into this file: name the environment variable that has it, as in key = { env = \"NAME\" }"
	switch v := v.(type) {
	case string:
		if secretText().MatchString(v) {
			return &settingError{nil, place + hint}
		}
	case []any:
		for _, e := range v {
			if err := refuseSecrets(place, e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := place + "." + name
			if _, text := v[name].(string); text && secretName().MatchString(name) {
				return &settingError{[]string{name}, at + hint}
			}
			if err := refuseSecrets(at, v[name]); err != nil {
				err.(*settingError).keys = append([]string{name}, err.(*settingError).keys...)
				return err
			}
		}
	}
	return nil
}

// defaultModel is the name of a model that the setting model describes by itself.
const defaultModel = "default"

// readModel reads the default model: the name of one of models, "provider/model", or a table.
func readModel(s *Settings, v any) error {
	switch v := v.(type) {
	case string:
		if v == "" {
			return setting.WrongType("the name of a model", v)
		}
		s.Model = v
		return nil
	case map[string]any:
		c, err := readModelTable("model", defaultModel, v)
		if err != nil {
			return err
		}
		s.Model, s.Models = defaultModel, append(s.Models, c)
		return nil
	}
	return setting.WrongType(`the name of a model, text like "openai/gpt-5-mini", or a table`, v)
}

// readModels reads the models by their names.
func readModels(s *Settings, v any) error {
	given, ok := v.(map[string]any)
	if !ok {
		return setting.WrongType("a table of models by name", v)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		table, ok := given[name].(map[string]any)
		if !ok {
			return &settingError{[]string{name}, "models." + name + " " + setting.WrongType("a table", given[name]).Error()}
		}
		c, err := readModelTable("models."+name, name, table)
		if err != nil {
			err.(*settingError).keys = append([]string{name}, err.(*settingError).keys...)
			return err
		}
		s.Models = append(s.Models, c)
	}
	return nil
}

// readModelTable reads one model. Its error is a [*settingError].
func readModelTable(place, name string, table map[string]any) (model.Config, error) {
	c := model.Config{Name: name}
	var names []string
	for _, f := range modelFields {
		names = append(names, f.name)
	}
	err := readTable(table, place, names, func(field string) string { return fmt.Sprintf("field %q of %s", field, place) }, func(i int, v any) error {
		return modelFields[i].read(&c, v)
	})
	if err == nil {
		err = refuseSecrets(place, table)
	}
	if err == nil {
		err = c.Check()
	}
	if _, ok := err.(*settingError); err != nil && !ok {
		err = &settingError{nil, err.Error()} // it names the model
	}
	return c, err
}

// checkModels applies the program's choices in place of the settings, and makes sure that the
// default model is among the models, and that a bound on the cost means something. The error is a
// [*settingError], or a [*ScriptError] without a place about a choice of the program, which names
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
			return &settingError{[]string{"model"}, err.Error()}
		}
	}
	if err := s.checkBudget(budget.Cost > 0, inline && use != ""); err != nil {
		return err
	}
	if err := s.checkNames(s.Allow, "allow"); err != nil {
		return err
	}
	return nil
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
			return &settingError{[]string{"budget"}, fmt.Sprintf("budget.cost bounds the cost, and model %q has no price: %s", c.Name, hint)}
		}
	}
	return nil
}

func readBudget(s *Settings, v any) error {
	names := []string{"cost", "requests", "tokens"}
	return readTable(v, "budget", names, func(name string) string { return "budget " + strconv.Quote(name) }, func(i int, v any) error {
		switch names[i] {
		case "cost":
			f, err := readFraction(v, 0, 1e9)
			if err == nil && *f == 0 {
				err = setting.WrongType("an amount above 0, in US dollars", v)
			}
			if err == nil {
				s.Budget.Cost = *f
			}
			return err
		case "requests":
			n, err := setting.Positive(v)
			s.Budget.Requests = n
			return err
		default:
			n, err := setting.Positive(v)
			s.Budget.Tokens = int64(n)
			return err
		}
	})
}

func readBool(v any) (bool, error) {
	b, ok := v.(bool)
	if !ok {
		return false, setting.WrongType("true or false", v)
	}
	return b, nil
}

func readFraction(v any, least, most float64) (*float64, error) {
	if n, ok := v.(json.Number); ok {
		if f, err := n.Float64(); err == nil && f >= least && f <= most {
			return &f, nil
		}
	}
	return nil, setting.WrongType(fmt.Sprintf("a number from %g to %g", least, most), v)
}

func readSeed(c *model.Config, v any) error {
	n, err := setting.Count(v)
	seed := int64(n)
	c.Seed = &seed
	return err
}

func readBatch(c *model.Config, v any) (err error) {
	if c.AcrossInstances = v == "instances"; c.AcrossInstances {
		return nil
	}
	if c.Batch, err = setting.Positive(v); err != nil {
		return setting.WrongType(`a whole number above 0, or "instances"`, v)
	}
	return nil
}

func readRepairs(c *model.Config, v any) (err error) {
	if c.Repairs, err = setting.Count(v); err == nil && c.Repairs == 0 {
		c.Repairs = -1 // explicitly none
	}
	return err
}

func readExtra(c *model.Config, v any) error {
	extra, ok := v.(map[string]any)
	if !ok {
		return setting.WrongType("a table", v)
	}
	c.Extra = extra
	return nil
}

// readKey reads the name of the environment variable that has a key.
func readKey(v any) (string, error) {
	table, ok := v.(map[string]any)
	name, _ := table["env"].(string)
	if !ok || name == "" || len(table) != 1 {
		if _, text := v.(string); text { // it may be the key itself, which no message may repeat
			return "", fmt.Errorf(`must be { env = "NAME" }, with the name of the environment variable that has the key: a key does not belong into this file`)
		}
		return "", setting.WrongType(`{ env = "NAME" }, with the name of the environment variable that has the key`, v)
	}
	return name, nil
}

func readHeaders(c *model.Config, v any) (err error) {
	c.Headers, err = readHeaderTable(v)
	return err
}

// readHeaderTable reads headers by their names: texts, or environment variables.
func readHeaderTable(v any) (headers []model.Header, err error) {
	given, ok := v.(map[string]any)
	if !ok {
		return nil, setting.WrongType("a table of headers by name", v)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if text, ok := given[name].(string); ok {
			headers = append(headers, model.Header{Name: name, Value: text})
			continue
		}
		env, err := readKey(given[name])
		if err != nil {
			return nil, &settingError{[]string{name}, "the header " + name + ` must be a text, or { env = "NAME" }`}
		}
		headers = append(headers, model.Header{Name: name, Env: env})
	}
	return headers, nil
}

func readPrice(c *model.Config, v any) error {
	c.Price = &model.Price{}
	names := []string{"cache_read", "cache_write", "input", "output"}
	to := []*float64{&c.Price.CacheRead, &c.Price.CacheWrite, &c.Price.Input, &c.Price.Output}
	return readTable(v, "price", names, func(name string) string { return "price " + strconv.Quote(name) }, func(i int, v any) error {
		f, err := readFraction(v, 0, 1e6)
		if err == nil {
			*to[i] = *f
		}
		return err
	})
}

// defaultModel is the name of the default model; empty for one that the embedding program brings.
func (g *Generation) defaultModel() string {
	if g.config.Model != nil {
		return ""
	}
	return g.settings.Model
}
