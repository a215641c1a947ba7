package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/mattn/go-sqlite3"

	"obelus/store"
)

// QueryError is SQL that can't be answered: it does not parse, names an unknown table, would change
// something, or fails as it runs.
type QueryError struct {
	Message string
	Unknown string // the unknown table, if that is the reason
}

func (e *QueryError) Error() string { return e.Message }

// Class implements the interface of [store.ClassOf].
func (e *QueryError) Class() store.Class { return store.Usage }

// Query answers one statement of SQL that only reads: columns is called with
// their names, then row with the values of each, which are nil, int64, float64,
// string or []byte. The database itself refuses all else. An error of either
// function ends the query; so does the end of ctx.
func (l *Log) Query(ctx context.Context, sql string, columns func(names []string) error, row func(values []any) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch statements(sql) {
	case 0:
		return &QueryError{Message: "the query is empty"}
	case 1:
	default:
		return &QueryError{Message: "more than one statement: give one query at a time"}
	}
	c, release, err := l.readers.alone()
	if err != nil {
		return explain(l.path, err)
	}
	defer release()
	var refused string
	c.raw.RegisterAuthorizer(func(op int, name, argument, _ string) int {
		if reads(op, name, argument) {
			return sqlite3.SQLITE_OK
		}
		if op == sqlite3.SQLITE_PRAGMA {
			refused = "PRAGMA " + name
		}
		return sqlite3.SQLITE_DENY
	})
	return l.queryError(ctx, c.fingerprint.check(c.stream(ctx, sql, columns, row)), refused)
}

func (c *conn) stream(ctx context.Context, sql string, columns func([]string) error, row func([]any) error) error {
	s, err := c.prepare(statementKey{sql: sql})
	if err != nil {
		return err
	}
	if s.NumInput() > 0 {
		return &QueryError{Message: "the query has parameters: write their values into it"}
	}
	cur, err := c.query(ctx, statementKey{sql: sql})
	if err != nil {
		return err
	}
	defer cur.close()
	if err := columns(cur.rows.Columns()); err != nil {
		return err
	}
	values := make([]any, len(cur.row))
	for {
		if more, err := cur.next(); err != nil || !more {
			return err
		}
		for i, v := range cur.row {
			values[i] = v
		}
		if err := row(values); err != nil {
			return err
		}
	}
}

// queryError separates faults of the query from faults of the file.
func (l *Log) queryError(ctx context.Context, err error, refused string) error {
	var theirs sqlite3.Error
	if err == nil || !errors.As(err, &theirs) {
		return err
	}
	message := theirs.Error()
	switch theirs.Code {
	case sqlite3.ErrInterrupt:
		if ctx.Err() != nil {
			return ctx.Err()
		}
	case sqlite3.ErrAuth, sqlite3.ErrReadonly:
		if refused == "" {
			refused = "the query"
		}
		return &QueryError{Message: refused + " would change something, or reach out of the log: a query may only read"}
	case sqlite3.ErrError, sqlite3.ErrTooBig, sqlite3.ErrMismatch, sqlite3.ErrRange, sqlite3.ErrNomem:
		unknown, _ := strings.CutPrefix(message, "no such table: ")
		if unknown == message {
			unknown = ""
		}
		return &QueryError{Message: message, Unknown: unknown}
	}
	return explain(l.path, err)
}

// SQLite's code for recursion in a query; the driver has no name for it.
const actionRecursive = 33

// harmless are the pragmas that only read, with an argument too where that is true.
var harmless = map[string]bool{
	"table_info": true, "table_xinfo": true, "table_list": true, "index_list": true, "index_info": true, "index_xinfo": true,
	"foreign_key_list": true, "integrity_check": true, "quick_check": true,
	"application_id": false, "user_version": false, "schema_version": false, "data_version": false, "journal_mode": false,
	"page_count": false, "page_size": false, "freelist_count": false, "encoding": false, "synchronous": false,
	"compile_options": false, "database_list": false, "collation_list": false, "function_list": false, "module_list": false, "pragma_list": false,
}

// reads reports whether a step of a query only reads.
func reads(op int, name, argument string) bool {
	switch op {
	case sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, actionRecursive:
		return true
	case sqlite3.SQLITE_PRAGMA:
		argued, known := harmless[strings.ToLower(name)]
		return known && (argued || argument == "")
	}
	return false
}

// statements counts the statements of SQL: 0, 1, or 2 for more. SQLite would
// answer the first and forget the rest.
func statements(sql string) int {
	n, inside := 0, false
	for at := 0; at < len(sql); {
		size, blank := token(sql[at:])
		switch {
		case sql[at] == ';':
			inside = false
		case !blank && !inside:
			inside = true
			if n++; n == 2 {
				return n
			}
		}
		at += size
	}
	return n
}

// token is the length of what SQL begins with, and whether it is nothing but
// space or a comment.
func token(sql string) (size int, blank bool) {
	until := func(from int, end string) int {
		if i := strings.Index(sql[from:], end); i >= 0 {
			return from + i + len(end)
		}
		return len(sql)
	}
	switch {
	case strings.HasPrefix(sql, "--"):
		return until(2, "\n"), true
	case strings.HasPrefix(sql, "/*"):
		return until(2, "*/"), true
	case strings.ContainsRune(" \t\r\n\f", rune(sql[0])):
		return 1, true
	// A quote within is doubled, and so begins another.
	case strings.ContainsRune("'\"`", rune(sql[0])):
		return until(1, sql[:1]), false
	case sql[0] == '[':
		return until(1, "]"), false
	}
	return 1, false
}

// alone opens a connection of its own that can't write, whatever the pool's
// others can.
func (p *pool) alone() (c *conn, release func(), err error) {
	if err := p.use(); err != nil {
		return nil, nil, err
	}
	if c, err = p.openAlone(); err != nil {
		p.drop()
		return nil, nil, err
	}
	return c, func() {
		_ = c.close() // it has nothing to lose
		p.drop()
	}, nil
}

func (p *pool) openAlone() (*conn, error) {
	p.opening.Lock()
	defer p.opening.Unlock()
	if err := p.reopenChanged(); err != nil {
		return nil, err
	}
	if p.options.ReadOnly {
		return p.dial()
	}
	return p.connect("ro")
}

// Relation is a table or a view of a log.
type Relation struct {
	Name    string
	View    bool
	Holds   string // the meaning of a row, in a sentence
	Columns []string
}

// relations describes the tables and views, in the order in which people
// need them.
var relations = []Relation{
	{Name: "contexts", Holds: "Every context: its name, what it was made for or forked from, when, and how its newest run stands."},
	{Name: "log", Holds: "The messages of a context in order, those that a fork shares among them."},
	{Name: "logs", Holds: "The lines that scripts printed and logged while calls ran, the newest of each call; without those that a fork shares."},
	{Name: "current_values", Holds: "The current value of each leaf (scalar, array, {}) of what a context holds, with the message and the call that wrote it; of an object that was written with more than 256 leaves, its own."},
	{Name: "history", Holds: "Every value that was ever written, under each path that the write names and within an object of at most 256 leaves that it wrote: when, how, and by which call."},
	{Name: "calls", Holds: "Every call of every plan, as it stands: its status, times, script version, reads and writes."},
	{Name: "failures", Holds: "The calls that failed, and why."},
	{Name: "runs", Holds: "Every plan that was run, and how it ended."},
	{Name: "spending", Holds: "What models used, for calls and plans: requests, tokens, cost."},
	{Name: "exchanges", Holds: "Requests to models whose setting keep says so, as they were sent, and the answers as they came; without those that a fork shares."},
	{Name: "decisions", Holds: "What persons decided about calls, plans and runs: who, when, what they were shown, what they corrected, and why."},
	{Name: "messages", Holds: "The messages themselves, each once, in the context that they were appended to."},
	{Name: "writes", Holds: "The paths that each message writes: where its call wrote, or each leaf of what is merged, or what more than 256 of them have in common."},
	{Name: "leaves", Holds: "What a message puts below the path that it writes: the leaves of its object, up to 256, and the keys that assign replaces."},
	{Name: "marks", Holds: "Every place at which a message leaves a value: writes and leaves together."},
	{Name: "journal", Holds: "Every event in the life of a call or a run, in the order of all contexts; calls and runs are read from it."},
	{Name: "scripts", Holds: "The source of every script that ran, in every version."},
	{Name: "generations", Holds: "Which versions of which scripts were loaded together."},
	{Name: "lineage", Holds: "What a fork shares: the contexts that it holds messages of, and up to where."},
	{Name: "spans", Holds: "What each context holds: its own, and what it shares."},
	{Name: "leases", Holds: "Which process runs a context. No part of the history: only the present holder counts."},
	{Name: "tombstones", Holds: "Names of pruned contexts that were to be made once: they stay taken for 30 days."},
	{Name: "pruning", Holds: "What is being removed at this moment; empty at all other times."},
}

const selectRelations = `SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`

// Relations lists the tables and views, which are an interface of their own,
// those first that answer what people ask.
func (l *Log) Relations(ctx context.Context) ([]Relation, error) {
	var all []Relation
	err := l.readers.read(func(c *conn) error {
		views := map[string]bool{}
		err := c.each(ctx, selectRelations, nil, func(row []driver.Value) (bool, error) {
			views[text(row[0])] = text(row[1]) == "view"
			return true, nil
		})
		for _, r := range relations {
			if err != nil {
				return err
			}
			r.View = views[r.Name]
			err = c.each(ctx, "SELECT name FROM pragma_table_info(?1)", []driver.Value{r.Name}, func(row []driver.Value) (bool, error) {
				r.Columns = append(r.Columns, text(row[0]))
				return true, nil
			})
			all = append(all, r)
		}
		return err
	})
	return all, explain(l.path, err)
}
