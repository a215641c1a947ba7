package view

import (
	"fmt"
	"strings"

	"obelus/cmd/internal/human"
	"obelus/engine/journal"
	"obelus/engine/numeral"
)

// Counts returns how many calls of a tick and of later ones ended how: "3 calls done", or "5 calls:
// 3 done, 1 failed, 1 skipped".
func Counts(records []journal.Record, tick int) string {
	all, by := 0, map[string]int{}
	for _, r := range records {
		if r.Tick >= tick {
			all++
			by[r.Outcome()]++
		}
	}
	calls := human.Count(all, "call")
	var parts []string
	for _, outcome := range append([]string{string(journal.Done)}, journal.Outcomes()...) {
		n := by[outcome]
		switch {
		case n == all && all > 0:
			return calls + " " + outcome
		case n > 0:
			parts = append(parts, fmt.Sprintf("%s %s", numeral.Thousands(int64(n)), outcome))
			delete(by, outcome)
		}
	}
	if len(parts) == 0 {
		return calls
	}
	return calls + ": " + strings.Join(parts, ", ")
}
