package page_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestBrowser_Axe has axe-core look at each view, light and dark: it finds nothing serious.
func TestBrowser_Axe(t *testing.T) {
	file := filepath.Join(os.Getenv("OBELUS_NPM"), "node_modules", "axe-core", "axe.min.js")
	axe, err := os.ReadFile(file)
	if err != nil {
		t.Skip("skipped: OBELUS_NPM names no folder in which .ci/npm has put axe-core")
	}
	s := filled(t)
	b := open(t, s, "/runs")
	b.accept("404") // of the view that is not there
	for _, view := range views {
		for _, theme := range []string{"light", "dark"} {
			b.theme(theme)
			b.navigate(s.http.URL + view)
			b.await(`document.documentElement.classList.contains("js")`)
			for _, menu := range []bool{false, true} {
				if menu {
					script[bool](b, `document.querySelectorAll("details").forEach((d) => { d.open = true }), true`)
				}
				script[chromedp.Void](b, string(axe))
				found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](`axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations
					.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html + " " + n.failureSummary).join(" | ")))`, chromedp.EvalAwaitPromise))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range found {
					t.Errorf("%s, %s: %s", view, theme, strings.Join(strings.Fields(f), " "))
				}
			}
		}
	}
}
