package model_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"obelus/engine/plan"
	"obelus/host/model"
	"obelus/host/model/fit"
	"obelus/store"
)

var update = flag.Bool("update", false, "write the golden prompts of testdata anew")

// golden compares a text with a file of testdata.
//
//	go test ./host/model -update
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the prompt has changed; if that is meant, raise RequestVersion where a primer has, and write it anew by go test ./host/model -update:\n%s", diff)
	}
}

// shown is a request as text: its blocks apart, with a line before the first that may change.
func shown(r *model.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n=== system\n%s\n", r.Purpose, r.Key, r.System)
	for i, block := range r.Blocks {
		if i == r.Stable {
			b.WriteString("=== from here on it may change\n")
		}
		b.WriteString("--- block\n" + block + "\n")
	}
	return b.String() + "=== schema\n" + string((&model.Request{Schema: r.Schema}).JSON()) + "\n"
}

func kind(t testing.TB, name, value string, more ...func(*plan.Shown)) plan.Shown {
	t.Helper()
	s := plan.Shown{Kind: name, Seq: 1}
	if value != "" {
		s.Value = store.Some(decoded(t, value))
	}
	for _, change := range more {
		change(&s)
	}
	return s
}

func proposal(t testing.TB) plan.Proposal {
	p := appendix(t)
	p.Context, p.Tick, p.Key = "c", 2, "c/2"
	p.Prose = []plan.Prose{{System: true, Text: "You work for a shop."}, {Text: "A customer wrote."}}
	p.Instances = []string{"①"}
	p.Tools = append(p.Tools, offer(t, "pay", `{"description": "Pays a refund\n back.", "properties": {"amount": {"type": "number", "minimum": 0, "description": "in euros"},
		"how": {"enum": ["card", "cash"]}, "fixed": {"const": 1}}, "required": ["amount"], "_outputPath": {"enum": ["†state.receipt"]},
		"_output": {"type": "object", "properties": {"ok": {"type": "boolean"}, "at": {"type": "array", "items": {"type": "string"}}}, "required": ["ok"]}}`, false),
		offer(t, "any", `{}`, false))
	long := strings.Repeat("é", 3000)
	p.Kinds = []plan.Shown{
		kind(t, "input", `{"amount": 50, "reason": "†broken", "ref": "††x", "long": "`+long+`"}`, func(s *plan.Shown) {
			s.Schema = decoded(t, `{"type": "object", "required": ["reason", "amount"], "properties": {"amount": {"type": "number"}, "reason": {"type": "string"}}}`)
			s.Description = "What the customer sent."
		}),
		kind(t, "state", `{"first-name": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22], "approval": true}`),
		kind(t, "state", `{"n": 1}`, func(s *plan.Shown) { s.Instance = "①" }),
		kind(t, "plan_b", "", func(s *plan.Shown) { s.Schema = decoded(t, `{"type": "string"}`) }),
	}
	p.SoFar = []plan.PastCall{
		{Call: "1.1", Tick: 1, Tool: "decide", Status: "done", Wrote: []string{"†state.approval"}, Value: store.Some(true)},
		{Call: "1.2", Tick: 1, Tool: "pay", Status: "failed", Reason: "card\ndeclined", Issued: decoded(t, `{"_tool": "pay", "amount": "†input.amount", "_reasoningForCall": "It is due."}`).(map[string]any)},
		{Call: "1.3", Tick: 1, Tool: "judge", Status: "skipped", Reason: "behind †state.rejection"},
	}
	p.Warnings = []string{"call 1 (decide): amount: †state.x is a string, as its schema says"}
	p.Repeats = "tick 2 is as tick 1 was, and has brought nothing new: plan something else, or give the output."
	p.Errors = []map[string]any{
		decoded(t, `{"call": "1.2", "tool": "pay", "error": {"message": "card declined", "code": "card"}}`).(map[string]any),
		decoded(t, `{"error": {"message": "call 4: unknown tool \"pey\" (did you mean \"pay\"?)"}}`).(map[string]any),
		decoded(t, `{"odd": "†x"}`).(map[string]any),
	}
	return p
}

func TestPlanRequest_Golden(t *testing.T) {
	m := model.New(model.Config{Name: "wise"}, nil)
	golden(t, "plan", shown(m.PlanRequest(proposal(t))))
	golden(t, "plan_loose", shown(m.PlanRequest(proposal(t)).Loose))
	lazy := plan.Proposal{Mode: plan.ModeLazy, Tick: 1, Key: "c/1", Tools: appendix(t).Tools}
	golden(t, "plan_lazy", shown(model.New(model.Config{Think: true, NoReasons: true}, nil).PlanRequest(lazy)))
}

func questions(t testing.TB) []plan.Question {
	kinds := []plan.Shown{
		kind(t, "state", `{"long": ["†a", "`+strings.Repeat("x", 3000)+`"]}`, func(s *plan.Shown) { s.Seq = 2 }),
		kind(t, "input", `{"text": "This is the best!"}`, func(s *plan.Shown) { s.Scoped = true }),
	}
	thoughts := []map[string]any{decoded(t, `{"call": {"_tool": "think", "about": "it"}, "output": "hm"}`).(map[string]any)}
	prose := []plan.Prose{{System: true, Text: "You work for a shop."}, {Text: "A customer wrote."}}
	return []plan.Question{
		{
			ID: "1.2", Key: "c/1.2", Kinds: kinds, Prose: prose, Thoughts: thoughts, Scopes: []store.Path{store.MustParsePath("†input.text")},
			Call:   decoded(t, `{"_tool": "sentiment", "_instance": "①", "_outputPath": "†a.x || †a.y", "text": "This is the best!"}`).(map[string]any),
			Tool:   decoded(t, `{"description": "Analyzes text sentiment."}`),
			Schema: decoded(t, `{"type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"], "description": "The mood."}`), Alternatives: []string{"†a.x", "†a.y"},
		},
		{ID: "1.3", Key: "c/1.3", Kinds: kinds[:1], Prose: prose, Thoughts: thoughts, Call: decoded(t, `{"_tool": "letter", "to": "†Ada"}`).(map[string]any), Tool: decoded(t, `{}`)},
	}
}

func TestAnswerRequest_Golden(t *testing.T) {
	golden(t, "answers", shown(model.New(model.Config{Name: "wise"}, nil).AnswerRequest(questions(t))))
}

func TestAskRequest_Golden(t *testing.T) {
	in := model.AskInput{Prompt: "Who wrote it?", Data: decoded(t, `{"text": "†a"}`), Schema: decoded(t, `{"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}`)}
	golden(t, "ask", shown(model.New(model.Config{}, nil).AskRequest(in)))
	golden(t, "ask_thinking", shown(model.New(model.Config{Think: true}, nil).AskRequest(in)))
}

func TestSchemaBlock(t *testing.T) {
	got := model.SchemaBlock(fit.Object{{Name: "type", Value: "object"}, {Name: "a", Value: "<b>"}})
	if !strings.HasPrefix(got, "## Schema of the answer\n") || !strings.HasSuffix(got, "\n"+`{"type":"object","a":"<b>"}`) {
		t.Error(got)
	}
}

// TestRequest_Same holds that the same question gives the same request, whatever the order of maps.
func TestRequest_Same(t *testing.T) {
	m := model.New(model.Config{}, nil)
	first := m.PlanRequest(proposal(t)).Hash()
	for range 20 {
		if again := m.PlanRequest(proposal(t)).Hash(); again != first {
			t.Fatal("the hash has changed")
		}
	}
}
