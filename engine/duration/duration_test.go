package duration_test

import (
	"encoding/json"
	"testing"
	"time"

	"obelus/engine/duration"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5s": 5 * time.Second, "1h30m": 90 * time.Minute, "3d": 72 * time.Hour, "2w": 14 * 24 * time.Hour, "1.5d": 36 * time.Hour,
		"1w2d3h": (7*24 + 2*24 + 3) * time.Hour, "250ms": 250 * time.Millisecond, "-1d": -24 * time.Hour, "0": 0, "0d": 0, "10µs1d": 24*time.Hour + 10*time.Microsecond,
	} {
		if got, err := duration.Parse(text); err != nil || got != want {
			t.Errorf("%s is read as %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-", "d", "3", "3 d", "d3", "3days", "1d1", "1..d", "soon", "1d-1d", "200000d", "100w106751d", "1e3d"} {
		if got, err := duration.Parse(text); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		given any
		want  time.Duration
	}{{json.Number("2.5"), 2500 * time.Millisecond}, {json.Number("0"), 0}, {"3d", 72 * time.Hour}} {
		if got, err := duration.Read(c.given); err != nil || got != c.want {
			t.Errorf("%v is read as %s, %v", c.given, got, err)
		}
	}
	for _, given := range []any{json.Number("-1"), json.Number("1e12"), "-5s", "soon", true, nil, []any{"5s"}} {
		if got, err := duration.Read(given); err == nil {
			t.Errorf("%v is read as %s", given, got)
		}
	}
}
