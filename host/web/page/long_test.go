package page_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"obelus/engine/journal"
	"obelus/host/web"
)

// TestBrowser_LongNames opens each view of a project whose names are long and have no blanks, wide
// and narrow, as it is and with all details open: nothing is wider than the window.
func TestBrowser_LongNames(t *testing.T) {
	long := func(start string) string { return start + strings.Repeat("0123456789", 12) }
	tool, held, plan, label := long("tool"), long("held"), "plans/"+long("plan")+".lua", strings.Repeat("l", 60)
	name := strings.Repeat("c", 62)
	s := serve(t, map[string]string{
		"obelus.lua": `return { drain = "100ms", approve = "` + held + `", serve = { schedules = { ["` + strings.Repeat("n", 47) + `"] = { plan = "` + plan + `", cron = "0 2 * * *" } } } }`,
		"activities/" + long("script") + ".lua": `
			Tool.register("` + held + `", { properties = {
				["` + long("text") + `"] = { type = "string", description = "` + long("about") + `" }, ["` + long("choice") + `"] = { enum = { "` + long("one") + `", "` + long("other") + `" } },
				["` + long("object") + `"] = { type = "object", properties = { ["` + long("inner") + `"] = { type = "string" } } } } })
			Activity.register("` + held + `", function(call) return call end)
			Activity.register("` + tool + `", function(call) print("` + long("printed") + `"); return { ["` + long("key") + `"] = call.value, list = { "` + long("value") + `" } } end)
			Activity.register("fail", function() error("` + long("failed") + `") end)`,
		plan: `return {
			context = { { type = "input", schema = { type = "object", properties = { ["` + long("input") + `"] = { enum = { "` + long("one") + `" }, description = "` + long("about") + `" } } } } },
			calls = {
				{ _tool = "` + tool + `", ["` + long("value") + `"] = "†input.` + long("input") + `", value = 1, _outputPath = "†state.` + long("wrote") + `" },
				{ _tool = "` + held + `", ["` + long("text") + `"] = "` + long("given") + `", ["` + long("choice") + `"] = "` + long("one") + `", _outputPath = "†state.` + long("held") + `" },
				{ _tool = "` + tool + `", value = "†state.` + long("wrote") + `", _instance = "` + long("instance") + `", _outputPath = "†state.` + long("second") + ` && †state.` + long("third") + `" },
				{ _tool = "fail", value = "†state.` + long("second") + `", _outputPath = "†state.` + long("fails") + `" },
				{ _tool = "` + tool + `", value = "†state.` + long("missing") + `", _outputPath = "†state.` + long("waits") + `" },
			} }`,
	}, func(c *web.Config) { c.Title = long("project") })
	start := `{"context":"%s","plan":"` + plan + `","input":{"` + long("input") + `":"` + long("one") + `"},"labels":{"` + label + `":"` + strings.Repeat("v", 60) + `"}}`
	for _, context := range []string{name, name + "-2"} {
		s.api("POST", "/v1/runs", fmt.Sprintf(start, context))
		s.await(context, journal.RunWaiting, journal.RunFailed)
	}
	s.followed(s.post("/runs/"+name+"-2/approve", "call", "1.2"))
	s.awaitCall(name+"-2", "1.2", journal.Done)
	run, ref := "/runs/"+name, url.QueryEscape(`state.`+long("wrote"))
	b := open(t, s, "/runs")
	b.accept("404") // of the view that is not there
	for _, view := range []string{
		"/runs", "/runs?q=" + long("nothing"), run, run + "?sel=1.1", run + "?sel=1.2", run + "?sel=1.3", run + "?sel=1.4", run + "?sel=1.5", run + "?tab=timeline", run + "?tab=timeline&group=tool",
		run + "?tab=timeline&group=instance&sel=1.1", run + "?tab=calls", run + "?tab=calls&sel=1.3", run + "?tab=log", run + "?tab=log&sel=1.1", run + "?tab=state", run + "?tab=state&why=" + ref,
		run + "?tab=state&why=" + long("nothing"), run + "?tab=state&since=1&instance=" + long("instance") + "&why=" + url.QueryEscape("state."+long("second")), run + "?tab=output", run + "-2/rerun?from=1.2",
		"/diff?a=" + name + "&b=" + name + "-2", "/diff?a=" + long("nothing"), "/inbox", "/plans", "/" + plan + "?from=" + name, "/scripts",
		"/source/" + s.host.Generation().Digest + "/activities/" + long("script") + ".lua", "/runs/" + name + "-nothing",
	} {
		for _, width := range []int64{400, 1280} {
			b.viewport(width, 800)
			b.navigate(s.http.URL + view)
			b.await(`document.documentElement.classList.contains("js")`)
			for _, opened := range []bool{false, true} {
				if opened {
					script[bool](b, `document.querySelectorAll("details").forEach((d) => { d.open = true }), setTimeout(() => { document.body.dataset.opened = "yes" }, 50), true`)
					b.await(`document.body.dataset.opened`) // menus have moved
				}
				if folder := os.Getenv("ARTIFACTS"); *pictures && folder != "" {
					short := strings.NewReplacer("/", "_", "?", "_", "&", "_", "=", "-", strings.Repeat("0123456789", 12), "", name, "c").Replace(view)
					b.shot(filepath.Join(folder, fmt.Sprintf("long%s-%d-%v.png", short, width, opened)))
				}
				for what, apart := range map[string]string{"a text in its box": withinBox, "a key beside its link": besideLink} {
					if !script[bool](b, apart) {
						t.Errorf("%.60s, %d pixels wide, does not show %s", view, width, what)
					}
				}
				if wide := script[int64](b, `document.documentElement.scrollWidth`); wide > width {
					t.Errorf("%.60s is %d pixels wide in a window of %d, with details open: %v: %.900s", view, wide, width, opened, script[string](b, widest))
				}
			}
		}
	}
}

// withinBox is whether the texts of the graph's boxes are cut off where the boxes end, and besideLink
// whether the keys of the state end before the link beside them.
const (
	withinBox = `[...document.querySelectorAll("#drawn .box")].every((box) => [...box.parentElement.querySelectorAll("text")].every((text) => {
		const clip = text.closest("svg");
		return getComputedStyle(clip).overflow === "hidden" && clip.x.baseVal.value + clip.width.baseVal.value <= box.x.baseVal.value + box.width.baseVal.value;
	}))`
	besideLink = `[...document.querySelectorAll("#values a.whole")].every((a) => [...a.parentElement.querySelector("summary .key").getClientRects()].every((r) => r.right <= a.getBoundingClientRect().left))`
)

// widest names the elements that stand out of the window, without those that scroll.
const widest = `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth && !e.closest(".framed, .drawing, .source, .scroll")).map((e) => e.tagName + "#" + e.id + "." + e.className + " " + Math.round(e.getBoundingClientRect().right) + " " + e.textContent.trim().slice(0, 20)).join("\n")`
