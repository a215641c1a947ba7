package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"

	"obelus/store"
)

// span is a part of a context's log: the messages and entries of one context, itself or one that it
// was forked from, up to a seq and up to a position in the journal.
type span struct {
	context string
	upto, n int64
	from    int64 // the seq after which it can begin
}

// beside reports that none of its messages are after one seq and up to another, 0 being none.
func (s span) beside(after, at int64) bool { return at > 0 && at <= s.from || after >= s.upto }

const selectLineage = `SELECT ancestor, upto, n FROM lineage WHERE context = ?1 ORDER BY upto DESC, n DESC`

// spans are the parts of a context's log, newest first: its own, and for a fork those that it
// shares.
func (c *conn) spans(ctx context.Context, name string) ([]span, error) {
	all := []span{{context: name, upto: math.MaxInt64, n: math.MaxInt64}}
	err := c.each(ctx, selectLineage, []driver.Value{name}, func(row []driver.Value) (bool, error) {
		all = append(all, span{context: text(row[0]), upto: integer(row[1]), n: integer(row[2])})
		return true, nil
	})
	// Spans up to the same seq begin where the first of them does.
	for i := len(all) - 2; i >= 0; i-- {
		older := all[i+1]
		if all[i].from = older.upto; older.upto == all[i].upto {
			all[i].from = older.from
		}
	}
	return all, err
}

// entryFrom is the position of a context's own first event from the time when it had reached a seq,
// and the seq of that event; 0 if there is none. Both grow together, so that bisection finds it.
func (c *conn) entryFrom(ctx context.Context, name string, seq int64) (n, found int64, err error) {
	row, err := c.one(ctx, `SELECT (SELECT min(n) FROM journal WHERE context = ?1), (SELECT max(n) FROM journal WHERE context = ?1)`, name)
	if err != nil {
		return 0, 0, err
	}
	lo, hi := integer(row[0]), integer(row[1])
	for lo <= hi && lo > 0 {
		row, err := c.one(ctx, `SELECT n, seq FROM journal WHERE context = ?1 AND n >= ?2 ORDER BY n LIMIT 1`, name, lo+(hi-lo)/2)
		if err != nil {
			return 0, 0, err
		}
		if integer(row[1]) >= seq {
			n, found, hi = integer(row[0]), integer(row[1]), lo+(hi-lo)/2-1
		} else {
			lo = integer(row[0]) + 1
		}
	}
	return n, found, nil
}

// entryUpTo is a context's own last event up to a position, and the seq that the
// context had.
func (c *conn) entryUpTo(ctx context.Context, name string, most int64) (n, seq int64, err error) {
	row, err := c.one(ctx, `SELECT n, seq FROM journal WHERE context = ?1 AND n <= ?2 ORDER BY n DESC LIMIT 1`, name, most)
	if err != nil {
		return 0, 0, err
	}
	return integer(row[0]), integer(row[1]), nil
}

const insertLineage = `INSERT INTO lineage (context, ancestor, upto, n) VALUES (?1, ?2, ?3, ?4)`

// forked finds the spans that a fork begins with, oldest first. refused is the reason why there can
// be no such fork.
func (w *writer) forked(o *store.Origin) (shared []span, refused, err error) {
	ctx := context.Background()
	parent, err := w.ends(o.Fork)
	if err != nil {
		return nil, nil, err
	}
	if !parent.exists {
		return nil, fmt.Errorf("%w: %s", store.ErrNoContext, o.Fork), nil
	}
	if o.At < 1 || o.At > parent.seq {
		return nil, &store.ForkError{Context: o.Fork, At: o.At, Head: parent.seq}, nil
	}
	all, err := w.spans(ctx, o.Fork)
	older := int64(0) // the seq that the spans so far reach
	for i := len(all) - 1; i >= 0 && err == nil && older <= o.At; i-- {
		s := all[i]
		if s.upto > o.At {
			var inside *store.ForkError
			if s.n, inside, err = w.boundary(ctx, s, o.At, older); inside != nil {
				inside.Context = o.Fork
				return nil, inside, err
			}
		}
		older, s.upto = s.upto, min(s.upto, o.At)
		shared = append(shared, s)
	}
	return shared, nil, err
}

// selectPart finds the first message in a range of seqs that must not be separated from the event
// after it which describes it.
const selectPart = `SELECT min(seq) FROM messages WHERE context = ?1 AND seq > ?2 AND seq <= ?3 AND (call IS NOT NULL OR type = 'plan' OR kind = 'error')`

// boundary is the position of the last event of a span that belongs to a seq, which must not be
// within the writes of a call.
func (w *writer) boundary(ctx context.Context, s span, at, older int64) (n int64, refused *store.ForkError, err error) {
	first, seq, err := w.entryFrom(ctx, s.context, at)
	if err != nil {
		return 0, nil, err
	}
	if first > 0 && first <= s.n && seq > at && at > older {
		_, before, err := w.entryUpTo(ctx, s.context, first-1)
		if err != nil {
			return 0, nil, err
		}
		part, err := w.one(ctx, selectPart, s.context, max(before, older), at)
		if err != nil {
			return 0, nil, err
		}
		if inside := integer(part[0]); inside > 0 {
			return 0, &store.ForkError{At: at, Before: inside - 1, After: seq}, nil
		}
	}
	most := s.n
	next, _, err := w.entryFrom(ctx, s.context, at+1)
	if next > 0 {
		most = min(most, next-1)
	}
	if err == nil {
		n, _, err = w.entryUpTo(ctx, s.context, most)
	}
	return n, nil, err
}

// create makes the context of an append, and records the spans that a fork shares.
func (w *writer) create(r *request, shared []span, created, updated string) error {
	name, o := r.batch.Context, r.batch.Create
	var fork, at driver.Value
	if o.Fork != "" {
		fork, at = o.Fork, o.At
	}
	standing := r.batch.Standing
	if standing == nil {
		standing = &store.Standing{}
	}
	w.values = append(w.values[:0], name, optional(o.Parent), optional(o.Call), created, updated, fork, at, r.bytes, r.batch.Once)
	w.values = standingValues(w.values, standing)
	if err := w.exec(insertContext, w.values...); err != nil {
		return err
	}
	for _, s := range shared {
		if err := w.exec(insertLineage, name, s.context, s.upto, s.n); err != nil {
			return err
		}
	}
	return nil
}
