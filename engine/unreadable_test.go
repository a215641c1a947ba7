package engine_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/replay"
	"obelus/store"
	"obelus/store/memory"
)

// failsOnce is a log of which one read fails, the first with the number 1.
type failsOnce struct {
	store.Log
	reads, fails int
}

var errUnreadable = errors.New("the disk fails")

func (l *failsOnce) fail() bool {
	l.reads++
	return l.reads == l.fails
}

func (l *failsOnce) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	if l.fail() {
		return func(yield func(store.Entry, error) bool) { yield(store.Entry{}, errUnreadable) }
	}
	return l.Log.Journal(ctx, f)
}

func (l *failsOnce) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	if l.fail() {
		return func(yield func(*store.Message, error) bool) { yield(nil, errUnreadable) }
	}
	return l.Log.Messages(ctx, f)
}

// TestReplay_UnreadableLog: whichever read of the log fails, a replay ends with its error, or comes
// to what it comes to otherwise, and never tells of differences that are not there.
func TestReplay_UnreadableLog(t *testing.T) {
	log := memory.New()
	r, _, mend := forked(t, log, `[
		{"_tool": "flaky", "value": 1, "_outputPath": "†state.a"},
		{"_tool": "value", "value": "†state.a || 0", "_outputPath": "†state.b"},
		{"_tool": "value", "value": "†state.b", "_outputPath": "†state.c"}]`)
	mend()
	outcome, err := r.Resume(t.Context(), engine.Resume{Context: "f", From: "1.1", Set: map[string]any{"value": 7}})
	if err != nil || outcome.Status != journal.RunDone {
		t.Fatal(outcome, err)
	}
	told := 0
	for n := 1; ; n++ {
		broken := &failsOnce{Log: log, fails: n}
		runner := *r
		runner.Log = broken
		replayed, err := replay.Run(t.Context(), &runner, "f", nil)
		switch {
		case err != nil:
			told++
		case len(replayed.Differences) > 0:
			t.Errorf("read %d failed, and it tells of %+v", n, replayed.Differences)
		}
		if broken.reads < n {
			break
		}
	}
	if told < 3 {
		t.Errorf("only %d errors were told", told)
	}
}
