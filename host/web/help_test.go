package web

import (
	"slices"
	"strings"
	"testing"
)

// TestDoc_NamesAllRoutes holds that clients are told of every path and of what it can be asked by.
func TestDoc_NamesAllRoutes(t *testing.T) {
	lines := slices.Collect(strings.Lines(Doc()))
	for _, o := range operations() {
		i := slices.Index(lines, o.Route+"\n")
		if i < 0 {
			t.Errorf("%s is not told of", o.Route)
			continue
		}
		text, _, _ := strings.Cut(strings.Join(lines[i:], ""), "\n\n")
		for _, p := range o.parameters() {
			if p.In == "query" && !strings.Contains(text, "\n  ?"+p.Name+" ") {
				t.Errorf("of %s it is not told that it takes %s", o.Route, p.Name)
			}
		}
	}
	if text := Doc(); !strings.HasPrefix(text, "Requests and answers are JSON") || !strings.Contains(text, "\nEVENTS\n") || strings.Contains(text, "//") || strings.Contains(text, "SAFETY") {
		t.Errorf("the page is not what clients are to read:\n%s", text)
	}
}
