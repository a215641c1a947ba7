package page_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"obelus/host/web"
	"obelus/store"
)

// countedLog counts what is read of a log: entries of the journal with their data alone.
type countedLog struct {
	store.Log
	reads, entries, messages atomic.Int64
}

func (l *countedLog) Journal(ctx context.Context, f store.JournalFilter) iter.Seq2[store.Entry, error] {
	l.reads.Add(1)
	if f.Bare {
		return l.Log.Journal(ctx, f)
	}
	return counted(l.Log.Journal(ctx, f), &l.entries)
}

func (l *countedLog) Messages(ctx context.Context, f store.Filter) iter.Seq2[*store.Message, error] {
	l.reads.Add(1)
	return counted(l.Log.Messages(ctx, f), &l.messages)
}

func (l *countedLog) Info(ctx context.Context, name string) (store.ContextInfo, error) {
	l.reads.Add(1)
	return l.Log.Info(ctx, name)
}

func (l *countedLog) Head(ctx context.Context, name string) (int64, error) {
	l.reads.Add(1)
	return l.Log.Head(ctx, name)
}

func (l *countedLog) Contexts(ctx context.Context, f store.ContextFilter) iter.Seq2[store.ContextInfo, error] {
	l.reads.Add(1)
	return l.Log.Contexts(ctx, f)
}

func (l *countedLog) Kinds(ctx context.Context, name string) ([]store.KindOf, error) {
	l.reads.Add(1)
	return l.Log.Kinds(ctx, name)
}

func (l *countedLog) Holder(ctx context.Context, name string) (string, error) {
	l.reads.Add(1)
	return l.Log.Holder(ctx, name)
}

func counted[T any](read iter.Seq2[T, error], n *atomic.Int64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range read {
			n.Add(1)
			if !yield(v, err) {
				return
			}
		}
	}
}

// reset returns the counts, and begins anew.
func (l *countedLog) reset() (reads, entries, messages int64) {
	return l.reads.Swap(0), l.entries.Swap(0), l.messages.Swap(0)
}

// runOf serves a project in which a run of n calls has ended.
func runOf(t testing.TB, n int) (*site, *countedLog) {
	t.Helper()
	var log *countedLog
	s := serve(t, map[string]string{
		"activities/a.lua": `Activity.register("echo", function(call) return { id = call.value } end)`,
		"plans/many.lua": fmt.Sprintf(`local calls = {}
			for i = 1, %d do calls[i] = { _tool = "echo", value = i > 1 and "†state.n" .. (i - 1) .. ".id" or 1, _outputPath = "†state.n" .. i } end
			return { calls = calls, output = "†state.n%[1]d" }`, n),
	}, func(c *web.Config) {
		log = &countedLog{Log: c.Log}
		c.Log = log
	})
	s.run("many", "plans/many.lua", "")
	return s, log
}

// TestReads holds how many entries of the journal, with their data, are read to answer a question
// about a run: as it is asked for the first time, and again. An overview of a run that is asked for
// first reads all of its calls once.
func TestReads(t *testing.T) {
	const many = 1000
	small, smallLog := runOf(t, 4)
	large, largeLog := runOf(t, many)
	check := func(s *site, log *countedLog, path, when string, most int64) {
		t.Helper()
		log.reset()
		s.raw(path)
		reads, entries, messages := log.reset()
		t.Logf("%s %s: %d entries, %d reads, %d messages", path, when, entries, reads, messages)
		if entries > most {
			t.Errorf("%s %s reads %d entries, at most %d", path, when, entries, most)
		}
	}
	check(small, smallLog, "/runs/many", "of 4 calls, first", 16)
	check(large, largeLog, "/runs/many", "of many calls, first", 2*many+10)
	for _, q := range []struct {
		path         string
		small, large int64
	}{
		{"/runs/many", 3, 3},
		{"/runs/many?tab=calls", 3, 2*200 + 3},
		{"/runs/many?tab=timeline", 3, 3},
		{"/runs/many?tab=log", 3, 3},
		{"/runs/many?tab=state", 3, 3},
		{"/runs/many?tab=output", 3, 3},
		{"/runs/many?sel=1.2", 3, 3},
		{"/runs/many?at=3", 7, 5},
		{"/v1/contexts/many", 2, 2},
		{"/v1/contexts/many/calls", 0, 2 * many},
		{"/v1/contexts/many/calls?limit=10", 0, 2 * 10},
		{"/v1/contexts/many/calls?status=failed", 0, 0},
		{"/v1/contexts/many/graph", 0, 2 * many},
		{"/v1/contexts/many/ticks", 1, 1},
		{"/v1/contexts/many/why?ref=state.n3", 4, 4},
	} {
		check(small, smallLog, q.path, "of 4 calls", q.small)
		check(large, largeLog, q.path, "of many calls", q.large)
	}
}
