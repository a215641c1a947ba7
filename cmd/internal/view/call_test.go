package view

import (
	"strings"
	"testing"
	"time"

	"obelus/engine/journal"
	"obelus/engine/plan"
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

// TestCallRow_Rest: a call that rests between two attempts says why the last one failed and when the
// next one is, whether its run waits for that or has ended.
func TestCallRow_Rest(t *testing.T) {
	next := time.Now().Add(time.Hour + 500*time.Millisecond)
	r := journal.Record{
		Call: "1.1", Tool: "fetch", Status: journal.Waiting, Attempts: 2, MaxTries: 4, Failures: 2,
		Rests: true, RetryAt: next.UTC().Format(time.RFC3339Nano), Error: plan.Values{"message": "down"},
	}
	for _, status := range []journal.Status{journal.Waiting, journal.Running} {
		r.Status = status
		row := strings.Join(CallRow(r, false), " | ")
		if want := "1.1 | fetch | " + string(status) + " | 2 | - | attempt 2 of 4 failed, the next in 1h0m0s"; !strings.HasPrefix(row, want) || !strings.HasSuffix(row, ": down") {
			t.Errorf("the row is %q", row)
		}
	}
	r.Status = journal.Waiting
	if got := Until(r); !strings.HasPrefix(got, "until "+next.UTC().Format("2006-01-02T15:04")) || !strings.HasSuffix(got, ", for attempt 3 of 4") {
		t.Errorf("it waits %q", got)
	}
	r.Rests = false
	if got := Until(r); got != "" {
		t.Errorf("one that waits for no time waits %q", got)
	}
}
