package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"obelus/store"
)

// sequence makes an iterator of a function that hands on values until yield
// wants no more or something goes wrong.
func sequence[T any](l *Log, ctx context.Context, walk func(c *conn, yield func(T) bool) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		began, stopped := false, false
		err := ctx.Err()
		for again := err == nil; again; again = errors.Is(err, errWrittenMeanwhile) && !began {
			err = l.readers.read(func(c *conn) error {
				return walk(c, func(v T) bool {
					if c.fingerprint.check(nil) != nil { // read reports it
						return false
					}
					began, stopped = true, !yield(v, nil)
					return !stopped
				})
			})
		}
		if err != nil && !stopped {
			var zero T
			yield(zero, explain(l.path, err))
		}
	}
}

// selectHead is the newest seq of a context.
const selectHead = `COALESCE((SELECT max(seq) FROM messages WHERE context = ?1), (SELECT max(upto) FROM lineage WHERE context = ?1))`

const selectHeadOf = `SELECT 1, ` + selectHead + ` FROM contexts WHERE context = ?1`

// Head implements [store.Log].
func (l *Log) Head(ctx context.Context, name string) (seq int64, err error) {
	row, err := l.ofContext(ctx, name, selectHeadOf)
	if err != nil {
		return 0, err
	}
	return integer(row[1]), nil
}

// ofContext gives the row of a query that has none for an absent context.
func (l *Log) ofContext(ctx context.Context, name, sql string) (row []driver.Value, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = l.readers.read(func(c *conn) error {
		row, err = c.one(ctx, sql, name)
		return err
	})
	if err != nil {
		return nil, explain(l.path, err)
	}
	if row[0] == nil {
		return nil, fmt.Errorf("%w: %s", store.ErrNoContext, name)
	}
	return row, nil
}

// selectKinds goes from each path and instance to the next by the index, since a path may have been
// written any number of times. The index serves a comparison of rows only if the operand has no
// type of its own, hence the +, and only from the row on, hence a blob: it is greater than any seq,
// and than any text.
const selectKinds = `WITH RECURSIVE pairs (path, instance) AS (
		SELECT * FROM (SELECT path, instance FROM writes WHERE context = ?1 AND path > '' ORDER BY path, instance LIMIT 1)
		UNION ALL
		SELECT w.path, w.instance FROM pairs AS p CROSS JOIN writes AS w
		WHERE w.context = ?1 AND (w.path, w.instance, w.seq) = (
			SELECT path, instance, seq FROM writes
			WHERE context = ?1 AND (path, instance, seq) > (+p.path, +p.instance, x'') ORDER BY path, instance, seq LIMIT 1))
	SELECT DISTINCT instance, substr(path, 2, min(instr(path || '.', '.'), instr(path || '[', '[')) - 2) AS kind
	FROM pairs AS p
	WHERE ?2 = 9223372036854775807 OR (SELECT min(seq) FROM writes WHERE context = ?1 AND path = p.path AND instance = p.instance) <= ?2
	ORDER BY instance, kind`

// Kinds implements [store.Log]. Its cost is proportional to the number of different paths in the
// context, not of messages.
func (l *Log) Kinds(ctx context.Context, name string) (kinds []store.KindOf, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = l.readers.read(func(c *conn) error {
		spans, err := c.spans(ctx, name)
		for _, s := range spans {
			if err == nil {
				err = c.each(ctx, selectKinds, []driver.Value{s.context, s.upto}, func(row []driver.Value) (bool, error) {
					kinds = append(kinds, store.KindOf{Instance: text(row[0]), Kind: text(row[1])})
					return true, nil
				})
			}
		}
		return err
	})
	if err != nil {
		return nil, explain(l.path, err)
	}
	return store.SortKinds(kinds), nil
}

// conditions collects the WHERE of a query with its values.
type conditions struct {
	sql    []string
	values []driver.Value
}

func (w *conditions) add(sql string, values ...driver.Value) {
	w.sql, w.values = append(w.sql, sql), append(w.values, values...)
}

func (w *conditions) String() string {
	if len(w.sql) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.sql, " AND ")
}

func direction(newest bool) string {
	if newest {
		return " DESC"
	}
	return ""
}

const (
	storedColumns = `context, seq, date, type, kind, instance, path, method, data, schema,
	description, mode, call, producer, written`
	messageColumns = storedColumns + ", " + ownIdentity
)

// ownIdentity gives the context and the seq in a message's row. SQLite takes m.context and m.seq
// from the index by which it found the row.
const ownIdentity = `(SELECT r.context || ' ' || r.seq FROM messages AS r WHERE r.rowid = m.rowid)`

func identity(context string, seq int64) string {
	return context + " " + strconv.FormatInt(seq, 10)
}

// Messages implements [store.Log]. Where all are asked for, one that is missing is noticed.
func (l *Log) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	return func(yield func(*store.Message, error) bool) {
		r := &messageReader{ctx: ctx, filter: f}
		few := f.Newest || f.Type != "" || f.Kind != "" || !f.Since.IsZero() || f.Schema
		pages(l, ctx, firstOf(few), ofOne(ctx, f.Context, r.read), r.goOn)(yield)
	}
}

// firstOf is the size of a first page. few says that mostly one value is wanted, the newest, or
// that all are read to find those that a filter picks.
func firstOf(few bool) int {
	if few {
		return 1
	}
	return 4 * firstPage
}

// messageReader reads a list of messages page by page.
type messageReader struct {
	ctx    context.Context
	filter store.Filter // of those that are left
	end    int64        // the newest message when the first page was read, if that was not all
	// If the filter has a path: the messages that touch it, by context, see [conn.touched].
	touched map[string][]int64
}

// goOn leaves the messages after one.
func (r *messageReader) goOn(after *store.Message) (more bool) {
	f := &r.filter
	if f.Newest {
		f.At = after.Seq - 1
		return f.At > 0
	}
	f.After, f.At = after.Seq, max(f.At, r.end)
	return f.After < f.At
}

// read reads the next page.
func (r *messageReader) read(c *conn, p *page[*store.Message]) error {
	f, next := r.filter, int64(0)
	if f == (store.Filter{Context: f.Context, After: f.After, At: f.At}) {
		next = max(f.After, 0) + 1
	}
	missing := func() error {
		return &problem{ErrDamaged, fmt.Sprintf("is damaged: message %d of context %s is missing", next, f.Context)}
	}
	err := c.overSpans(r.ctx, f.Context, f.Newest, func(s span) (more bool, err error) {
		if s.beside(f.After, f.At) {
			return true, nil
		}
		part := f
		if part.Context = s.context; s.upto < math.MaxInt64 && (f.At == 0 || f.At > s.upto) {
			part.At = s.upto
		}
		return r.readPart(c, part, p, func(row []driver.Value) (more bool, err error) {
			m, err := message(row)
			if err == nil && next > 0 && m.Seq != next {
				err = missing()
			}
			if err != nil {
				return false, err
			}
			if next > 0 {
				next++
			}
			m.Context = f.Context
			return p.add(m, row), nil
		})
	})
	switch {
	case err != nil:
		return err
	case p.full() && r.end == 0 && f.At == 0 && !f.Newest:
		row, err := c.one(r.ctx, selectHeadOf, f.Context)
		if err == nil {
			r.end = integer(row[1])
		}
		return err
	case p.full(), next == 0, next > r.end:
		return nil
	}
	return missing()
}

// readPart reads the next messages of one context, and reports whether there is room for more.
func (r *messageReader) readPart(c *conn, f store.Filter, p *page[*store.Message], use func(row []driver.Value) (more bool, err error)) (more bool, err error) {
	sql, values := selectMessages(f)
	if f.Path.IsZero() {
		err := c.each(r.ctx, sql, values, use)
		return !p.full(), err
	}
	seqs, known := r.touched[f.Context]
	if !known {
		if seqs, err = c.touched(r.ctx, f.Context, f.Path); err != nil {
			return false, err
		}
		if r.touched == nil {
			r.touched = map[string][]int64{}
		}
		r.touched[f.Context] = seqs
	}
	first, _ := slices.BinarySearch(seqs, f.After+1)
	if seqs = seqs[first:]; f.At > 0 {
		last, _ := slices.BinarySearch(seqs, f.At+1)
		seqs = seqs[:last]
	}
	for len(seqs) > 0 && !p.full() {
		var some []int64
		if n := min(len(seqs), max(p.size, lastPage/16)); f.Newest {
			seqs, some = seqs[:len(seqs)-n], seqs[len(seqs)-n:]
		} else {
			some, seqs = seqs[:n], seqs[n:]
		}
		if err := c.each(r.ctx, sql, append(values[:len(values):len(values)], list(some)), use); err != nil {
			return false, err
		}
	}
	return !p.full(), nil
}

// list gives numbers the form that json_each takes.
func list(numbers []int64) string {
	b := []byte{'['}
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(append(b, ']'))
}

// overSpans goes through the spans of a context's log until a function needs no more.
func (c *conn) overSpans(ctx context.Context, name string, newest bool, use func(span) (more bool, err error)) error {
	spans, err := c.spans(ctx, name)
	if err != nil {
		return err
	}
	if !newest {
		slices.Reverse(spans)
	}
	for _, s := range spans {
		if more, err := use(s); err != nil || !more {
			return err
		}
	}
	return nil
}

// selectMessages picks messages of one context. With a path, the last value is missing: a list of
// seqs.
func selectMessages(f store.Filter) (sql string, values []driver.Value) {
	var w conditions
	w.add("context = ?", f.Context)
	if f.After > 0 {
		w.add("seq > ?", f.After)
	}
	if f.At > 0 {
		w.add("seq <= ?", f.At)
	}
	if f.Type != "" {
		w.add("type = ?", string(f.Type))
	}
	if f.Kind != "" {
		w.add("kind = ?", f.Kind)
	}
	if !f.Since.IsZero() {
		w.add("date >= ?", store.FormatDate(f.Since.Add(time.Millisecond-1)))
	}
	if f.Schema {
		w.add("schema IS NOT NULL")
	}
	// SQLite does not know how few messages are in the partial indexes.
	table := "messages AS m"
	switch {
	case !f.Path.IsZero():
		w.add("seq IN (SELECT value FROM json_each(?))")
	case f.Schema:
		table += " INDEXED BY messages_schema"
	case f.Type != "" && f.Type != store.TypeData:
		table += " INDEXED BY messages_other"
		w.add("type <> 'data'")
	}
	return "SELECT " + messageColumns + " FROM " + table + w.String() + " ORDER BY seq" + direction(f.Newest), w.values
}

// touched are the seqs of a context's messages that touch a path in any instance, oldest first.
func (c *conn) touched(ctx context.Context, name string, path store.Path) (seqs []int64, err error) {
	prefixes := path.Prefixes()
	sql, values := "SELECT seq FROM writes WHERE context = ? AND path IN (?"+strings.Repeat(", ?", len(prefixes)-1)+")", []driver.Value{name}
	for _, p := range prefixes {
		values = append(values, p.String())
	}
	for _, r := range below(path) {
		sql += " UNION SELECT seq FROM writes WHERE context = ? AND path > ? AND path < ?"
		values = append(values, name, r[0], r[1])
	}
	err = c.each(ctx, sql+" ORDER BY seq", values, func(row []driver.Value) (bool, error) {
		seqs = append(seqs, integer(row[0]))
		return true, nil
	})
	return seqs, err
}

// below are the two ranges of text, without their ends, in which all paths
// below a path are: after it stands "." or "[", and nothing else stands there.
func below(path store.Path) [2][2]string {
	p := path.String()
	return [2][2]string{{p + ".", p + "/"}, {p + "[", p + `\`}}
}

// message reads a row of messageColumns.
func message(row []driver.Value) (*store.Message, error) {
	m := &store.Message{
		Context: text(row[0]), Seq: integer(row[1]), Type: store.Type(text(row[3])), Kind: text(row[4]),
		Instance: text(row[5]), Method: store.Method(text(row[7])), Description: text(row[10]),
		Mode: text(row[11]), Call: text(row[12]), Written: text(row[14]),
	}
	wrong := func(err error) error {
		return &problem{ErrDamaged, fmt.Sprintf("is damaged: message %d of context %s: %v", m.Seq, m.Context, err)}
	}
	var err error
	if text(row[15]) != identity(m.Context, m.Seq) {
		return nil, wrong(errors.New("the index leads to another message"))
	}
	if m.Date, err = date(row[2]); err != nil {
		return nil, wrong(err)
	}
	if !m.Type.Valid() {
		return nil, wrong(fmt.Errorf("there is no type %q", m.Type))
	}
	if m.Method != "" && !slices.Contains(store.Methods, m.Method) {
		return nil, wrong(fmt.Errorf("there is no method %q", m.Method))
	}
	if path := text(row[6]); path != "" {
		if m.Path, err = store.ParsePath(path); err != nil {
			return nil, wrong(err)
		}
		if m.Path.Kind() != m.Kind {
			return nil, wrong(fmt.Errorf("its path %s is not of its kind %q", m.Path, m.Kind))
		}
	}
	m.Data.Set = row[8] != nil
	if m.Data.Value, err = decoded(row[8]); err != nil {
		return nil, wrong(err)
	}
	if m.Schema, err = decoded(row[9]); err != nil {
		return nil, wrong(err)
	}
	if m.Producer, err = decoded(row[13]); err != nil {
		return nil, wrong(err)
	}
	return m, nil
}

func decoded(v driver.Value) (any, error) {
	if v == nil {
		return nil, nil
	}
	return store.DecodeJSON([]byte(text(v)))
}

func date(v driver.Value) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text(v))
	if err != nil {
		err = fmt.Errorf("%q is no date", text(v))
	}
	return t.UTC(), err
}

// Journal implements [store.Log].
func (l *Log) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		f, end := f, int64(0) // end is the newest entry when the first page was read, if that was not all
		read := func(c *conn, p *page[store.Entry]) error {
			err := c.entries(ctx, f, p)
			if err == nil && p.full() && end == 0 && f.At == 0 && !f.Newest {
				var row []driver.Value
				if row, err = c.one(ctx, selectNewestOfAll); err == nil {
					end = integer(row[0])
				}
			}
			return err
		}
		goOn := func(e store.Entry) bool {
			if f.Newest {
				f.At = e.N - 1
				return f.At > 0
			}
			f.Seq, f.After, f.At = 0, e.N, max(f.At, end) // the entries after one are not older than Seq
			return f.After < f.At
		}
		if f.Context != "" {
			read = ofOne(ctx, f.Context, read)
		}
		pages(l, ctx, firstOf(f.Newest || f.Call != "" || f.Seq > 0), read, goOn)(yield)
	}
}

// entries reads the next entries that a filter picks.
func (c *conn) entries(ctx context.Context, f store.JournalFilter, p *page[store.Entry]) error {
	if f.Context == "" {
		_, err := c.journal(ctx, f, span{n: math.MaxInt64}, p)
		return err
	}
	return c.overSpans(ctx, f.Context, f.Newest, func(s span) (more bool, err error) {
		return c.journal(ctx, f, s, p)
	})
}

// journal reads the next entries of one context, or of all, and reports whether there is room for
// more.
func (c *conn) journal(ctx context.Context, f store.JournalFilter, s span, p *page[store.Entry]) (more bool, err error) {
	var w conditions
	if s.context != "" {
		w.add("context = ?", s.context)
	}
	if f.Seq > 0 && s.context != "" {
		first, _, err := c.entryFrom(ctx, s.context, f.Seq)
		if err != nil || first == 0 {
			return true, err
		}
		f.After = max(f.After, first-1)
	}
	if f.After > 0 {
		w.add("n > ?", f.After)
	}
	if f.At > 0 && f.At < s.n {
		s.n = f.At
	}
	if s.n < math.MaxInt64 {
		w.add("n <= ?", s.n)
	}
	if f.Event != "" {
		w.add("event = ?", f.Event)
	}
	switch {
	case f.Call != "":
		w.add("call = ?", f.Call)
	case f.Event != "":
		w.add("call IS NULL")
	}
	more = true
	data := "data"
	if f.Bare {
		data = "NULL"
	}
	sql := "SELECT n, context, seq, date, call, event, " + data + ", (SELECT r.context FROM journal AS r WHERE r.n = j.n) FROM journal AS j" + w.String() + " ORDER BY n" + direction(f.Newest)
	err = c.each(ctx, sql, w.values, func(row []driver.Value) (bool, error) {
		e, err := entry(row)
		if err == nil {
			if f.Context != "" {
				e.Context = f.Context
			}
			more = p.add(e, row)
		}
		return more, err
	})
	return more, err
}

func entry(row []driver.Value) (store.Entry, error) {
	e := store.Entry{N: integer(row[0]), Context: text(row[1]), Seq: integer(row[2]), Call: text(row[4]), Event: text(row[5]), Data: text(row[6])}
	var err error
	if text(row[7]) != e.Context { // as the index has it
		return e, &problem{ErrDamaged, fmt.Sprintf("is damaged: the index leads to event %d of another context", e.N)}
	}
	if e.Date, err = date(row[3]); err != nil {
		return e, &problem{ErrDamaged, fmt.Sprintf("is damaged: event %d: %v", e.N, err)}
	}
	return e, nil
}

// Code implements [store.Log].
func (l *Log) Code(ctx context.Context, digest string) (*store.Code, error) {
	code := &store.Code{Digest: digest}
	const sql = `SELECT g.path, g.sha256, s.source FROM generations AS g
		JOIN scripts AS s ON s.sha256 = g.sha256 AND s.path = g.path WHERE g.generation = ? ORDER BY g.path`
	for script, err := range sequence(l, ctx, func(c *conn, yield func(store.Script) bool) error {
		return c.each(ctx, sql, []driver.Value{digest}, func(row []driver.Value) (bool, error) {
			return yield(store.Script{Path: text(row[0]), SHA256: text(row[1]), Source: []byte(text(row[2]))}), nil
		})
	}) {
		if err != nil {
			return nil, err
		}
		code.Scripts = append(code.Scripts, script)
	}
	if code.Scripts == nil {
		return nil, fmt.Errorf("%w: %s", store.ErrNoCode, digest)
	}
	return code, nil
}
