package page_test

import (
	"net/http"
	"strings"
	"testing"

	"obelus/engine/journal"
)

// rounds has a plan whose function gives a call in each of two ticks, and one that gives a text.
var rounds = map[string]string{
	"activities/a.lua": `Activity.register("add", function(call) return call.n + 1 end)`,
	"plans/rounds.lua": `return function(context)
		local state = context.state
		if not state then return { calls = { { _tool = "add", n = "†input.n", _outputPath = "†state.a" } } } end
		if not state.b then return { calls = { { _tool = "add", n = "†state.a", _outputPath = "†state.b" } } } end
		return { output = "†state" }
	end`,
	"plans/text.lua":  `return { calls = { { _tool = "add", n = 1, _outputPath = "†state.a" } }, output = "<b>one</b> \"line\"" }`,
	"plans/lines.lua": `return { context = { { type = "data", kind = "state", data = { a = "one\n<two>" } } }, calls = {}, output = 1 }`,
	"plans/none.lua":  `return { calls = {}, output = 1 }`,
}

// TestRun_FirstScreen holds that a run's page says first what it was given, what it gave, when it began
// and how long it was at work, and that a text is shown as a text, and can be downloaded.
func TestRun_FirstScreen(t *testing.T) {
	s := serve(t, rounds, nil)
	s.run("a", "plans/rounds.lua", `{"n":1}`)
	head := textOf(find(s.page("/runs/a").doc, "div", "id", "head"))
	for _, want := range []string{"started", "at work", `input {"n":1}`, `output {"a":2,"b":3}`} {
		if !strings.Contains(head, want) {
			t.Errorf("it does not say %q: %s", want, head)
		}
	}
	s.run("text", "plans/text.lua", "")
	if said := textOf(find(s.page("/runs/text?tab=output").doc, "pre", "id", "output-text")); said != `<b>one</b> "line"` {
		t.Errorf("the text is shown as %s", said)
	}
	s.run("lines", "plans/lines.lua", "")
	if said := textOf(find(s.page("/runs/lines?tab=state&why=state.a").doc, "pre", "id", "value-text")); said != "one <two>" {
		t.Errorf("a text of two lines is shown as %q", said)
	}
	for path, want := range map[string][3]string{
		"/runs/text/output": {`<b>one</b> "line"`, "text/plain; charset=utf-8", `attachment; filename="text.txt"`},
		"/runs/a/output":    {"{\"a\":2,\"b\":3}\n", "application/json", `attachment; filename="a.json"`},
	} {
		a := s.get(path)
		if got := [3]string{a.text, a.header.Get("Content-Type"), a.header.Get("Content-Disposition")}; a.status != http.StatusOK || got != want {
			t.Errorf("%s: %d %q", path, a.status, got)
		}
	}
}

// TestLists_Filters holds that the lists of runs, calls and messages take the filters of the command.
func TestLists_Filters(t *testing.T) {
	files := map[string]string{
		"activities/help.lua": `Delegate.register("helper", function() return { calls = { { _tool = "add", n = 1, _outputPath = "†result" } }, output = "†result" } end)`,
		"plans/hand.lua":      `return { calls = { { _tool = "add", n = 1, _delegate = "helper", _outputPath = "†state.x" } }, output = "†state.x" }`,
	}
	for name, text := range rounds {
		files[name] = text
	}
	s := serve(t, files, nil)
	s.run("a", "plans/rounds.lua", `{"n":1}`)
	s.run("h", "plans/hand.lua", "")
	for path, want := range map[string]string{
		"/runs":                              "run-h run-a",
		"/runs?all=1":                        "run-h run-h.1.1 run-a",
		"/runs?parent=h":                     "run-h.1.1",
		"/runs?until=1h":                     "",
		"/runs?since=1h&status=done":         "run-h run-a",
		"/runs?since=2020-01-01":             "run-h run-a",
		"/runs/a?tab=calls":                  "call-1.1 call-2.1",
		"/runs/a?tab=calls&q=2.":             "call-2.1",
		"/runs/a?tab=calls&from=1h":          "call-1.1 call-2.1",
		"/runs/a?tab=calls&from=2100-01-01":  "",
		"/runs/a?tab=calls&tool=none":        "",
		"/runs/a?tab=log&kind=input":         "message-1",
		"/runs/a?tab=log&path=state.b":       "message-5",
		"/runs/a?tab=log&tool=add":           "message-5 message-3",
		"/runs/a?tab=log&kind=plan":          "message-6 message-4 message-2",
		"/runs/a?tab=log&from=2100-01-01":    "",
		"/runs/a?tab=log&tool=add&q=NOTHING": "",
	} {
		var rows []string
		for e := range elements(s.page(path).doc) {
			if id := attr(e, "id"); e.Data == "tr" && id != "" {
				rows = append(rows, id)
			}
		}
		if got := strings.Join(rows, " "); got != want {
			t.Errorf("%s lists %q, not %q", path, got, want)
		}
	}
	for path, want := range map[string]string{
		"/runs?until=soon": "soon is not looked for", "/runs/a?tab=calls&from=soon": "soon is not looked for", "/runs/a?tab=log&path=a..b": "is not looked for: bad path",
		"/runs?status=dun": "no such status",
	} {
		if said := textOf(find(s.page(path).doc, "p", "class", "wrong")); !strings.Contains(said, want) {
			t.Errorf("%s says %q", path, said)
		}
	}
}

// TestRun_ForkAtMoment forks a run at an earlier moment that its page shows.
func TestRun_ForkAtMoment(t *testing.T) {
	s := serve(t, rounds, nil)
	s.run("a", "plans/rounds.lua", `{"n":1}`)
	link := attr(find(s.page("/runs/a?at=3").doc, "a", "id", "fork-here"), "href")
	form := s.page(link)
	if said := textOf(find(form.doc, "main")); !strings.Contains(said, "at message 3 of") || !strings.Contains(said, "fork -c a --at 3 a-b") {
		t.Errorf("the form says %s", said)
	}
	if path, _ := s.followed(s.post("/runs/a/fork", "at", "3", "name", "before")); path != "/runs/before" {
		t.Errorf("it leads to %s", path)
	}
	info, err := s.log.Info(t.Context(), "before")
	if err != nil || info.Origin.Fork != "a" || info.Origin.At != 3 {
		t.Errorf("the fork is %+v, %v", info, err)
	}
	s.refused(s.post("/runs/a/fork", "at", "3", "name", "before"), "before")
}

// TestRerun_EarlierTick runs a call of an earlier tick again, in a fork where that tick had ended, and
// says why there is no call to run again.
func TestRerun_EarlierTick(t *testing.T) {
	s := serve(t, rounds, nil)
	s.run("a", "plans/rounds.lua", `{"n":1}`)
	said := textOf(find(s.page("/runs/a/rerun?from=1.1").doc, "main"))
	if !strings.Contains(said, "fork -c a --at 3 a-b") || !strings.Contains(said, "run --from 1.1 -c a-b") {
		t.Errorf("the form says %s", said)
	}
	s.followed(s.post("/runs/a/rerun", "from", "1.1", "name", "again", "value:n", "10"))
	s.await("again", journal.RunDone)
	if got := encode(s.value("again", "state")); got != `{"a":11,"b":12}` {
		t.Errorf("it gives %s", got)
	}
	s.run("none", "plans/none.lua", "")
	s.api(http.MethodPost, "/v1/contexts/notes/messages", `{"type":"state","a":1}`)
	for path, want := range map[string]string{
		"/runs/none/rerun":            "the plan of none has no calls",
		"/runs/notes/rerun":           "nothing has run in notes",
		"/runs/a/rerun?from=7.1":      "the newest run of a has no call 7.1",
		"/runs/a/rerun?from=" + "one": "the newest run of a has no call one",
	} {
		if a := s.get(path); a.status < http.StatusBadRequest || !strings.Contains(textOf(find(a.doc, "main")), want) {
			t.Errorf("%s: %d %s", path, a.status, textOf(find(a.doc, "main")))
		}
	}
}
