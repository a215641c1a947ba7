package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"iter"
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
