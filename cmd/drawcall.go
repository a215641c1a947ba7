package cmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"obelus/engine/journal"
	"obelus/engine/plan"
)

// titled is a call's tool, and the instance that it is for.
func titled(tool, instance string) string { return printable(strings.TrimSpace(tool + " " + instance)) }

// barWidth is how many columns the time of all calls takes.
const barWidth = 24

// bars draw when each call ran, from where the first began to where the last
// ended.
func bars(records []journal.Record) []string {
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
		if end := began[i].Add(took(r)); end.After(last) {
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
		if end := min(at(began[i].Add(took(r))), barWidth); end > from {
			to, bar = end, strings.Repeat("█", end-from)
		}
		all[i] = strings.Repeat("·", from) + bar + strings.Repeat("·", barWidth-to)
	}
	return all
}

// took is how long a call took.
func took(r journal.Record) time.Duration {
	return time.Duration(r.Duration * float64(time.Millisecond))
}

// triedAgain says what has become of a call that failed and is tried again, before why.
func triedAgain(r journal.Record) string {
	text := fmt.Sprintf("attempt %d", r.Attempts)
	if r.MaxTries > 0 {
		text += fmt.Sprintf(" of %d", r.MaxTries)
	}
	text += " failed"
	if next, err := time.Parse(time.RFC3339, r.RetryAt); err == nil {
		if pause := time.Until(next); pause > 0 {
			text += ", the next in " + duration(pause)
		}
	}
	return text + ": "
}

// handled says of what a call failed that is done.
func handled(r journal.Record) string {
	message, _ := r.Handled["message"].(string)
	if r.Handled["code"] == journal.Rejected {
		return "rejected: " + firstLine(message)
	}
	return "failed: " + firstLine(message)
}

// describeArguments is what a held call is to be run with, on one line.
func describeArguments(h *journal.Hold) string {
	var parts []string
	for _, name := range sorted(h.Arguments) {
		parts = append(parts, name+"="+shown(h.Arguments[name]))
	}
	return strings.Join(parts, " ")
}

func sorted(v plan.Values) []string {
	var names []string
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
