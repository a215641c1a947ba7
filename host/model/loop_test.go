package model

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/host/model/fit"
	"obelus/host/model/modeltest"
	"obelus/store"
	"obelus/store/memory"
)

var (
	generatedPlans = flag.Int("plans", 300, "how many runs a model plans that gives whatever its schema allows")
	peerPlans      = flag.Int("peer-plans", 5, "the same, of a real server")
	firstPlan      = flag.Int("first-plan", 0, "the seed of the first of them")
)

// loopTools are tools that plans may call: with an activity and without, with a prescribed path, with
// alternatives, with scopes and with instances.
var loopTools = map[string]any{
	"decide": map[string]any{"properties": map[string]any{"amount": map[string]any{"type": "number", "minimum": 0}, "note": map[string]any{"type": "string"}}, "required": []any{"amount"}},
	"fails":  map[string]any{"properties": map[string]any{"why": map[string]any{"type": "string"}}},
	"fixed":  map[string]any{"properties": map[string]any{"n": map[string]any{"type": "integer"}}, "_outputPath": map[string]any{"const": "†state.fixed || †state.failed"}},
	"judge":  map[string]any{"properties": map[string]any{"what": map[string]any{}}, "required": []any{"what"}, "_output": map[string]any{"type": "object", "properties": map[string]any{"good": map[string]any{"type": "boolean"}}, "required": []any{"good"}}},
	"scoped": map[string]any{"properties": map[string]any{"list": map[string]any{"type": "array", "items": map[string]any{"type": "string"}}, "_scopes": map[string]any{"enum": []any{[]any{"state"}, []any{"input"}}}}, "_outputMethod": map[string]any{"enum": []any{"push", "set"}}},
}

// loopRunner returns a runner whose plans a model makes.
func loopRunner(t testing.TB, m *Model) *engine.Runner {
	registry := plan.NewRegistry()
	for name, schema := range loopTools {
		tool, err := plan.NewTool(name, schema)
		if err != nil {
			t.Fatal(err)
		}
		registry.Tools[name] = tool
	}
	for _, name := range []string{"decide", "fails", "fixed", "scoped"} {
		registry.Activities[name] = &plan.Registered{Name: name, Activity: plan.ActivityFunc(func(_ context.Context, in plan.Invocation) (plan.Result, error) {
			if name == "fails" {
				return plan.Result{}, plan.NewFailure("it failed")
			}
			return plan.Result{Value: in.Call}, nil
		})}
	}
	registry.Model = m
	return &engine.Runner{Log: memory.New(), Registry: registry, Ticks: 4, Budget: plan.Budget{Requests: 20}, Parallel: 4}
}

// runPlanned runs one request that a model plans, and holds that it ends within its bounds and that
// a replay gives the same. It returns how it ended.
func runPlanned(t testing.TB, r *engine.Runner, m *Model, seed int) string {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(seed), 7))
	request := &plan.Request{Planner: &plan.Planning{Refusals: 1 + random.IntN(3)}, Context: []store.Message{
		{Type: store.TypeSystem, Data: store.Some("Do something.")},
		{Type: store.TypeData, Kind: "input", Data: store.Some(map[string]any{"amount": random.IntN(100), "text": "†input.amount is a text"})},
		{Type: store.TypeData, Kind: "state", Data: store.Some(map[string]any{"list": []any{"a", "b"}})},
	}}
	if random.IntN(2) == 0 {
		request.Mode = plan.ModeLazy
	}
	if random.IntN(2) == 0 {
		request.Schema = map[string]any{"type": "object", "properties": map[string]any{"letter": map[string]any{"type": "string"}}, "required": []any{"letter"}}
	}
	if random.IntN(3) == 0 {
		request.Context = append(request.Context, store.Message{Type: store.TypeData, Kind: "item", Instance: "①", Data: store.Some(1)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // of a server that shares a busy machine
	defer cancel()
	outcome, err := r.Run(ctx, engine.Start{Context: "c", Request: request})
	for range 6 { // a lazy plan is released each time
		if err != nil || outcome.Lazy == nil {
			break
		}
		if _, err = (&engine.Runner{Log: r.Log}).DecidePlan(ctx, journal.PlanDecision{Context: "c"}); err == nil {
			outcome, err = r.Resume(ctx, engine.Resume{Context: "c", Request: request})
		}
	}
	if err != nil || ctx.Err() != nil {
		t.Fatalf("run %d: %v, %v", seed, err, ctx.Err())
	}
	plans, err := journal.In(r.Log, "c").Plans(ctx, 1)
	if err != nil || len(plans) > 4 {
		t.Fatalf("run %d was planned %d times: %v", seed, len(plans), err)
	}
	spent, err := journal.SpentOn(ctx, journal.In(r.Log, "c"), 1)
	if err != nil || spent.Requests > 20 {
		t.Fatalf("run %d took %d requests: %v", seed, spent.Requests, err)
	}
	if outcome.Status != journal.RunWaiting {
		if replayed, err := replay.Run(ctx, r, "c", nil); err != nil || len(replayed.Differences) > 0 {
			t.Fatalf("run %d: a replay gives %+v, %v", seed, replayed, err)
		}
	}
	if outcome.Status == journal.RunFailed {
		reason, _, _ := strings.Cut(outcome.Error, ":")
		return fmt.Sprintf("failed %.40s", reason)
	}
	return string(outcome.Status)
}

// TestLoop_WhateverTheSchemaAllows has a server give whatever its schema allows: each run ends within
// its bounds, none hangs, and a replay gives the same.
func TestLoop_WhateverTheSchemaAllows(t *testing.T) {
	ended := map[string]int{}
	for _, dialect := range fit.Dialects() {
		server := modeltest.NewTransport(t)
		c := Config{Name: "m", URL: "https://models.example/v1", Model: "m", Dialect: dialect, Repairs: 1}
		for seed := *firstPlan; seed < *firstPlan+*generatedPlans/len(fit.Dialects()); seed++ {
			server.Seed = uint64(seed)
			client, err := NewClient(c, Options{Transport: server})
			if err != nil {
				t.Fatal(err)
			}
			m := New(c, client)
			ended[runPlanned(t, loopRunner(t, m), m, seed)]++
		}
	}
	t.Logf("%v", ended)
	if ended["done"] == 0 {
		t.Errorf("no run came to its end: %v", ended)
	}
}

// TestPeer_OllamaPlans is the same with a real server, whose model types whatever its grammar allows.
// One run in 50 has the model read its prompt, which takes a second and changes little: the prompt's
// last token alone bears on what it types.
func TestPeer_OllamaPlans(t *testing.T) {
	runPeer(t, Config{Name: "here", Provider: "ollama", URL: ollama(t), Repairs: 1}, func(seed int) string {
		if seed%50 == 0 {
			return "monkey"
		}
		return deafMonkey
	})
}

// TestPeer_LlamaCppPlans is the same with llama.cpp, which has to take each schema.
func TestPeer_LlamaCppPlans(t *testing.T) {
	runPeer(t, Config{Name: "here", Provider: "llama", URL: llamaCpp(t), Repairs: 1, Strict: true}, func(int) string { return "monkey" })
}

// runPeer runs requests that a real server plans, by the model of each.
func runPeer(t *testing.T, c Config, model func(seed int) string) {
	t.Helper()
	hot := 1.3
	c.Temperature, c.MaxTokens = &hot, 600
	ended := map[string]int{}
	for seed := *firstPlan; seed < *firstPlan+*peerPlans; seed++ {
		s := int64(seed)
		c.Seed, c.Model = &s, model(seed)
		client, err := NewClient(c, Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := New(c, client)
		ended[runPlanned(t, loopRunner(t, m), m, seed)]++
		if done := seed - *firstPlan + 1; done%1000 == 0 {
			t.Logf("after %d: %v", done, ended)
		}
	}
	t.Logf("%v", ended)
}
