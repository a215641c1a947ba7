package sqlite

import (
	"errors"
	"testing"
	"time"

	"obelus/store"
)

// TestUpdated_ExactInTheEnd: the row of a context that is run may lag behind its
// log, but not once the lease is given back, whoever has written meanwhile.
func TestUpdated_ExactInTheEnd(t *testing.T) {
	path := newPath(t)
	one, other := open(t, path, Options{}), open(t, path, Options{})
	put := func(l *Log, b store.Batch) {
		t.Helper()
		b.ExpectSeq, b.Create = store.AnySeq, &store.Origin{}
		if _, err := l.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	event := []store.Entry{{Event: "e"}}
	first := func() string {
		for info, err := range one.Contexts(t.Context(), store.ContextFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			return info.Context
		}
		return ""
	}
	put(other, store.Batch{Context: "c"})
	put(one, store.Batch{Context: "a", Lease: &store.Lease{For: time.Hour}})
	put(one, store.Batch{Context: "a", Lease: &store.Lease{Epoch: 1, For: time.Hour}, Journal: event}) // the first is told at once
	put(one, store.Batch{Context: "b", Journal: event})
	put(one, store.Batch{Context: "a", Lease: &store.Lease{Epoch: 1, For: time.Hour}, Journal: event})
	if got := first(); got != "b" {
		t.Fatalf("%s comes first: nothing was put off", got)
	}
	put(other, store.Batch{Context: "c", Lease: &store.Lease{For: time.Hour}})
	put(one, store.Batch{Context: "a", Lease: &store.Lease{Epoch: 1}})
	if got := first(); got != "a" {
		t.Errorf("%s comes first", got)
	}
}

// TestUpdated_OfExistingMessages: an append that was refused leaves no trace in the row
// of its context, also when others are appended later.
func TestUpdated_OfExistingMessages(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l, written("†s.a", "1"))
	updated := func() string {
		row, err := l.writer.one(t.Context(), "SELECT updated FROM contexts WHERE context = 'c'")
		if err != nil {
			t.Fatal(err)
		}
		return text(row[0])
	}
	before := updated()
	if err := plain(t, l.path).script("CREATE TRIGGER no BEFORE INSERT ON journal WHEN NEW.event = 'refused' BEGIN SELECT RAISE(ABORT, 'no'); END"); err != nil {
		t.Fatal(err)
	}
	for _, b := range []store.Batch{
		{Context: "c", ExpectSeq: store.AnySeq, Journal: []store.Entry{{Event: "refused"}}},
		{Context: "d", ExpectSeq: store.AnySeq, Journal: []store.Entry{{Event: "e"}}, Create: &store.Origin{}},
	} {
		if _, err := l.Append(t.Context(), b); (err != nil) != (b.Context == "c") {
			t.Fatal(err)
		}
	}
	if after := updated(); after != before {
		t.Errorf("it says %s, and said %s", after, before)
	}
}

// TestUpdated_AfterRefusal: what was put off before an append that was refused is
// told in the end, though another connection has written meanwhile.
func TestUpdated_AfterRefusal(t *testing.T) {
	for _, refused := range []string{"c", "d"} {
		l := open(t, newPath(t), Options{})
		other := plain(t, l.path)
		if err := other.script("CREATE TRIGGER no BEFORE INSERT ON journal WHEN NEW.event = 'refused' BEGIN SELECT RAISE(ABORT, 'no'); END"); err != nil {
			t.Fatal(err)
		}
		put := func(b store.Batch) (n int64, err error) {
			b.ExpectSeq, b.Create = store.AnySeq, &store.Origin{}
			a, err := l.Append(t.Context(), b)
			return a.Epoch, err
		}
		event := func(name string) []store.Entry { return []store.Entry{{Event: name}} }
		lease := func(epoch int64, last bool) *store.Lease {
			if last {
				return &store.Lease{Epoch: epoch}
			}
			return &store.Lease{Epoch: epoch, For: time.Hour}
		}
		epoch, err := put(store.Batch{Context: "c", Journal: event("one"), Lease: lease(0, false)})
		if err == nil {
			_, err = put(store.Batch{Context: "c", Journal: event("told"), Lease: lease(epoch, false)})
		}
		if err != nil {
			t.Fatal(err)
		}
		var before []store.ContextInfo
		for info := range l.Contexts(t.Context(), store.ContextFilter{}) {
			before = append(before, info)
		}
		if _, err := put(store.Batch{Context: "c", Journal: event("put off"), Lease: lease(epoch, false)}); err != nil {
			t.Fatal(err)
		}
		if err := other.script("INSERT INTO generations (generation, path, sha256) VALUES ('g', 'p', 's')"); err != nil {
			t.Fatal(err)
		}
		if _, err := put(store.Batch{Context: refused, Journal: event("refused")}); err == nil {
			t.Fatal("it was not refused")
		}
		if _, err := put(store.Batch{Context: "c", Lease: lease(epoch, true)}); err != nil {
			t.Fatal(err)
		}
		var changed *store.ChangedError
		if err := l.Prune(t.Context(), before...); !errors.As(err, &changed) {
			t.Errorf("refused in %s: %v", refused, err)
		}
	}
}

// holds returns a batch by which a run is at work, under a lease that lapses soon.
func holds(epoch int64, done int) store.Batch {
	return store.Batch{
		Context: "c", ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: []store.Message{{Type: store.TypeData, Kind: "x", Data: store.Some("0123456789")}},
		Standing: &store.Standing{Status: "running", Done: done, Due: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, Lease: &store.Lease{Epoch: epoch, For: time.Millisecond},
	}
}

func appendAll(t *testing.T, l *Log, batches ...store.Batch) {
	t.Helper()
	for _, b := range batches {
		if _, err := l.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// untilLapsed waits until the lease of a context is free.
func untilLapsed(t *testing.T, l *Log) (info store.ContextInfo) {
	t.Helper()
	for info.Context == "" || info.Holder != "" {
		var err error
		if info, err = l.Info(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
	}
	if !info.Lapsed {
		t.Error("the lease was not given back, and has not lapsed")
	}
	return info
}

// TestUpdated_OfAFormerHolder: what a holder has put off is not written over the row of the one that
// has taken its lease.
func TestUpdated_OfAFormerHolder(t *testing.T) {
	path := newPath(t)
	one, other := open(t, path, Options{}), open(t, path, Options{})
	appendAll(t, one, holds(0, 0), holds(1, 1))
	untilLapsed(t, one)
	appendAll(t, other, store.Batch{Context: "c", ExpectSeq: store.AnySeq, Standing: &store.Standing{Status: "done", Done: 9}, Lease: &store.Lease{}})
	appendAll(t, one, store.Batch{Context: "d", ExpectSeq: store.AnySeq, Create: &store.Origin{}})
	info, err := other.Info(t.Context(), "c")
	if err != nil || info.Standing.Status != "done" || info.Standing.Done != 9 || info.Bytes != 24 {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestUpdated_OfAPrunedContext: a context has nothing of a pruned one of its name.
func TestUpdated_OfAPrunedContext(t *testing.T) {
	l := open(t, newPath(t), Options{})
	appendAll(t, l, holds(0, 0), holds(1, 1))
	if err := l.Prune(t.Context(), untilLapsed(t, l)); err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, store.Batch{Context: "c", ExpectSeq: store.AnySeq, Create: &store.Origin{}})
	info, err := l.Info(t.Context(), "c")
	if err != nil || info.Standing.Status != "" || info.Bytes != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestUpdated_Held: that a call waits for a person, or does not any more, is in the row of its context
// at once, so that it is known though the run's process dies.
func TestUpdated_Held(t *testing.T) {
	l := open(t, newPath(t), Options{})
	for i, held := range []int{0, 0, 1, 1, 2, 0} {
		b := holds(int64(min(i, 1)), 0)
		b.Lease.For, b.Standing.Held = time.Hour, held
		appendAll(t, l, b)
		if info, err := l.Info(t.Context(), "c"); err != nil || info.Standing.Held != held {
			t.Errorf("append %d: %d calls are held, not %d, %v", i, info.Standing.Held, held, err)
		}
	}
}

// TestUpdated_WithoutAppends: what was put off is in the row after a while though nothing is appended
// any more.
func TestUpdated_WithoutAppends(t *testing.T) {
	l := open(t, newPath(t), Options{})
	first, second := holds(0, 1), holds(1, 2)
	first.Lease.For, second.Lease.For = time.Hour, time.Hour
	appendAll(t, l, first, second)
	if info, err := l.Info(t.Context(), "c"); err != nil || info.Standing.Done != 1 {
		t.Fatalf("nothing was put off: %+v, %v", info.Standing, err)
	}
	for began := time.Now(); ; {
		info, err := l.Info(t.Context(), "c")
		if err == nil && info.Standing.Done == 2 && info.Bytes == 24 {
			break
		}
		if err != nil || time.Since(began) > time.Minute {
			t.Fatalf("it is still behind: %+v, %v", info, err)
		}
	}
}

// TestUpdated_AtClose: what was put off is in the row of its context once the log is closed.
func TestUpdated_AtClose(t *testing.T) {
	path := newPath(t)
	l := open(t, path, Options{})
	first, second := holds(0, 0), holds(1, 1)
	first.Lease.For, second.Lease.For = time.Hour, time.Hour
	appendAll(t, l, first, second)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := open(t, path, Options{}).Info(t.Context(), "c")
	if err != nil || info.Standing.Done != 1 || info.Bytes != 24 || info.Holder != "" {
		t.Errorf("%+v, %v", info, err)
	}
}
