package journal

import (
	"context"
	"iter"

	"obelus/store"
)

// View is a log in which some contexts have not gone on since a position in the
// journal: those of delegates, since what their calls came to. What has run there
// afterwards is of no concern to who follows these calls.
type View struct {
	store.Log
	Ends map[string]End
}

// End is where a context ends: a position in the journal, and the seq at it.
type End struct{ n, Seq int64 }

// Truncate has a context end at a position.
func (l *View) Truncate(ctx context.Context, name string, n int64) error {
	last, ok, err := store.Newest(ctx, l.Log, store.JournalFilter{Context: name, At: n})
	if ok {
		l.Ends[name] = End{n, last.Seq}
	}
	return err
}

// Journal implements [store.Log].
func (l *View) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	f.At = earlier(f.At, l.Ends[f.Context].n)
	return l.Log.Journal(ctx, f)
}

// Messages implements [store.Log].
func (l *View) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	f.At = earlier(f.At, l.Ends[f.Context].Seq)
	return l.Log.Messages(ctx, f)
}

// earlier is the end that comes first; 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
