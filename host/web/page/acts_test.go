package page_test

import (
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// followed returns the page to which a form has led, which must have been taken.
func (s *site) followed(a answer) (path string, page answer) {
	s.t.Helper()
	if a.status != http.StatusSeeOther {
		s.t.Fatalf("the form was not taken: status %d: %s", a.status, textOf(find(a.doc, "main")))
	}
	path = a.header.Get("Location")
	return path, s.page(path)
}

// refused holds that a form was not taken, that its page keeps the rules, and that it says why.
func (s *site) refused(a answer, why string) answer {
	s.t.Helper()
	if a.status < 400 || a.status >= 500 {
		s.t.Errorf("status %d", a.status)
	}
	checkPage(s.t, "the refused form", a)
	if text := textOf(find(a.doc, "main")); !strings.Contains(text, why) {
		s.t.Errorf("it does not say %q: %s", why, text)
	}
	return a
}

// value returns a path's value in a context.
func (s *site) value(name, path string) any {
	s.t.Helper()
	v := s.peek(name, path)
	if v == nil {
		s.t.Fatalf("%s has no value at %s", name, path)
	}
	return v
}

// peek returns a path's value in a context; nil for none.
func (s *site) peek(name, path string) any {
	s.t.Helper()
	e, err := history.ParseRef(path)
	if err != nil {
		s.t.Fatal(err)
	}
	v, err := history.Get(s.t.Context(), journal.In(s.log, name), e, 0, "")
	if _, missing := errors.AsType[*history.MissingError](err); missing {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// TestStart_Form starts a run by the form that the schema of a plan's input gives, and holds that
// its input is what was typed: numbers as they were, null apart from what is missing.
func TestStart_Form(t *testing.T) {
	s := serve(t, shop, nil)
	a := s.page("/plans/order.lua")
	for _, want := range [][]string{
		{"input", "name", "value:amount", "inputmode", "decimal"}, {"select", "name", "value:reason"}, {"select", "name", "value:gift"}, {"input", "name", "value:to.name"},
		{"input", "type", "checkbox", "name", "null:note"}, {"textarea", "name", "value:tags"}, {"option", "value", `"late"`},
	} {
		if find(a.doc, want[0], want[1:]...) == nil {
			t.Errorf("there is no <%s %v>", want[0], want[1:])
		}
	}
	for _, test := range []struct {
		form  []string
		input string
	}{
		{[]string{"value:amount", "1e1", "value:to.name", "Ada"}, `{"amount":1e1,"to":{"name":"Ada"}}`},
		{[]string{"value:amount", "12345678901234567890.25", "null:note", "on", "value:note", "unseen"}, `{"amount":12345678901234567890.25,"note":null}`},
		{[]string{"value:amount", "7", "value:note", "", "value:reason", `"late"`, "value:gift", "false"}, `{"amount":7,"gift":false,"reason":"late"}`},
		{[]string{"value:amount", "7", "value:tags", `["a", "b"]`, "value:note", "two\r\nlines"}, `{"amount":7,"note":"two\nlines","tags":["a","b"]}`},
		{[]string{"value:amount", "8", "raw", `{"amount": 9}`}, `{"amount":9}`},
	} {
		path, _ := s.followed(s.post("/plans/order.lua", test.form...))
		name := strings.TrimPrefix(path, "/runs/")
		s.await(name, journal.RunDone, journal.RunWaiting, journal.RunFailed)
		if got := encode(s.value(name, "input")); got != test.input {
			t.Errorf("%q: got %s, want %s", test.form, got, test.input)
		}
		// The form of one like it has the same input again.
		again := s.page("/plans/order.lua?from=" + name)
		if path, _ = s.followed(s.post("/plans/order.lua", inputsOf(again.doc)...)); encode(s.value(strings.TrimPrefix(path, "/runs/"), "input")) != test.input {
			t.Errorf("one like it has another input: %v", inputsOf(again.doc))
		}
	}
	for _, test := range []struct {
		form       []string
		why, field string
	}{
		{[]string{"value:gift", "true"}, "amount", "value:amount"},
		{[]string{"value:amount", "ten"}, "want number", "value:amount"},
		{[]string{"value:amount", "-1"}, "at least 0", "value:amount"},
		{[]string{"value:amount", "1", "value:tags", "a, b"}, "must be JSON", "value:tags"},
		{[]string{"value:amount", "1", "value:to.street", "High Street"}, "name", "value:to.name"},
		{[]string{"raw", `{"amount": 1`}, "raw JSON", ""},
		{[]string{"value:amount", "1", "labels", "north"}, "customer=7", ""},
	} {
		before := s.contexts()
		a := s.refused(s.post("/plans/order.lua", test.form...), test.why)
		if after := s.contexts(); after != before {
			t.Errorf("%q: a refused form has made a context", test.form)
		}
		if test.field == "" {
			continue
		}
		e := find(a.doc, "input", "name", test.field)
		if e == nil {
			e = find(a.doc, "textarea", "name", test.field)
		}
		if attr(e, "aria-invalid") != "true" {
			t.Errorf("%q: the field %s is not marked", test.form, test.field)
		}
		if why := find(a.doc, "span", "id", attr(e, "aria-describedby")); !strings.Contains(textOf(why), test.why) {
			t.Errorf("%q: beside the field stands %q", test.form, textOf(why))
		}
		for i := 0; i < len(test.form); i += 2 { // nothing that was typed is lost
			if !slices.Contains(inputsOf(a.doc), test.form[i+1]) {
				t.Errorf("%q: %s is lost: %q", test.form, test.form[i], inputsOf(a.doc))
			}
		}
	}
	if path, _ := s.followed(s.post("/plans/echo.json", "raw", `{"n": [1, "two"]}`, "context", "mine", "labels", "customer=7")); path != "/runs/mine" || encode(s.value("mine", "input.n")) != `[1,"two"]` {
		t.Errorf("%s has %s", path, encode(s.value("mine", "input")))
	}
	s.refused(s.post("/plans/echo.json", "context", "no name"), "no name")
}

// TestStart_Check checks an input without a run.
func TestStart_Check(t *testing.T) {
	s := serve(t, shop, nil)
	s.write("plans/reads.json", `{"calls":[{"_tool":"echo","value":"†input.n","_outputPath":"†state.n"}],"output":"†state.n"}`)
	s.write("plans/wrong.lua", "return {\n{ _tool = 'ech', value = 1 }, { _tool = 'leter', receipt = 1 } }")
	a := s.post("/plans/order.lua", "value:amount", "7", "value:to.name", "Ada", "check", "1")
	if text := textOf(find(a.doc, "main")); a.status != http.StatusOK || !strings.Contains(text, "its input are good. Nothing has run.") {
		t.Errorf("status %d: %s", a.status, text)
	}
	checkPage(t, "the checked form", a)
	if typed := inputsOf(a.doc); !slices.Contains(typed, "7") || !slices.Contains(typed, "Ada") {
		t.Errorf("what was typed is lost: %q", typed)
	}
	a = s.refused(s.post("/plans/order.lua", "value:amount", "-1", "check", "1"), "at least 0")
	if attr(find(a.doc, "input", "name", "value:amount"), "aria-invalid") != "true" {
		t.Error("the field is not marked")
	}
	s.refused(s.post("/plans/order.lua", "check", "1"), "amount")
	s.refused(s.post("/plans/order.lua", "value:amount", "7", "context", "no name", "check", "1"), "no name")
	s.refused(s.post("/plans/order.lua", "value:amount", "7", "approve", "", "labels", "x", "check", "1"), "customer=7")
	s.refused(s.post("/plans/order.lua", "value:amount", "7", "approve", "nosuch", "check", "1"), "nosuch")
	const waits = "nothing in the plan writes †input.n"
	for _, test := range []struct {
		form        []string
		says, lacks string
	}{
		{[]string{"raw", `{"n":1}`, "check", "1"}, "its input are good. Nothing has run.", waits},
		{[]string{"raw", `{"m":1}`, "check", "1"}, "no errors, but the warnings above. Nothing has run.", "are good"},
		{[]string{"raw", `{"m":1}`, "check", "1"}, waits, "are good"},
		{[]string{"raw", `{"n":1}`, "labels", "x"}, "customer=7", waits},
		{[]string{"raw", `{"n":`, "check", "1"}, "raw", waits},
	} {
		a := s.post("/plans/reads.json", test.form...)
		if text := textOf(find(a.doc, "main")); !strings.Contains(text, test.says) || strings.Contains(text, test.lacks) {
			t.Errorf("%q: %s", test.form, text)
		}
		checkPage(t, "the checked form", a)
	}
	a = s.refused(s.post("/plans/wrong.lua", "raw", `{"n":1}`, "check", "1"), "plans/wrong.lua:2: call 1 (ech): unknown tool")
	if text := textOf(find(a.doc, "main")); strings.Count(text, `"ech"`) != 1 || strings.Count(text, `"leter"`) != 1 || strings.Contains(text, "✓ checks") {
		t.Error(text)
	}
	if n := s.contexts(); n != 0 {
		t.Errorf("there are %d contexts", n)
	}
	s.api(http.MethodPost, "/v1/contexts/strict/messages", `{"type":"data","kind":"input","schema":{"properties":{"amount":{"maximum":5}}}}`)
	s.refused(s.post("/plans/echo.json", "raw", `{"amount":7}`, "context", "strict", "check", "1"), "at most 5")
	s.refused(s.post("/plans/echo.json", "raw", `{"amount":7}`, "context", "strict"), "at most 5")
}

// contexts returns how many contexts the log has.
func (s *site) contexts() int64 {
	s.t.Helper()
	var all int64
	counts, err := history.Count(s.t.Context(), s.log, store.ContextFilter{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, n := range counts {
		all += n
	}
	return all
}

// inputsOf returns the names and values of the inputs of the page's last form, as a browser sends
// them.
func inputsOf(doc *html.Node) (pairs []string) {
	var form *html.Node
	for e := range elements(doc) {
		if e.Data == "form" && attr(e, "method") == "post" {
			form = e
		}
	}
	for e := range elements(form) {
		name, value := attr(e, "name"), attr(e, "value")
		switch {
		case name == "", attr(e, "type") == "checkbox" && !hasAttr(e, "checked"):
			continue
		case e.Data == "textarea":
			value = strings.ReplaceAll(rawText(e), "\n", "\r\n")
		case e.Data == "select":
			for o := range elements(e) {
				if hasAttr(o, "selected") {
					value = attr(o, "value")
				}
			}
		case e.Data != "input":
			continue
		}
		pairs = append(pairs, name, value)
	}
	return pairs
}

// rawText returns the text within an element as it is.
func rawText(e *html.Node) (text string) {
	for n := range e.Descendants() {
		if n.Type == html.TextNode {
			text += n.Data
		}
	}
	return text
}

// TestInbox_Decide approves a held call with corrected arguments, rejects one, and tells the second
// of two people who has decided.
func TestInbox_Decide(t *testing.T) {
	s := serve(t, shop, nil)
	for _, name := range []string{"a", "b", "c"} {
		s.run(name, "plans/refund.lua", "")
	}
	a := s.page("/inbox")
	if held := attr(find(a.doc, "span", "id", "badge"), "data-held"); held != "3" {
		t.Errorf("the badge says %s", held)
	}
	if !strings.Contains(textOf(find(a.doc, "title")), "(3)") {
		t.Error("the title does not say how many are held")
	}
	s.refused(s.post("/runs/a/approve", "call", "1.1", "back", "inbox", "value:amount", "400", "value:to", "Ada"), "at most 100")
	s.refused(s.post("/runs/a/approve", "call", "1.1", "back", "inbox", "value:amount", "", "value:to", "Ada"), "can't take an argument away")
	if path, _ := s.followed(s.post("/runs/a/approve", "call", "1.1", "back", "inbox", "by", "Grace", "value:amount", "30", "value:to", "Ada")); path != "/inbox" {
		t.Errorf("it leads to %s", path)
	}
	s.await("a", journal.RunDone)
	if got := encode(s.value("a", "state.refund")); got != `{"refunded":30,"to":"Ada"}` {
		t.Errorf("it ran with %s", got)
	}
	if who := textOf(find(s.page("/runs/a?tab=state&why=state.refund").doc, "aside")); !strings.Contains(who, "Grace") {
		t.Errorf("who corrected it is not said: %s", who)
	}
	if name := attr(find(s.page("/inbox").doc, "input", "name", "by"), "value"); name != "Grace" {
		t.Errorf("the name is not kept: %q", name)
	}
	s.refused(s.post("/runs/a/approve", "call", "1.1", "back", "inbox"), "Grace")
	s.followed(s.post("/runs/b/reject", "call", "1.1", "reason", "too much", "by", "Grace"))
	s.await("b", journal.RunDone, journal.RunFailed)
	if text := textOf(find(s.page("/runs/b?sel=1.1").doc, "main")); !strings.Contains(text, "too much") || !strings.Contains(text, "rejected") {
		t.Errorf("why it was rejected is not said: %s", text)
	}
	if held := attr(find(s.page("/runs").doc, "span", "id", "badge"), "data-held"); held != "1" {
		t.Errorf("the badge says %s", held)
	}
}

// TestRun_AppendBySchema goes on with a run that waits for values, by the inputs that the schemas of
// their kinds give.
func TestRun_AppendBySchema(t *testing.T) {
	files := maps.Clone(shop)
	files["plans/ask.lua"] = `return {
		context = { { type = "input", schema = { properties = { age = { type = "number", minimum = 18 }, to = { properties = { name = { type = "string" } } } } } } },
		calls = {
			{ _tool = "echo", value = "†input.age", _outputPath = "†state.age" },
			{ _tool = "echo", value = "†input.to.name", _outputPath = "†state.name" },
			{ _tool = "echo", value = "†state.free", _outputPath = "†state.last" } } }`
	files["plans/above.lua"] = `return {
		context = { { type = "input", schema = { properties = { to = { properties = { name = { type = "string" } } } } } } },
		calls = {
			{ _tool = "echo", value = "†input.to.name", _outputPath = "†state.name" },
			{ _tool = "echo", value = "†input.to", _outputPath = "†state.to" } } }`
	s := serve(t, files, nil)
	s.run("asks", "plans/ask.lua", "")
	form := find(s.page("/runs/asks").doc, "details", "id", "append")
	for _, name := range []string{"value:input.age", "value:input.to.name", "path"} {
		if find(form, "input", "name", name) == nil {
			t.Errorf("there is no input %s", name)
		}
	}
	if find(form, "input", "name", "value:state.free") != nil {
		t.Error("a path without a schema has an input")
	}
	s.run("above", "plans/above.lua", "")
	for range 2 { // the second look finds the schema as it is in the log
		inputs := 0
		for e := range elements(find(s.page("/runs/above").doc, "details", "id", "append")) {
			if strings.HasPrefix(attr(e, "name"), "value:") {
				inputs++
			}
		}
		if inputs != 1 {
			t.Errorf("for a path and one below it there are %d inputs", inputs)
		}
	}
	waits := []string{"wait", "†input.age", "wait", "†input.to.name"}
	send := func(pairs ...string) answer {
		return s.post("/runs/asks/append", append(slices.Clone(waits), pairs...)...)
	}
	a := s.refused(send("value:input.age", "17", "value:input.to.name", "Ada"), "at least 18")
	e := find(a.doc, "input", "name", "value:input.age")
	if attr(e, "aria-invalid") != "true" || attr(e, "value") != "17" || attr(find(a.doc, "input", "name", "value:input.to.name"), "value") != "Ada" {
		t.Errorf("the refused form has %q: %s", inputsOf(a.doc), textOf(find(a.doc, "details", "id", "append")))
	}
	s.refused(send(), "at least one")
	s.refused(s.post("/runs/asks/append", "wait", "input"), "wait")
	s.followed(send("value:input.age", "20", "value:input.to.name", "Ada"))
	s.awaitCall("asks", "1.1", journal.Done)
	s.awaitCall("asks", "1.2", journal.Done)
	if age, name := s.value("asks", "state.age"), s.value("asks", "state.name"); encode(age) != "20" || name != "Ada" {
		t.Errorf("it went on with %v and %v", age, name)
	}
}

// TestRun_Equivalents takes the commands that a page shows for its acts: with curl they do what the
// forms do, and with a token they say where it goes.
func TestRun_Equivalents(t *testing.T) {
	s := serve(t, shop, nil)
	s.run("waits", "plans/wait.lua", "")
	text := ""
	for e := range elements(find(s.page("/runs/waits").doc, "details", "id", "equivalents")) {
		if e.Data == "code" {
			text += rawText(e) + "\n"
		}
	}
	for _, want := range []string{"obelus resume -c waits\n", "obelus cancel -c waits\n", "curl -X DELETE " + s.http.URL + "/v1/runs/waits", "| obelus append -c waits\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if strings.Contains(text, "Bearer") {
		t.Errorf("a token is named: %s", text)
	}
	s.run("refund-1", "plans/refund.lua", "")
	if text := textOf(find(s.page("/inbox").doc, "main")); !strings.Contains(text, "obelus approve 1.1 -c refund-1 curl -d '{}' "+s.http.URL+"/v1/contexts/refund-1/calls/1.1/approve") {
		t.Errorf("the inbox says %s", text)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("skipped the rest: there is no curl here")
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "curl") && strings.Contains(line, "/messages") {
			if out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", line, err, out)
			}
		}
	}
	s.await("waits", journal.RunDone)
	if got := s.value("waits", "state.said"); got != "…" {
		t.Errorf("it went on with %v", got)
	}
}

// TestRerun_OfOtherTools: where the scripts lack a tool of a run by now the run is shown, and nothing
// of it runs again, nor is a fork left behind.
func TestRerun_OfOtherTools(t *testing.T) {
	project := maps.Clone(shop)
	project["activities/mine.lua"] = `Activity.register("mine", function(call) return call.value end)`
	project["plans/mine.lua"] = `return { calls = { { _tool = "mine", value = 1, _outputPath = "†state.one" }, { _tool = "echo", value = "†state.one", _outputPath = "†state.two" } } }`
	s := serve(t, project, nil)
	s.run("mine", "plans/mine.lua", "")
	s.write("activities/mine.lua", `Activity.register("yours", function(call) return call.value end)`)
	s.write("plans/mine.lua", `return { calls = {} }`)
	if r := s.host.Reload(); r.Err != nil {
		t.Fatal(r.Err)
	}
	if text := textOf(find(s.page("/runs/mine").doc, "main")); !strings.Contains(text, "mine") {
		t.Errorf("the run is shown as %s", text)
	}
	before := s.contexts()
	if a := s.get("/runs/mine/rerun?from=1.2"); a.status != http.StatusUnprocessableEntity {
		t.Errorf("the form is there: %d", a.status)
	}
	if a := s.post("/runs/mine/rerun", "from", "1.2", "name", "mine-b"); a.status != http.StatusUnprocessableEntity || s.contexts() != before {
		t.Errorf("the form was taken: %d, with %d contexts", a.status, s.contexts())
	}
	if a := s.get("/v1/contexts/mine/downstream?call=1.1"); a.status != http.StatusUnprocessableEntity {
		t.Errorf("it is said what would run again: %d", a.status)
	}
}

// TestRerun_LongName: the form proposes a name for the fork also where that of the run has no room for
// more.
func TestRerun_LongName(t *testing.T) {
	s := serve(t, shop, nil)
	name := strings.Repeat("n", 64)
	s.run(name, "plans/order.lua", `{"amount": 20}`)
	if text := rawText(find(s.page("/runs/"+name+"/rerun?from=1.1").doc, "main")); !strings.Contains(text, "obelus fork -c "+name+" "+name[:62]+"-b &&") {
		t.Errorf("the form is %s", text)
	}
}

// TestRun_AppendList: a form does not replace a list by a part of it, and the lines to copy give the
// list as a whole.
func TestRun_AppendList(t *testing.T) {
	project := maps.Clone(shop)
	project["plans/second.lua"] = `return { calls = { { _tool = "echo", value = "†input.items.1", _outputPath = "†state.said" } } }`
	project["plans/year.lua"] = strings.Replace(project["plans/second.lua"], "items.1", "years.2026", 1)
	s := serve(t, project, nil)
	s.run("year", "plans/year.lua", `{"years": {"2025": 1}}`)
	if text := rawText(find(s.page("/runs/year").doc, "details", "id", "equivalents")); !strings.Contains(text, `{"years":{"2026":"…"}}`) {
		t.Errorf("the lines to copy are %s", text)
	}
	s.run("list", "plans/second.lua", `{"items": ["first"]}`)
	if text := rawText(find(s.page("/runs/list").doc, "details", "id", "equivalents")); !strings.Contains(text, `{"items":["…"]}`) {
		t.Errorf("the lines to copy are %s", text)
	}
	s.refused(s.post("/runs/list/append", "path", "†input.items.1", "value", "second"), "†input.items is a list")
	s.followed(s.post("/runs/list/append", "path", "†input.items", "value", `["first", "second"]`))
	s.await("list", journal.RunDone)
	if got := s.value("list", "state.said"); got != "second" {
		t.Errorf("it went on with %v", got)
	}
}

// TestRun_Acts cancels, resumes, appends to, retries, skips and gives results to runs by their forms.
func TestRun_Acts(t *testing.T) {
	s := serve(t, shop, nil)
	s.run("waits", "plans/wait.lua", "")
	if text := textOf(find(s.page("/runs/waits").doc, "div", "id", "acts")); !strings.Contains(text, "†state.answer") {
		t.Errorf("what it waits for is not said: %s", text)
	}
	s.refused(s.post("/runs/waits/append", "path", "state answer", "value", "kept as it is"), "path")
	s.refused(s.post("/runs/waits/append", "path", "†state.answer", "value", `{"id": 7,}`), "looks like JSON")
	a := s.post("/runs/waits/append", "path", "state answer", "value", "kept as it is")
	if got := rawText(find(a.doc, "textarea", "name", "value")); got != "kept as it is" {
		t.Errorf("what was typed is lost: %q", got)
	}
	s.followed(s.post("/runs/waits/append", "path", "†state.answer", "value", `{"yes": true}`))
	s.await("waits", journal.RunDone)
	if got := encode(s.value("waits", "state.said")); got != `{"yes":true}` {
		t.Errorf("it went on with %s", got)
	}
	for name, test := range map[string]struct {
		act   string
		form  []string
		after string
	}{
		"skipped": {"skip", nil, "skipped"},
		"given":   {"result", []string{"result", `{"paid": 80}`}, "done"},
	} {
		s.run(name, "plans/order.lua", `{"amount":80}`)
		s.followed(s.post("/runs/"+name+"/"+test.act, append([]string{"call", "1.2", "by", "Grace"}, test.form...)...))
		s.awaitCall(name, "1.2", journal.Status(test.after))
		s.until(name+" ends", func() bool {
			info, err := s.log.Info(t.Context(), name)
			return err == nil && journal.RunStatus(info.Standing.Status) != journal.RunRunning
		})
		if got := statusOf(s, name, "1.2"); got != test.after {
			t.Errorf("%s: call 1.2 is %s, want %s", name, got, test.after)
		}
	}
	if got := s.value("given", "state.letter"); got != "paid 80" {
		t.Errorf("the result was not used: %v", got)
	}
	s.run("again", "plans/order.lua", `{"amount":80}`)
	s.write("activities/shop.lua", strings.Replace(shop["activities/shop.lua"], "call.amount > 50", "call.amount > 90", 1))
	if err := s.host.Reload().Err; err != nil {
		t.Fatal(err)
	}
	if text := textOf(find(s.page("/runs/again").doc, "div", "id", "head")); !strings.Contains(text, "the scripts have changed since") || !strings.Contains(text, "the limit is 50") {
		t.Errorf("the head says: %s", text)
	}
	s.followed(s.post("/runs/again/retry", "call", "1.2"))
	s.awaitCall("again", "1.3", journal.Done)
	s.refused(s.post("/runs/again/retry", "call", "1.2"), "1.2")
	s.refused(s.post("/runs/again/result", "call", "1.2", "result", "{"), "must be JSON")

	s.api(http.MethodPost, "/v1/runs", `{"context":"stops","plan":"plans/stop.lua"}`)
	s.await("stops", journal.RunRunning)
	s.followed(s.post("/runs/stops/cancel", "by", "Grace"))
	s.await("stops", journal.RunCancelled)
	for path, form := range map[string][]string{"/runs/none/cancel": nil, "/runs/stops/melt": nil, "/runs/stops/approve": {"call", "1.1"}} {
		if a := s.post(path, form...); a.status < 400 || a.status >= 500 {
			t.Errorf("%s: status %d", path, a.status)
		} else {
			checkPage(t, path, a)
		}
	}
}

// statusOf returns the status of a call as the page shows it.
func statusOf(s *site, name, call string) string {
	s.t.Helper()
	row := find(s.page("/runs/"+name+"?tab=calls").doc, "tr", "id", "call-"+call)
	if row == nil {
		s.t.Fatalf("%s has no row for %s", name, call)
	}
	for e := range elements(row) {
		if class, ok := strings.CutPrefix(attr(e, "class"), "status "); ok {
			return class
		}
	}
	return ""
}

// TestRerun holds that a fork runs again what its form has said, and that corrections which the
// schema refuses leave no fork.
func TestRerun(t *testing.T) {
	s := serve(t, shop, nil)
	s.run("order", "plans/order.lua", `{"amount":20}`)
	a := s.page("/runs/order/rerun?from=1.2")
	said := map[string]bool{}
	for e := range elements(find(a.doc, "p", "id", "again")) {
		if call := attr(e, "data-call"); call != "" {
			said[call] = true
		}
	}
	if len(said) != 2 || !said["1.2"] || !said["1.3"] {
		t.Errorf("it says that %v run again", said)
	}
	before := s.contexts()
	bad := s.refused(s.post("/runs/order/rerun", "from", "1.2", "name", "order-x", "value:amount", ""), "can't take an argument away")
	if attr(find(bad.doc, "input", "name", "name"), "value") != "order-x" {
		t.Error("the name of the fork is lost")
	}
	s.refused(s.post("/runs/order/rerun", "from", "1.2", "name", "order", "value:amount", "30"), "order")
	s.refused(s.post("/runs/order/rerun", "from", "9.9", "name", "x"), "9.9")
	if s.contexts() != before {
		t.Error("a refused form has left a fork")
	}
	path, _ := s.followed(s.post("/runs/order/rerun", "from", "1.2", "name", "order-b", "value:amount", "30"))
	if path != "/runs/order-b" {
		t.Errorf("it leads to %s", path)
	}
	s.until("the letter says paid 30", func() bool { return s.peek("order-b", "state.letter") == "paid 30" })
	if got := s.value("order-b", "state.receipt.paid"); encode(got) != "30" {
		t.Errorf("it ran with %v", got)
	}
	old, err := journal.In(s.log, "order").CurrentRecords(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := journal.In(s.log, "order-b").CurrentRecords(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range again {
		if ran := r.Started != old[i].Started; ran != said[r.Call] {
			t.Errorf("%s ran again: %t, said: %t", r.Call, ran, said[r.Call])
		}
	}
	// Two forks of a call that must not act twice: the form says so.
	s.run("refund", "plans/refund.lua", "")
	s.followed(s.post("/runs/refund/approve", "call", "1.1"))
	s.await("refund", journal.RunDone)
	a = s.page("/runs/refund/rerun?from=1.1")
	if text := textOf(find(a.doc, "main")); !strings.Contains(text, "not idempotent") || !strings.Contains(text, "refund/1.1") {
		t.Errorf("it does not warn: %s", text)
	}
	s.refused(s.post("/runs/refund/rerun", "from", "1.1", "name", "refund-b", "value:amount", "400", "value:to", "Ada"), "at most 100")
	s.run("waits", "plans/wait.lua", "")
	s.refused(s.get("/runs/waits/rerun"), "no call of waits has ended")
}

// TestDiff holds that the page compares as the API does.
func TestDiff(t *testing.T) {
	s := serve(t, shop, nil)
	s.run("order", "plans/order.lua", `{"amount":20}`)
	s.followed(s.post("/runs/order/rerun", "from", "1.2", "name", "order-b", "value:amount", "30"))
	s.until("the letter says paid 30", func() bool { return s.peek("order-b", "state.letter") == "paid 30" })
	for _, query := range []string{"a=order&b=order-b", "a=order&a_at=2&b=order", "a=order-b&b=order&b_at=3"} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		moment := func(of string) history.Moment {
			m := history.Moment{Context: q.Get(of)}
			if at := q.Get(of + "_at"); at != "" {
				m.At = int64(at[0] - '0')
			}
			return m
		}
		want, err := history.Diff(t.Context(), s.log, moment("a"), moment("b"))
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for e := range elements(find(s.page("/diff?"+query).doc, "tbody")) {
			if e.Data == "tr" {
				rows++
			}
		}
		if rows != len(want) || rows == 0 {
			t.Errorf("%s: %d rows, want %d", query, rows, len(want))
		}
	}
	text := textOf(find(s.page("/diff?a=order&b=order-b").doc, "main"))
	for _, want := range []string{"†state.receipt.paid", "20", "30"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not show %s: %s", want, text)
		}
	}
	if a := s.get("/diff?a=none&b=order"); a.status != http.StatusOK && a.status != http.StatusNotFound {
		t.Errorf("status %d", a.status)
	}
}

// TestReplay replays runs, and shows the difference where one comes out otherwise.
func TestReplay(t *testing.T) {
	s := serve(t, map[string]string{
		"obelus.lua":       `return { drain = "100ms" }`,
		"activities/a.lua": `Activity.register("say", function(call) return call.text end)`,
		"plans/plan.lua":   `return function() return { calls = { { _tool = "say", text = "one", _outputPath = "†state.said" } }, output = "†state.said" } end`,
	}, nil)
	s.run("a", "plans/plan.lua", "")
	before := s.contexts()
	if a := s.post("/runs/a/replay"); a.status != http.StatusOK || !strings.Contains(textOf(a.doc), "its call comes out the same") {
		t.Errorf("status %d: %s", a.status, textOf(find(a.doc, "main")))
	}
	s.write("plans/plan.lua", `return function() return { calls = { { _tool = "say", text = "two", _outputPath = "†state.said" } }, output = "†state.said" } end`)
	if err := s.host.Reload().Err; err != nil {
		t.Fatal(err)
	}
	a := s.post("/runs/a/replay")
	checkPage(t, "the replay", a)
	if text := textOf(find(a.doc, "main")); !strings.Contains(text, "comes out otherwise") || !strings.Contains(text, "one") || !strings.Contains(text, "two") {
		t.Errorf("it shows %s", text)
	}
	if s.contexts() != before {
		t.Error("a replay has made a context")
	}
	s.refused(s.post("/runs/none/replay"), "none")
}

// TestInbox_ShowsAll holds that a person who approves a call is shown all arguments, those too that
// have no input.
func TestInbox_ShowsAll(t *testing.T) {
	s := serve(t, map[string]string{
		"obelus.lua": `return { drain = "100ms", approve = "pay" }`,
		"activities/a.lua": `Tool.register("pay", { properties = { to = { type = "object", properties = { name = { type = "string" } } } } })
			Activity.register("pay", function(call) return call end)`,
		"plans/a.lua": `return { { _tool = "pay", to = { name = "Ada", account = "HIDDEN-1" }, ["x.y"] = "HIDDEN-2", long = ("z"):rep(20000) .. "HIDDEN-3", _outputPath = "†state.paid" } }`,
	}, nil)
	s.run("a", "plans/a.lua", "")
	text := textOf(find(s.page("/inbox").doc, "main"))
	for _, want := range []string{"HIDDEN-1", "HIDDEN-2", "too large for an input", "These are all arguments"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not shown", want)
		}
	}
	s.followed(s.post("/runs/a/approve", append([]string{"call", "1.1"}, inputsOf(s.page("/inbox").doc)...)...))
	s.await("a", journal.RunDone)
	if got := encode(s.value("a", "state.paid.to")); got != `{"account":"HIDDEN-1","name":"Ada"}` {
		t.Errorf("it ran with %s", got)
	}
	if got, _ := s.value("a", "state.paid.long").(string); len(got) != 20008 {
		t.Errorf("a text that is too large for an input came to have %d bytes", len(got))
	}
}

// TestStart_Whole holds that a run like another one gets all of its input, also what has no field,
// and that a form that is sent twice starts one run.
func TestStart_Whole(t *testing.T) {
	s := serve(t, map[string]string{
		"obelus.lua":  `return { drain = "100ms" }`,
		"plans/a.lua": `return { context = { { type = "input", schema = { type = "object", properties = { a = { type = "string" }, ["x.y"] = { type = "string" } } } } }, calls = {}, output = "†input" }`,
	}, nil)
	s.run("first", "plans/a.lua", `{"a":"1","extra":{"keep":"me"},"x.y":"z"}`)
	inputs := inputsOf(s.page("/plans/a.lua?from=first").doc)
	path, _ := s.followed(s.post("/plans/a.lua", inputs...))
	if got := encode(s.value(strings.TrimPrefix(path, "/runs/"), "input")); got != `{"a":"1","extra":{"keep":"me"},"x.y":"z"}` {
		t.Errorf("one like it has %s", got)
	}
	before := s.contexts()
	if again, _ := s.followed(s.post("/plans/a.lua", inputs...)); again != path || s.contexts() != before {
		t.Errorf("sent twice it has started %s and %s", path, again)
	}
}

// TestRun_Lines shows what the script of a call printed and logged.
func TestRun_Lines(t *testing.T) {
	s := serve(t, map[string]string{
		"obelus.lua":       `return { drain = "100ms" }`,
		"activities/a.lua": `Activity.register("say", function() print("first"); require("log").warn("second", { n = 2 }) end)`,
		"plans/say.lua":    `return { calls = { { _tool = "say", _outputPath = "†said" } } }`,
	}, nil)
	s.api(http.MethodPost, "/v1/runs", `{"context":"said","plan":"plans/say.lua","wait":true}`) // its lines are written as it ends
	if text := textOf(find(s.page("/runs/said?sel=1.1").doc, "aside")); !strings.Contains(text, `| first warn second {"n":2}`) {
		t.Errorf("it shows %s", text)
	}
}

// TestStart_Examples opens the form of every plan of the examples: what its schema requires has an
// input.
func TestStart_Examples(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "none is asked")
	plans, err := filepath.Glob("../../../examples/*/plans/*")
	if err != nil || len(plans) < 10 {
		t.Fatal(plans, err)
	}
	sites := map[string]*site{}
	for _, file := range plans {
		dir := filepath.Dir(filepath.Dir(file))
		s := sites[dir]
		if s == nil {
			files := map[string]string{}
			err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || strings.Contains(path, "/.obelus/") {
					return err
				}
				text, err := os.ReadFile(path)
				files[strings.TrimPrefix(path, dir+"/")] = string(text)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			s = serve(t, files, nil)
			sites[dir] = s
		}
		path := "/plans/" + filepath.Base(file)
		a := s.page(path)
		request, _, err := s.host.Plan("plans/" + filepath.Base(file))
		if err != nil {
			t.Fatal(err)
		}
		required, _ := inputSchema(request)["required"].([]any)
		for _, name := range required {
			label := find(a.doc, "label", "for", "input-"+name.(string))
			if label == nil && !strings.Contains(textOf(find(a.doc, "main")), name.(string)) {
				t.Errorf("%s: there is no input for %s", file, name)
			}
		}
	}
}

// inputSchema returns the schema that a plan declares for its input; nil for none.
func inputSchema(request *plan.Request) map[string]any {
	for _, m := range request.Context {
		if schema, ok := m.Schema.(map[string]any); ok && m.Kind == "input" {
			return schema
		}
	}
	return nil
}

// TestRuns_RetryingAndWaiting finds the runs that only try again, and those that wait for a path.
func TestRuns_RetryingAndWaiting(t *testing.T) {
	files := maps.Clone(shop)
	files["plans/down.lua"] = `return { { _tool = "charge", amount = 99, _retries = 3, _backoff = "300s", _outputPath = "†state.a" } }`
	s := serve(t, files, nil)
	s.run("waits", "plans/wait.lua", "")
	s.run("order-1", "plans/order.lua", `{"amount":20}`)
	s.run("down", "plans/down.lua", "")
	counts := textOf(find(s.page("/runs").doc, "ul", "id", "counts"))
	if !strings.Contains(counts, "↻ retrying 1") {
		t.Errorf("the counts are %s", counts)
	}
	row := find(s.page("/runs").doc, "tr", "id", "run-waits")
	if find(row, "a", "href", "/runs?waiting="+url.QueryEscape("†state.answer")) == nil {
		t.Errorf("what it waits for is no link: %s", textOf(row))
	}
	for query, want := range map[string]string{
		"?retrying=true": "run-down", "?waiting=" + url.QueryEscape("†state.answer"): "run-waits", "?waiting=state.answer&status=waiting": "run-waits", "?waiting=state.other": "", "?waiting=" + url.QueryEscape(`state["answer"]`): "run-waits",
	} {
		var found []string
		for e := range elements(find(s.page("/runs"+query).doc, "tbody", "id", "rows")) {
			if e.Data == "tr" {
				found = append(found, attr(e, "id"))
			}
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
	}
	if text := textOf(find(s.page("/runs?waiting=input..x").doc, "main")); !strings.Contains(text, "it is not looked for") {
		t.Errorf("of a path that is none it says %s", text)
	}
}
