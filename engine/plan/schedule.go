package plan

import (
	"fmt"
	"strings"
	"time"

	"obelus/engine/duration"
	"obelus/engine/expr"
	"obelus/store"
)

// Schedule is a call's _at or _in: the time at which it is ready, or the time that passes before it
// is.
type Schedule struct {
	Name string // _at or _in
	*expr.Template
}

// scheduleProperties are the meta-properties that give a call its time.
var scheduleProperties = []string{"_at", "_in"}

// parseSchedule reads a call's _at or _in; nil for a call with neither.
func parseSchedule(issued map[string]any) (*Schedule, error) {
	var s *Schedule
	for _, name := range scheduleProperties {
		v, given := issued[name]
		if !given {
			continue
		}
		if s != nil {
			return nil, Faultf(CodeSchema, "%s and %s: give one of them", s.Name, name)
		}
		text, _ := v.(string)
		if err := refuseEscaped(text); err != nil {
			return nil, Faultf(CodeSchema, "%s: %w", name, err)
		}
		t, err := expr.ParseTemplate(v, name)
		if err != nil {
			return nil, &Fault{CodeExpression, err}
		}
		s = &Schedule{name, t}
		if t.Expr == nil {
			if _, err := s.Due(v, time.Time{}); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// Due returns the time at which a call is due, by the value of its property. ready is when the
// calls that it depends on have settled. Its error is a [*Fault].
func (s *Schedule) Due(v any, ready time.Time) (time.Time, error) {
	if s.Name == "_in" {
		d, err := duration.Read(v)
		if err != nil {
			return ready, Faultf(CodeSchema, "_in: %w", err)
		}
		return ready.Add(d), nil
	}
	text, _ := v.(string)
	due, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return ready, Faultf(CodeSchema, "_at: expected a time such as 2026-01-31T09:00:00Z or 2026-01-31T10:00:00+01:00, found %s%s", store.EncodeJSON(v), meantTime(text))
	}
	return due, nil
}

// meantTime returns a hint to the time or the property that may be meant by a text that is no time.
func meantTime(text string) string {
	for _, layout := range []string{time.DateOnly, time.DateTime, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return fmt.Sprintf(" (did you mean %q?)", t.Format(time.RFC3339))
		}
	}
	if _, err := duration.Parse(text); err == nil {
		return " (did you mean _in?)"
	}
	return ""
}
