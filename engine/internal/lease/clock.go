package lease

import (
	"context"
	"sync"
	"time"

	"obelus/store"
)

// Clock gives dates that never go back, of a run and of the delegates within it, so that no
// call begins before its run, also if the runner's clock is set back.
type Clock struct {
	mu     sync.Mutex
	newest time.Time
}

// Date gives a date for a time: the time, or the newest date so far if that is later.
func (c *Clock) Date(now time.Time) time.Time {
	now = now.Round(0) // only the wall clock is written
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.After(c.newest) {
		c.newest = now
	}
	return c.newest
}

// Follow makes all later dates follow the newest in a context's journal.
func (c *Clock) Follow(ctx context.Context, log store.Reader, name string) error {
	entry, ok, err := store.Newest(ctx, log, store.JournalFilter{Context: name})
	if ok {
		c.Date(entry.Date)
	}
	return err
}
