package web

import (
	"slices"
	"strings"
	"testing"
)

// TestDoc_NamesAllRoutes holds that clients are told of every path and of what it can be asked by.
func TestDoc_NamesAllRoutes(t *testing.T) {
	lines := slices.Collect(strings.Lines(Doc()))
	for _, route := range serve(t, work, nil, nil).server.table() {
		method, path, _ := strings.Cut(route.pattern, " ")
		i := slices.IndexFunc(lines, func(line string) bool {
			words := strings.Fields(strings.ReplaceAll(line, ",", " "))
			return slices.Contains(words, path) && words[0] == method
		})
		if i < 0 {
			t.Errorf("%s is not told of", route.pattern)
			continue
		}
		text := lines[i]
		for _, line := range lines[i+1:] { // the rest of its parameters
			if text += line; !strings.HasPrefix(strings.TrimSpace(line), "&") {
				break
			}
		}
		for _, name := range strings.Fields(route.query) {
			if route.query != anyQuery && !strings.Contains(text, " ?"+name+"=") && !strings.Contains(text, " &"+name+"=") {
				t.Errorf("of %s it is not told that it takes %s", route.pattern, name)
			}
		}
	}
	if text := Doc(); !strings.HasPrefix(text, "Requests and answers are JSON") || !strings.Contains(text, "\nEVENTS\n") || strings.Contains(text, "//") || strings.Contains(text, "SAFETY") {
		t.Errorf("the page is not what clients are to read:\n%s", text)
	}
}
