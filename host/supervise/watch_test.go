package supervise

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"time"

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

// TestOrphans_ScansDoNotCatchUp: a process that was suspended scans once for the scans that it has
// missed.
func TestOrphans_ScansDoNotCatchUp(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	o := newOrphans(&reader{ctx: t.Context(), log: &notifyingLog{Log: memory.New(), own: newOwnAppends()}, logger: logger}, newRunTable(logger), time.Second)
	o.tasks = new(sync.WaitGroup)
	defer o.tasks.Wait()
	o.nextScan = time.Now().Add(-time.Hour)
	if o.scan(); !o.nextScan.After(time.Now()) {
		t.Errorf("the next scan was due at %s", o.nextScan)
	}
}
