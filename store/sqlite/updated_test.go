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
