package supervise

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"testing"
	"time"

	"obelus/engine/journal"
	"obelus/store"
	"obelus/store/memory"
)

// unreadable is a log whose journal can't be read as often as it says.
type unreadable struct {
	store.Log
	times int
}

func (l *unreadable) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	if l.times--; l.times >= 0 {
		return func(yield func(store.Entry, error) bool) { yield(store.Entry{}, errors.New("the disk fails")) }
	}
	return l.Log.Journal(ctx, f)
}

// TestWatcher_UnreadableAtFirst: what was in the journal before is no news, also where it could not
// be read then.
func TestWatcher_UnreadableAtFirst(t *testing.T) {
	log := &unreadable{Log: memory.New(), times: 2}
	appendNote := func() {
		t.Helper()
		_, err := log.Append(t.Context(), store.Batch{Context: "a", ExpectSeq: store.AnySeq, Create: &store.Origin{}, Journal: []store.Entry{{Event: "note"}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	appendNote()
	logger := slog.New(slog.DiscardHandler)
	read := &reader{ctx: t.Context(), log: &notifyingLog{Log: log, own: newOwnAppends()}, logger: logger}
	w := &watcher{reader: read, subscribers: newSubscribers(), runs: newRunTable(logger), seen: unread}
	news, leave := w.subscribers.subscribe("a")
	defer leave()
	for range 2 {
		if w.readNews() == nil {
			t.Error("an error of the log is not told")
		}
	}
	if err := w.readNews(); err != nil || len(news) != 0 {
		t.Errorf("%d tokens, %v", len(news), err)
	}
	appendNote()
	if err := w.readNews(); err != nil || len(news) != 1 {
		t.Errorf("%d tokens after an append, %v", len(news), err)
	}
}

// TestOrphans_ScansDoNotCatchUp: the run of a process that has died is adopted after a number of
// scans, and not after a time: a process that was suspended scans once for the scans that it has
// missed.
func TestOrphans_ScansDoNotCatchUp(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	log := &notifyingLog{Log: memory.New(), own: newOwnAppends()}
	o := newOrphans(&reader{ctx: t.Context(), log: log, logger: logger}, newRunTable(logger), time.Second)
	isDue := func() (due bool) {
		t.Helper()
		if err := o.scan(); err != nil {
			t.Fatal(err)
		}
		for range log.Contexts(t.Context(), store.ContextFilter{Due: time.Now()}) {
			due = true
		}
		return due
	}
	if isDue() {
		t.Error("an empty log has something due")
	}
	// There is nothing to adopt in it, so that it is due until it is looked at.
	_, err := log.Append(t.Context(), store.Batch{Context: "a", Create: &store.Origin{}, Standing: &store.Standing{Status: string(journal.RunRunning), Due: time.Now().Add(-time.Hour)}})
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < pollsPerScan; n++ {
		if !isDue() {
			t.Fatalf("it was looked at after %d scans", n)
		}
	}
	if isDue() {
		t.Errorf("it was not looked at after %d scans", pollsPerScan)
	}
}
