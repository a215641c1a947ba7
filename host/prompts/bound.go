package prompts

import (
	"context"
	"iter"

	"obelus/store"
)

// boundedReader is a log of which only so much is read: it counts the messages and the entries of
// the journal as they are read, those that a fork shares too.
type boundedReader struct {
	store.Reader
	context string // that the reading is for
	max     int64
	size    int64
}

// Messages implements [store.Reader].
func (b *boundedReader) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	return bounded(b, b.Reader.Messages(ctx, f), func(m *store.Message) int {
		n := len(m.Description)
		if m.Data.Set {
			n += store.SizeOf(m.Data.Value)
		}
		if m.Schema != nil {
			n += store.SizeOf(m.Schema)
		}
		if m.Producer != nil {
			n += store.SizeOf(m.Producer)
		}
		return n
	})
}

// Journal implements [store.Reader].
func (b *boundedReader) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	return bounded(b, b.Reader.Journal(ctx, f), func(e store.Entry) int { return len(e.Data) })
}

// bounded ends a reading with an error once more than the bound has been read.
func bounded[T any](b *boundedReader, read iter.Seq2[T, error], size func(T) int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range read {
			if err == nil {
				b.size += int64(size(v))
			}
			if b.size > b.max {
				err = &TooLargeError{b.context, b.max}
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}
