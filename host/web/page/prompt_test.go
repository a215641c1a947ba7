package page_test

import (
	"net/http"
	"strings"
	"testing"

	"obelus/engine/journal"
	"obelus/host/model/modeltest"
)

// TestPrompt shows what a model was sent about a call and for a plan: as the log keeps it, made anew,
// or made anew with scripts that have changed.
func TestPrompt(t *testing.T) {
	model := modeltest.NewServer(t)
	model.Answer = func(r *modeltest.Request) modeltest.Reply {
		if strings.Contains(r.Prompt, "Is it?") {
			return modeltest.Reply{Text: `{"1.1":"fine </pre><script>"}`}
		}
		return modeltest.Reply{Text: `{"calls":[],"output":7}`}
	}
	config := func(settings string) string {
		return `return { models = { kept = { url = "` + model.URL + `", model = "m", keep = true }, other = { url = "` + model.URL + `", model = "m"` + settings + ` } } }`
	}
	plan := func(name string) string {
		return `return { tools = { judge = {} }, calls = { { _tool = "judge", _model = "` + name + `", text = "†input.text", _outputPath = "†state.a" } }, output = "†state.a" }`
	}
	s := serve(t, map[string]string{"obelus.lua": config(""), "plans/kept.lua": plan("kept"), "plans/other.lua": plan("other"),
		"plans/made.lua": `return { offer = {}, model = "kept", context = { { type = "state", goal = "seven" } } }`}, nil)
	for _, name := range []string{"kept", "other"} {
		s.api(http.MethodPost, "/v1/runs", `{"plan":"plans/`+name+`.lua","context":"`+name+`","input":{"text":"Is it? <img onerror>"},"wait":true}`)
	}
	look := func(name string) (text string) {
		t.Helper()
		panel := find(s.page("/runs/"+name+"?sel=1.1").doc, "aside", "id", "panel")
		link := find(panel, "a", "href", "/runs/"+name+"/prompt?call=1.1")
		if link == nil {
			t.Fatalf("the call has no link to its prompt: %s", textOf(panel))
		}
		a := s.page(attr(link, "href"))
		if find(a.doc, "img") != nil {
			t.Error("data is taken for HTML")
		}
		text = textOf(find(a.doc, "main"))
		if !strings.Contains(text, `"text":"Is it? <img onerror>"`) || !strings.Contains(text, "obelus prompt 1.1 -c "+name) {
			t.Errorf("the prompt of %s is %s", name, text)
		}
		return text
	}
	if text := look("kept"); !strings.Contains(text, "As it was sent: the log keeps it.") || !strings.Contains(text, `{"1.1":"fine </pre><script>"}`) {
		t.Errorf("it says %s", text)
	}
	if text := look("other"); !strings.Contains(text, "the hash says that this was sent") || strings.Contains(text, "fine") {
		t.Errorf("it says %s", text)
	}
	s.write("obelus.lua", config(", temperature = 0.5"))
	if err := s.host.Reload().Err; err != nil {
		t.Fatal(err)
	}
	if text := look("other"); !strings.Contains(text, "Something else was sent") {
		t.Errorf("it says %s", text)
	}
	s.api(http.MethodPost, "/v1/runs", `{"plan":"plans/made.lua","context":"made","wait":true}`)
	s.await("made", journal.RunDone)
	link := find(find(s.page("/runs/made").doc, "div", "id", "made"), "a", "href", "/runs/made/prompt?tick=1")
	if link == nil {
		t.Fatal("the plan has no link to its prompt")
	}
	if text := textOf(find(s.page(attr(link, "href")).doc, "main")); !strings.Contains(text, "Prompt for the plan of tick 1") || !strings.Contains(text, `"goal":"seven"`) || !strings.Contains(text, `{"calls":[],"output":7}`) {
		t.Errorf("it says %s", text)
	}
	if a := s.get("/runs/kept/prompt?call=1.2"); a.status != http.StatusNotFound {
		t.Errorf("a call that is none: status %d", a.status)
	}
}
