package view

import (
	"testing"

	"obelus/engine/journal"
)

// TestBars_ClockSet holds that calls are drawn where they ran, however far a clock was set between.
func TestBars_ClockSet(t *testing.T) {
	for _, test := range []struct {
		records []journal.Record
		want    []string
	}{
		{[]journal.Record{{Started: "2026-01-01T00:00:00Z", Duration: 12000}, {Started: "2026-01-01T00:00:12Z", Duration: 12000}, {}},
			[]string{"████████████············", "············████████████", ""}},
		{[]journal.Record{{Started: "1980-01-01T00:00:00Z", Duration: 1}, {Started: "2026-01-01T00:00:00Z", Duration: 1}},
			[]string{"▏·······················", "·······················█"}},
		{[]journal.Record{{Started: "0001-01-01T00:00:00Z", Duration: 1}, {Started: "9999-01-01T00:00:00Z", Duration: -5}, {Started: "2026-01-01T00:00:00Z"}}, nil},
	} {
		got := Bars(test.records)
		for i, want := range test.want {
			if got[i] != want {
				t.Errorf("call %d of %v is drawn as %q, not %q", i, test.records, got[i], want)
			}
		}
	}
}
