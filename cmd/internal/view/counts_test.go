package view

import (
	"testing"

	"obelus/engine/journal"
)

func TestCounts(t *testing.T) {
	of := func(tick int, statuses ...journal.Status) (records []journal.Record) {
		for _, s := range statuses {
			records = append(records, journal.Record{Tick: tick, Status: s})
		}
		return records
	}
	rejected := journal.Record{Tick: 2, Status: journal.Failed, Error: map[string]any{"code": journal.Rejected}}
	for _, test := range []struct {
		records []journal.Record
		want    string
	}{
		{nil, "0 calls"},
		{of(1, journal.Failed), "0 calls"}, // of an earlier run
		{of(2, journal.Done), "1 call done"},
		{append(of(2, journal.Waiting, journal.Waiting), of(1, journal.Done)...), "2 calls waiting"},
		{append(of(2, journal.Failed, journal.Skipped, journal.Done), append(of(3, journal.Done), rejected)...), "5 calls: 2 done, 1 rejected, 1 failed, 1 skipped"},
	} {
		if got := Counts(test.records, 2); got != test.want {
			t.Errorf("%q, not %q", got, test.want)
		}
	}
}
