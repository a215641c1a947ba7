package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"obelus/store"
	"obelus/store/memory"
)

// addMany appends messages and entries one by one to context c, and makes forks of it and of its
// fork, which go on.
func addMany(t *testing.T, l store.Log, each int) {
	t.Helper()
	for part, name := range []string{"c", "f", "g"} {
		origin := &store.Origin{}
		if part > 0 {
			origin.Fork, origin.At = []string{"c", "f"}[part-1], int64(part*each)
		}
		for i := range each {
			m := written(fmt.Sprintf("†state.v%d", i%7), i)
			m.Call, m.Written = "", ""
			if i%3 == 0 {
				m = store.Message{Type: store.TypeText, Data: store.Some(fmt.Sprint(i))}
			}
			b := store.Batch{
				Context: name, ExpectSeq: store.AnySeq, Create: origin, Messages: []store.Message{m},
				Journal: []store.Entry{{Event: []string{"a", "b"}[i%2]}, {Event: "a", Call: fmt.Sprint("1.", i%5)}},
			}
			if _, err := l.Append(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			origin = nil
		}
	}
}

// TestPages_AsInMemory: where one page ends and the next begins, nothing is lost and nothing comes
// twice, whatever is asked for, in forks too.
func TestPages_AsInMemory(t *testing.T) {
	const each = 350 // so that the lists have several pages
	l, m := open(t, newPath(t), Options{Synchronous: "normal"}), memory.New()
	addMany(t, l, each)
	addMany(t, m, each)
	var filters []store.Filter
	var entries []store.JournalFilter
	for _, name := range []string{"c", "f", "g", "absent"} {
		for _, newest := range []bool{false, true} {
			for _, after := range []int64{0, 1, 63, 64, 65, 500} {
				for _, at := range []int64{0, 1, 64, 400, 1000} {
					f := store.Filter{Context: name, After: after, At: at, Newest: newest}
					of, both, in, text := f, f, f, f
					both.Path, both.Kind = store.MustParsePath("†state"), "state"
					of.Path, in.Kind, text.Type = store.MustParsePath("†state.v3"), "state", store.TypeText
					filters = append(filters, f, of, both, in, text)
					e := store.JournalFilter{Context: name, After: 3 * after, At: 3 * at, Newest: newest}
					since, event, call := e, e, e
					since.Seq, event.Event, call.Call = 2*after, "a", "1.2"
					entries = append(entries, e, since, event, call)
				}
			}
		}
	}
	entries = append(entries, store.JournalFilter{}, store.JournalFilter{Newest: true}, store.JournalFilter{Event: "b", After: 7}, store.JournalFilter{Call: "1.4", At: 900, Newest: true})
	for _, f := range filters {
		if got, want := listed(t, l.Messages(t.Context(), f), byName), listed(t, m.Messages(t.Context(), f), byName); !slices.Equal(got, want) {
			t.Errorf("%+v: %d messages, not %d: %v, not %v", f, len(got), len(want), got, want)
		}
	}
	byN := func(e store.Entry) string {
		return fmt.Sprint(e.Context, " ", e.N, " ", e.Seq, " ", e.Event, " ", e.Call)
	}
	for _, f := range entries {
		if got, want := listed(t, l.Journal(t.Context(), f), byN), listed(t, m.Journal(t.Context(), f), byN); !slices.Equal(got, want) {
			t.Errorf("%+v: %d entries, not %d: %v, not %v", f, len(got), len(want), got, want)
		}
	}
}

func byName(m *store.Message) string { return fmt.Sprint(m.Context, " ", m.Seq, " ", m.Data.Value) }

// listed names all that an iterator yields.
func listed[T any](t *testing.T, seq iter.Seq2[T, error], name func(T) string) (names []string) {
	t.Helper()
	for v, err := range seq {
		if err != nil {
			t.Error(err)
			return names
		}
		names = append(names, name(v))
	}
	return names
}

// TestPages_HoldNothing: while a caller looks at a value of a list, no connection is taken, a
// checkpoint empties the write-ahead log, and what is appended is not in the list.
func TestPages_HoldNothing(t *testing.T) {
	const each = 100
	l := open(t, newPath(t), Options{Synchronous: "normal"})
	addMany(t, l, each)
	other := plain(t, l.path)
	l.readers.mu.Lock()
	number, users := 0, l.readers.out // the log itself
	l.readers.mu.Unlock()
	look := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
		if number++; number != 1 && number != 2 && number != 70 && number != each {
			return
		}
		add(t, l, written("†s", "x"))
		l.readers.mu.Lock()
		defer l.readers.mu.Unlock()
		if n := l.readers.out - users; n != 0 {
			t.Errorf("value %d: %d connections are taken", number, n)
		}
		row, err := other.one(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)")
		if err != nil || integer(row[0]) != 0 || integer(row[1]) != 0 {
			t.Errorf("value %d: a checkpoint gives %v, %v", number, row, err)
		}
	}
	for _, newest := range []bool{false, true} {
		head, err := l.Head(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		number = 0
		for _, err := range l.Messages(t.Context(), store.Filter{Context: "c", Newest: newest}) {
			look(err)
		}
		if number != int(head) {
			t.Errorf("newest %t: %d messages, not %d", newest, number, head)
		}
		last, _, err := store.Newest(t.Context(), l, store.JournalFilter{})
		if err != nil {
			t.Fatal(err)
		}
		number = 0
		for e, err := range l.Journal(t.Context(), store.JournalFilter{Newest: newest}) {
			if look(err); e.N > last.N {
				t.Errorf("entry %d was appended meanwhile", e.N)
			}
		}
		if number != 2*3*each {
			t.Errorf("newest %t: %d entries", newest, number)
		}
	}
}

// TestPages_Pruned: a list of messages does not end as if it were whole where its context is pruned
// meanwhile.
func TestPages_Pruned(t *testing.T) {
	l := open(t, newPath(t), Options{Synchronous: "normal"})
	addMany(t, l, 100)
	given := 0
	var last error
	for _, err := range l.Messages(t.Context(), store.Filter{Context: "g"}) {
		if last = err; err != nil {
			break
		}
		if given++; given == 1 {
			info, err := l.Info(t.Context(), "g")
			if err == nil {
				err = l.Prune(t.Context(), info)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if given == 0 || given >= 300 || !errors.Is(last, store.ErrNoContext) || !strings.Contains(last.Error(), "pruned while it was read") {
		t.Errorf("%d messages, %v", given, last)
	}
}

// TestPage_Bytes: large values make a page short, so that a list takes little memory.
func TestPage_Bytes(t *testing.T) {
	p, row := page[int]{size: lastPage}, []driver.Value{int64(1), strings.Repeat("x", pageBytes/4), nil}
	for n := range 4 {
		if more := p.add(n, row); more != (n < 3) || p.full() == more {
			t.Errorf("after %d values there is room: %t", n+1, more)
		}
	}
}
