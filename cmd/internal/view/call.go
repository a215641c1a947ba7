// Package view draws results of the engine as text for people: calls, graphs, messages, problems
// and explanations.
package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"obelus/cmd/internal/human"
	"obelus/engine/duration"
	"obelus/engine/journal"
	"obelus/engine/plan"
)

// Title returns a call's tool, and its instance.
func Title(tool, instance string) string {
	return human.Printable(strings.TrimSpace(tool + " " + instance))
}

// barWidth is the number of columns for the time of all calls.
const barWidth = 24

// Bars returns a bar for each call that shows when it ran, from the start of the first call to the
// end of the last.
func Bars(records []journal.Record) []string {
	var first, last time.Time
	began := make([]time.Time, len(records))
	for i, r := range records {
		var err error
		if began[i], err = time.Parse(time.RFC3339, r.Started); err != nil {
			continue
		}
		if first.IsZero() || began[i].Before(first) {
			first = began[i]
		}
		if end := began[i].Add(Elapsed(r)); end.After(last) {
			last = end
		}
	}
	all := make([]string, len(records))
	span := max(last.Sub(first), 1)
	for i, r := range records {
		if began[i].IsZero() {
			continue
		}
		at := func(t time.Time) int { // a clock that was set back or forward may make it very large
			return int(float64(t.Sub(first)) / float64(span) * barWidth)
		}
		from := min(max(at(began[i]), 0), barWidth-1)
		to, bar := from+1, "▏"
		if end := min(at(began[i].Add(Elapsed(r))), barWidth); end > from {
			to, bar = end, strings.Repeat("█", end-from)
		}
		all[i] = strings.Repeat("·", from) + bar + strings.Repeat("·", barWidth-to)
	}
	return all
}

// Elapsed returns the duration of a call.
func Elapsed(r journal.Record) time.Duration {
	return time.Duration(r.Duration * float64(time.Millisecond))
}

// FailedAttempt returns the beginning of a line about a call that failed and is retried; the reason
// follows it.
func FailedAttempt(r journal.Record) string {
	text := fmt.Sprintf("attempt %d", r.Attempts)
	if r.MaxTries > 0 {
		text += fmt.Sprintf(" of %d", r.MaxTries)
	}
	text += " failed"
	if next, err := time.Parse(time.RFC3339, r.RetryAt); err == nil {
		if pause := time.Until(next); pause > 0 {
			text += ", the next in " + human.Duration(pause)
		}
	}
	return text + ": "
}

// Until returns the time for which a call waits, as in "until 2026-01-31T09:00:00Z, in 3 days", and
// which attempt it waits for; empty for a call that waits for no time.
func Until(r journal.Record) string {
	due, ok := r.WaitsUntil()
	if !ok {
		return ""
	}
	text := "until " + due.Format(time.RFC3339)
	switch left := time.Until(due); {
	case left <= 0:
	case left >= 2*duration.Day:
		text += fmt.Sprintf(", in %d days", left.Round(duration.Day)/duration.Day)
	default:
		text += ", in " + human.Duration(left)
	}
	if r.Rests {
		text += fmt.Sprintf(", for attempt %d of %d", r.Attempts+1, r.MaxTries)
	}
	return text
}

// HandledFailure returns the failure of a call that is done because its failure was handled.
func HandledFailure(r journal.Record) string { return human.FirstLine(r.HandledText()) }

// Arguments returns the arguments of a held call on one line.
func Arguments(h *journal.Hold) string {
	var parts []string
	for _, name := range SortedNames(h.Arguments) {
		parts = append(parts, name+"="+human.JSON(h.Arguments[name]))
	}
	return strings.Join(parts, " ")
}

// SortedNames returns the names of values, sorted.
func SortedNames(v plan.Values) []string {
	var names []string
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
