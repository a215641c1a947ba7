package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"obelus/cmd/internal/human"
	"obelus/engine/journal"
	"obelus/engine/plan"
)

// Title is a call's tool, and the instance that it is for.
func Title(tool, instance string) string {
	return human.Printable(strings.TrimSpace(tool + " " + instance))
}

// barWidth is how many columns the time of all calls takes.
const barWidth = 24

// Bars draw when each call ran, from where the first began to where the last
// ended.
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
		if end := began[i].Add(Took(r)); end.After(last) {
			last = end
		}
	}
	all := make([]string, len(records))
	span := max(last.Sub(first), 1)
	for i, r := range records {
		if began[i].IsZero() {
			continue
		}
		at := func(t time.Time) int { // the clock may have been set by years meanwhile
			return int(float64(t.Sub(first)) / float64(span) * barWidth)
		}
		from := min(max(at(began[i]), 0), barWidth-1)
		to, bar := from+1, "▏"
		if end := min(at(began[i].Add(Took(r))), barWidth); end > from {
			to, bar = end, strings.Repeat("█", end-from)
		}
		all[i] = strings.Repeat("·", from) + bar + strings.Repeat("·", barWidth-to)
	}
	return all
}

// Took is how long a call took.
func Took(r journal.Record) time.Duration {
	return time.Duration(r.Duration * float64(time.Millisecond))
}

// FailedAttempt says what has become of a call that failed and is tried again, before why.
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

// Handled says of what a call failed that is done.
func Handled(r journal.Record) string {
	message, _ := r.Handled["message"].(string)
	if r.Handled["code"] == journal.Rejected {
		return "rejected: " + human.FirstLine(message)
	}
	return "failed: " + human.FirstLine(message)
}

// Arguments is what a held call is to be run with, on one line.
func Arguments(h *journal.Hold) string {
	var parts []string
	for _, name := range SortedNames(h.Arguments) {
		parts = append(parts, name+"="+human.JSON(h.Arguments[name]))
	}
	return strings.Join(parts, " ")
}

func SortedNames(v plan.Values) []string {
	var names []string
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
