package engine

import (
	"context"
	"iter"
	"maps"
	"strconv"
	"strings"

	"obelus/store"
)

// A call that runs once more finds more in the log than it did at first. What it reads
// must not depend on that: not what calls wrote that wait until it has read, nor what
// calls that run again wrote before. Of what others appended, one that runs again reads
// what it read at first; one that is tried again reads all of it.

// authors tells which calls of a tick wrote messages, by their seqs.
type authors map[int64]author

// author is a call that wrote a message; formerly, if it has run again since.
type author struct {
	call     int
	formerly bool
}

// callAt is the place of a tick's call that a message names, if it does.
func callAt(tick int, call string) (i int, ok bool) {
	position, ok := strings.CutPrefix(call, strconv.Itoa(tick)+".")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(position)
	return n - 1, err == nil && n > 0
}

// authorsIn finds the authors of what a log has of a tick since it began.
func (t *tick) authorsIn(ctx context.Context, log store.Log, began int64) (authors, error) {
	all := authors{}
	for m, err := range log.Messages(ctx, store.Filter{Context: t.context, After: began}) {
		if err != nil {
			return nil, err
		}
		if i, ok := callAt(t.event.Tick, m.Call); ok && i < len(t.calls) {
			all[m.Seq] = t.author(m.Seq, i)
		}
	}
	return all, nil
}

// author is a call that wrote the message of a seq in the log.
func (t *tick) author(seq int64, call int) author {
	return author{call, seq <= t.calls[call].record.Again}
}

// readAuthors finds who wrote what the log has of the tick. From then on reads depend on
// that.
func (t *tick) readAuthors(ctx context.Context) (err error) {
	t.authors, err = t.authorsIn(ctx, t.runner.Log, t.event.Start)
	return err
}

// wroteNow notes who wrote messages that are about to be staged.
func (t *tick) wroteNow(i, messages int) {
	for n := range messages {
		if t.authors != nil {
			t.authors[t.view.Seq()+int64(n)+1] = author{call: i}
		}
	}
}

// forget drops what is not committed.
func (a authors) forget(committed int64) {
	maps.DeleteFunc(a, func(seq int64, _ author) bool { return seq > committed })
}

// resolver reads paths for call i: as of now, or as of when it started first.
func (t *tick) resolver(i int) store.Resolver {
	r, known, record := t.view.Resolver(), t.authors, t.calls[i].record
	r.At = record.At
	if p := t.runner.replay; p != nil {
		record, _, _ = p.record(context.Background(), t.context, record.Call) // one that can't be read has not been
		if record.Before != 0 || p.triedAgain(t.context, record) {            // it reads what it did
			r.Log, r.At, known = p.log, record.At, p.authors(t)
		}
	}
	if known != nil {
		r.Log = &hindsight{r.Log, t.hides(i, &record, known)}
	}
	return r
}

// result reads paths for the output: as of now, without what calls wrote that have run
// again since.
func (t *tick) result() store.Resolver {
	r := t.view.Resolver()
	if t.authors != nil {
		r.Log = &hindsight{r.Log, func(seq int64) bool { return t.authors[seq].formerly }}
	}
	return r
}

// hides tells of the messages of a tick whether call i is not to see them.
func (t *tick) hides(i int, record *Record, known authors) func(seq int64) bool {
	again := record.Before != 0
	return func(seq int64) bool {
		a, ours := known[seq]
		switch {
		case !ours:
			return again && seq > record.Before
		case a.formerly:
			return again || record.At == 0 || record.At > t.calls[a.call].record.Again
		}
		return t.plan.graph.overwrites(a.call, i)
	}
}

// hindsight is a log without what a call is not to see.
type hindsight struct {
	store.Reader
	hides func(seq int64) bool
}

// Touching implements [store.Reader].
func (h *hindsight) Touching(ctx context.Context, q store.Query) iter.Seq2[store.Op, error] {
	return func(yield func(store.Op, error) bool) {
		for op, err := range h.Reader.Touching(ctx, q) {
			if err == nil && h.hides(op.Seq) {
				continue
			}
			if !yield(op, err) {
				return
			}
		}
	}
}
