package journal

import (
	"context"
	"iter"

	"obelus/store"
)

// Truncated is a log in which some contexts end at a position in the journal: a delegate's context
// ends where its call settled, whatever has run in it since.
type Truncated struct {
	store.Reader
	Ends map[string]End // by context
}

// End is where a context ends: a position in the journal, and the seq at it.
type End struct{ n, Seq int64 }

// Truncate ends a context at a position in the journal.
func (l *Truncated) Truncate(ctx context.Context, name string, n int64) error {
	last, ok, err := store.Newest(ctx, l.Reader, store.JournalFilter{Context: name, At: n})
	if ok {
		l.Ends[name] = End{n, last.Seq}
	}
	return err
}

// Journal implements [store.Reader].
func (l *Truncated) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	f.At = earlier(f.At, l.Ends[f.Context].n)
	return l.Reader.Journal(ctx, f)
}

// Messages implements [store.Reader].
func (l *Truncated) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	f.At = earlier(f.At, l.Ends[f.Context].Seq)
	return l.Reader.Messages(ctx, f)
}

// earlier returns the end that comes first; 0 means no end.
func earlier(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
