package duration_test

import (
	"encoding/json"
	"strings"
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

// TestParse_TooLong tells a duration that is too long from a text that is none.
func TestParse_TooLong(t *testing.T) {
	for _, text := range []string{"1000000d", "106752d", "2562048h", "99999999w", "1e9d", "106751d24h", "-200000d", "-0", strings.Repeat("9", 400) + "s"} {
		_, err := duration.Parse(text)
		if tooLong := err != nil && strings.HasSuffix(err.Error(), "is too long: at most 106751d"); err == nil || tooLong == (text == "1e9d" || text == "-0") {
			t.Errorf("%.20s: %v", text, err)
		}
	}
	if d, err := duration.Parse("106751d23h"); err != nil || d != 106751*24*time.Hour+23*time.Hour {
		t.Errorf("%v, %v", d, err)
	}
}
