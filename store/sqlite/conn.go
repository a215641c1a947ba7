package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"
)

// conn is one connection of the driver, without the layer of database/sql: it
// belongs to one goroutine at a time and keeps every statement prepared.
type conn struct {
	raw         *sqlite3.SQLiteConn
	statements  map[statementKey]*sqlite3.SQLiteStmt
	args        []driver.NamedValue
	fingerprint *fingerprint // of a file that is read as immutable
}

// statementKey names a prepared statement. A statement has one cursor at a
// time, so loops that go on side by side take slots of their own.
type statementKey struct {
	sql  string
	slot int
}

// dial opens a connection to a file; mode is ro, rw, rwc or immutable.
func dial(path, mode string, o Options, pragmas ...string) (*conn, error) {
	name := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path))
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	query := "mode=" + mode
	if mode == "immutable" {
		query = "mode=ro&immutable=1"
	}
	dsn := fmt.Sprintf("file:%s?%s&_mutex=no&_busy_timeout=%d&_synchronous=%s",
		name, query, o.BusyTimeout.Milliseconds(), o.Synchronous)
	raw, err := (&sqlite3.SQLiteDriver{}).Open(dsn)
	if err != nil {
		return nil, err
	}
	c := &conn{raw: raw.(*sqlite3.SQLiteConn), statements: map[statementKey]*sqlite3.SQLiteStmt{}}
	for _, pragma := range pragmas {
		if err := c.script(pragma); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// script runs SQL that gives nothing back and is run once.
func (c *conn) script(sql string) error {
	_, err := c.raw.Exec(sql, nil)
	return err
}

func (c *conn) close() error {
	for _, s := range c.statements {
		s.Close()
	}
	c.statements = nil
	return c.raw.Close()
}

func (c *conn) prepare(key statementKey) (*sqlite3.SQLiteStmt, error) {
	if s := c.statements[key]; s != nil {
		return s, nil
	}
	s, err := c.raw.Prepare(key.sql)
	if err != nil {
		return nil, err
	}
	c.statements[key] = s.(*sqlite3.SQLiteStmt)
	return c.statements[key], nil
}

// bound gives values the form that the driver takes, in a slice that the next statement reuses.
// Parameters without a value are NULL.
func (c *conn) bound(values []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, v := range values {
		if v != nil {
			c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
		}
	}
	return c.args
}

// exec runs a statement that gives no rows.
func (c *conn) exec(sql string, values ...driver.Value) error {
	s, err := c.prepare(statementKey{sql: sql})
	if err != nil {
		return err
	}
	_, err = s.ExecContext(context.Background(), c.bound(values))
	return err
}

const (
	begin  = "BEGIN IMMEDIATE"
	commit = "COMMIT"
)

// atomically does something in one transaction, which it waits for as long as
// the timeout.
func (c *conn) atomically(timeout time.Duration, do func() error) error {
	if err := patiently(timeout, func() error { return c.exec(begin) }); err != nil {
		return err
	}
	err := do()
	if err == nil {
		err = c.exec(commit)
	}
	if err != nil {
		return errors.Join(err, c.rollback())
	}
	return nil
}

func (c *conn) rollback() error {
	if c.raw.AutoCommit() {
		return nil
	}
	return c.script("ROLLBACK")
}

// cursor walks over the rows of a query. row is of the row that next reached
// last.
type cursor struct {
	rows driver.Rows
	row  []driver.Value
}

// query begins a query. The end of ctx interrupts it.
func (c *conn) query(ctx context.Context, key statementKey, values ...driver.Value) (*cursor, error) {
	s, err := c.prepare(key)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, c.bound(values))
	if err != nil {
		return nil, err
	}
	return &cursor{rows: rows, row: make([]driver.Value, len(rows.Columns()))}, nil
}

// next reports whether there is another row.
func (c *cursor) next() (bool, error) {
	switch err := c.rows.Next(c.row); err {
	case nil:
		return true, nil
	case io.EOF:
		return false, nil
	default:
		return false, err
	}
}

// close ends the query. An error of its last step was told by next already.
func (c *cursor) close() { _ = c.rows.Close() }

// one gives the row of a query that always has exactly one.
func (c *conn) one(ctx context.Context, sql string, values ...driver.Value) ([]driver.Value, error) {
	cur, err := c.query(ctx, statementKey{sql: sql}, values...)
	if err != nil {
		return nil, err
	}
	defer cur.close()
	if _, err := cur.next(); err != nil {
		return nil, err
	}
	return cur.row, nil
}

// integer reads a column; NULL is 0.
func integer(v driver.Value) int64 {
	n, _ := v.(int64)
	return n
}

// text reads a column; NULL is empty.
func text(v driver.Value) string {
	s, _ := v.(string)
	return s
}

// optional writes text that may be absent.
func optional(s string) driver.Value {
	if s == "" {
		return nil
	}
	return s
}

// patiently repeats what another connection is in the way of. SQLite's own
// waiting sleeps so long in between that it can miss every gap that many busy
// writers leave. While the machine stands still the others do not get on either:
// that counts for little.
func patiently(timeout time.Duration, try func() error) error {
	waited := time.Duration(0)
	for pause := 250 * time.Microsecond; ; pause = min(2*pause, 4*time.Millisecond) {
		began := time.Now()
		err := try()
		if waited += time.Since(began); !isBusy(err) || waited >= timeout {
			return err
		}
		began = time.Now()
		time.Sleep(min(pause, timeout-waited))
		waited += min(time.Since(began), 100*time.Millisecond)
	}
}
