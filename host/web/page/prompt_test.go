package page_test

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"obelus/engine/journal"
	"obelus/host/model/modeltest"
	"obelus/host/web"
	"obelus/store"
	"obelus/store/memory"
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
	for path, want := range map[string][2]string{
		"/runs/kept/prompt": {"Prompt about 1.1", "obelus prompt 1.1 -c kept"},
		"/runs/made/prompt": {"Prompt for the plan of tick 1", "obelus prompt 1 -c made"},
	} {
		main := find(s.page(path).doc, "main")
		if text := textOf(main); !strings.Contains(text, want[0]) || !strings.Contains(text, want[1]) {
			t.Errorf("%s, the latest: %s", path, text)
		}
		if find(main, "a", "href", "/v1"+strings.Replace(path, "/runs", "/contexts", 1)+"?call=1.1") == nil && find(main, "a", "href", "/v1"+strings.Replace(path, "/runs", "/contexts", 1)+"?tick=1") == nil {
			t.Errorf("%s has no link to what it shows", path)
		}
	}
	if a := s.get("/runs/kept/prompt?call=1.1&tick=1"); a.status != http.StatusBadRequest {
		t.Errorf("a call and a tick: status %d", a.status)
	}
	if a := s.get("/runs/kept/prompt?call=1.2"); a.status != http.StatusNotFound {
		t.Errorf("a call that is none: status %d", a.status)
	}
}

// TestPrompt_NothingSent holds that the page does not say that something was sent where the budget
// left nothing to send.
func TestPrompt_NothingSent(t *testing.T) {
	model := modeltest.NewServer(t)
	model.Answer = func(*modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: `{"1.1":"fine"}`} }
	s := serve(t, map[string]string{
		"obelus.lua": `return { budget = { requests = 1 }, model = { url = "` + model.URL + `", model = "m" } }`,
		"plans/two.lua": `return { tools = { judge = {} }, calls = { { _tool = "judge", n = 1, _outputPath = "†state.a" },
			{ _tool = "judge", n = "†state.a", _outputPath = "†state.b" } } }`,
	}, nil)
	s.api(http.MethodPost, "/v1/runs", `{"plan":"plans/two.lua","context":"c","wait":true}`)
	s.await("c", journal.RunFailed)
	for call, want := range map[string]string{
		"1.1": "Computed from the log; the hash says that this was sent.",
		"1.2": "Computed from the log; it has no request about this as sent, so that nothing may have been.",
	} {
		if text := textOf(find(s.page("/runs/c/prompt?call="+call).doc, "main")); !strings.Contains(text, want) {
			t.Errorf("of %s it says %s", call, text)
		}
	}
}

// TestPrompt_NotKept holds that the page says why an answer is not there, and takes a hash that is
// too short, of a damaged log.
func TestPrompt_NotKept(t *testing.T) {
	model := modeltest.NewServer(t)
	model.Answer = func(*modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: `{"1.1":"fine"}`} }
	s := serve(t, map[string]string{
		"obelus.lua":    `return { model = { url = "` + model.URL + `", model = "m", keep = true } }`,
		"plans/one.lua": `return { tools = { judge = {} }, calls = { { _tool = "judge", _outputPath = "†state.a" } } }`,
	}, func(c *web.Config) { c.Log = damaged{c.Log} })
	s.api(http.MethodPost, "/v1/runs", `{"plan":"plans/one.lua","context":"c","wait":true}`)
	text := textOf(find(s.page("/runs/c/prompt?call=1.1").doc, "main"))
	for _, want := range []string{"As it was sent", "sha-256 abc", "1 B, not kept: it is not UTF-8", "MB, too long to be kept"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q: %s", want, text)
		}
	}
}

// damaged is a log whose hashes of requests are cut off, and whose answers are not kept.
type damaged struct{ store.Log }

var requestHash = regexp.MustCompile(`"request":"[0-9a-f]{64}"`)

// Journal implements [store.Log].
func (d damaged) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for e, err := range d.Log.Journal(ctx, f) {
			e.Data = requestHash.ReplaceAllString(e.Data, `"request":"abc"`)
			if !yield(e, err) {
				return
			}
		}
	}
}

// Exchanges implements [store.Log].
func (d damaged) Exchanges(ctx context.Context, n int64) ([]store.Exchange, error) {
	all, err := d.Log.Exchanges(ctx, n)
	if len(all) == 0 {
		return all, err
	}
	x := all[0]
	return []store.Exchange{
		store.NewExchange("abc", x.Request, "\xff", "", x.Usage),
		store.NewExchange("abc", x.Request, strings.Repeat("x", store.MaxExchange+1), "", x.Usage),
	}, err
}

// gate is a log that holds up, once it is shut, those who read all messages of a context.
type gate struct {
	store.Log
	shut          atomic.Bool
	reached, open chan struct{}
}

// Messages implements [store.Log].
func (g *gate) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	if g.shut.Load() && f.After == 0 && f.At > 1 {
		g.reached <- struct{}{}
		<-g.open
	}
	return g.Log.Messages(ctx, f)
}

// TestPrompt_HoldsNothingUp holds that other pages are made while as many prompts as may be are
// computed and others wait, and that nothing is computed for those who would follow a prompt.
func TestPrompt_HoldsNothingUp(t *testing.T) {
	model := modeltest.NewServer(t)
	model.Answer = func(*modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: `{"1.1":"fine"}`} }
	log := &gate{Log: memory.New(), reached: make(chan struct{}, 100), open: make(chan struct{})}
	s := serve(t, map[string]string{
		"obelus.lua":    `return { model = { url = "` + model.URL + `", model = "m" } }`,
		"plans/one.lua": `return { tools = { judge = {} }, calls = { { _tool = "judge", _outputPath = "†state.a" } } }`,
	}, func(c *web.Config) { c.Log = log })
	ask := func(method, path, accept, body string) int {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		s.server.ServeHTTP(w, r)
		return w.Code
	}
	if status := ask(http.MethodPost, "/v1/runs", "", `{"plan":"plans/one.lua","context":"c","wait":true}`); status != http.StatusOK {
		t.Fatal(status)
	}
	log.shut.Store(true)
	const prompt = "/runs/c/prompt?call=1.1"
	var asked sync.WaitGroup
	for range 6 {
		asked.Go(func() {
			if status := ask(http.MethodGet, prompt, "text/html", ""); status != http.StatusOK {
				t.Errorf("a prompt: status %d", status)
			}
		})
	}
	<-log.reached
	<-log.reached
	if status := ask(http.MethodGet, "/runs", "text/html", ""); status != http.StatusOK {
		t.Errorf("the runs: status %d", status)
	}
	if status := ask(http.MethodGet, prompt, "text/event-stream", ""); status != http.StatusNoContent {
		t.Errorf("the stream of a prompt: status %d", status)
	}
	if status := ask(http.MethodGet, "/keys", "text/event-stream", ""); status != http.StatusNoContent {
		t.Errorf("the stream of another page that is still: status %d", status)
	}
	if len(log.reached) > 0 {
		t.Errorf("%d more are computed at once", len(log.reached))
	}
	close(log.open)
	asked.Wait()
}
