package engine

import (
	"context"
	"sync"
	"time"

	"obelus/store"
)

// clock gives dates that never go back, of a run and of the delegates within it, so that no
// call begins before its run, also if the runner's clock is set back.
type clock struct {
	mu     sync.Mutex
	newest time.Time
}

// date gives a date for a time: the time, or the newest date so far if that is later.
func (c *clock) date(now time.Time) time.Time {
	now = now.Round(0) // only the wall clock is written
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.After(c.newest) {
		c.newest = now
	}
	return c.newest
}

// follow makes all later dates follow the newest in a context's journal.
func (c *clock) follow(ctx context.Context, log store.Reader, name string) error {
	entry, ok, err := store.Newest(ctx, log, store.JournalFilter{Context: name})
	if ok {
		c.date(entry.Date)
	}
	return err
}
