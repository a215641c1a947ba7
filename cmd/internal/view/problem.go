package view

import (
	"fmt"
	"strings"

	"obelus/cmd/internal/human"
	"obelus/engine/plan"
)

// Problem returns a problem for people, on one line if its message has one line.
func Problem(p plan.Problem) string {
	where, what, _ := strings.Cut(p.Error(), p.Message)
	lines := strings.Split(fmt.Sprintf("%s%s: %s%s [%s]", where, p.Severity, human.FirstLine(p.Message), what, p.Code)+restLines(p.Message), "\n")
	for i, line := range lines {
		lines[i] = human.Printable(line)
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
