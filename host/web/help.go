package web

import (
	_ "embed"
	"strings"
)

//go:embed doc.go
var source string

// Doc returns the part of this package's documentation for clients in any language: the requests
// and their answers, as text for a terminal.
func Doc() string {
	const first, behind = "// Requests and answers", "//\n// # Safety"
	_, page, _ := strings.Cut(source, first)
	page, _, _ = strings.Cut(first+page, behind)
	var b strings.Builder
	for line := range strings.Lines(page) {
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimRight(line, "\n"), "//"), " ")
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			line = strings.ToUpper(heading)
		}
		b.WriteString(strings.ReplaceAll(line, "\t", "  ") + "\n")
	}
	return b.String()
}
