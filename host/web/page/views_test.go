package page_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"obelus/engine/journal"
)

// views are addresses of each view, in the project of [filled].
var views = []string{
	"/runs", "/runs?status=failed", "/runs/order-1", "/runs/order-1?sel=1.2", "/runs/order-1?tab=timeline", "/runs/order-1?tab=calls&sel=1.3", "/runs/order-1?tab=log",
	"/runs/order-2?tab=state&why=state.letter", "/runs/order-2?at=3&tab=state", "/runs/order-2?tab=output", "/runs/order-2/rerun?from=1.2", "/runs/many", "/diff?a=order-2&a_at=3&b=order-2",
	"/runs?waiting=state.answer", "/runs/order-1?tab=timeline&group=tool", "/runs/order-1?sel=1.3&follow=up",
	"/inbox", "/plans", "/plans/order.lua?from=order-2", "/scripts", "/keys", "/login", "/nothing",
}

// filled serves a project in which runs are done, have failed, wait and are held.
func filled(t testing.TB) *site {
	s := serve(t, shop, nil)
	s.run("order-1", "plans/order.lua", `{"amount":80}`)
	s.run("order-2", "plans/order.lua", `{"amount":20,"to":{"name":"Ada"}}`)
	s.run("waits", "plans/wait.lua", "")
	s.run("refund-1", "plans/refund.lua", "")
	s.run("many", "plans/many.lua", "")
	return s
}

// TestBrowser_Views opens each view, light and dark, wide and narrow: nothing is wider than the
// window, and the browser has nothing to say about it.
func TestBrowser_Views(t *testing.T) {
	s := filled(t)
	b := open(t, s, "/runs")
	b.accept("404") // of the view that is not there, and the status of a failed load
	folder := os.Getenv("ARTIFACTS")
	for _, view := range views {
		for _, look := range []struct {
			name   string
			width  int64
			height int64
		}{{"light", 1280, 800}, {"dark", 1280, 800}, {"narrow", 360, 740}, {"zoomed", 640, 400}} { // at 200 % a window has half the pixels
			b.theme(cond(look.name == "dark", "dark", "light"))
			b.viewport(look.width, look.height)
			b.navigate(s.http.URL + view)
			b.await(`document.documentElement.classList.contains("js")`)
			if wide := script[int64](b, `document.documentElement.scrollWidth`); wide > look.width {
				t.Errorf("%s is %d pixels wide in a window of %d", view, wide, look.width)
			}
			if *pictures && folder != "" {
				b.shot(filepath.Join(folder, strings.NewReplacer("/", "_", "?", "_", "&", "_", "=", "-").Replace(view)+"-"+look.name+".png"))
			}
		}
	}
}

func cond(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// TestBrowser_Live follows a run that goes on elsewhere: the list, the badge, the graph and the
// page's title change by themselves, and what a person has opened, typed or picked stays.
func TestBrowser_Live(t *testing.T) {
	s := serve(t, shop, nil)
	b := open(t, s, "/runs")
	b.says("Nothing has run here yet")
	b.await(`document.querySelector("#live").dataset.state === "live"`)
	b.fill("q", "half typed")
	b.do(focus(`[name="q"]`))
	s.run("order-1", "plans/order.lua", `{"amount":80}`)
	b.says("order-1")
	s.run("refund-1", "plans/refund.lua", "")
	b.await(`document.title.startsWith("(1) ")`)
	if typed := script[string](b, `document.querySelector("[name=q]").value + " " + document.activeElement.name`); typed != "half typed q" {
		t.Errorf("what was typed is lost: %q", typed)
	}
	b.navigate(s.http.URL + "/runs/order-1")
	b.says("card was refused")
	b.await(`document.querySelector("#live").dataset.state === "live"`)
	b.press("Append input…")
	b.fill("value", "half typed")
	s.api(http.MethodPost, "/v1/contexts/order-1/resume", `{"result":{"1.2":{"paid":80}}}`)
	s.await("order-1", journal.RunDone)
	b.await(`document.querySelector("#node-3").textContent.includes("✓")`)
	b.await(`document.querySelector("#node-3").namespaceURI.endsWith("svg") && document.querySelector("#node-3").getBoundingClientRect().width > 50`)
	b.says("done")
	if typed := script[string](b, `document.querySelector("[name=value]")?.value ?? "gone"`); typed != "half typed" {
		t.Errorf("what was typed is lost: %q", typed)
	}
}

// TestBrowser_Hover holds that no row moves under the pointer, however many come meanwhile, and that
// the list is as it should be once the pointer has gone.
func TestBrowser_Hover(t *testing.T) {
	s := serve(t, shop, nil)
	for i := range 110 {
		s.run(fmt.Sprintf("old-%d", i), "plans/echo.json", `{}`)
	}
	b := open(t, s, "/runs")
	b.await(`document.querySelector("#live").dataset.state === "live"`)
	script[bool](b, `(() => {
		const match = window.matchMedia;
		window.matchMedia = (q) => q === "(hover: hover)" ? { matches: true } : match.call(window, q);
		const list = document.querySelector("#rows"), matches = list.matches;
		window.over = true;
		list.matches = (q) => q === ":hover" ? window.over : matches.call(list, q);
		list.dataset.mine = "yes";
		return true;
	})()`)
	first := script[string](b, `document.querySelector("#rows").firstElementChild.id`)
	for i := range 130 {
		s.run(fmt.Sprintf("new-%d", i), "plans/echo.json", `{}`)
	}
	b.await(`document.querySelector("#counts").innerText.includes("240")`)
	if now := script[string](b, `document.querySelector("#rows").dataset.mine + document.querySelector("#rows").firstElementChild.id`); now != "yes"+first {
		t.Errorf("the first row was %s, and is %s", first, now)
	}
	script[bool](b, `(window.over = false, document.querySelector("#rows").dispatchEvent(new MouseEvent("mouseleave")), true)`)
	b.await(`document.querySelector("#rows").dataset.mine === "yes" && document.querySelector("#rows").firstElementChild.id === "run-new-129" && document.querySelector("#rows").children.length === 100`)
}

// TestBrowser_Focus keeps the focus where it is while a page changes, and the mark of a line.
func TestBrowser_Focus(t *testing.T) {
	s := serve(t, shop, nil)
	s.run("order-1", "plans/order.lua", `{"amount":80}`)
	b := open(t, s, "/runs/order-1")
	b.await(`document.querySelector("#live").dataset.state === "live"`)
	b.do(focus("#append summary"))
	s.api(http.MethodPost, "/v1/contexts/order-1/resume", `{"result":{"1.2":{"paid":80}}}`)
	b.says("done")
	b.await(`document.activeElement.matches("#append summary")`)
	b.navigate(s.http.URL + "/runs/order-1?sel=1.1")
	b.press("activities/shop.lua")
	b.await(`document.querySelector("#L3 a")`)
	script[bool](b, `(document.querySelector("main").dataset.mine = "yes", document.querySelector("#L3 a").click(), true)`)
	b.await(`document.querySelector("main").dataset.mine === "yes" && document.querySelector("#L3:target")`)
}

// TestBrowser_Restart kills the server and starts it again: the page says so, comes back by itself,
// and misses nothing.
func TestBrowser_Restart(t *testing.T) {
	s := serve(t, shop, nil)
	front := newFront(t, s)
	behind := *s
	s.http = front.server
	s.run("order-1", "plans/order.lua", `{"amount":20}`)
	b := open(t, s, "/runs")
	b.accept("ERR_")
	b.accept("502")
	b.await(`document.querySelector("#live").dataset.state === "live"`)
	front.down()
	b.says("not connected")
	behind.run("order-2", "plans/order.lua", `{"amount":20}`)
	front.up()
	b.await(`document.querySelector("#live").dataset.state === "live"`)
	b.says("order-2")
}

// TestBrowser_Keys does everything with keys alone: it starts a run, goes through time, asks why, and
// decides about what is held.
func TestBrowser_Keys(t *testing.T) {
	s := filled(t)
	b := open(t, s, "/runs")
	b.keys("?")
	b.says("They rest while you type")
	b.keys("gr")
	b.await(`location.pathname === "/runs"`)
	b.keys("/")
	b.await(`document.activeElement.name === "q"`)
	b.fill("q", "order-2") // the key's own character is typed by the driver alone
	b.keys("\r")
	b.await(`location.search.includes("q=order-2")`)
	b.keys("j\r")
	b.await(`location.pathname === "/runs/order-2"`)
	b.says("1.1 judge")
	b.keys("[[")
	b.await(`location.search.includes("at=") && document.querySelector("#time").classList.contains("past")`)
	b.keys("l")
	b.await(`!location.search.includes("at=")`)
	b.keys("gi")
	b.says("refund-1")
	b.keys("ja")
	b.await(`document.activeElement.dataset.decide === "approve"`)
	b.keys("\r")
	s.await("refund-1", journal.RunDone)
	b.says("Nothing waits for a person")
	b.navigate(s.http.URL + "/runs/order-2?tab=state")
	b.do(focus(`a.value[href*="state.letter"]`))
	b.keys("w")
	b.says("why †state.letter")
	b.says("set by 1.3 letter")
	b.keys("gp")
	b.press("plans/order.lua")
	b.await(`location.pathname === "/plans/order.lua"`)
	b.do(focus(`[name="value:amount"]`))
	b.keys("7\r")
	b.await(`location.pathname.startsWith("/runs/")`)
	b.says("done")
	b.says("1.3 letter")
}

// TestBrowser_Slider drags the slider: the state is that of each moment, the address says which, and
// Back leads where it came from.
func TestBrowser_Slider(t *testing.T) {
	s := filled(t)
	b := open(t, s, "/runs/order-2?tab=state")
	b.says("letter")
	script[bool](b, `(() => { const s = document.querySelector("#slider"); s.focus(); s.value = 2; s.dispatchEvent(new Event("input", { bubbles: true })); return true })()`)
	b.await(`location.search.includes("at=2") && document.querySelector("#time").classList.contains("past") && !document.querySelector("#values").innerText.includes("letter")`)
	b.await(`document.activeElement.id === "slider"`)
	b.keys("]")
	b.await(`location.search.includes("at=3")`)
	b.press("back to now")
	b.says("letter")
	b.await(`!location.search.includes("at=")`)
	b.press("Log 6")
	b.await(`location.search.includes("tab=log")`)
	b.do(back())
	b.await(`location.search.includes("tab=state") && document.querySelector("#values")`)
}

// TestBrowser_NoScripts starts, corrects and decides with scripts off.
func TestBrowser_NoScripts(t *testing.T) {
	s := filled(t)
	b := open(t, s, "/runs")
	b.accept("422") // of the form that is refused
	b.do(scriptsOff())
	b.navigate(s.http.URL + "/plans/order.lua")
	b.do(typed(`[name="value:amount"]`, "-1\r"))
	b.says("at least 0")
	b.do(typed(`[name="value:amount"]`, "9\r"))
	b.await(`location.pathname.startsWith("/runs/")`)
	s.await(strings.TrimPrefix(b.path(), "/runs/"), journal.RunDone, journal.RunWaiting)
	b.navigate(s.http.URL + b.path() + "?tab=log")
	b.says("paid 9")
	b.navigate(s.http.URL + "/runs/order-2?tab=state")
	b.do(clicked(`a.value[href*="state.letter"]`))
	b.says("set by 1.3 letter")
	b.navigate(s.http.URL + "/inbox")
	b.do(clicked(`button[data-decide="approve"]`))
	s.await("refund-1", journal.RunDone)
}

// receipts is a project whose names are as long as those of many projects.
var receipts = map[string]string{
	"activities/a.lua": `Activity.register("requestReceiptOfPayment", function(call) return { total = call.amountThatWasPaidByTheCustomer } end)`,
	"plans/a.lua":      `return { calls = { { _tool = "requestReceiptOfPayment", amountThatWasPaidByTheCustomer = 12, _outputPath = "†state.customers.receipts.newest.payment.document" } } }`,
}

// TestBrowser_Panel holds that the values at the side of a run have room beside or below their names.
func TestBrowser_Panel(t *testing.T) {
	s := serve(t, receipts, nil)
	s.run("a", "plans/a.lua", "")
	b := open(t, s, "/runs/a?sel=1.1")
	for _, width := range []int64{400, 1280} {
		b.viewport(width, 800)
		if narrow := script[[]string](b, `[...document.querySelectorAll("#panel dd")].filter((e) => e.clientWidth < 0.55 * e.parentElement.clientWidth).map((e) => e.parentElement.textContent)`); len(narrow) > 0 {
			t.Errorf("in a window of %d pixels there is no room for the values of %q", width, narrow)
		}
		if wrote := script[float64](b, `(() => { const e = [...document.querySelectorAll("#panel dd")].at(-1); return e.clientWidth / e.parentElement.clientWidth })()`); wrote < 1 {
			t.Errorf("in a window of %d pixels what the call wrote has %.2f of the width", width, wrote)
		}
	}
}

// TestBrowser_Timeline holds that the names of calls are whole, and beside or above their bars.
func TestBrowser_Timeline(t *testing.T) {
	s := serve(t, receipts, nil)
	s.run("a", "plans/a.lua", "")
	b := open(t, s, "/runs/a?tab=timeline&group=tool")
	for _, width := range []int64{400, 1280} {
		b.viewport(width, 800)
		if cut := script[[]string](b, `[...document.querySelectorAll(".bars li a")].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent)`); len(cut) > 0 {
			t.Errorf("in a window of %d pixels the names of %q are cut", width, cut)
		}
		if over := script[bool](b, `(() => {
			const text = document.createRange(), bar = document.querySelector(".bars rect").getBoundingClientRect();
			text.selectNode(document.querySelector(".bars li a").firstChild);
			const name = text.getBoundingClientRect();
			return name.bottom > bar.top && name.right > bar.left;
		})()`); over {
			t.Errorf("in a window of %d pixels a name is over its bar", width)
		}
	}
}
