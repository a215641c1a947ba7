package ledger

import (
	"slices"
	"testing"
	"time"

	"obelus/host/schedule"
	"obelus/store"
	"obelus/store/memory"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// TestRead_NewestRun holds that the newest run is the one with the latest due time, however long ago
// that was and whatever was appended to since, and that no other context is taken for a run.
func TestRead_NewestRun(t *testing.T) {
	log := memory.New()
	dues := []string{"2024-02-29T02:00:00Z", "2025-12-31T23:00:00Z", "2026-11-25T02:00:00Z", "2026-11-26T02:00:00Z", "2026-11-26T03:59:00Z"}
	var names []string
	for _, due := range dues {
		names = append(names, schedule.RunName("a", at(due)))
	}
	names = append(names, "a-b-20270101T000000Z", "a-20261126T040000Z.1.1", "a", "ab-20270101T000000Z")
	slices.Reverse(names)
	for _, name := range names {
		_, err := log.Append(t.Context(), store.Batch{Context: name, Create: &store.Origin{}, Journal: []store.Entry{{Event: "plan", Data: "{}"}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	for now, want := range map[string]string{
		"2026-11-26T03:59:30Z": "2026-11-26T03:59:00Z",
		"2026-11-26T04:10:00Z": "2026-11-26T03:59:00Z",
		"2026-11-28T00:00:00Z": "2026-11-26T03:59:00Z",
		"2028-01-01T00:00:00Z": "2026-11-26T03:59:00Z",
	} {
		s, err := Read(t.Context(), log, "a", at(now))
		if err != nil || s.Run == nil || !s.Run.Due.Equal(at(want)) {
			t.Errorf("at %s: %+v, and not %s (%v)", now, s.Run, want, err)
		}
	}
	if s, err := Read(t.Context(), log, "c", at("2026-11-26T04:10:00Z")); err != nil || s.Run != nil {
		t.Errorf("%+v, %v", s.Run, err)
	}
}

// TestState_Conflict holds that of two that have read the same state, one alone records its
// decision.
func TestState_Conflict(t *testing.T) {
	log, now := memory.New(), at("2026-11-26T04:10:00Z")
	read := func() State {
		s, err := Read(t.Context(), log, "a", now)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second := read(), read()
	if ok, err := first.See(t.Context(), log, "a", "@daily", "", now); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := second.See(t.Context(), log, "a", "@daily", "", now); ok || err != nil {
		t.Error("both have recorded it", err)
	}
	third := read()
	skip := Skip{schedule.Skipped{From: now, Until: now.Add(time.Hour), Count: 2, Reason: schedule.Refused}, "why"}
	if ok, err := first.AddSkip(t.Context(), log, "a", skip); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := third.AddSkip(t.Context(), log, "a", skip); ok || err != nil {
		t.Error("both have recorded the skip", err)
	}
	s := read()
	if len(s.Skips) != 1 || s.Skips[0] != skip || s.Cron != "@daily" || !s.Since.Equal(now) || !s.Status().Known.Equal(skip.Until) {
		t.Errorf("%+v", s)
	}
}
