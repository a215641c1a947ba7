package cli

import (
	"strconv"
	"strings"
	"time"

	"obelus/cmd/internal/exit"
	"obelus/engine/duration"
	"obelus/store"
)

// ReadTime reads the value of a flag for a time. The zero time is no limit.
func ReadTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, ok := ReadPast(text); ok {
		return t, nil
	}
	return time.Time{}, exit.Usagef("--%s %s: expected a time such as 2026-01-31T12:00:00Z, or a span such as 90s or 7d", flag, text)
}

// ReadLabels reads the values of --label.
func ReadLabels(list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	labels := make(map[string]string, len(list))
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if _, twice := labels[name]; !ok || twice {
			return nil, exit.Usagef("--label %s: expected NAME=VALUE, each name once", text)
		}
		labels[name] = value
	}
	if err := store.CheckLabels(labels); err != nil {
		return nil, exit.Usagef("--label: %s", err)
	}
	return labels, nil
}

// maxDays bounds a number of days: a calendar goes no further back.
const maxDays = 700_000

// ReadPast reads a time: a span before now, which may be in days, or a date, which without a zone
// is in the machine's, as times are shown. ok is false if it is neither.
func ReadPast(text string) (time.Time, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= maxDays {
			return time.Now().AddDate(0, 0, -n), true
		}
	}
	if span, err := duration.Parse(text); err == nil && span >= 0 {
		return time.Now().Add(-span), true
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
