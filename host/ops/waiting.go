package ops

import (
	"context"
	"slices"
	"sync"
	"time"

	"obelus/engine/history"
	"obelus/store"
)

// Waiting knows in which contexts decisions wait for a person. All that follow the log share one
// look at it after each change.
type Waiting struct {
	Log store.Reader

	mu       sync.Mutex
	position int64 // of the journal, when the log was looked at
	looked   time.Time
	newest   Held
	oldest   time.Time
	oldestOf int // the version that it is of
}

// Held is where decisions wait for a person.
type Held struct {
	Contexts []store.ContextInfo // the one that was appended to last first
	Number   int                 // of the decisions
	By       map[string]int      // by context, see [history.ListHeld]
	Version  int                 // another one for each change
}

// sharedFor is how long a look is shared while the journal does not grow: the standings of contexts
// may be behind it.
const sharedFor = 100 * time.Millisecond

// Look tells where decisions wait now.
func (w *Waiting) Look(ctx context.Context) (Held, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	newest, _, err := store.Newest(ctx, w.Log, store.JournalFilter{})
	if err != nil || newest.N == w.position && time.Since(w.looked) < sharedFor {
		return w.newest, err
	}
	looked := time.Now()
	contexts, number, by, err := history.ListHeld(ctx, w.Log)
	if err != nil {
		return w.newest, err
	}
	version := w.newest.Version
	if version == 0 || !slices.EqualFunc(contexts, w.newest.Contexts, isSame) {
		version++
	}
	w.newest, w.looked, w.position = Held{contexts, number, by, version}, looked, newest.N
	return w.newest, nil
}

// Summarize is [history.Summarize], with the decisions that delegates of the context wait for.
func (w *Waiting) Summarize(ctx context.Context, info store.ContextInfo) (history.Summary, error) {
	line := history.Summarize(info)
	if info.Standing.Waiting == 0 { // no delegate of it waits
		return line, nil
	}
	held, err := w.Look(ctx)
	line.AddHeld(held.By)
	return line, err
}

// Oldest is [history.OldestHeld] as of the newest look.
func (w *Waiting) Oldest(ctx context.Context) (time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.oldestOf == w.newest.Version {
		return w.oldest, nil
	}
	oldest, err := history.OldestHeld(ctx, w.Log, w.newest.Contexts)
	if err == nil {
		w.oldest, w.oldestOf = oldest, w.newest.Version
	}
	return oldest, err
}

func isSame(a, b store.ContextInfo) bool {
	return a.Context == b.Context && a.Created.Equal(b.Created) && a.Updated.Equal(b.Updated) && a.Standing.Held == b.Standing.Held
}
