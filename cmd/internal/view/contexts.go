package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"obelus/cmd/internal/human"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/store"
)

// CallCounts describes the calls of a context's newest tick: "2/5, 1 held".
func CallCounts(s *history.Summary) string {
	if s.Calls+s.Held == 0 {
		return ""
	}
	text := fmt.Sprintf("%d/%d", s.Done, s.Calls)
	if s.Held > 0 {
		text += fmt.Sprintf(", %d held", s.Held)
	}
	if s.Background > 0 {
		text += fmt.Sprintf(", %d in background", s.Background)
	}
	return text
}

// ContextCounts describes how many contexts there are by status, of those statuses that are asked
// for, or of all: "3 contexts: 2 done, 1 failed".
func ContextCounts(counts map[journal.RunStatus]int64, asked []journal.RunStatus) (total int64, text string) {
	var parts []string
	for _, status := range append(journal.RunStatuses(), "") {
		n := counts[status]
		if n == 0 || len(asked) > 0 && !slices.Contains(asked, status) {
			continue
		}
		total += n
		word := string(status)
		if word == "" {
			word = "without a run"
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, word))
	}
	return total, human.Count(int(total), "context") + ": " + strings.Join(parts, ", ")
}

// Started returns when the newest run of a context began; empty where that is not known.
func Started(info store.ContextInfo) string {
	if info.Standing.Started.IsZero() {
		return ""
	}
	return human.Time(info.Standing.Started)
}

// Worked returns for how long the newest run of a context has been at work; empty where that is not
// known.
func Worked(s *history.Summary) string {
	if s.Started == "" {
		return ""
	}
	return human.Duration(time.Duration(s.Duration * float64(time.Millisecond)))
}
