package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync/atomic"
	"time"

	"obelus/store"
)

// The states of a request.
const (
	waiting int32 = iota
	taken
	cancelled
)

// request is an append on its way to the writer. Whoever appends has already
// turned its values into JSON, so that the writer only writes.
type request struct {
	batch    store.Batch
	messages []messageRow
	bytes    int64 // of JSON in the messages
	state    atomic.Int32
	done     chan struct{}
	result   store.Appended // of the last try
	err      error
}

// written reports whether the writer is done with the append.
func (r *request) written() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// messageRow is a message as its columns from kind on, and the places at which it leaves
// a value.
type messageRow struct {
	columns []driver.Value
	touches []store.Mark
	leaves  []store.Mark
}

func newRequest(b store.Batch) *request {
	r := &request{batch: b, messages: make([]messageRow, len(b.Messages)), done: make(chan struct{})}
	for i := range b.Messages {
		m := &b.Messages[i]
		row := &r.messages[i]
		row.columns = []driver.Value{
			optional(m.Kind), m.Instance, optional(m.Path.String()), optional(string(m.Method)),
			encoded(m.Data.Value, m.Data.Set), encoded(m.Schema, m.Schema != nil),
			optional(m.Description), optional(m.Mode), optional(m.Call),
			encoded(m.Producer, m.Producer != nil), optional(m.Written),
		}
		for _, at := range [...]int{dataColumn, schemaColumn, producerColumn} {
			r.bytes += int64(len(text(row.columns[at])))
		}
		if op, ok := m.Op(); ok {
			row.touches, row.leaves = op.Marks()
		}
	}
	return r
}

// Places in the columns of a messageRow.
const dataColumn, schemaColumn, producerColumn = 4, 5, 9

func encoded(v any, has bool) driver.Value {
	if !has {
		return nil
	}
	return string(store.EncodeJSON(v))
}

const (
	selectEnds = `SELECT EXISTS (SELECT 1 FROM contexts WHERE context = ?1),
		` + selectHead + `, (SELECT max(n) FROM journal)`
	// Changes whenever another connection has committed, and never for one's own.
	selectVersion = `PRAGMA data_version`
	selectSchema  = `PRAGMA user_version`
	// OR ROLLBACK, since a commit that fails is undone as a whole: SQLite keeps no
	// copies of pages to undo one statement alone.
	insertMessage = `INSERT OR ROLLBACK INTO messages (context, seq, date, type, kind, instance, path, method, data, schema,
		description, mode, call, producer, written) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertWrite      = `INSERT OR ROLLBACK INTO writes (context, path, instance, seq, form) VALUES (?, ?, ?, ?, ?)`
	insertLeaf       = `INSERT OR ROLLBACK INTO leaves (context, path, instance, seq, form) VALUES (?, ?, ?, ?, ?)`
	insertScript     = `INSERT OR IGNORE INTO scripts (sha256, path, source) VALUES (?, ?, ?)`
	insertGeneration = `INSERT OR IGNORE INTO generations (generation, path, sha256) VALUES (?, ?, ?)`
	insertJournal    = `INSERT OR ROLLBACK INTO journal (n, context, seq, date, call, event, data) VALUES (?, ?, ?, ?, ?, ?, ?)`
)

func (w *writer) append(r *request) error {
	b := &r.batch
	c, err := w.ends(b.Context)
	if err != nil {
		return err
	}
	var l lease
	if b.Lease != nil {
		if l, err = w.leaseOn(b.Context, c); err != nil {
			return err
		}
	}
	var shared []span
	before := c.seq
	if r.err, err = w.checkOnce(b, c); r.err != nil || err != nil {
		return err
	}
	if shared, r.err, err = w.begins(b, c); r.err == nil && err == nil {
		r.err = refusal(b, c, &l)
	}
	if r.err == nil && err == nil {
		r.err, err = w.checkN(b, shared)
	}
	if r.err != nil || err != nil {
		c.seq = before
		return err
	}
	clock := time.Now().UTC()
	w.last = store.Later(clock, w.last)
	now, date := w.last, clock.Truncate(time.Millisecond)
	if err := w.dates(b, c, shared, date); err != nil {
		return err
	}
	created := !c.exists
	if created {
		if err := w.create(r, shared, store.FormatDate(b.Began(date)), now.Format(microseconds)); err != nil {
			return err
		}
		c.exists = true
	}
	w.touch(r, c, now, created)
	if err := w.insert(r, c); err != nil {
		return err
	}
	if err := w.insertLogs(b); err != nil {
		return err
	}
	if len(w.dated) > 0 {
		date = c.newest
	}
	r.result = store.Appended{Seq: c.seq, N: w.n, Date: date, Epoch: l.epoch}
	return w.putLease(b.Context, c, l)
}

// begins finds the contents that a fork made by the batch begins with.
func (w *writer) begins(b *store.Batch, c *ends) (shared []span, refused, err error) {
	if b.Create == nil || b.Create.Fork == "" {
		return nil, nil, nil
	}
	if c.exists {
		return nil, fmt.Errorf("%w: %s", store.ErrExists, b.Context), nil
	}
	if shared, refused, err = w.forked(b.Create); refused == nil && err == nil {
		c.seq = b.Create.At
	}
	return shared, refused, err
}

// refusal returns why a batch can't be appended. Otherwise the lease is as it will be.
func refusal(b *store.Batch, c *ends, l *lease) error {
	if !c.exists && b.Create == nil {
		return fmt.Errorf("%w: %s", store.ErrNoContext, b.Context)
	}
	if err := l.use(b, time.Now()); err != nil {
		return err
	}
	if b.ExpectSeq != store.AnySeq && b.ExpectSeq != c.seq {
		return &store.ConflictError{Context: b.Context, Expected: b.ExpectSeq, Actual: c.seq}
	}
	return nil
}

// checkOnce refuses a batch that is to make its context if that exists, or did a while ago.
func (w *writer) checkOnce(b *store.Batch, c *ends) (refused, err error) {
	if !b.Once || b.Create == nil {
		return nil, nil
	}
	if c.exists {
		return fmt.Errorf("%w: %s", store.ErrExists, b.Context), nil
	}
	row, err := w.one(context.Background(), `SELECT (SELECT pruned FROM tombstones WHERE context = ?1)`, b.Context)
	if err != nil || row[0] == nil {
		return nil, err
	}
	pruned, err := date(row[0])
	if err == nil && time.Since(pruned) < store.KeepName {
		refused = &store.PrunedNameError{Context: b.Context, At: pruned}
	}
	return refused, err
}

// selectNewestN is the position of the newest entry in a context's journal, 0 if it is empty.
const selectNewestN = `SELECT max(
	COALESCE((SELECT max(n) FROM journal WHERE context = ?1), 0),
	COALESCE((SELECT max(n) FROM lineage WHERE context = ?1), 0))`

// checkN refuses a batch if the journal of its context has entries that it does not expect, or if
// the fork that it makes begins with such entries.
func (w *writer) checkN(b *store.Batch, shared []span) (refused, err error) {
	if b.ExpectN == 0 {
		return nil, nil
	}
	row, err := w.one(context.Background(), selectNewestN, b.Context)
	if err != nil {
		return nil, err
	}
	newest := integer(row[0])
	for _, s := range shared {
		newest = max(newest, s.n)
	}
	if newest > max(b.ExpectN, 0) {
		refused = &store.ConflictError{Context: b.Context}
	}
	return refused, nil
}

// selectNewestDate is the date of the newest that a context has of its own, up to a seq and a
// position.
const selectNewestDate = `SELECT max(
	COALESCE((SELECT date FROM messages WHERE context = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1), ''),
	COALESCE((SELECT date FROM journal WHERE context = ?1 AND n <= ?3 ORDER BY n DESC LIMIT 1), ''))`

// dates sets the dates of a batch's messages and entries.
func (w *writer) dates(b *store.Batch, c *ends, shared []span, now time.Time) error {
	w.dated = w.dated[:0]
	if len(b.Messages)+len(b.Journal) == 0 {
		return nil
	}
	if c.newest.IsZero() {
		if c.exists {
			var err error
			if shared, err = w.spans(context.Background(), b.Context); err != nil {
				return err
			}
		}
		for _, s := range shared {
			row, err := w.one(context.Background(), selectNewestDate, s.context, s.upto, s.n)
			if err != nil {
				return err
			}
			date, err := time.Parse(time.RFC3339, text(row[0]))
			if err == nil && date.After(c.newest) { // damage is found where it is read
				c.newest = date
			}
		}
	}
	w.dated = b.Dates(w.dated, now, c.newest)
	return nil
}

func (w *writer) insert(r *request, c *ends) error {
	b := &r.batch
	before, n := c.seq, w.n
	var name driver.Value = b.Context
	var formatted driver.Value // reused over many rows
	var last time.Time
	date := func(i int) driver.Value {
		if date := w.dated[i]; !date.Equal(last) {
			last, formatted = date, store.FormatDate(date)
			if date.After(c.newest) {
				c.newest = date
			}
		}
		return formatted
	}
	for i := range r.messages {
		m, row := &b.Messages[i], &r.messages[i]
		c.seq++
		w.values = append(w.values[:0], name, c.seq, date(i), string(m.Type))
		w.values = append(w.values, row.columns...)
		if err := w.exec(insertMessage, w.values...); err != nil {
			return err
		}
		if err := w.mark(insertWrite, row.touches, name, m.Instance, c.seq); err != nil {
			return err
		}
		if err := w.mark(insertLeaf, row.leaves, name, m.Instance, c.seq); err != nil {
			return err
		}
	}
	if err := w.keep(b.Code); err != nil {
		return err
	}
	w.n += store.Positions(b)
	for i := range b.Journal {
		e := &b.Journal[i]
		at, place := b.Place(i, before, n)
		if err := w.exec(insertJournal, place, name, at, date(len(b.Messages)+i), optional(e.Call), e.Event, optional(e.Data)); err != nil {
			return err
		}
		if err := w.insertExchanges(b.Context, place, e); err != nil {
			return err
		}
	}
	return nil
}

// mark writes where a message leaves values.
func (c *conn) mark(sql string, marks []store.Mark, name driver.Value, instance string, seq int64) error {
	for _, m := range marks {
		if err := c.exec(sql, name, m.Path.String(), instance, seq, int64(m.Form)); err != nil {
			return err
		}
	}
	return nil
}

// keep writes the scripts that are not in the file yet.
func (w *writer) keep(sets []*store.Code) error {
	for _, code := range sets {
		if code == nil || w.kept[code.Digest] {
			continue
		}
		for _, s := range code.Scripts {
			if err := w.exec(insertScript, s.SHA256, s.Path, string(s.Source)); err != nil {
				return err
			}
			if err := w.exec(insertGeneration, code.Digest, s.Path, s.SHA256); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	insertLog = `INSERT INTO logs (context, call, line, tool, attempt, date, level, printed, text, fields)
	VALUES (?1, ?2, COALESCE((SELECT max(line) FROM logs WHERE context = ?1 AND call = ?2), 0) + 1 + ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`
	// It deletes the newest line that is too much, and all lines before it; the newest of the call
	// stays. The size of a line is as store.LogLine counts it.
	dropLogs = `DELETE FROM logs WHERE context = ?1 AND call = ?2 AND line <= (
		SELECT max(line) FROM (
			SELECT line, sum(octet_length(text) + COALESCE(octet_length(fields), 0) + 64) OVER (ORDER BY line DESC) AS total
			FROM logs WHERE context = ?1 AND call = ?2)
		WHERE total > ?3 AND line < (SELECT max(line) FROM logs WHERE context = ?1 AND call = ?2))`
)

// insertLogs writes the lines of scripts that a batch has, and drops the oldest of their calls.
func (w *writer) insertLogs(b *store.Batch) error {
	calls := map[string]bool{}
	for i := range b.Logs {
		l := &b.Logs[i]
		calls[l.Call] = true
		err := w.exec(insertLog, b.Context, l.Call, l.Dropped, l.Tool, int64(l.Attempt), store.FormatDate(l.Date), l.Level.String(), l.Printed,
			l.Text, encoded(l.Fields, len(l.Fields) > 0))
		if err != nil {
			return err
		}
	}
	for call := range calls {
		if err := w.exec(dropLogs, b.Context, call, b.KeepLogs); err != nil {
			return err
		}
	}
	return nil
}

const insertExchange = `INSERT INTO exchanges (n, position, context, call, hash, request, request_bytes, answer, answer_bytes, error, usage)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// insertExchanges writes the exchanges of a journal entry.
func (w *writer) insertExchanges(name string, n int64, e *store.Entry) error {
	for i := range e.Exchanges {
		x := &e.Exchanges[i]
		err := w.exec(insertExchange, n, int64(i)+1, name, optional(e.Call), x.Hash, optional(x.Request), x.RequestSize,
			optional(x.Answer), x.AnswerSize, optional(x.Error), optional(x.Usage))
		if err != nil {
			return err
		}
	}
	return nil
}
