package sqlite

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// news wakes those that wait for appends, in this process or another. Its methods may be called
// from several goroutines at once.
type news struct {
	mu      sync.Mutex
	changed chan struct{}     // closed by the next change; nil while nothing waits for it
	tried   bool              // a watcher was begun
	watcher *fsnotify.Watcher // of the write-ahead log; nil where there is none
	poll    time.Duration     // awaitPoll, but in tests
}

// lookAgain is when to look at the log again after it was written to: an append can be read once it
// has been flushed, which takes milliseconds on some disks and is not announced. The pauses also
// bound how often a log that is written to all the time is looked at.
var lookAgain = []time.Duration{2 * time.Millisecond, 8 * time.Millisecond, 20 * time.Millisecond}

// watch begins to watch the write-ahead log, once. Where that can't be watched, the poll hears of
// appends.
func (n *news) watch(wal string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tried {
		return
	}
	n.tried = true
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return
	}
	if err := watcher.Add(wal); err != nil {
		watcher.Close()
		return
	}
	n.watcher = watcher
	go func() {
		for open := true; open; {
			select {
			case _, open = <-watcher.Events:
			case _, open = <-watcher.Errors: // as of events that were too many
			}
			n.announce()
			for _, pause := range lookAgain {
				time.Sleep(pause)
				n.announce()
			}
		}
	}()
}

// close ends the watch, and wakes all that wait.
func (n *news) close() {
	n.announce()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tried = true; n.watcher != nil {
		n.watcher.Close()
		n.watcher = nil
	}
}

// next returns a channel that is closed by the next change.
func (n *news) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return n.changed
}

// announce wakes all that wait.
func (n *news) announce() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

// awaitPoll is the time between two looks at the log while nothing is announced, as on file systems
// that announce nothing.
const awaitPoll = time.Second

// Await implements [store.Log]. It hears of an append of another process within milliseconds where
// the system announces changes of the write-ahead log.
func (l *Log) Await(ctx context.Context, after int64) (newest int64, err error) {
	l.news.watch(l.readers.path + "-wal")
	poll := time.NewTicker(cmp.Or(l.news.poll, awaitPoll))
	defer poll.Stop()
	for {
		changed := l.news.next()
		n, err := l.newestN(ctx)
		if n > after || err != nil {
			return max(n, after), err
		}
		select {
		case <-changed:
		case <-poll.C:
		case <-ctx.Done():
			return after, ctx.Err()
		}
	}
}

const selectNewestOfAll = "SELECT max(n) FROM journal"

// newestN is the newest position in the journal of all contexts.
func (l *Log) newestN(ctx context.Context) (n int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	err = l.readers.read(func(c *conn) error {
		row, err := c.one(ctx, selectNewestOfAll)
		if err == nil {
			n = integer(row[0])
		}
		return err
	})
	return n, explain(l.path, err)
}
