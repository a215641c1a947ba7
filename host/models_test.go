package host

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/engine"
	"obelus/engine/plan"
	"obelus/host/model"
	"obelus/store"
	"obelus/store/memory"
)

func TestSettings_Models(t *testing.T) {
	g := open(t, map[string]string{"obelus.lua": `return {
		model = "wise", budget = { requests = 3, tokens = 1000, cost = 0.5 },
		models = {
			wise = { provider = "anthropic", model = "large", price = { input = 3, output = 15 }, timeout = "5m", batch = "instances", repairs = 0, keep = true,
				reasons = false, temperature = 0, max_schema = "4KB", headers = { ["x-a"] = "b", ["x-c"] = { env = "SOME_HEADER" } } },
			here = { url = "http://127.0.0.1:11434/v1", model = "small", key = { env = "HERE_KEY" }, price = { input = 0 }, extra = { a = { 1 } } },
		},
	}`})
	zero := 0.0
	want := []model.Config{
		{Name: "here", URL: "http://127.0.0.1:11434/v1", Model: "small", Key: "HERE_KEY", Price: &model.Price{}, Extra: map[string]any{"a": []any{json.Number("1")}}},
		{
			Name: "wise", Provider: "anthropic", Model: "large", Price: &model.Price{Input: 3, Output: 15}, Timeout: 5 * time.Minute, AcrossInstances: true, Repairs: -1, Keep: true,
			NoReasons: true, Params: model.Params{Temperature: &zero}, MaxSchema: 4 << 10, Headers: []model.Header{{Name: "x-a", Value: "b"}, {Name: "x-c", Env: "SOME_HEADER"}},
		},
	}
	s := g.Settings()
	if diff := cmp.Diff(want, s.Models); diff != "" || s.Model != "wise" || s.Budget != (plan.Budget{Requests: 3, Tokens: 1000, Cost: 0.5}) {
		t.Errorf("%s%s %+v", diff, s.Model, s.Budget)
	}
	registry := g.Registry()
	if registry.Model == nil || registry.Model != registry.Models["wise"] || len(registry.Models) != 2 {
		t.Errorf("the registry has %v", registry.Models)
	}
	if limit, across := registry.Model.(plan.Batcher).Batch(); limit != 16 || !across {
		t.Errorf("it joins %d calls, of several instances: %t", limit, across)
	}
}

func TestSettings_WrongModels(t *testing.T) {
	for _, test := range []struct{ settings, want string }{
		{`models = { fast = { provider = "opena", model = "m" } }`, `obelus.lua:2: model "fast": there is no provider "opena" (did you mean "openai"?): it is one of anthropic, azure, gemini, llama, ollama, openai, openrouter, vllm`},
		{`models = { fast = { url = "http://example.com/v1", model = "m" } }`, "insecure"},
		{`models = { fast = { provider = "openai", pricee = "m" } }`, `obelus.lua:2: unknown setting models.fast.pricee (did you mean "price"?)`},
		{"models = {\nfast = { provider = \"openai\",\nmodel = 3 } }", `obelus.lua:4: models.fast.model must be a string, not 3`},
		{`model = "fast", models = { fats = { provider = "openai", model = "m" } }`, `obelus.lua:2: model: there is no model "fast" (did you mean "fats"?)`},
		{`model = "openia/m"`, `obelus.lua:2: model "openia/m": there is no provider "openia" (did you mean "openai"?)`},
		{`models = { fast = { provider = "openai", model = "m", key = "sk-abc" } }`, `models.fast.key must be { env = "NAME" }, with the name of the environment variable that has the key: a key does not belong into this file`},
		{`models = { fast = { provider = "openai", model = "m", headers = { authorization = "Bearer sk-abcdefgh" } } }`, `models.fast.headers.authorization looks like a key`},
		{`models = { fast = { provider = "openai", model = "m", extra = { a = { api_key = "x" } } } }`, `models.fast.extra.a.api_key looks like a key`},
		{`models = { fast = { url = "https://example.com/v1?key=sk-abcdefgh", model = "m" } }`, `models.fast.url looks like a key`},
		{`model = "openai/m", budget = { cost = 1 }`, `obelus.lua:2: budget.cost bounds the cost, and model "openai/m" has no price`},
		{`budget = { costs = 1 }`, `obelus.lua:2: unknown setting budget.costs (did you mean "cost"?)`},
		{`model = "openai/m", allow = { env = { "OPENAI_API_KEY" } }`, `obelus.lua:2: allow.env: the variable OPENAI_API_KEY has the key or a header of model "openai/m", which no script may read`},
		{`models = { fast = { provider = "openai", model = "m", keep = "yes" } }`, `models.fast.keep must be true or false, not "yes"`},
		{`model = 3`, `obelus.lua:2: model must be the name of a model, text like "openai/gpt-5-mini", or a table, not 3`},
	} {
		_, err := Open(Config{FS: project(map[string]string{"obelus.lua": "return {\n" + test.settings + "\n}"})})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "sk-abc") {
			t.Errorf("%s: got %v, want %s", test.settings, err, test.want)
		}
	}
}

// TestModels_KeyIsNoScripts holds that no script sees the key of a model, whatever it may see
// otherwise.
func TestModels_KeyIsNoScripts(t *testing.T) {
	t.Setenv("SECRET_KEY", "s3cret")
	for _, isolate := range []string{"false", `"process"`} {
		g := open(t, map[string]string{
			"obelus.lua":       `return { allow = true, isolate = ` + isolate + `, models = { m = { url = "http://127.0.0.1:1/v1", model = "m", key = { env = "SECRET_KEY" } } } }`,
			"activities/a.lua": `Activity.register("a", function() local v, err = require("env").get("SECRET_KEY", "none") return { v or "", err } end)`,
		})
		if got, err := runA(g, plan.Invocation{}); err != nil || !strings.Contains(got, "it has a key, a secret, a token or a header") || strings.Contains(got, "s3cret") {
			t.Errorf("isolate = %s: got %s %v", isolate, got, err)
		}
	}
	if os.Getenv("SECRET_KEY") == "" {
		t.Error("the variable is not set")
	}
}

// TestModels_NameAndBudgetOfTheProgram holds that a program names another default model and budget
// than the settings, and what stands before the client.
func TestModels_NameAndBudgetOfTheProgram(t *testing.T) {
	var asked []string
	h, err := Open(Config{
		FS: project(map[string]string{
			"obelus.lua":       `return { model = "a", models = { a = { provider = "ollama", model = "x" }, b = { provider = "ollama", model = "y" } }, budget = { requests = 9, tokens = 7 } }`,
			"activities/t.lua": `Tool.register("judge", {})`,
			"plans/p.lua":      `return { calls = { { _tool = "judge", _outputPath = "†state.a" } }, output = "†state.a" }`,
		}),
		UseModel: "b", Budget: plan.Budget{Requests: 2},
		Asker: func(c model.Config, _ model.Asker) model.Asker {
			return askerFunc(func(_ context.Context, r *model.Request, _ *plan.Meter) (*model.Answer, error) {
				asked = append(asked, c.Name+" "+r.Model)
				return &model.Answer{Value: store.Some(map[string]any{"1.1": "fine"})}, nil
			})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	request, registry, err := h.Plan("plans/p.lua")
	if err != nil {
		t.Fatal(err)
	}
	runner := h.Generation().Settings().Runner(memory.New(), registry)
	if runner.Budget != (plan.Budget{Requests: 2, Tokens: 7}) {
		t.Errorf("the budget is %+v", runner.Budget)
	}
	outcome, err := runner.Run(t.Context(), engine.Start{Context: "c", Request: request})
	if err != nil || outcome.Output != "fine" || strings.Join(asked, ", ") != "b b" {
		t.Errorf("%+v, %v, asked %v", outcome, err, asked)
	}
	if r := h.Reload(); r.Err != nil || r.Generation.Registry().Model != registry.Model {
		t.Errorf("a reload made the model anew: %v", r.Err)
	}
}

type askerFunc func(context.Context, *model.Request, *plan.Meter) (*model.Answer, error)

func (f askerFunc) Ask(ctx context.Context, r *model.Request, m *plan.Meter) (*model.Answer, error) {
	return f(ctx, r, m)
}
