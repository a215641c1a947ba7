package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"

	"obelus/store"
)

// A list is read in pages, each by a query of its own, so that no connection is taken while the
// caller looks at a value: an open one has SQLite keep all that is written meanwhile in the
// write-ahead log. The first pages are small, since most callers want few values.
const (
	firstPage = 16
	lastPage  = 4096
	pageBytes = 1 << 20 // of text, after which a page ends

	scannedPage = 256 // the first, where each page reads all rows
)

// page is the next values of a list.
type page[T any] struct {
	values []T
	size   int // at most so many
	bytes  int // of the text in their rows
}

// add adds the value of a row, and reports whether there is room for more.
func (p *page[T]) add(v T, row []driver.Value) (more bool) {
	p.values = append(p.values, v)
	for _, column := range row {
		p.bytes += len(text(column))
	}
	return !p.full()
}

// full reports whether there may be values after the page.
func (p *page[T]) full() bool { return len(p.values) >= p.size || p.bytes >= pageBytes }

// pages makes an iterator of two functions: read fills a page, and goOn has the next one begin
// after a value; it reports false if there is nothing after that. The first page has up to size
// values.
func pages[T any](l *Log, ctx context.Context, size int, read func(c *conn, p *page[T]) error, goOn func(after T) (more bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for p := (page[T]{size: size}); ; p.size = min(max(4*p.size, firstPage), lastPage) {
			err := ctx.Err()
			for again := err == nil; again; again = errors.Is(err, errWrittenMeanwhile) {
				p.values, p.bytes = p.values[:0], 0
				err = l.readers.read(func(c *conn) error { return read(c, &p) })
			}
			for _, v := range p.values {
				if !yield(v, nil) {
					return
				}
			}
			if err != nil {
				var zero T
				yield(zero, explain(l.path, err))
			}
			if err != nil || !p.full() || !goOn(p.values[len(p.values)-1]) {
				return
			}
		}
	}
}

// birth tells a context from another that has its name after it was pruned.
type birth struct {
	created string
	first   int64 // position in the journal of its first entry, 0 while it has none
}

const selectBirth = `SELECT (SELECT created FROM contexts WHERE context = ?1), (SELECT min(n) FROM journal WHERE context = ?1)`

// isOf reports whether a context that was seen now is the one that was seen before.
func (b birth) isOf(before birth) bool {
	return b.created == before.created && (before.first == 0 || b.first == before.first)
}

// ofOne returns a function that reads the pages of a list as read does, and has all of them be of
// one context: it gives [store.ErrNoContext] if that was pruned after the first page.
func ofOne[T any](ctx context.Context, name string, read func(c *conn, p *page[T]) error) func(c *conn, p *page[T]) error {
	born := birth{}
	return func(c *conn, p *page[T]) error {
		begun := born != birth{}
		if !begun {
			if err := read(c, p); err != nil || !p.full() {
				return err
			}
		}
		row, err := c.one(ctx, selectBirth, name)
		if err != nil {
			return err
		}
		now := birth{text(row[0]), integer(row[1])}
		switch {
		case !begun:
			born = now
			return nil
		case !now.isOf(born):
			return fmt.Errorf("%w: %s, which was pruned while it was read", store.ErrNoContext, name)
		}
		return read(c, p)
	}
}
