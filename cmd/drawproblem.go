package cmd

import (
	"fmt"
	"strings"

	"obelus/engine/plan"
)

// problemLine is a problem for people, on one line as far as its message is.
func problemLine(p plan.Problem) string {
	where, what, _ := strings.Cut(p.Error(), p.Message)
	lines := strings.Split(fmt.Sprintf("%s%s: %s%s [%s]", where, p.Severity, firstLine(p.Message), what, p.Code)+restLines(p.Message), "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return strings.Join(lines, "\n")
}

func restLines(text string) string {
	_, rest, ok := strings.Cut(text, "\n")
	if !ok {
		return ""
	}
	return "\n" + rest
}
