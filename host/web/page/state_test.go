package page_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"obelus/engine"
	"obelus/engine/expr"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/journal/journaltest"
	"obelus/host/ops"
	"obelus/store"
)

var moments = flag.Int("moments", 40, "how many moments of a run TestState_AtEachSeq looks at")

// shown returns the values that a page's tree shows, by the references that its links ask about.
func shown(doc *html.Node) map[string]string {
	values := map[string]string{}
	for e := range elements(find(doc, "div", "id", "values")) {
		if e.Data != "a" {
			continue
		}
		if to, err := url.Parse(attr(e, "href")); err == nil {
			values[to.Query().Get("why")] = rawText(e)
		}
	}
	return values
}

// TestState_AtEachSeq moves the slider to moments of a run: the values and the statuses of the calls
// are those that the commands give.
func TestState_AtEachSeq(t *testing.T) {
	s := serve(t, shop, nil)
	s.run("many", "plans/many.lua", "")
	info, err := s.log.Info(t.Context(), "many")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range *moments {
		at := 1 + random.Int64N(info.Messages)
		instance := fmt.Sprintf("i%d", 1+random.IntN(130))
		query := fmt.Sprintf("?at=%d&instance=%s", at, instance)
		want := "nothing"
		e, err := expr.Parse("†state.n")
		if err != nil {
			t.Fatal(err)
		}
		if v, err := history.Get(t.Context(), journal.In(s.log, "many"), e, at, instance); err == nil {
			want = encode(v)
		}
		got, ok := shown(s.page("/runs/many" + query + "&tab=state").doc)["state.n"]
		if !ok {
			got = "nothing"
		}
		if got != want {
			t.Errorf("at %d as %s: the page shows %s, want %s", at, instance, got, want)
		}
		records, err := journaltest.Calls(t.Context(), s.log, "many", at)
		if err != nil {
			t.Fatal(err)
		}
		statuses := map[string]int{}
		for _, r := range records {
			statuses[string(r.Status)]++
		}
		counts := find(s.page("/runs/many"+query+"&tab=calls").doc, "ul", "id", "call-counts")
		for status, n := range statuses {
			if text := textOf(counts); !strings.Contains(text, fmt.Sprintf("%s %d", status, n)) {
				t.Errorf("at %d: the page counts %s, want %d %s", at, text, n, status)
			}
		}
	}
}

// TestState_Why clicks every value of a run, and of a delegate's: the page says what the command
// says.
func TestState_Why(t *testing.T) {
	s := serve(t, map[string]string{
		"obelus.lua": `return { drain = "100ms" }`,
		"activities/echo.lua": `
			Activity.register("echo", function(call) return call.value end)
			Tool.register("inner", { properties = { of = { type = "number" } } })
			Delegate.register("inner", {
				context = {},
				calls = { { _tool = "echo", value = { n = "†input.of", ["a key"] = "†input.of", list = { 1, { deep = "†input.of" } } }, _outputPath = "†state.made" } },
				output = "†state.made" })`,
		"plans/outer.lua": `return { calls = {
			{ _tool = "inner", _delegate = "inner", of = "†input.n", _outputPath = "†state.inner" },
			{ _tool = "echo", value = "†state.inner.n", _outputPath = "†state.n" } } }`,
	}, nil)
	s.run("outer", "plans/outer.lua", `{"n":7}`)
	names := []string{"outer"}
	for info, err := range s.log.Contexts(t.Context(), store.ContextFilter{Parent: "outer"}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Context)
	}
	if len(names) < 2 {
		t.Fatal("there is no delegate")
	}
	for _, name := range names {
		refs := shown(s.page("/runs/" + url.PathEscape(name) + "?tab=state").doc)
		if len(refs) < 2 {
			t.Errorf("%s shows %v", name, refs)
		}
		for ref := range refs {
			e, err := history.ParseRef(ref)
			if err != nil {
				t.Errorf("%s: %v", ref, err)
				continue
			}
			why, err := history.Explain(t.Context(), journal.In(s.log, name), e, 0, "")
			if err != nil {
				t.Errorf("%s: %v", ref, err)
				continue
			}
			said := textOf(find(s.page("/runs/"+url.PathEscape(name)+"?tab=state&why="+url.QueryEscape(ref)).doc, "aside"))
			for _, want := range whyWords(why) {
				if !strings.Contains(said, want) {
					t.Errorf("%s of %s: the page does not say %q: %s", ref, name, want, said)
				}
			}
		}
	}
}

// whyWords returns what must be said about an origin: its references, calls, seqs and contexts.
func whyWords(why *history.Why) (words []string) {
	words = append(words, why.Ref)
	if why.Context != "" {
		words = append(words, why.Context)
	}
	for _, o := range why.From {
		words = append(words, fmt.Sprintf("seq %d", o.Seq))
		if o.Call != "" {
			words = append(words, o.Call+" "+o.Tool)
		}
		for i := range o.Reads {
			words = append(words, whyWords(&o.Reads[i])...)
		}
	}
	return words
}

// TestRuns_EqualJournal holds that calls and ticks that are kept are those that the log has: at each
// seq, while runs go on, in forks, and where a context is another one of the same name.
func TestRuns_EqualJournal(t *testing.T) {
	s := serve(t, shop, nil)
	project := ops.Project{Host: s.host, Log: s.log}
	kept := &ops.Runs{Project: project}
	compare := func(names ...string) {
		t.Helper()
		for _, name := range names {
			info, err := s.log.Info(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			outcome, err := engine.ReadOutcome(t.Context(), s.log, name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := kept.Outcome(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			hasCalls := outcome.Status == journal.RunFailed || outcome.Status == journal.RunWaiting
			outcome.Calls = slices.DeleteFunc(append([]journal.Record{}, outcome.Calls...), func(r journal.Record) bool { return !hasCalls || r.Status != journal.Failed })
			if got.Calls = append([]journal.Record{}, got.Calls...); encode(got) != encode(outcome) {
				t.Errorf("%s: %v\n%s\nand not\n%s", name, err, encode(got), encode(outcome))
			}
			for at := range info.Messages + 1 {
				want, err := journaltest.Calls(t.Context(), s.log, name, at)
				if err != nil {
					t.Fatal(err)
				}
				lines, err := kept.Lines(t.Context(), name, at)
				if err != nil {
					t.Fatal(err)
				}
				got, err := kept.Records(t.Context(), name, lines)
				if err != nil || encode(got) != encode(want) {
					t.Fatalf("%s at %d: %v\n%s\nand not\n%s", name, at, err, encode(got), encode(want))
				}
				h, err := journal.ReadHistory(t.Context(), s.log, name)
				if err != nil {
					t.Fatal(err)
				}
				ticks, err := project.TicksOf(t.Context(), h)
				if err != nil {
					t.Fatal(err)
				}
				begun, err := journal.In(s.log, name).Plans(t.Context(), 0)
				if err != nil {
					t.Fatal(err)
				}
				ticks = slices.DeleteFunc(ticks, func(one engine.Tick) bool {
					return at > 0 && !slices.ContainsFunc(begun, func(e journal.PlanEvent) bool { return e.Tick == one.Tick && max(e.Seq, e.Start) <= at })
				})
				again, err := kept.Ticks(t.Context(), name, at)
				if err != nil || len(again) != len(ticks) {
					t.Fatalf("%s at %d: %d ticks, want %d: %v", name, at, len(again), len(ticks), err)
				}
				for i := range ticks {
					if again[i].Tick != ticks[i].Tick || len(again[i].Plan.Calls) != len(ticks[i].Plan.Calls) {
						t.Errorf("%s at %d: tick %d differs", name, at, ticks[i].Tick)
					}
				}
			}
		}
	}
	s.run("order", "plans/order.lua", `{"amount":80}`)
	s.run("refund", "plans/refund.lua", "")
	compare("order", "refund")
	s.followed(s.post("/runs/order/retry", "call", "1.2"))
	s.followed(s.post("/runs/refund/approve", "call", "1.1"))
	s.await("refund", journal.RunDone)
	s.until("order has tried again", func() bool {
		records, err := journal.In(s.log, "order").Records(t.Context())
		return err == nil && records[1].Attempts == 4 && records[1].Status == journal.Failed
	})
	compare("order", "refund")
	s.run("refund", "plans/order.lua", `{"amount":7}`)
	compare("refund")
	s.followed(s.post("/runs/order/rerun", "from", "1.2", "name", "fork", "value:amount", "30"))
	s.await("fork", journal.RunDone)
	compare("order", "fork")
	info, err := s.log.Info(t.Context(), "fork")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.log.Prune(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	s.run("fork", "plans/wait.lua", "")
	compare("fork")
}

// TestTimeline_Parts holds that a bar shows the attempts of a call and the pauses between them, the
// time in which it was held, and headings where calls are grouped.
func TestTimeline_Parts(t *testing.T) {
	s := serve(t, shop, nil)
	s.run("order-1", "plans/order.lua", `{"amount":80}`)
	bar := func(path, title string) (parts []string) {
		t.Helper()
		for g := range elements(find(s.page(path).doc, "div", "id", "timeline")) {
			if g.Data != "g" || !strings.HasPrefix(textOf(g), title) {
				continue
			}
			for e := range elements(g) {
				if class := attr(e, "class"); class != "" {
					parts = append(parts, strings.Fields(class)[0])
				}
			}
		}
		return parts
	}
	if got := bar("/runs/order-1?tab=timeline", "1.2 charge"); !slices.Equal(got, []string{"failed", "failed", "pause"}) {
		t.Errorf("the parts of a call that was tried twice are %q", got)
	}
	if got := bar("/runs/order-1?tab=timeline&group=tool", "1.1 judge"); !slices.Equal(got, []string{"done"}) {
		t.Errorf("the parts of a call that was done at once are %q", got)
	}
	headings := []string{}
	for e := range elements(s.page("/runs/order-1?tab=timeline&group=tool").doc) {
		if attr(e, "class") == "heading" {
			headings = append(headings, textOf(e))
		}
	}
	if !slices.Equal(headings, []string{"charge", "judge"}) {
		t.Errorf("the headings are %q", headings)
	}
	s.run("refund-1", "plans/refund.lua", "")
	if got := bar("/runs/refund-1?tab=timeline", "1.1 refund"); !slices.Equal(got, []string{"wait"}) {
		t.Errorf("the parts of a held call are %q", got)
	}
	s.followed(s.post("/runs/refund-1/approve", "call", "1.1"))
	s.await("refund-1", journal.RunDone)
	if got := bar("/runs/refund-1?tab=timeline", "1.1 refund"); !slices.Equal(got, []string{"done", "wait"}) {
		t.Errorf("the parts of a call that was held are %q", got)
	}
	took := textOf(find(s.page("/runs/refund-1?tab=timeline").doc, "span", "class", "took"))
	if row := textOf(find(s.page("/runs/refund-1?tab=calls").doc, "tr", "id", "call-1.1")); took == "" || !strings.Contains(row, took) {
		t.Errorf("a call is said to have taken %q, which its row does not say: %s", took, row)
	}
}

// TestGraph_Dims holds which calls the graph dims: those that the call at the side neither depends on
// nor feeds, as far as it is followed, or all that have not failed.
func TestGraph_Dims(t *testing.T) {
	s := filled(t)
	for query, want := range map[string]string{
		"":                     "",
		"?sel=1.3":             "node-1 node-4",
		"?sel=1.2&follow=up":   "node-1 node-3 node-4",
		"?sel=1.2&follow=down": "node-1 node-4",
		"?sel=1.3&follow=down": "node-1 node-2 node-4",
		"?sel=1.3&follow=none": "node-1 node-2 node-4",
		"?status=failed":       "node-1 node-3 node-4",
	} {
		var dimmed []string
		for e := range elements(find(s.page("/runs/order-1"+query).doc, "svg", "id", "drawn")) {
			if strings.Contains(attr(e, "class"), "dimmed") {
				dimmed = append(dimmed, attr(e, "id"))
			}
		}
		if got := strings.Join(dimmed, " "); got != want {
			t.Errorf("%s: dimmed are %q, want %q", query, got, want)
		}
	}
	for query, want := range map[string]string{"?sel=1.3": "☑ upstream ☑ downstream", "?sel=1.3&follow=up": "☑ upstream ☐ downstream", "?sel=1.3&follow=none": "☐ upstream ☐ downstream"} {
		if text := textOf(find(s.page("/runs/order-1"+query).doc, "main")); !strings.Contains(text, want) {
			t.Errorf("%s: %q is not there", query, want)
		}
	}
}

// TestGraph_None holds what is said of a tick without calls: its plan may have none, or was refused.
func TestGraph_None(t *testing.T) {
	s := serve(t, shop, nil)
	s.write("plans/ends.lua", `return function() return { calls = {}, output = 3 } end`)
	s.write("plans/refused.lua", `return function() return { calls = { { _tool = "nosuch" } } } end`)
	const empty, refused = "The plan of this tick has no calls.", "No plan was taken for this tick."
	for plan, want := range map[string]string{"plans/echo.json": empty, "plans/ends.lua": empty, "plans/refused.lua": refused} {
		name := path.Base(plan)
		s.api(http.MethodPost, "/v1/runs", `{"plan":"`+plan+`","input":{},"context":"`+name+`","wait":true}`)
		if text := textOf(find(s.page("/runs/"+name+"?tick=1").doc, "main")); !strings.Contains(text, want) || strings.Contains(text, empty) && strings.Contains(text, refused) {
			t.Errorf("%s: %s", plan, text)
		}
	}
}

// TestScripts_Figures holds the figures beside a script to the calls of all runs, as more come.
func TestScripts_Figures(t *testing.T) {
	s := serve(t, shop, nil)
	names, figures := []string{}, &ops.Figures{Log: s.log}
	for i, amount := range []int{80, 20, 5, 60} {
		names = append(names, fmt.Sprintf("order-%d", i))
		s.run(names[i], "plans/order.lua", fmt.Sprintf(`{"amount":%d}`, amount))
		calls, failed := 0, 0
		var durations []float64
		for _, name := range names {
			records, err := journal.In(s.log, name).Records(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				switch r.Status {
				case journal.Failed:
					failed++
					fallthrough
				case journal.Done:
					calls++
					durations = append(durations, r.Duration)
				}
			}
		}
		slices.Sort(durations)
		got, all, err := figures.ByScript(t.Context(), time.Now())
		if want := (ops.ScriptFigures{
			Calls: calls, Failed: failed, Median: durations[len(durations)/2], Versions: got["activities/shop.lua"].Versions,
		}); err != nil || !all || len(got) != 1 || !reflect.DeepEqual(got["activities/shop.lua"], want) || len(want.Versions) != 1 {
			t.Errorf("with %d runs the figures are %v, %v; want %v", i+1, got, err, want)
		}
		for row := range elements(s.page("/scripts").doc) {
			if words := strings.Fields(textOf(row)); row.Data == "tr" && words[0] == "activities/shop.lua" && (words[2] != fmt.Sprint(calls) || words[len(words)-1] != fmt.Sprint(failed)) {
				t.Errorf("with %d runs of %d calls, of which %d failed, the row says %q", i+1, calls, failed, words)
			}
		}
	}
	s.write("activities/shop.lua", strings.Replace(shop["activities/shop.lua"], "call.amount > 50", "call.amount > 90", 1))
	if err := s.host.Reload().Err; err != nil {
		t.Fatal(err)
	}
	s.run("order-9", "plans/order.lua", `{"amount":20}`)
	changes, old := false, find(s.page("/scripts").doc, "div", "id", "scripts")
	for a := range elements(old) {
		if strings.HasPrefix(attr(a, "href"), "/source/") && strings.HasSuffix(attr(a, "href"), "/activities/shop.lua") && len(textOf(a)) == 7 {
			if text := textOf(find(s.page(attr(a, "href")).doc, "main")); !strings.Contains(text, "other scripts are loaded now") {
				t.Errorf("the older version says %s", text)
			}
			old = nil
		}
		if textOf(a) == "changes since" {
			text := textOf(find(s.page(attr(a, "href")).doc, "main"))
			if !strings.Contains(text, "- if call.amount > 50 then") || !strings.Contains(text, "+ if call.amount > 90 then") || strings.Contains(text, "went on") {
				t.Errorf("the changes are %s", text)
			}
			changes = true
		}
	}
	if !changes {
		t.Error("there is no link to the changes")
	}
	if old != nil {
		t.Errorf("there is no link to the version that ran before: %s", textOf(old))
	}
	if later, _, err := figures.ByScript(t.Context(), time.Now().Add(ops.FiguresSpan)); err != nil || len(later) != 0 {
		t.Errorf("a day later they are %v, %v", later, err)
	}
}

// TestRun_Stale holds when a run is said to have run with other scripts: once a file that its calls
// ran with has changed, and not because the plan's own file was one of them.
func TestRun_Stale(t *testing.T) {
	const plan = `Activity.register("own", function() return require("one")() end)
		return { calls = { { _tool = "own", _outputPath = "†state.n" }, { _tool = "echo", value = 1, _outputPath = "†state.m" } } }`
	s := serve(t, map[string]string{
		"activities/echo.lua": `Activity.register("echo", function(call) return call.value end)`, "lib/one.lua": `return function() return 1 end`,
		"plans/own.lua": plan, "plans/echo.lua": `return { calls = { { _tool = "echo", value = 1, _outputPath = "†state.m" } } }`,
	}, nil)
	s.run("own", "plans/own.lua", "")
	s.run("echo", "plans/echo.lua", "")
	source := ""
	for a := range elements(find(s.page("/runs/own?sel=1.1").doc, "aside")) {
		if textOf(a) == "plans/own.lua" && a.Data == "a" {
			source = attr(a, "href")
		}
	}
	check := func(when string, own, echo bool) {
		t.Helper()
		for name, want := range map[string]bool{"own": own, "echo": echo} {
			if text := textOf(find(s.page("/runs/"+name).doc, "div", "id", "head")); strings.Contains(text, "the scripts have changed since") != want {
				t.Errorf("%s, the page of %s says %s", when, name, text)
			}
		}
		if text := textOf(find(s.page(source).doc, "main")); strings.Contains(text, "as it is loaded") == own || strings.Contains(text, "other scripts are loaded now") != own {
			t.Errorf("%s, the source says %s", when, text)
		}
	}
	check("with nothing changed", false, false)
	s.write("plans/own.lua", plan+" -- changed")
	check("with another plan", true, false)
	s.write("plans/own.lua", plan)
	check("with the plan as it was", false, false)
	s.write("lib/one.lua", `return function() return 2 end`)
	if err := s.host.Reload().Err; err != nil {
		t.Fatal(err)
	}
	check("with another module", true, true)
	s.write("lib/one.lua", `return function() return 1 end`)
	if err := s.host.Reload().Err; err != nil {
		t.Fatal(err)
	}
	check("with the module as it was", false, false)
	if err := os.Remove(filepath.Join(s.dir, "plans", "own.lua")); err != nil {
		t.Fatal(err)
	}
	check("without the plan", true, false)
}

// TestOutput_AtEachSeq shows the output of a run as of the moment that it was done, and none before.
func TestOutput_AtEachSeq(t *testing.T) {
	s := serve(t, shop, nil)
	s.run("order-1", "plans/order.lua", `{"amount":20}`)
	done, err := s.log.Head(t.Context(), "order-1")
	if err != nil {
		t.Fatal(err)
	}
	s.api(http.MethodPost, "/v1/contexts/order-1/messages", `{"type":"state","note":1}`)
	for at, want := range map[int64]string{done - 1: "There is no output at that moment", done: "paid 20", done + 1: "paid 20"} {
		if text := textOf(find(s.page(fmt.Sprintf("/runs/order-1?tab=output&at=%d", at)).doc, "div", "id", "out")); !strings.Contains(text, want) {
			t.Errorf("at %d of %d it says %s, not %s", at, done, text, want)
		}
	}
}
