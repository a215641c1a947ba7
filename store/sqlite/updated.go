package sqlite

import (
	"context"
	"database/sql/driver"
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

// tellEvery is by how much the row of a context that is being run may lag behind its log. When the
// lease is renewed or given back it is exact.
const tellEvery = time.Second

// rowChange is the part of appends that has not been written to the row of their context yet.
type rowChange struct {
	updated  time.Time
	standing *store.Standing // nil: it stays as it is
	bytes    int64
	woken    bool // it is due if its standing says that it wakes
	recount  bool // a holder that crashed may have left out bytes

	// The lease under which it was put off, 0 for none, and whether others may have written the row
	// since.
	epoch int64
	stale bool
}

// add adds a later change.
func (r *rowChange) add(later rowChange) {
	if !later.updated.IsZero() {
		r.updated = later.updated
	}
	if later.standing != nil {
		r.standing = later.standing
		r.woken = false
	}
	if later.epoch != 0 {
		r.epoch = later.epoch
	}
	if later.standing != nil || later.stale {
		r.stale = later.stale
	}
	r.bytes += later.bytes
	r.woken = r.woken || later.woken
	r.recount = r.recount || later.recount
}

// isSet reports whether there is something to write.
func (r *rowChange) isSet() bool {
	return !r.updated.IsZero() || r.standing != nil || r.bytes != 0 || r.woken || r.recount
}

// touch records the changes that an append makes to the row of its context, and decides whether
// they are written with it; the row of a context that the append has created has them already. A
// lease alone is no change, but an occasion for changes that were put off.
func (w *writer) touch(r *request, c *ends, now time.Time, created bool) {
	b := &r.batch
	w.touched = append(w.touched, touched{b.Context, c, *c, w.late[b.Context]})
	alone := b.IsAside()
	runs := !alone && b.Lease != nil && b.Lease.Epoch != 0 && b.Lease.For > 0 && !c.taken
	if c.taken = alone && (c.taken || b.Lease != nil && b.Lease.Epoch == 0); !alone {
		c.change.updated = now
	}
	lapsed := b.Lease != nil && b.Lease.Epoch == 0 && c.lease != nil && c.lease.until != 0
	c.change.add(rowChange{standing: b.Standing, bytes: r.bytes, woken: b.Wake, recount: lapsed})
	if runs {
		c.change.epoch = b.Lease.Epoch
	}
	if s := b.Standing; s != nil {
		runs = runs && s.Status == c.status && s.Due.Equal(c.due) && s.Held == c.held
		c.status, c.due, c.held = s.Status, s.Due, s.Held
	}
	if created { // nothing is left of a pruned context of its name either
		delete(w.late, b.Context)
		c.change, c.told = rowChange{woken: b.Wake}, now
	}
	switch {
	case !c.change.isSet():
	case !runs || b.Wake || now.Sub(c.told) >= tellEvery:
		w.tell(b.Context, c, now)
	default:
		w.putOff()
	}
}

// tell has the change of a context's row written with the next transaction, or the present one.
func (w *writer) tell(name string, c *ends, now time.Time) {
	change := w.late[name]
	change.add(c.change)
	w.late[name], c.change, c.told = change, rowChange{}, now
}

// putOff has the changes of rows that are put off written after a while, if no append does so.
func (w *writer) putOff() {
	if !w.rowsPutOff {
		w.rowsPutOff = true
		w.writeRowsLater()
	}
}

// tellRows writes the changes of rows that were put off some time ago. Where that fails, the next
// transaction has them.
func (w *writer) tellRows() error {
	w.rowsPutOff = false
	err := w.inPlace(func() error {
		if err := w.refresh(); err != nil {
			return err
		}
		now := time.Now()
		for name, c := range w.contexts {
			switch {
			case !c.exists || !c.change.isSet():
			case now.Sub(c.told) >= tellEvery:
				w.tell(name, c, now)
			default:
				w.putOff()
			}
		}
		return w.writeRows()
	})
	if err == nil {
		clear(w.late)
	}
	return err
}

// tellRows writes the changes of rows that were put off.
func (l *Log) tellRows() {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed || l.lock.acquire(context.Background()) != nil {
		return
	}
	defer l.lock.release()
	_ = l.writer.tellRows()
}

// writeRows writes the changes that wait for the next transaction.
func (w *writer) writeRows() error {
	for name, change := range w.late {
		if err := w.writeRow(name, &change); err != nil {
			return err
		}
	}
	return nil
}

// writeRow writes a change to the row of a context. A change that was put off by a holder that has
// lost the lease is not written over the new holder's.
func (w *writer) writeRow(name string, change *rowChange) error {
	if change.stale && change.epoch != 0 {
		now, err := w.lease(context.Background(), name)
		if err != nil {
			return err
		}
		if now.epoch != change.epoch {
			change.standing, change.bytes, change.recount = nil, 0, true
		}
	}
	if err := w.updateRow(name, change); err != nil || !change.recount {
		return err
	}
	return w.exec(updateBytes, name)
}

func (w *writer) updateRow(name string, change *rowChange) error {
	values := append(w.values[:0], name, change.updated.Format(microseconds), change.bytes)
	var due driver.Value // if it is woken
	if change.woken {
		due = time.Now().UTC().Format(milliseconds)
	}
	if change.standing == nil {
		w.values = append(values, change.woken, due)
		return w.exec(updateContext, w.values...)
	}
	if w.values = standingValues(values, change.standing); change.woken && change.standing.Wakes {
		w.values[dueValue] = due
	}
	return w.exec(updateStanding, w.values...)
}

// dueValue is the place of due among the values of updateStanding.
const dueValue = 12

// touched is the writer's state of a context before an append touched it.
type touched struct {
	name    string
	context *ends
	before  ends
	late    rowChange // the change of its row
}

// undo makes the writer know nothing of a group that could not be committed.
func (w *writer) undo() {
	for _, t := range slices.Backward(w.touched) {
		*t.context = t.before
		if w.late[t.name] = t.late; t.late == (rowChange{}) {
			delete(w.late, t.name)
		}
	}
	w.forget()
}
