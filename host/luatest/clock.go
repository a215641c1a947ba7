package luatest

import (
	"context"
	"sync"
	"time"

	"obelus/luastd"
)

// clock is the clock of tests, which they may set.
type clock struct {
	luastd.Clock
	mu    sync.Mutex
	fixed *time.Time
}

func (c *clock) set(t *time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fixed = t
}

// Now returns the time that a test has set, else the time.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fixed != nil {
		return *c.fixed
	}
	return c.Clock.Now()
}

// Sleep advances a clock that is set, and waits otherwise.
func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	if c.fixed != nil {
		later := c.fixed.Add(d)
		c.fixed = &later
		c.mu.Unlock()
		return ctx.Err()
	}
	c.mu.Unlock()
	return c.Clock.Sleep(ctx, d)
}
