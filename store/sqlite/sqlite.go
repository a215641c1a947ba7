// Package sqlite keeps an obelus log in one SQLite file.
//
// [Open] returns a [Log], which is a [store.Log]: several processes may append to one file at once,
// an append is on the disk when it returns, and reads go on beside the writing. The tables and the
// view history are an interface of their own, for people with plain sqlite3; the files in
// migrations document every column.
//
// Within a process one append writes at a time, and commits all that are waiting with it in one
// transaction. Reads take a connection each, from a pool that grows with the loops that are open at
// once.
//
// A process that has a log open must not open the file, or those beside it, in another way, be it
// to read or to serve them: when the first descriptor is closed the system takes away the locks by
// which SQLite keeps others from the file, and later appends can be lost. [Log.Backup] makes a copy
// that may be handled like any file.
//
// A [store.Lease] names the process that holds it, so that the lease of a process that has died on
// the same host can be taken at once. Another host, which can't look, has to wait until it lapses.
package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"obelus/store"
)

// Options says how a file is opened. The zero Options are good for a log that
// is written.
type Options struct {
	// Synchronous is "full" (the default): appends survive a power failure; or "normal": they
	// survive the end of the process, and a power failure may take the last ones, but never leaves
	// a hole.
	Synchronous string

	// BusyTimeout is how long an append waits while other processes write; 0
	// is 10 s. After that it gives [ErrLocked].
	BusyTimeout time.Duration

	// ReadOnly never changes the file: it must exist, and Append gives
	// [ErrReadOnly]. The default opens it for writing and makes it if it is
	// absent.
	ReadOnly bool

	// pragmas are for the writer's connection, for tests.
	pragmas []string
}

const defaultBusyTimeout = 10 * time.Second

func (o Options) complete() (Options, error) {
	switch o.Synchronous = strings.ToLower(o.Synchronous); o.Synchronous {
	case "":
		o.Synchronous = "full"
	case "full", "normal":
	default:
		return o, fmt.Errorf("synchronous must be full or normal, not %q", o.Synchronous)
	}
	if o.BusyTimeout < 0 {
		return o, fmt.Errorf("the busy timeout must not be negative: %s", o.BusyTimeout)
	}
	if o.BusyTimeout == 0 {
		o.BusyTimeout = defaultBusyTimeout
	}
	return o, nil
}

// Log is a [store.Log] in a file. It is safe for concurrent use.
type Log struct {
	path    string
	options Options
	readers *pool

	mu     sync.RWMutex // held for reading while an append is queued
	closed bool
	queue  chan *request
	lock   *writerLock
	writer *writer // nil if the log is read-only; owned by the holder of lock

	news news

	commits atomic.Int64 // number of transactions, for tests
}

var _ store.Log = (*Log)(nil)

// Open opens the log in a file, and creates the file and its folders where they are absent. A file
// that is not a log of obelus is refused and left as it is ([ErrNotOurs]); so is one that a newer
// obelus made ([ErrNewer]). A file that an older obelus made is migrated.
//
// SQLite's :memory: is refused too: a log in memory is a [obelus/store/memory.Log]. So is what
// [CheckPath] takes for an address.
func Open(path string, o Options) (*Log, error) {
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	o, err := o.complete()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	release, err := enter(absolute, o)
	if err != nil {
		return nil, explain(path, err)
	}
	l := &Log{path: path, options: o, readers: newPool(absolute, o, release)}
	if err := l.start(absolute); err != nil {
		l.readers.close()
		return nil, explain(path, err)
	}
	return l, nil
}

// CheckPath returns an error for what can't be the path of a log or of a copy of one: SQLite's
// :memory:, and an address such as that of a database server. Of an address the error names no more
// than its scheme, since a password may follow.
func CheckPath(path string) error {
	if path == ":memory:" {
		return explain(path, &problem{ErrNotOurs, "is no file, and a log of obelus is one (./:memory: is a file of that name)"})
	}
	if scheme := addressScheme.FindString(path); scheme != "" {
		return explain(scheme+"…", &problem{ErrNotOurs, "is an address, and a log of obelus is always a file, a database of SQLite: name its path, as in .obelus/log.db"})
	}
	return nil
}

// addressScheme is how an address begins. A single letter is a drive.
var addressScheme = regexp.MustCompile(`^\s*[A-Za-z][A-Za-z0-9+.-]+:[/\\]{2}`)

// start opens the writer's connection, which brings the file up to date; of a log that is only
// read, the first reader's.
func (l *Log) start(absolute string) error {
	if l.options.ReadOnly {
		return l.readers.probe()
	}
	w, err := openWriter(absolute, l.options, &l.commits)
	if err != nil {
		return err
	}
	l.writer, l.readers.file = w, w.file
	_ = l.readers.use() // it was made just now, and is not closed
	l.queue, l.lock = make(chan *request, queueLength), newWriterLock()
	w.writeRowsLater = func() { time.AfterFunc(tellEvery, l.tellRows) }
	return nil
}

// Close waits for the appends that are under way and closes the file. Reads that have begun may
// finish. A run that goes on over the log can record nothing any more: its lease ends, so that
// another process that opens the file can resume it at once.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()

	if l.writer != nil {
		_ = l.lock.acquire(context.Background()) // for good
		for len(l.queue) > 0 {
			l.writer.run(l.queue)
		}
		l.writer.releaseLeases()
	}
	l.readers.close()
	l.news.close()
	// Last: SQLite removes the write-ahead log with the last connection.
	return explain(l.path, l.stopWriter())
}

func (l *Log) stopWriter() error {
	if l.writer == nil {
		return nil
	}
	defer l.readers.drop()
	return l.writer.close()
}

// Between calls do while no commit of the process is under way, and lets none begin meanwhile. If
// do suspends the process, other processes can still write to the file. Between returns the error
// of ctx if that ends before do is called.
func (l *Log) Between(ctx context.Context, do func()) error {
	return l.exclusively(ctx, func(*writer) error {
		do()
		return nil
	})
}

// Append implements [store.Log]. A batch whose context ends while it still
// waits in the queue is not appended. Besides the errors of [store.Log] it
// gives [ErrLocked], [ErrFull], [ErrReadOnly], [ErrIO], [ErrMoved] and [ErrDamaged]; nothing
// of the batch is in the log then, unless the disk failed and the process ends
// before it appends anything else: then all of it may be found there.
func (l *Log) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	if err := ctx.Err(); err != nil {
		return store.Appended{}, err
	}
	r := newRequest(b)
	if err := l.enqueue(ctx, r); err != nil {
		return store.Appended{}, err
	}
	if err := l.await(ctx, r); err != nil {
		return store.Appended{}, err
	}
	if r.err != nil {
		return store.Appended{}, explain(l.path, r.err)
	}
	l.news.announce()
	return r.result, nil
}

// await waits until an append is written. A waiter writes the queue itself while no other does, so
// that a lone append changes no goroutine; appends that come meanwhile form the next group.
func (l *Log) await(ctx context.Context, r *request) error {
	for {
		if l.lock.tryAcquire() {
			if !r.written() {
				if l.writer.shouldYield(r) {
					runtime.Gosched()
				}
				l.writer.run(l.queue)
			}
			l.lock.release()
		}
		select {
		case <-r.done:
			return nil
		case <-l.lock.free:
		case <-ctx.Done():
			if r.state.CompareAndSwap(waiting, cancelled) {
				return ctx.Err()
			}
			<-r.done
			return nil
		}
	}
}

func (l *Log) enqueue(ctx context.Context, r *request) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return store.ErrClosed
	}
	if l.queue == nil {
		return explain(l.path, errOpenedReadOnly)
	}
	for {
		select {
		case l.queue <- r:
			return nil
		default:
		}
		if l.lock.tryAcquire() { // the callers of the appends in the queue may all have given up
			l.writer.run(l.queue)
			l.lock.release()
		}
		select {
		case l.queue <- r:
			return nil
		case <-l.lock.free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
