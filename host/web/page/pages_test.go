package page_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"obelus/engine/journal"
)

// TestPages_Crawl follows every link of the pages of a project in which runs are done, fail, wait
// and are held: each leads to a page that keeps the rules of all pages.
func TestPages_Crawl(t *testing.T) {
	s := filled(t)
	s.api(http.MethodPost, "/v1/contexts/order-2/fork", `{"context":"order-2-b"}`)
	if n := crawl(s, "/"); n < 100 {
		t.Errorf("only %d pages were reached", n)
	}
}

// mostCrawled bounds how many pages of one kind are asked for: pages of each call are alike.
const mostCrawled = 12

// crawl asks for all pages that links and forms lead to from a path, and returns how many.
func crawl(s *site, from string) int {
	s.t.Helper()
	known, alike := map[string]bool{from: true}, map[string]int{}
	for open := []string{from}; len(open) > 0; {
		path := open[0]
		open = open[1:]
		base, err := url.Parse(path)
		if err != nil {
			s.t.Fatal(err)
		}
		a := s.get(path)
		if a.status == http.StatusSeeOther {
			open = append(open, a.header.Get("Location"))
			continue
		}
		if kind := a.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/html") {
			if a.status != http.StatusOK {
				s.t.Errorf("%s: status %d", path, a.status)
			}
			continue
		}
		if path != "/docs" {
			if a.status != http.StatusOK {
				s.t.Errorf("%s: status %d: %s", path, a.status, textOf(find(a.doc, "main")))
				continue
			}
			checkPage(s.t, path, a)
		}
		for e := range elements(a.doc) {
			href := attr(e, "href")
			if e.Data == "form" && attr(e, "method") == "get" {
				href = attr(e, "action")
			}
			to, err := url.Parse(href)
			if err != nil {
				s.t.Errorf("%s leads to %q: %v", path, href, err)
				continue
			}
			to = base.ResolveReference(to)
			to.Fragment = ""
			next, kind := to.String(), to.Path+" "+to.Query().Get("tab")
			if to.Host != "" || known[next] || path == "/docs" || alike[kind] == mostCrawled {
				continue
			}
			alike[kind]++
			known[next] = true
			open = append(open, next)
		}
	}
	return len(known)
}

// hostile is text that would be elements or scripts if it were not escaped.
const hostile = `</script><img src=x onerror="window.hit=1">'"` + "`" + `{{.}}†&amp;<b>`

// TestPages_Hostile puts hostile text into everything that a page may show: no page has an element
// that is made of it.
func TestPages_Hostile(t *testing.T) {
	quoted := luaText(hostile)
	s := serve(t, map[string]string{
		"obelus.lua": `return { drain = "100ms", approve = "hold" }`,
		"activities/a.lua": `
			Tool.register("fail", { description = ` + quoted + `, properties = { text = { type = "string", description = ` + quoted + `, default = ` + quoted + ` } } })
			Activity.register("fail", function() print(` + quoted + `); require("log").warn(` + quoted + `, { field = ` + quoted + ` }); error(` + quoted + `) end)
			Tool.register("hold", { properties = { text = { type = "string", description = ` + quoted + ` } } })
			Activity.register("hold", function(call) return call.text end)
			Activity.register("echo", function(call) return call.text end)`,
		"plans/a.lua": `return {
			context = { { type = "input", schema = { type = "object", properties = { [` + quoted + `] = { description = ` + quoted + `, enum = { ` + quoted + ` } }, text = { type = "string" } } } } },
			calls = {
				{ _tool = "fail", text = "†input.text", _outputPath = "†state.a" },
				{ _tool = "hold", text = "†input.text", _outputPath = "†state.b" },
				{ _tool = "echo", text = "†input.text", _instance = ` + quoted + `, _outputPath = "†state.c" },
				{ _tool = "echo", text = "†state.missing", _outputPath = "†state.d" },
			} }`,
	}, nil)
	input := `{"text":` + encode(hostile) + `,` + encode(hostile) + `:` + encode(hostile) + `}`
	s.api(http.MethodPost, "/v1/runs", `{"context":"x","plan":"plans/a.lua","input":`+input+`,"labels":{"l":`+encode(hostile)+`}}`)
	s.await("x", journal.RunWaiting)
	s.api(http.MethodPost, "/v1/contexts/x/messages", `{"type":"data","kind":"k","data":{"k":`+encode(hostile)+`},"_instance":`+encode(hostile)+`}`)
	for _, path := range []string{
		"/runs?q=" + url.QueryEscape(hostile) + "&plan=" + url.QueryEscape(hostile) + "&label=" + url.QueryEscape(hostile), "/runs/" + url.PathEscape(hostile),
		"/runs/x?tab=state&why=" + url.QueryEscape(hostile), "/runs/x?sel=" + url.QueryEscape(hostile), "/runs/x?tab=calls&q=" + url.QueryEscape(hostile),
		"/diff?a=" + url.QueryEscape(hostile) + "&b=x", "/inbox?tool=" + url.QueryEscape(hostile), "/plans/" + url.PathEscape(hostile),
		"/source/" + url.PathEscape(hostile) + "/" + url.PathEscape(hostile), "/login?next=" + url.QueryEscape(hostile), "/nothing/" + url.PathEscape(hostile),
	} {
		s.check(path, s.get(path))
	}
	for _, path := range []string{"/runs/x/append", "/runs/x/approve", "/runs/x/" + url.PathEscape(hostile), "/plans/a.lua", "/runs/x/rerun", "/login"} {
		s.check(path, s.post(path, "call", hostile, "path", hostile, "value", hostile, "from", "1.1", "name", hostile, "value:text", hostile, "raw", hostile, "back", "inbox", "token", hostile))
	}
	crawl(s, "/")
}

// TestPages_Invisible puts characters that can't be seen, or that change the order of others, into
// everything that a page may show: [checkPage] finds none. What is approved as it is shown, or run
// again, has the same characters still.
func TestPages_Invisible(t *testing.T) {
	const text, shown = "to 12\u202e\u2066 34\u2069\u200b\x1b[1m\u2028\u00ad\ufeff\U000e0041\ufe0f", `to 12\u202e\u2066 34\u2069\u200b\u001b[1m\u2028\u00ad\ufeff\udb40\udc41\ufe0f`
	const plain = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f469\u200d\U0001f4bb \u2764\ufe0f" // Persian and emoji, which are written with joiners
	quoted := luaText(text)
	s := serve(t, map[string]string{
		"obelus.lua": `return { drain = "100ms", approve = "hold" }`,
		"activities/a.lua": `
			Tool.register("fail", { description = ` + quoted + `, properties = { text = { type = "string", description = ` + quoted + ` } } })
			Activity.register("fail", function() print(` + quoted + `); require("log").warn(` + quoted + `, { field = ` + quoted + ` }); error(` + quoted + `) end)
			Tool.register("hold", { properties = { text = { type = "string", description = ` + quoted + ` }, all = { type = "object" }, choice = { enum = { ` + quoted + ` } } } })
			Activity.register("hold", function(call) return { text = call.text, all = call.all, choice = call.choice } end)
			Activity.register("echo", function(call) return call.text end)`,
		"plans/a.lua": `return {
			context = { { type = "input", schema = { type = "object", properties = { [` + quoted + `] = { description = ` + quoted + `, enum = { ` + quoted + ` } }, text = { type = "string" } } } } },
			calls = {
				{ _tool = "fail", text = "†input.text", _outputPath = "†state.a" },
				{ _tool = "hold", text = "†input.text", all = "†input", choice = "†input.text", _outputPath = "†state.b" },
				{ _tool = "echo", text = "` + plain + `", _instance = ` + quoted + `, _outputPath = "†state.c" },
			} }`,
	}, nil)
	input := map[string]any{"text": text, text: text}
	s.api(http.MethodPost, "/v1/runs", `{"context":"x","plan":"plans/a.lua","input":`+encode(input)+`}`)
	s.await("x", journal.RunWaiting)
	crawl(s, "/")
	for _, path := range []string{"/inbox", "/runs/x?tab=state", "/runs/x/rerun?from=1.1", "/plans/a.lua?from=x", "/runs/x?tab=log&q=" + url.QueryEscape(shown), "/runs/x?tab=calls"} {
		if a := s.get(path); !strings.Contains(textOf(find(a.doc, "main")), shown) {
			t.Errorf("%s does not show %s: %s", path, shown, textOf(find(a.doc, "main")))
		}
	}
	seen := s.page("/runs/x?tab=state&instance=" + url.QueryEscape(text))
	if find(seen.doc, "option", "value", text) == nil || !strings.Contains(textOf(find(seen.doc, "div", "id", "values")), plain) {
		t.Errorf("the instance can't be chosen, or %s is not shown as it is: %s", plain, textOf(find(seen.doc, "main")))
	}
	want := encode(map[string]any{"text": text, "all": input, "choice": text})
	s.followed(s.post("/runs/x/approve", inputsOf(s.page("/inbox").doc)...))
	s.awaitCall("x", "1.2", journal.Done)
	if got := encode(s.value("x", "state.b")); got != want {
		t.Errorf("approved as it was shown, the call ran with\n%+q, not\n%+q", got, want)
	}
	again := append(inputsOf(s.page("/runs/x/rerun?from=1.2").doc), "from", "1.2")
	if i := slices.Index(again, "value:text"); i >= 0 {
		again[i+1] = strings.Replace(again[i+1], "to 12", "to 13", 1)
	}
	s.followed(s.post("/runs/x/rerun", again...))
	refused := s.post("/runs/x/append", "path", "†input.", "value", text)
	if given := rawText(find(refused.doc, "textarea", "name", "value")); given != text {
		t.Errorf("a refused form comes back with %+q", given)
	}
	corrected := encode(strings.Replace(text, "to 12", "to 13", 1))
	s.until("the call ran as it was corrected", func() bool { return encode(s.value("x-b", "state.b.text")) == corrected })
}

// check holds an answer to have no element of hostile text.
func (s *site) check(path string, a answer) {
	s.t.Helper()
	if find(a.doc, "img") != nil || find(a.doc, "main") != nil && find(find(a.doc, "main"), "b") != nil && strings.Contains(a.text, "<b>'") {
		s.t.Errorf("%s: hostile text is an element", path)
	}
	if strings.Contains(a.text, "<img") {
		s.t.Errorf("%s: it is not escaped", path)
	}
}

func luaText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}
