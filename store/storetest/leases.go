package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"obelus/store"
)

// lapsed is a time for which nothing holds: it is over at the next look.
const lapsed = time.Nanosecond

// leased appends to the context "c" with a lease, and gives the epoch.
func leased(t *testing.T, l store.Log, epoch int64, duration time.Duration, messages ...store.Message) (int64, error) {
	t.Helper()
	a, err := l.Append(t.Context(), store.Batch{
		Context: "c", ExpectSeq: store.AnySeq, Messages: messages, Lease: &store.Lease{Epoch: epoch, For: duration},
	})
	return a.Epoch, err
}

func mustLease(t *testing.T, l store.Log, epoch int64, duration time.Duration, messages ...store.Message) int64 {
	t.Helper()
	epoch, err := leased(t, l, epoch, duration, messages...)
	if err != nil {
		t.Fatal(err)
	}
	return epoch
}

// refuseLease sees that an append with a lease is refused because of it, and
// adds nothing.
func refuseLease(t *testing.T, l store.Log, epoch int64, duration time.Duration, holder string) {
	t.Helper()
	before, err := l.Head(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	var held *store.HeldError
	if _, err := leased(t, l, epoch, duration, parse(t, `{"type":"data","data":1}`)...); !errors.As(err, &held) {
		t.Fatalf("epoch %d for %v: %v", epoch, duration, err)
	}
	equal(t, "refusal", *held, store.HeldError{Context: "c", Holder: holder})
	after, err := l.Head(t.Context(), "c")
	if after != before || err != nil {
		t.Fatalf("head %d after %d, %v", after, before, err)
	}
}

func holder(t *testing.T, l store.Log) string {
	t.Helper()
	holder, err := l.Holder(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	return holder
}

const thisProcess = "this process"

func testLeaseHeld(t *testing.T, l store.Log) {
	one := parse(t, `{"type":"data","data":1}`)
	equal(t, "holder in an absent context", holder(t, l), "")
	_, err := leased(t, l, 0, time.Hour)
	if !errors.Is(err, store.ErrNoContext) {
		t.Fatal(err)
	}
	equal(t, "an append without a lease", add(t, l, "c").Epoch, int64(0))
	equal(t, "holder before", holder(t, l), "")
	equal(t, "first epoch", mustLease(t, l, 0, time.Hour, one...), int64(1))
	equal(t, "holder", holder(t, l), thisProcess)
	refuseLease(t, l, 0, time.Hour, thisProcess)
	refuseLease(t, l, 0, 0, thisProcess)
	refuseLease(t, l, 2, time.Hour, thisProcess)
	equal(t, "renewed", mustLease(t, l, 1, 2*time.Hour, one...), int64(1))
	add(t, l, "c", one...) // without its lease
	add(t, l, "other", one...)
	_, err = l.Append(t.Context(), store.Batch{Context: "other", ExpectSeq: store.AnySeq, Lease: &store.Lease{For: time.Hour}})
	equal(t, "the lease of another context", err, nil)

	equal(t, "given back", mustLease(t, l, 1, 0, one...), int64(1))
	equal(t, "holder after", holder(t, l), "")
	refuseLease(t, l, 1, time.Hour, "")
	equal(t, "second epoch", mustLease(t, l, 0, time.Hour), int64(2))
	refuseLease(t, l, 1, 0, thisProcess)
	equal(t, "holder again", holder(t, l), thisProcess)
	mustLease(t, l, 2, 0)
	equal(t, "for one append", mustLease(t, l, 0, 0), int64(3))
	equal(t, "holder after one append", holder(t, l), "")
	equal(t, "messages", len(collect(t, l.Messages(t.Context(), store.Filter{Context: "c"}))), 4)
}

func testLeaseLapsed(t *testing.T, l store.Log) {
	add(t, l, "b")
	add(t, l, "c")
	held := func(want ...string) {
		t.Helper()
		var names []string
		for _, info := range collect(t, l.Contexts(t.Context(), store.ContextFilter{Due: time.Now()})) {
			if info.Holder == "" {
				names = append(names, info.Context)
			}
		}
		equal(t, "due without a holder", names, want)
	}
	held()
	due := store.Batch{Context: "c", ExpectSeq: store.AnySeq, Standing: &store.Standing{Status: "running", Due: time.Now()}}
	if _, err := l.Append(t.Context(), due); err != nil {
		t.Fatal(err)
	}
	mustLease(t, l, 0, lapsed)
	equal(t, "holder", holder(t, l), "")
	held("c")
	equal(t, "not taken over", mustLease(t, l, 1, lapsed), int64(1))
	equal(t, "taken over", mustLease(t, l, 0, lapsed), int64(2))
	refuseLease(t, l, 1, time.Hour, "")
	held("c")
	equal(t, "renewed", mustLease(t, l, 2, time.Hour), int64(2))
	held()
	refuseLease(t, l, 0, time.Hour, thisProcess)
	refuseLease(t, l, 1, time.Hour, thisProcess)
	// A shorter time does not shorten the rest.
	mustLease(t, l, 2, lapsed)
	equal(t, "holder of what is left", holder(t, l), thisProcess)
	over := store.Batch{Context: "c", ExpectSeq: store.AnySeq, Standing: &store.Standing{Status: "done"}, Lease: &store.Lease{Epoch: 2}}
	if _, err := l.Append(t.Context(), over); err != nil {
		t.Fatal(err)
	}
	held()
}

// testLeaseUndone: an append that fails changes no lease.
func testLeaseUndone(t *testing.T, l store.Log) {
	conflict := func(epoch int64, duration time.Duration) {
		t.Helper()
		var conflict *store.ConflictError
		_, err := l.Append(t.Context(), store.Batch{
			Context: "c", ExpectSeq: 7, Create: &store.Origin{}, Lease: &store.Lease{Epoch: epoch, For: duration},
		})
		if !errors.As(err, &conflict) {
			t.Fatal(err)
		}
	}
	conflict(0, time.Hour)
	equal(t, "contexts", len(collect(t, l.Contexts(t.Context(), store.ContextFilter{}))), 0)
	add(t, l, "c")
	conflict(0, time.Hour)
	equal(t, "not taken", holder(t, l), "")
	equal(t, "epoch", mustLease(t, l, 0, lapsed), int64(1))
	conflict(1, time.Hour)
	equal(t, "not renewed", holder(t, l), "")
	mustLease(t, l, 1, time.Hour)
	conflict(1, 0)
	equal(t, "not given back", holder(t, l), thisProcess)

	// The lease is checked first.
	var held *store.HeldError
	_, err := l.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: 7, Lease: &store.Lease{For: time.Hour}})
	if !errors.As(err, &held) {
		t.Error(err)
	}
}

// testLeaseAlone: in lists of contexts an append of nothing but a lease does not count.
func testLeaseAlone(t *testing.T, l store.Log) {
	add(t, l, "c", parse(t, `{"type":"data","data":1}`)...)
	add(t, l, "d")
	before := collect(t, l.Contexts(t.Context(), store.ContextFilter{}))
	epoch := mustLease(t, l, 0, lapsed)
	mustLease(t, l, epoch, time.Hour)
	mustLease(t, l, epoch, 0)
	equal(t, "contexts", collect(t, l.Contexts(t.Context(), store.ContextFilter{})), before)
	a, err := l.Append(t.Context(), store.Batch{
		Context: "c", ExpectSeq: 1, Journal: []store.Entry{{Event: "e"}}, Lease: &store.Lease{For: time.Hour},
	})
	equal(t, "error", err, nil)
	equal(t, "appended", store.Appended{Seq: a.Seq, N: a.N, Epoch: a.Epoch}, store.Appended{Seq: 1, N: 1, Epoch: 2})
	equal(t, "first context", collect(t, l.Contexts(t.Context(), store.ContextFilter{}))[0].Context, "c")

	// A context that is made so exists, with a date.
	_, err = l.Append(t.Context(), store.Batch{Context: "new", Create: &store.Origin{Parent: "c"}, Lease: &store.Lease{For: time.Hour}})
	equal(t, "error", err, nil)
	infos := collect(t, l.Contexts(t.Context(), store.ContextFilter{}))
	equal(t, "new", infos[0].Context, "new")
	equal(t, "updated", infos[0].Updated.Truncate(time.Millisecond), infos[0].Created)
}

// testLeaseTakers: of many that would run a context, one does at a time.
func testLeaseTakers(t *testing.T, l store.Log) {
	const takers, rounds = 8, 10
	add(t, l, "c")
	var group sync.WaitGroup
	for range takers {
		group.Go(func() {
			for done := 0; done < rounds; {
				epoch, err := leased(t, l, 0, time.Hour)
				var held *store.HeldError
				if errors.As(err, &held) {
					continue
				}
				if err == nil {
					_, err = leased(t, l, epoch, time.Hour, store.Message{Type: store.TypeText, Data: store.Some(fmt.Sprint(epoch))})
				}
				if err == nil {
					_, err = leased(t, l, epoch, 0, store.Message{Type: store.TypeText, Data: store.Some(fmt.Sprint(epoch))})
				}
				if err != nil {
					t.Error(err)
					return
				}
				done++
			}
		})
	}
	group.Wait()
	var got, want []any
	for _, m := range collect(t, l.Messages(t.Context(), store.Filter{Context: "c"})) {
		got, want = append(got, m.Data.Value), append(want, fmt.Sprint(len(want)/2+1))
	}
	equal(t, "epochs", got, want)
	equal(t, "messages", len(got), 2*takers*rounds)
}

func testKinds(t *testing.T, l store.Log) {
	path := store.MustParsePath
	of := func(name string) []store.KindOf {
		t.Helper()
		kinds, err := l.Kinds(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return kinds
	}
	instanced := func(m store.Message) store.Message { m.Instance = "①"; return m }
	equal(t, "absent", len(of("c")), 0)
	add(t, l, "c")
	equal(t, "empty", len(of("c")), 0)
	add(t, l, "c", parse(t, `[
		{"type":"data","kind":"declared","schema":{"type":"object"}},
		{"type":"text","text":"x"},
		{"type":"plan","plan":[]}
	]`)...)
	equal(t, "no data", len(of("c")), 0)
	add(t, l, "other", written(path("†other"), "", "x"))
	add(t, l, "c",
		written(path("†s2.a"), "", 1.0),
		written(path("†s.b.c"), "", 1.0), written(path("†s.a"), "", 1.0), written(path("†s.a"), "", 2.0),
		written(path(`†s["odd.key"]`), "", 1.0), written(path("†s"), "", map[string]any{}),
		instanced(written(path("†t.x"), "", nil)), instanced(written(path("†s.a"), store.Push, 1.0)),
		store.Message{Type: store.TypeData, Kind: "merged", Data: store.Some(map[string]any{"a": map[string]any{}, "b": 1.0})},
		store.Message{Type: store.TypeData, Kind: store.KindError, Data: store.Some(map[string]any{"message": "m"})},
		store.Message{Type: store.TypeData, Kind: "nothing", Data: store.Some(nil)},
	)
	want := []store.KindOf{
		{Kind: "error"}, {Kind: "merged"}, {Kind: "nothing"}, {Kind: "s"}, {Kind: "s2"},
		{Instance: "①", Kind: "s"}, {Instance: "①", Kind: "t"},
	}
	equal(t, "kinds", of("c"), want)

	v, err := store.OpenView(t.Context(), l, "c")
	if err != nil {
		t.Fatal(err)
	}
	v.Stage(instanced(written(path("†s.z"), "", 1.0)), written(path("†committed"), "", 1.0))
	v.Send()
	v.Commit()
	v.Stage(written(path("†a.staged"), "", 1.0))
	ofView, err := v.Kinds(t.Context())
	equal(t, "error", err, nil)
	equal(t, "kinds of a view", ofView, append([]store.KindOf{{Kind: "a"}, {Kind: "committed"}}, want...))
	v.Drop()
	ofView, err = v.Kinds(t.Context())
	equal(t, "error", err, nil)
	equal(t, "kinds of a view without what was staged", ofView, append([]store.KindOf{{Kind: "committed"}}, want...))
}
