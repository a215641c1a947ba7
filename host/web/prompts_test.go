package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"obelus/host/model/modeltest"
	"obelus/host/prompts"
)

// judged is a project with two models, one of which keeps what it is sent, over a server that
// answers all calls.
func judged(t *testing.T) *site {
	t.Helper()
	model := modeltest.NewServer(t)
	model.Answer = func(*modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: `{"1.1":"fine"}`} }
	plan := func(name string) string {
		return `return { tools = { judge = {} }, calls = { { _tool = "judge", _model = "` + name + `", text = "†input.text", _outputPath = "†state.a" } }, output = "†state.a" }`
	}
	return serve(t, map[string]string{
		"obelus.lua":     `return { model = "kept", models = { kept = { url = "` + model.URL + `", model = "m", keep = true }, other = { url = "` + model.URL + `", model = "m" } } }`,
		"plans/kept.lua": plan("kept"), "plans/other.lua": plan("other"),
		"plans/none.lua": `return { calls = {}, output = "none" }`,
	}, nil, nil)
}

// TestPrompt holds that a client gets what a model was sent: as the log keeps it, or made anew and
// compared with what was sent.
func TestPrompt(t *testing.T) {
	s := judged(t)
	for _, plan := range []string{"kept", "other", "none"} {
		if status, text := s.ask("POST", "/v1/runs", `{"plan":"plans/`+plan+`.lua","context":"`+plan+`","input":{"text":"Is it?"},"wait":true}`); status != http.StatusOK {
			t.Fatal(status, text)
		}
	}
	for path, want := range map[string]prompts.State{"kept/prompt?call=1.1": prompts.Sent, "kept/prompt": prompts.Sent, "other/prompt?call=1.1": prompts.Computed} {
		var p prompts.Prompt
		s.answer("/v1/contexts/"+path, &p)
		if p.State != want || p.Hash != p.Recorded || p.Tick != 1 || strings.Join(p.Calls, " ") != "1.1" || !strings.Contains(strings.Join(p.Request.Blocks, "\n"), `{"text":"Is it?"}`) {
			t.Errorf("%s: %+v", path, p)
		}
		if kept := want == prompts.Sent; kept != (len(p.Answers) == 1 && p.Answers[0].Text == `{"1.1":"fine"}`) {
			t.Errorf("%s: the answers are %+v", path, p.Answers)
		}
	}
	for path, want := range map[string]string{
		"kept/prompt?call=1.2":        "404 no-prompt",
		"none/prompt":                 "404 no-prompt",
		"kept/prompt?tick=1":          "404 no-prompt", // no model planned it
		"absent/prompt":               "404 no-context",
		"kept/prompt?call=x":          "400 request",
		"kept/prompt?call=1.1&tick=1": "400 request",
	} {
		status, text := s.ask("GET", "/v1/contexts/"+path, "")
		var answer struct{ Error struct{ Code string } }
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(status, " ", answer.Error.Code); got != want {
			t.Errorf("%s: %s, not %s: %s", path, got, want, text)
		}
	}
}

// TestPrompt_Places holds that a prompt is computed where checks and replays have all of their
// places: it has a bound of its own.
func TestPrompt_Places(t *testing.T) {
	s := judged(t)
	if status, text := s.ask("POST", "/v1/runs", `{"plan":"plans/other.lua","context":"other","input":{"text":"Is it?"},"wait":true}`); status != http.StatusOK {
		t.Fatal(status, text)
	}
	for {
		leave, err := s.server.trial()
		if err != nil {
			break
		}
		defer leave()
	}
	if status, text := s.ask("GET", "/v1/contexts/other/prompt", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
}
