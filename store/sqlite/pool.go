package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mattn/go-sqlite3"

	"obelus/store"
)

// idleReaders is how many connections are kept for the next reads.
const idleReaders = 8

// pool lends connections for reading. It never blocks a reader until another is done: the body of a
// loop over one read may begin another.
type pool struct {
	path    string
	options Options
	file    *location // of a log that this process writes
	release func()    // called once the pool and its last connection are closed

	opening sync.Mutex // held while a connection is opened; taken before mu

	mu     sync.Mutex
	idle   []*conn
	out    int
	closed bool
	frozen *fingerprint // of the file, if it is read as immutable; changing it needs both locks
}

func newPool(path string, o Options, release func()) *pool {
	return &pool{path: path, options: o, release: release}
}

// probe opens the first connection of a log that is opened for reading, and sees that it can read
// the log. It prepares a statement, for which SQLite reads the schema.
func (p *pool) probe() error {
	return p.read(func(c *conn) error {
		if err := p.checkVersion(c); err != nil {
			return err
		}
		_, err := c.prepare(statementKey{sql: selectHeadOf})
		return err
	})
}

func (p *pool) checkVersion(c *conn) error {
	list, err := ownMigrations()
	if err != nil {
		return err
	}
	have, err := c.version(list)
	if err == nil && have < len(list) {
		err = &problem{ErrOlder, fmt.Sprintf("was made by an older obelus (schema version %d, not %d) and was opened for reading only: open it once for writing, which brings it up to date", have, len(list))}
	}
	return err
}

func cantOpen(err error) bool {
	var theirs sqlite3.Error
	return errors.As(err, &theirs) && (theirs.Code == sqlite3.ErrCantOpen || theirs.Code == sqlite3.ErrReadonly)
}

func (p *pool) connect(mode string) (*conn, error) {
	return dial(p.path, mode, p.options, "PRAGMA query_only = 1")
}

// dial opens another connection, for one that holds opening.
func (p *pool) dial() (*conn, error) {
	switch {
	case p.frozen != nil:
		return p.dialFrozen(p.frozen)
	case p.options.ReadOnly:
		c, err := p.dialReadOnly()
		if err == nil {
			p.mu.Lock()
			p.frozen = c.fingerprint
			p.mu.Unlock()
		}
		return c, err
	}
	return p.connect("rw")
}

// closing is how long another process may take to remove, one after the other,
// the files that it kept beside the log.
const closing = 500 * time.Millisecond

// dialReadOnly opens a file that this process never changes. A folder without write permission has
// no place for the files that SQLite keeps beside a log. If no writer has left such files there,
// the log's own file has all of it.
func (p *pool) dialReadOnly() (*conn, error) {
	for deadline := time.Now().Add(closing); ; time.Sleep(time.Millisecond) {
		c, err := p.connect("ro")
		if !cantOpen(err) {
			return c, err
		}
		seen, err := look(p.path)
		switch {
		case err != nil:
			return nil, err
		case !seen.walPending:
			return p.dialFrozen(seen)
		case time.Now().After(deadline):
			return nil, unreadableTail(seen.path)
		}
	}
}

func (p *pool) dialFrozen(seen *fingerprint) (*conn, error) {
	c, err := p.connect("immutable")
	if err == nil {
		c.fingerprint = seen
	}
	return c, err
}

// reopenChanged reopens a file that was read as immutable, if it has changed.
func (p *pool) reopenChanged() error {
	if p.frozen == nil {
		return nil
	}
	now, err := look(p.path)
	if err != nil || !p.frozen.stale(now) {
		return err
	}
	c, err := p.dialReadOnly()
	if err != nil {
		return err
	}
	if err := p.checkVersion(c); err != nil {
		_ = c.close() // it has nothing to lose
		return err
	}
	p.renew(c)
	p.put(c, false)
	return nil
}

// renew takes a connection for the first to the file as it is now.
func (p *pool) renew(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, old := range p.idle {
		_ = old.close()
	}
	p.idle, p.frozen = nil, c.fingerprint
	p.out++
}

// get lends a connection until it is put back.
func (p *pool) get() (*conn, error) {
	if err := p.use(); err != nil {
		return nil, err
	}
	if err := p.file.check(); err != nil {
		p.drop()
		return nil, err
	}
	if c := p.take(false); c != nil {
		return c, nil
	}
	c, err := p.open()
	if err != nil {
		p.drop()
	}
	return c, err
}

// use counts a user of the file, until drop.
func (p *pool) use() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return store.ErrClosed
	}
	p.out++
	return nil
}

// take gives an idle connection, nil if there is none, or if the file has to be
// looked at before.
func (p *pool) take(looked bool) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 || p.frozen != nil && !looked {
		return nil
	}
	c := p.idle[last]
	p.idle = p.idle[:last]
	return c
}

// open returns a connection when none is free. Opening one takes ten times as long as most reads: a
// reader that waits for another to open one takes a connection that has been returned by then.
func (p *pool) open() (*conn, error) {
	p.opening.Lock()
	defer p.opening.Unlock()
	if err := p.reopenChanged(); err != nil {
		return nil, err
	}
	if c := p.take(true); c != nil {
		return c, nil
	}
	return p.dial()
}

// put returns a connection. One that gave an error is not used again, nor one to a file that has
// changed.
func (p *pool) put(c *conn, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if failed || p.closed || c.fingerprint != p.frozen || len(p.idle) >= idleReaders {
		_ = c.close()
	} else {
		p.idle = append(p.idle, c)
	}
	p.out--
	p.settle()
}

// settle releases the file when nothing uses it any more.
func (p *pool) settle() {
	if p.closed && p.out == 0 && p.release != nil {
		p.release()
		p.release = nil
	}
}

func (p *pool) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out--
	p.settle()
}

// close ends the idle connections; each of the others ends when it is put
// back.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		_ = c.close() // it has nothing to lose
	}
	p.idle, p.closed = nil, true
	p.settle()
}

// read lends a connection for one function, which sees the log as of one moment, and takes it back
// even if a loop's body panics.
func (p *pool) read(use func(*conn) error) error {
	c, err := p.get()
	if err != nil {
		return err
	}
	failed := true
	defer func() { p.put(c, failed) }()
	err = c.fingerprint.check(c.atOnce(use))
	failed = err != nil
	return err
}

// atOnce has all that a function reads be as of one moment. After an error the connection is of no
// more use.
func (c *conn) atOnce(use func(*conn) error) error {
	if err := c.exec("BEGIN"); err != nil {
		return err
	}
	if err := use(c); err != nil {
		return err
	}
	return c.exec(commit)
}

// each hands the rows of a query to a function, until it wants no more.
func (c *conn) each(ctx context.Context, sql string, values []driver.Value, row func([]driver.Value) (more bool, err error)) error {
	cur, err := c.query(ctx, statementKey{sql: sql}, values...)
	if err != nil {
		return err
	}
	defer cur.close()
	for {
		more, err := cur.next()
		if more {
			more, err = row(cur.row)
		}
		if err != nil || !more {
			return err
		}
	}
}
