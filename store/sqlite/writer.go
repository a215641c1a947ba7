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
	// Time of the last append: the next gets a later one, even if the clock was set back.
	last   time.Time
	values []driver.Value  // reused for the parameters of statements
	dated  []time.Time     // see dates
	kept   map[string]bool // code that is known to be in the file
	schema int             // the version that it writes
	rows   int             // messages and entries that it has written, up to manyRows

	holding map[string]int64 // epochs of the leases that were taken and not given back, by context

	// State of the file, as long as no other process writes to it.
	version  int64
	contexts map[string]*ends
	n        int64 // the journal's newest position, if contexts are known

	alone   string               // the context of the last append, if that was a group by itself
	late    map[string]rowChange // changes of rows of contexts for the next transaction
	touched []touched            // by the group

	// writeRowsLater has tellRows called after a while. It is called where a change of a row is put
	// off, once until then.
	writeRowsLater func()
	rowsPutOff     bool
}

// writing has the settings of the writer's connection: it does not wait for locks by itself, and
// has a larger cache, since it writes the same pages again and again. A write-ahead log that a long
// read or a large append has made longer than longestWAL is cut to that when it is begun anew.
var writing = []string{"PRAGMA busy_timeout = 0", "PRAGMA cache_size = -8000", fmt.Sprintf("PRAGMA journal_size_limit = %d", longestWAL)}

// longestWAL is a length in bytes: four times what writingLonger lets the write-ahead log have, so
// that its file is cut, and grows again, only after an exception.
const longestWAL = 16 << 20

// Flushing the write-ahead log takes longer while its file grows than when it is overwritten. If
// every commit flushes it, a writer begins with frequent checkpoints (writingShort), after which
// the file is written from its start again. After manyRows rows it changes to SQLite's own interval
// (writingLonger): for many rows, fewer checkpoints save more than a file that grows costs.
const (
	manyRows      = 1000
	writingShort  = "PRAGMA wal_autocheckpoint = 128"
	writingLonger = "PRAGMA wal_autocheckpoint = 1000"
)

// always has the statements that nearly every append needs. They are prepared when the file is
// opened.
var always = []string{begin, commit, selectVersion, selectEnds, selectLease, replaceLease,
	insertContext, insertMessage, insertWrite, insertJournal, insertScript, insertGeneration, updateContext, updateStanding}

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
	w := &writer{conn: c, file: file, timeout: o.BusyTimeout, commits: commits, kept: map[string]bool{}, schema: len(list), contexts: map[string]*ends{}, holding: map[string]int64{}, late: map[string]rowChange{}}
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

// ready prepares the connection for the first append: settings, statements, and the write-ahead
// log.
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

// tailLength is the length in bytes to which makeWAL writes the file: a little more than the 128
// pages that writingShort lets it have.
const tailLength = 136 * (4096 + 24)

// makeWAL creates the write-ahead log if there is none. This is for speed alone: the first flush of
// a new file also flushes its folder, and flushing a file that grows takes twice as long as one
// that is overwritten. If every commit is flushed, the file is first filled with zeros, which
// SQLite does not take for contents; then a transaction makes SQLite write the beginning. The file
// is locked against other processes meanwhile.
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

// lengthen fills an empty write-ahead log with tailLength zeros.
func lengthen(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	zeros := make([]byte, tailLength/8) // a large one would take longer than writing it
	for range 8 {
		if _, err = f.Write(zeros); err != nil {
			break
		}
	}
	return errors.Join(err, f.Close())
}

// queueLength is the number of appends in the queue; further ones wait for a place. maxGroup is the
// most that one transaction takes.
const (
	queueLength = 1024
	maxGroup    = 1024
)

// run commits a group from the queue.
func (w *writer) run(queue <-chan *request) {
	if group := gather(queue, maxGroup); len(group) > 0 {
		w.settle(group)
	}
}

// gather takes a group of at most enough appends from the queue.
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

// inPlace calls do in a transaction, which is rolled back if the file is no longer at its path.
func (w *writer) inPlace(do func() error) error {
	return w.atomically(w.timeout, func() error {
		if err := do(); err != nil {
			return err
		}
		return w.file.check()
	})
}

// shouldYield reports whether to let other goroutines run before the append r is written, so that
// their appends join its group: on a single processor they could not queue while the last group was
// written. It is false if the last group was an append to the same context alone: then probably no
// other goroutine appends, and yielding could mean waiting for a computation.
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

// settle commits a group, or, if that fails, each of its appends in a transaction of its own: one
// append that can't be written must not make the others fail.
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

// commit writes a group in one transaction. Its error concerns all of the group; an error that
// concerns one append alone is in the err of its request.
func (w *writer) commit(group []*request) error {
	w.touched = w.touched[:0]
	if err := w.inPlace(func() error { return w.write(group) }); err != nil {
		w.undo()
		return err
	}
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
	return w.writeRows()
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

// maxKnown bounds the number of contexts whose ends a writer keeps.
const maxKnown = 1024

// forget makes the writer read the file's state anew.
func (w *writer) forget() {
	for name, c := range w.contexts {
		if c.change.isSet() && c.exists {
			change := w.late[name]
			c.change.stale = true
			change.add(c.change)
			w.late[name] = change
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
	change rowChange // what its row lacks, to be written later
	told   time.Time // when its row was written last
	status string    // of its standing as it was appended last, as due and held; empty if it is not known
	due    time.Time
	held   int
	taken  bool // its lease was taken, and nothing appended since
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
