package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"obelus/store"
)

// Prune implements [store.Log]. The file gets no smaller before [Log.Vacuum].
func (l *Log) Prune(ctx context.Context, contexts ...store.ContextInfo) error {
	return l.exclusively(ctx, func(w *writer) error {
		return w.inPlace(func() error { return w.prune(ctx, contexts) })
	})
}

// Vacuum returns the space of pruned contexts to the disk. It needs as much room again meanwhile,
// and no other append can run; so it gives a [*store.HeldError] while a context is being run.
func (l *Log) Vacuum(ctx context.Context) error {
	return l.exclusively(ctx, func(w *writer) error {
		if err := errors.Join(w.file.check(), w.anyHeld(ctx)); err != nil {
			return err
		}
		return patiently(w.timeout, func() error { return w.script("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)") })
	})
}

// exclusively runs a function with the writer while nothing else in the process writes.
func (l *Log) exclusively(ctx context.Context, do func(w *writer) error) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return store.ErrClosed
	}
	if l.queue == nil {
		return explain(l.path, errOpenedReadOnly)
	}
	if err := l.lock.acquire(ctx); err != nil {
		return err
	}
	defer l.lock.release()
	defer l.writer.forget()
	return explain(l.path, do(l.writer))
}

// insertPrune leaves an event that concerns no context, so that the positions of the pruned events
// are not reused: followers of the journal have passed them.
const insertPrune = `INSERT INTO journal (n, context, seq, date, event) SELECT COALESCE(max(n), 0) + 1, '', 0, ?1, 'prune' FROM journal`

func (w *writer) prune(ctx context.Context, contexts []store.ContextInfo) error {
	if err := w.refresh(); err != nil {
		return err
	}
	var names []string
	for _, c := range contexts {
		names = append(names, c.Context)
	}
	ancestors := map[string]int64{} // number of each
	for _, c := range contexts {
		row, err := w.one(ctx, `SELECT (SELECT count(*) FROM lineage WHERE context = ?1), (SELECT updated FROM contexts WHERE context = ?1), `+selectHead, c.Context)
		if err != nil {
			return err
		}
		switch updated := text(row[1]); {
		case row[1] == nil:
			return fmt.Errorf("%w: %s", store.ErrNoContext, c.Context)
		case updated != c.Updated.UTC().Format(microseconds), integer(row[2]) != c.Messages:
			return &store.ChangedError{Context: c.Context}
		}
		ancestors[c.Context] = integer(row[0])
		if err := w.prunable(ctx, c.Context, names); err != nil {
			return err
		}
	}
	if err := w.exec(insertPrune, store.FormatDate(time.Now())); err != nil {
		return err
	}
	if err := w.exec(`DELETE FROM tombstones WHERE pruned < ?1`, store.FormatDate(time.Now().Add(-store.KeepName))); err != nil {
		return err
	}
	// Forks go before the contexts that they share, and have more ancestors than those.
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(ancestors[b], ancestors[a]), cmp.Compare(a, b)) })
	for _, name := range slices.Compact(names) {
		if err := w.exec(`INSERT OR IGNORE INTO pruning (context) VALUES (?1)`, name); err != nil {
			return err
		}
		if err := w.exec(`INSERT OR REPLACE INTO tombstones (context, pruned) SELECT context, ?2 FROM contexts WHERE context = ?1 AND once`, name, store.FormatDate(time.Now())); err != nil {
			return err
		}
		// With all rows that refer to it.
		if err := w.exec(`DELETE FROM contexts WHERE context = ?1`, name); err != nil {
			return err
		}
	}
	return nil
}

// prunable returns why a context can't be removed together with others.
func (w *writer) prunable(ctx context.Context, name string, others []string) error {
	held, err := w.lease(ctx, name)
	if err != nil {
		return err
	}
	if holder := held.holds(time.Now()); holder != "" {
		return &store.HeldError{Context: name, Holder: holder}
	}
	needed := ""
	err = w.each(ctx, `SELECT context FROM lineage WHERE ancestor = ?1`, []driver.Value{name}, func(row []driver.Value) (bool, error) {
		if fork := text(row[0]); !slices.Contains(others, fork) {
			needed = fork
		}
		return needed == "", nil
	})
	if err == nil && needed != "" {
		err = &store.NeededError{Context: name, Fork: needed}
	}
	return err
}
