package memory

import (
	"context"
	"errors"
	"maps"
	"slices"

	"obelus/store"
)

// Copy returns a log with copies of contexts of another log: their messages and journals, with the
// seqs, positions and dates that they have there. The shared messages and entries of a fork are
// copied as its own. Contexts that are absent are left out. Lines of scripts, scripts and exchanges
// are not copied, and no copy is held.
func Copy(ctx context.Context, from store.Reader, contexts ...string) (*Log, error) {
	l := New()
	entries := map[int64]store.Entry{}
	journals := map[string][]int64{} // positions of the entries of each context
	for _, name := range contexts {
		if l.contexts[name] != nil {
			continue
		}
		c, own, err := copyContext(ctx, from, name)
		if errors.Is(err, store.ErrNoContext) {
			continue
		}
		if err != nil {
			return nil, err
		}
		l.contexts[name] = c
		for _, e := range own {
			entries[e.N] = e
			journals[name] = append(journals[name], e.N)
		}
		l.last = store.Later(c.info.Updated, l.last)
	}
	places := map[int64]int{}
	for _, n := range slices.Sorted(maps.Keys(entries)) {
		places[n] = len(l.journal)
		l.journal, l.n = append(l.journal, entries[n]), n
	}
	for name, positions := range journals {
		for _, n := range positions {
			l.contexts[name].journal = append(l.contexts[name].journal, places[n])
		}
	}
	return l, nil
}

// copyContext reads a context of another log. It leaves out appends that come meanwhile, of which
// it could read only a part.
func copyContext(ctx context.Context, from store.Reader, name string) (*memoryContext, []store.Entry, error) {
	info, err := from.Info(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	c := newMemoryContext(name, info.Origin, info.Created)
	c.info.Updated, c.info.Standing = info.Updated, info.Standing
	var entries []store.Entry
	filter := store.JournalFilter{Context: name}
	for e, err := range from.Journal(ctx, filter) {
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, e)
	}
	head, err := from.Head(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	if len(entries) > 0 {
		last := entries[len(entries)-1]
		newest, _, err := store.Newest(ctx, from, filter)
		if err != nil {
			return nil, nil, err
		}
		if newest.N != last.N { // the head is of a later append
			head = last.Seq
		}
	}
	if head == 0 {
		return c, entries, nil
	}
	for m, err := range from.Messages(ctx, store.Filter{Context: name, At: head}) {
		if err != nil {
			return nil, nil, err
		}
		own := *m
		c.add(&own)
	}
	return c, entries, nil
}
