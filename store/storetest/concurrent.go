package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"obelus/store"
)

// testStopEarly breaks out of every iterator, with others open inside it.
func testStopEarly(t *testing.T, l store.Log) {
	ctx := t.Context()
	for range 20 {
		_, err := l.Append(ctx, store.Batch{
			Context: "c", ExpectSeq: store.AnySeq, Create: &store.Origin{},
			Messages: parse(t, `[{"type":"data","data":{"a":1}},{"type":"data","data":{"b":1}}]`), Journal: []store.Entry{{Event: "e"}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	add(t, l, "d")
	count := 0
	for range l.Messages(ctx, store.Filter{Context: "c"}) {
		for range l.Touching(ctx, store.Query{Context: "c", Path: store.KindPath("data")}) {
			for range l.Journal(ctx, store.JournalFilter{}) {
				for range l.Contexts(ctx, store.ContextFilter{}) {
					count++
					break
				}
				break
			}
			break
		}
		if count == 15 {
			break
		}
	}
	equal(t, "loops", count, 15)
	add(t, l, "c", parse(t, `{"type":"data","data":1}`)...)
}

// testAppendInside appends in the body of a loop, which goes on over the log
// as it was, or as it grows, but neither waits nor goes wrong.
func testAppendInside(t *testing.T, l store.Log) {
	one := parse(t, `{"type":"data","data":{"a":1}}`)
	for range 10 {
		add(t, l, "c", one...)
	}
	last := int64(0)
	for m, err := range l.Messages(t.Context(), store.Filter{Context: "c", At: 10}) {
		if err != nil || m.Seq != last+1 {
			t.Fatalf("%v after %d: %v", m, last, err)
		}
		last = m.Seq
		add(t, l, "c", one...)
	}
	equal(t, "messages", last, int64(10))
	last = 21
	for op, err := range l.Touching(t.Context(), store.Query{Context: "c", Path: store.KindPath("data")}) {
		if err != nil || op.Seq != last-1 {
			t.Fatalf("%v after %d: %v", op, last, err)
		}
		last = op.Seq
		add(t, l, "c", one...)
	}
	equal(t, "operations", last, int64(1))
}

func testAppenders(t *testing.T, l store.Log) {
	const producers, each = 16, 25
	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() {
			for i := range each {
				_, err := l.Append(t.Context(), store.Batch{
					Context: []string{"a", "b"}[p%2], ExpectSeq: store.AnySeq, Create: &store.Origin{},
					Messages: []store.Message{{Type: store.TypeText, Data: store.Some(fmt.Sprint(p, " ", i))}},
					Journal:  []store.Entry{{Event: "e", Call: fmt.Sprint(p, " ", i)}},
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	seen := map[any]bool{}
	next := map[int]int{}
	for _, name := range []string{"a", "b"} {
		last := int64(0)
		for _, m := range collect(t, l.Messages(t.Context(), store.Filter{Context: name})) {
			if seen[m.Data.Value] || m.Seq != last+1 {
				t.Fatalf("%v twice, or %d after %d", m.Data.Value, m.Seq, last)
			}
			seen[m.Data.Value], last = true, m.Seq
			var p, i int
			if _, err := fmt.Sscan(m.Data.Value.(string), &p, &i); err != nil || next[p] != i {
				t.Fatalf("producer %d: %d instead of %d (%v)", p, i, next[p], err)
			}
			next[p]++
		}
	}
	equal(t, "messages", len(seen), producers*each)
	for i, e := range collect(t, l.Journal(t.Context(), store.JournalFilter{})) {
		if e.N != 2*int64(i)+2 || !seen[e.Call] { // each after its message
			t.Fatalf("entry %+v at %d", e, i)
		}
		delete(seen, e.Call)
	}
	equal(t, "entries", len(seen), 0)
}

// testConcurrentConflicts: of those that expect the same seq, one wins.
func testConcurrentConflicts(t *testing.T, l store.Log) {
	const producers, rounds = 8, 20
	add(t, l, "c")
	var group sync.WaitGroup
	for range producers {
		group.Go(func() {
			for done := 0; done < rounds; {
				head, err := l.Head(t.Context(), "c")
				if err != nil {
					t.Error(err)
					return
				}
				_, err = l.Append(t.Context(), store.Batch{
					Context: "c", ExpectSeq: head,
					Messages: []store.Message{{Type: store.TypeText, Data: store.Some(fmt.Sprint(head + 1))}},
				})
				var conflict *store.ConflictError
				switch {
				case err == nil:
					done++
				case !errors.As(err, &conflict) || conflict.Actual <= head:
					t.Errorf("at %d: %v", head, err)
					return
				}
			}
		})
	}
	group.Wait()
	messages := collect(t, l.Messages(t.Context(), store.Filter{Context: "c"}))
	equal(t, "messages", len(messages), producers*rounds)
	for _, m := range messages {
		equal(t, "the seq that it expected", m.Data.Value, any(fmt.Sprint(m.Seq)))
	}
}

// testReaders reads beside an appender: each read is a log without gaps, in which a batch is whole.
func testReaders(t *testing.T, l store.Log) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pair := parse(t, `[{"type":"data","data":{"a":1}},{"type":"data","data":{"a":2}}]`)
	add(t, l, "c", pair...)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for ctx.Err() == nil {
				checkWhole(t, l)
			}
		})
	}
	for range 100 {
		add(t, l, "c", pair...)
	}
	cancel()
	group.Wait()
}

func checkWhole(t *testing.T, l store.Log) {
	head, err := l.Head(t.Context(), "c")
	messages, failed := drain(l.Messages(t.Context(), store.Filter{Context: "c"}))
	ops, failedToo := drain(l.Touching(t.Context(), store.Query{Context: "c", Path: store.KindPath("data")}))
	if err = errors.Join(err, failed, failedToo); err != nil {
		t.Error(err)
		return
	}
	count := len(messages)
	if count%2 != 0 || len(ops)%2 != 0 || int64(count) < head || len(ops) < count || messages[count-1].Seq != int64(count) {
		t.Errorf("head %d, then %d messages, then %d operations", head, count, len(ops))
	}
	for i, op := range ops {
		if op.Seq != int64(len(ops)-i) {
			t.Errorf("operation %d at %d of %d", op.Seq, i, len(ops))
			return
		}
	}
}
