package web

import (
	_ "embed"
	"strings"
)

//go:embed doc.go
var source string

// Doc returns the part of this package's documentation for clients in any language: the requests
// and their answers, as text for a terminal.
func Doc() string { return docOf(operations()) }

// docOf returns the documentation with a list of operations.
func docOf(operations []operation) string {
	const first, list, behind = "// Requests and answers", "// [Doc] lists the requests.\n//\n", "//\n// # Safety"
	_, page, _ := strings.Cut(source, first)
	page, _, _ = strings.Cut(first+page, behind)
	before, after, _ := strings.Cut(page, list)
	return plainText(before) + help(operations) + plainText(after)
}

// plainText returns the text of a comment of Go.
func plainText(comment string) string {
	var b strings.Builder
	for line := range strings.Lines(comment) {
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimRight(line, "\n"), "//"), " ")
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			line = strings.ToUpper(heading)
		}
		b.WriteString(strings.ReplaceAll(line, "\t", "  ") + "\n")
	}
	return b.String()
}
