package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"obelus/store"
)

// microseconds is how the rows of contexts say when they were appended to.
const microseconds = "2006-01-02T15:04:05.000000Z"

// readLast finds when a process before this one appended last.
func (w *writer) readLast() error {
	row, err := w.one(context.Background(), "SELECT updated FROM contexts WHERE context = (SELECT context FROM journal ORDER BY n DESC LIMIT 1)")
	if err != nil || row[0] == nil {
		return err
	}
	if w.last, err = date(row[0]); err != nil {
		return &problem{ErrDamaged, fmt.Sprintf("is damaged: a context's date: %v", err)}
	}
	return nil
}

// tellEvery is by how much the row of a context that is being run may lag behind
// its log. When the lease is renewed or given back it is exact.
const tellEvery = time.Second

// touch records that a context is appended to. A lease alone is no change, but an occasion for
// deferred rows.
func (w *writer) touch(b *store.Batch, c *ends, now time.Time) {
	w.touched = append(w.touched, touched{b.Context, c, *c, w.late[b.Context]})
	alone := b.Lease != nil && len(b.Messages)+len(b.Journal) == 0
	runs := !alone && b.Lease != nil && b.Lease.Epoch != 0 && b.Lease.For > 0 && !c.taken
	if c.taken = alone && (c.taken || b.Lease.Epoch == 0); !alone {
		c.updated = now
	}
	if c.updated != c.told && (!runs || now.Sub(c.told) >= tellEvery) {
		w.late[b.Context], c.told = c.updated, c.updated
	}
}

// touched is the writer's state of a context before an append touched it.
type touched struct {
	name    string
	context *ends
	before  ends
	late    time.Time // the time for its row; zero for none
}

// undo makes the writer know nothing of a group that could not be committed.
func (w *writer) undo() {
	for _, t := range slices.Backward(w.touched) {
		*t.context = t.before
		if w.late[t.name] = t.late; t.late.IsZero() {
			delete(w.late, t.name)
		}
	}
	w.forget()
}
