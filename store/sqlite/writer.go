package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"obelus/store"
)

// writer is the one connection that writes. The holder of the writer lock owns it.
type writer struct {
	*conn
	file    *location
	timeout time.Duration
	commits *atomic.Int64
	// Of the last append, so that the next is later, also if the clock was set back.
	last      time.Time
	values    []driver.Value
	dated     []time.Time     // see dates
	kept      map[string]bool // code that is known to be in the file
	schema    int             // the version that it writes
	batchSize int             // how many appends a group takes
	rows      int             // messages and entries that it has written, up to manyRows

	holding map[string]int64 // epochs of the leases that were taken and not given back, by context

	// State of the file, as long as no other process writes to it.
	version  int64
	contexts map[string]*ends
	n        int64 // the journal's newest position, if contexts are known

	alone   string               // the context of the last append, if that was a group by itself
	late    map[string]time.Time // times of appends that the rows of contexts do not have yet
	touched []touched            // by the group
}

// writing is how the writer's connection differs from others: pages that are
// written again and again stay in memory.
var writing = []string{"PRAGMA busy_timeout = 0", "PRAGMA cache_size = -8000"}

// A write-ahead log that grows takes longer to flush than one that is written
// over, so where every commit flushes it, it is kept short at first. Once so many rows
// have been written the length that SQLite gives it is worth its growth: it has to be
// carried over less often.
const (
	manyRows      = 1000
	writingShort  = "PRAGMA wal_autocheckpoint = 128"
	writingLonger = "PRAGMA wal_autocheckpoint = 1000"
)

// always are the statements that every run needs. They are prepared before the first
// append comes.
var always = []string{begin, commit, selectVersion, selectEnds, selectLease, replaceLease,
	insertContext, insertMessage, insertWrite, insertJournal, insertScript, insertGeneration, updateContext}

func openWriter(path string, o Options, commits *atomic.Int64) (*writer, error) {
	c, err := openForWriting(path, o)
	if err != nil {
		return nil, err
	}
	file, err := locate(path)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	list, err := ownMigrations()
	w := &writer{conn: c, file: file, timeout: o.BusyTimeout, commits: commits, kept: map[string]bool{}, schema: len(list), contexts: map[string]*ends{}, batchSize: largeGroup, holding: map[string]int64{}, late: map[string]time.Time{}}
	if err == nil {
		err = w.ready(o)
	}
	if err == nil {
		err = file.locateBeside()
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return w, nil
}

// ready does what can be done before the first append.
func (w *writer) ready(o Options) error {
	pragmas := slices.Clone(writing)
	if o.Synchronous == "full" {
		pragmas = append(pragmas, writingShort)
	}
	for _, pragma := range append(pragmas, o.pragmas...) {
		if err := w.script(pragma); err != nil {
			return err
		}
	}
	for _, sql := range always {
		if _, err := w.prepare(statementKey{sql: sql}); err != nil {
			return err
		}
	}
	if err := w.readLast(); err != nil {
		return err
	}
	w.makeWAL(o.Synchronous == "full")
	return nil
}

// tailLength is how long a write-ahead log is made: about as long as it is kept short.
const tailLength = 136 * (4096 + 24)

// makeWAL makes the write-ahead log where there is none, for speed alone: the name of a new file
// has to be on the disk before its contents count, and flushing a file that grows takes twice as
// long as one that is overwritten. It begins as SQLite begins every log; the rest, which exists
// where every commit is flushed, counts for nothing until it is written. Meanwhile no other process
// can write to it.
func (w *writer) makeWAL(flushed bool) {
	path := w.file.path + "-wal"
	missing := func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() == 0 // SQLite makes an empty one as it opens the log
	}
	if !missing() {
		return
	}
	_ = w.atomically(0, func() error {
		if !missing() {
			return nil
		}
		if flushed {
			if err := lengthen(path); err != nil {
				return errors.Join(err, os.Truncate(path, 0))
			}
		}
		return w.script(fmt.Sprintf("PRAGMA application_id = %d", applicationID))
	})
}

// lengthen gives an empty write-ahead log its length.
func lengthen(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, tailLength))
	return errors.Join(err, f.Close())
}

// queueLength is the number of appends in the queue; further ones wait for a place. smallGroup and
// largeGroup bound the number that one transaction takes.
const (
	queueLength = 1024
	smallGroup  = 32
	largeGroup  = 1024
)

// run commits a group from the queue.
func (w *writer) run(queue <-chan *request) {
	if group := gather(queue, w.batchSize); len(group) > 0 {
		w.settle(group)
	}
}

// gather takes a group from the queue, of at most so many.
func gather(queue <-chan *request, enough int) (group []*request) {
	for len(group) < enough {
		select {
		case r := <-queue:
			group = r.joinGroup(group)
		default:
			return group
		}
	}
	return group
}

// inPlace does something atomically, unless the file has gone from its place.
func (w *writer) inPlace(do func() error) error {
	return w.atomically(w.timeout, func() error {
		if err := do(); err != nil {
			return err
		}
		return w.file.check()
	})
}

// shouldYield reports whether others append too, and could not queue while a group was written, as
// there is only one processor. Without others, letting them run first could mean waiting for a
// computation.
func (w *writer) shouldYield(r *request) bool {
	return w.alone != r.batch.Context && runtime.GOMAXPROCS(0) == 1
}

// joinGroup adds the request to a group, unless its caller has left.
func (r *request) joinGroup(group []*request) []*request {
	if r.state.CompareAndSwap(waiting, taken) {
		return append(group, r)
	}
	return group
}

// settle commits a group, and each of it alone if that fails: one append that
// can't be written must not take the others with it.
func (w *writer) settle(group []*request) {
	err := w.commit(group)
	if err != nil && len(group) > 1 && !isBusy(err) {
		for i, r := range group {
			if err := w.commit(group[i : i+1]); err != nil {
				r.err = err
			}
		}
		err = nil
	}
	if w.alone = ""; len(group) == 1 {
		w.alone = group[0].batch.Context
	}
	for _, r := range group {
		if err != nil {
			r.err = err
		}
		close(r.done)
	}
}

// commit writes a group in one transaction. Its error is that of the whole; the error of one append
// alone is in its err.
func (w *writer) commit(group []*request) error {
	w.touched = w.touched[:0]
	var began, written time.Time // without the wait for another process's lock
	err := w.inPlace(func() error {
		began = time.Now()
		err := w.write(group)
		written = time.Now()
		return err
	})
	if err != nil {
		w.undo()
		// Another process's lock is waited for once, not by small group after small group.
		w.batchSize = largeGroup
		return err
	}
	w.setBatchSize(len(group), written.Sub(began), time.Since(written))
	w.commits.Add(1)
	if w.rows < manyRows {
		for _, r := range group {
			if r.err == nil {
				w.rows += len(r.messages) + len(r.batch.Journal)
			}
		}
		if w.rows >= manyRows {
			_ = w.script(writingLonger) // for speed alone
		}
	}
	clear(w.late)
	for _, r := range group {
		w.noteLease(r)
		for _, code := range r.batch.Code {
			if code != nil {
				w.kept[code.Digest] = w.kept[code.Digest] || r.err == nil
			}
		}
	}
	return nil
}

// setBatchSize sets how many appends the next group takes: as many as are written in the time of
// four flushes. With more, the waiters of the group are held up meanwhile, and flushes are hardly
// fewer.
func (w *writer) setBatchSize(n int, wrote, flushed time.Duration) {
	w.batchSize = int(min(max(smallGroup, 4*flushed*time.Duration(n)/max(wrote, 1)), largeGroup))
}

func (w *writer) write(group []*request) error {
	if err := w.refresh(); err != nil {
		return err
	}
	for _, r := range group {
		r.result, r.err = store.Appended{}, nil
		if err := w.append(r); err != nil {
			return err
		}
	}
	for name, updated := range w.late {
		if err := w.exec(updateContext, name, updated.Format(microseconds)); err != nil {
			return err
		}
	}
	return nil
}

// refresh drops the writer's knowledge if another process has written, which may have migrated the
// file too.
func (w *writer) refresh() error {
	row, err := w.one(context.Background(), selectVersion)
	if err != nil {
		return err
	}
	version := integer(row[0])
	if version != w.version {
		if err := w.checkSchema(); err != nil {
			return err
		}
	}
	if version != w.version || len(w.contexts) > maxKnown {
		w.version = version
		w.forget()
	}
	return nil
}

// checkSchema refuses a file that is no longer of the version that the writer writes: its rows
// could be wrong in another.
func (w *writer) checkSchema() error {
	row, err := w.one(context.Background(), selectSchema)
	if err != nil {
		return err
	}
	switch have := int(integer(row[0])); {
	case have > w.schema:
		return &problem{ErrNewer, fmt.Sprintf("was brought up to date by a newer obelus (schema version %d, this obelus writes version %d): start this one anew with that", have, w.schema)}
	case have < w.schema:
		return &problem{ErrOlder, fmt.Sprintf("was replaced by the log of an older obelus (schema version %d, this obelus writes version %d): start this one anew, which brings it up to date", have, w.schema)}
	}
	return nil
}

// maxKnown is of how many contexts a writer knows where their logs end.
const maxKnown = 1024

// forget makes the writer read the file's state anew.
func (w *writer) forget() {
	for name, c := range w.contexts {
		if c.updated != c.told && c.exists {
			w.late[name] = c.updated
		}
	}
	w.contexts = map[string]*ends{}
}

// ends is the end of a context's log, and its holder.
type ends struct {
	exists bool
	seq    int64
	lease  *lease    // nil if it is not known
	newest time.Time // newest date in the context; zero if it is not known
	// Time of the last append, and the time in its row, or about to be in it.
	updated, told time.Time
	taken         bool // its lease was taken, and nothing appended since
}

func (w *writer) ends(name string) (*ends, error) {
	if c := w.contexts[name]; c != nil {
		return c, nil
	}
	row, err := w.one(context.Background(), selectEnds, name)
	if err != nil {
		return nil, err
	}
	c := &ends{exists: integer(row[0]) == 1, seq: integer(row[1])}
	if len(w.contexts) == 0 {
		w.n = integer(row[2])
	}
	w.contexts[name] = c
	return c, nil
}

// leaseOn gives a copy of the lease on a context.
func (w *writer) leaseOn(name string, c *ends) (l lease, err error) {
	if c.lease == nil {
		if c.lease, err = w.lease(context.Background(), name); err != nil {
			return l, err
		}
	}
	return *c.lease, nil
}

// writerLock is held by the goroutine that writes. Unlike a fair lock it is not handed to the
// goroutine that has waited longest: that one is scheduled behind all those that a group has woken,
// and until then nothing would be written. The next running goroutine takes it.
type writerLock struct {
	taken atomic.Bool
	free  chan struct{} // holds a token once it has been released, for a waiter
}

func newWriterLock() *writerLock { return &writerLock{free: make(chan struct{}, 1)} }

// tryAcquire takes the lock if it is free. A goroutine that does not get it waits for free, and
// tries again.
func (t *writerLock) tryAcquire() bool { return t.taken.CompareAndSwap(false, true) }

// release gives it back.
func (t *writerLock) release() {
	t.taken.Store(false)
	select {
	case t.free <- struct{}{}:
	default:
	}
}

// acquire waits for it, or for the end of ctx.
func (t *writerLock) acquire(ctx context.Context) error {
	for !t.tryAcquire() {
		select {
		case <-t.free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
