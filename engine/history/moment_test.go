package history

import (
	"testing"
	"time"
)

// TestReadMoment_LocalZone: a time without a zone is that of the machine, as times are shown.
func TestReadMoment_LocalZone(t *testing.T) {
	here := time.Local
	defer func() { time.Local = here }()
	time.Local = time.FixedZone("", 9*60*60)
	for text, want := range map[string]string{
		"2026-01-31": "2026-01-30T15:00:00Z", "2026-01-31 12:00:00": "2026-01-31T03:00:00Z",
		"2026-01-31T12:00:00Z": "2026-01-31T12:00:00Z", "2026-01-31T12:00:00+02:00": "2026-01-31T10:00:00Z",
	} {
		if got, ok := ReadMoment(text); !ok || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%s is %s, not %s", text, got.UTC(), want)
		}
	}
}
