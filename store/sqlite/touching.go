package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"obelus/store"
)

// Touching implements [store.Log]. Operations at the path or above it are read row by row, down an
// index; for those below it see descendants. A reader that stops at the first operation has paid
// for a few rows, however long the log is.
func (l *Log) Touching(ctx context.Context, q store.Query) iter.Seq2[store.Op, error] {
	return sequence(l, ctx, func(c *conn, yield func(store.Op) bool) error {
		more, fork, err := c.touching(ctx, q, yield)
		if err != nil || !more || !fork {
			return err
		}
		spans, err := c.spans(ctx, q.Context)
		for _, s := range spans[1:] {
			if s.beside(0, q.At) {
				continue
			}
			part := q
			if part.Context = s.context; q.At == 0 || q.At > s.upto {
				part.At = s.upto
			}
			if more && err == nil {
				more, _, err = c.touching(ctx, part, yield)
			}
		}
		return err
	})
}

// touching yields the operations of a context itself, and reports whether it is a fork.
func (c *conn) touching(ctx context.Context, q store.Query, yield func(store.Op) bool) (more, fork bool, err error) {
	t := &touching{conn: c, ctx: ctx, q: q}
	defer t.close()
	if err := t.probe(); err != nil {
		return false, false, err
	}
	for {
		op, ok, err := t.next()
		if err != nil || !ok || !yield(op) {
			return err == nil && !ok, t.fork, err
		}
	}
}

// touching merges the operations above, at and below a path.
type touching struct {
	*conn
	ctx   context.Context
	q     store.Query // its At is set
	above []*stream   // one for each prefix of the path that has writes
	under descendants
	fork  bool // there is more, in the contexts that it was forked from
}

// stream is the operations at one path, newest first. top is the seq of the
// next, 0 after the last.
type stream struct {
	slot   int
	path   store.Path
	top    int64
	cursor *cursor // nil until the first is asked for
	given  bool    // the cursor's row has been given away
}

// probe asks in one statement, and so at one moment of the log, for its end, for the newest write
// at each prefix of the path, and whether there is anything below. With a given end it does not ask
// for that, near which SQLite reads all of a row, however large, to compare its key.
func (t *touching) probe() error {
	prefixes, end := t.q.Path.Prefixes(), `?3`
	if t.q.At == 0 {
		t.q.At, end = math.MaxInt64, `(SELECT max(seq) FROM messages WHERE context = ?1)`
	}
	var sql strings.Builder
	sql.WriteString(`SELECT ` + end + `,
		EXISTS (SELECT 1 FROM writes WHERE context = ?1 AND path > ?4 AND path < ?5)
		OR EXISTS (SELECT 1 FROM writes WHERE context = ?1 AND path > ?6 AND path < ?7),
		EXISTS (SELECT 1 FROM lineage WHERE context = ?1)`)
	r := below(t.q.Path)
	values := []driver.Value{t.q.Context, t.q.Instance, t.q.At, r[0][0], r[0][1], r[1][0], r[1][1]}
	for _, p := range prefixes {
		values = append(values, p.String())
		fmt.Fprintf(&sql, `, (SELECT max(seq) FROM writes WHERE context = ?1 AND path = ?%d AND instance = ?2 AND seq <= ?3)`, len(values))
	}
	row, err := t.one(t.ctx, sql.String(), values...)
	if err != nil {
		return err
	}
	t.q.At = min(t.q.At, integer(row[0]))
	t.fork = integer(row[2]) == 1
	if integer(row[1]) == 1 {
		t.under = descendants{limit: firstLimit, hi: t.q.At}
	}
	for i, p := range prefixes {
		if top := integer(row[3+i]); top > 0 {
			t.above = append(t.above, &stream{slot: i, path: p, top: top})
		}
	}
	return nil
}

func (t *touching) close() {
	for _, s := range t.above {
		if s.cursor != nil {
			s.cursor.close()
		}
	}
	t.under.close()
}

// next gives the newest operation that is left.
func (t *touching) next() (op store.Op, ok bool, err error) {
	var newest *stream
	top := int64(0)
	for _, s := range t.above {
		if s.given {
			if err := s.advance(); err != nil {
				return op, false, err
			}
		}
		if s.top > top {
			newest, top = s, s.top
		}
	}
	if op, ok, err = t.descendant(top); ok || err != nil {
		return op, ok, err
	}
	if newest == nil {
		return op, false, nil
	}
	op, err = t.first(newest)
	// Of an older obelus the index may have a merge of many leaves above the path, where
	// this one would have it below: it is given once.
	t.under.hi = min(t.under.hi, top-1)
	return op, err == nil, err
}

// opColumns are the columns of an operation, after its seq.
const opColumns = "m.kind, m.path, m.method, m.data, m.producer IS NOT NULL, m.instance, " + ownIdentity

// selectAt joins in this order, or the rows would have to be sorted. A message
// that is gone leaves a row without a kind.
const selectAt = "SELECT w.seq, " + opColumns + ` FROM writes w LEFT JOIN messages m ON m.context = w.context AND m.seq = w.seq
	WHERE w.context = ? AND w.path = ? AND w.instance = ? AND w.seq <= ? ORDER BY w.seq DESC`

// first returns a stream's next operation. The row after it is read only when more is asked for.
func (t *touching) first(s *stream) (store.Op, error) {
	if s.cursor == nil {
		var err error
		s.cursor, err = t.query(t.ctx, statementKey{selectAt, s.slot}, t.q.Context, s.path.String(), t.q.Instance, s.top)
		if err != nil {
			return store.Op{}, err
		}
		if err := s.advance(); err != nil {
			return store.Op{}, err
		}
	}
	s.given = true
	op, err := t.op(s.cursor.row)
	if err == nil && !op.WritesAt(s.path) {
		err = t.misled(op.Seq, s.path)
	}
	return op, err
}

// misled is what to say of a message that does not write where the index has it.
func (t *touching) misled(seq int64, path store.Path) error {
	return &problem{ErrDamaged, fmt.Sprintf("is damaged: message %d of context %s does not write at %s, as the index has it", seq, t.q.Context, path)}
}

func (s *stream) advance() error {
	more, err := s.cursor.next()
	if s.given, s.top = false, 0; more {
		s.top = integer(s.cursor.row[0])
	}
	return err
}

// op reads a row of a seq and opColumns.
func (t *touching) op(row []driver.Value) (store.Op, error) {
	m := store.Message{
		Seq: integer(row[0]), Type: store.TypeData, Kind: text(row[1]), Instance: t.q.Instance,
		Method: store.Method(text(row[3])), Data: store.Some(nil),
	}
	wrong := func(what string) error {
		return &problem{ErrDamaged, fmt.Sprintf("is damaged: message %d of context %s: %s", m.Seq, t.q.Context, what)}
	}
	if m.Kind == "" {
		return store.Op{}, &problem{ErrDamaged, fmt.Sprintf("is damaged: message %d of context %s is missing", m.Seq, t.q.Context)}
	}
	if text(row[6]) != t.q.Instance || text(row[7]) != identity(t.q.Context, m.Seq) {
		return store.Op{}, wrong("the index leads to another message")
	}
	if m.Method != "" && !slices.Contains(store.Methods, m.Method) {
		return store.Op{}, wrong(fmt.Sprintf("there is no method %q", m.Method))
	}
	var err error
	if m.Data.Value, err = decoded(row[4]); err != nil {
		return store.Op{}, wrong(err.Error())
	}
	if integer(row[5]) == 1 {
		m.Producer = true // the operation depends only on whether there is one
		switch path := text(row[2]); path {
		case t.q.Path.String():
			m.Path = t.q.Path
		case "": // an error, which stands at the root of its kind
		default:
			if m.Path, err = store.ParsePath(path); err != nil {
				return store.Op{}, wrong(err.Error())
			}
		}
		if text(row[2]) != "" && m.Path.Kind() != m.Kind {
			return store.Op{}, wrong(fmt.Sprintf("its path %s is not of its kind %q", m.Path, m.Kind))
		}
	}
	op, ok := m.Op()
	if !ok {
		return store.Op{}, wrong("it writes at a path that its data does not hold")
	}
	return op, nil
}

// firstLimit is how many rows are looked at for what stands below a path
// before it counts as much.
const firstLimit = 256

// descendants are the operations below a path. The index has them by path and they are wanted by
// seq. Where there are few they are read and sorted. Where there are many, an operation at the path
// or above it may be newer than all but a few of them, and settle the value: then the few messages
// after that one are read instead. Both are tried with limits that grow together, at a cost like
// the cheaper one's.
type descendants struct {
	limit  int     // 0 if there are none
	tried  int     // the limit within which all could not be read
	others bool    // most of the operations below are of other instances
	all    bool    // seqs are all that are left
	seqs   []int64 // ascending
	hi     int64   // nothing above it is left
	lo     int64   // where the messages that cursor reads end
	cursor *cursor
}

func (d *descendants) close() {
	if d.cursor != nil {
		d.cursor.close()
		d.cursor = nil
	}
}

// descendant returns the newest remaining operation below the path, if it is newer than the
// remaining ones at the path and above it.
func (t *touching) descendant(than int64) (op store.Op, ok bool, err error) {
	d := &t.under
	for d.limit > 0 && (d.all || d.hi > than) {
		switch {
		case d.all:
			return t.gathered(than)
		case d.cursor != nil:
			if op, ok, err = t.scan(); ok || err != nil {
				return op, ok, err
			}
		case d.tried < d.limit:
			if err := t.gather(); err != nil {
				return op, false, err
			}
		case d.hi-than <= int64(d.limit):
			if err := t.window(than); err != nil {
				return op, false, err
			}
		default:
			d.limit *= 4
		}
	}
	return op, false, nil
}

// selectBelow gives the seqs of the instance, and 0 for what else it looks at.
const selectBelow = `SELECT CASE WHEN instance = ?2 AND seq <= ?3 THEN seq ELSE 0 END FROM writes
	WHERE context = ?1 AND path > ?4 AND path < ?5
	UNION ALL
	SELECT CASE WHEN instance = ?2 AND seq <= ?3 THEN seq ELSE 0 END FROM writes
	WHERE context = ?1 AND path > ?6 AND path < ?7
	LIMIT ?8`

// selectSeeking gives the same, but asks for the instance at one path after another,
// so that other instances, however many there are, cost nothing. A 0 comes of a path
// where the instance has nothing, and where each range ends.
const selectSeeking = `WITH RECURSIVE paths(path, upto) AS (
		SELECT min(path), ?5 FROM writes WHERE context = ?1 AND path > ?4 AND path < ?5
		UNION ALL
		SELECT min(path), ?7 FROM writes WHERE context = ?1 AND path > ?6 AND path < ?7
		UNION ALL
		SELECT (SELECT min(w.path) FROM writes w WHERE w.context = ?1 AND w.path > paths.path AND w.path < upto), upto
		FROM paths WHERE path IS NOT NULL)
	SELECT COALESCE(w.seq, 0) FROM paths LEFT JOIN writes w
		ON w.context = ?1 AND w.path = paths.path AND w.instance = ?2 AND w.seq <= ?3
	LIMIT ?8`

// gather reads all that is below the path, if that is within the limit.
func (t *touching) gather() error {
	d, r := &t.under, below(t.q.Path)
	values := []driver.Value{t.q.Context, t.q.Instance, d.hi, r[0][0], r[0][1], r[1][0], r[1][1], int64(d.limit) + 1}
	sql := selectBelow
	if d.others {
		sql = selectSeeking
	}
	seen := 0
	d.seqs, d.tried = d.seqs[:0], d.limit
	err := t.each(t.ctx, sql, values, func(row []driver.Value) (bool, error) {
		seen++
		if seq := integer(row[0]); seq > 0 {
			d.seqs = append(d.seqs, seq)
		}
		return true, nil
	})
	if err == nil && seen <= d.limit {
		d.all = true
		slices.Sort(d.seqs)
		d.seqs = slices.Compact(d.seqs)
	}
	d.others = d.others || len(d.seqs) < seen/2
	return err
}

const selectOne = "SELECT m.seq, " + opColumns + " FROM messages m WHERE m.context = ? AND m.seq = ?"

func (t *touching) gathered(than int64) (op store.Op, ok bool, err error) {
	d := &t.under
	last := len(d.seqs) - 1
	if last < 0 || d.seqs[last] <= than {
		return op, false, nil
	}
	row, err := t.one(t.ctx, selectOne, t.q.Context, d.seqs[last])
	if err == nil {
		row[0] = d.seqs[last] // also of a removed message
		op, err = t.op(row)
	}
	if err == nil && !op.WritesBelow(t.q.Path) {
		err = t.misled(op.Seq, t.q.Path)
	}
	d.seqs = d.seqs[:last]
	return op, err == nil, err
}

// selectWindow lets every merge through: its leaves may be below the path
// wherever it stands itself.
const selectWindow = "SELECT m.seq, " + opColumns + ` FROM messages m
	WHERE m.context = ?1 AND m.seq > ?2 AND m.seq <= ?3 AND m.type = 'data' AND m.kind = ?4 AND m.instance = ?5
	AND m.data IS NOT NULL AND (m.path IS NULL OR m.method = 'merge' OR m.path > ?6 AND m.path < ?7 OR m.path > ?8 AND m.path < ?9)
	ORDER BY m.seq DESC`

// window begins to read the messages after a seq.
func (t *touching) window(lo int64) (err error) {
	d, r := &t.under, below(t.q.Path)
	d.lo = lo
	d.cursor, err = t.query(t.ctx, statementKey{sql: selectWindow}, t.q.Context, lo, d.hi, t.q.Path.Kind(), t.q.Instance,
		r[0][0], r[0][1], r[1][0], r[1][1])
	return err
}

// scan gives the window's next operation that is below the path.
func (t *touching) scan() (op store.Op, ok bool, err error) {
	d := &t.under
	for {
		more, err := d.cursor.next()
		if err != nil {
			return op, false, err
		}
		if !more {
			d.close()
			d.hi = d.lo
			return op, false, nil
		}
		if op, err = t.op(d.cursor.row); err != nil {
			return op, false, err
		}
		if slices.ContainsFunc(op.Touches(), func(p store.Path) bool { return p != t.q.Path && t.q.Path.Contains(p) }) {
			return op, true, nil
		}
	}
}
