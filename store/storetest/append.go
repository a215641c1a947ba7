package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"obelus/store"
)

func testAbsentContext(t *testing.T, l store.Log) {
	ctx := t.Context()
	_, err := l.Append(ctx, store.Batch{Context: "c", Messages: parse(t, `{"type":"data","data":1}`)})
	if !errors.Is(err, store.ErrNoContext) {
		t.Errorf("Append: %v", err)
	}
	if _, err := l.Head(ctx, "c"); !errors.Is(err, store.ErrNoContext) {
		t.Errorf("Head: %v", err)
	}
	counts, err := l.CountContexts(ctx, store.ContextFilter{})
	equal(t, "CountContexts", len(counts), 0)
	equal(t, "its error", err, nil)
	equal(t, "Messages", len(collect(t, l.Messages(ctx, store.Filter{Context: "c"}))), 0)
	equal(t, "Touching", len(collect(t, l.Touching(ctx, store.Query{Context: "c", Path: store.KindPath("data")}))), 0)
	equal(t, "Journal", len(collect(t, l.Journal(ctx, store.JournalFilter{Context: "c"}))), 0)
	equal(t, "Contexts", len(collect(t, l.Contexts(ctx, store.ContextFilter{}))), 0)
}

func testCreate(t *testing.T, l store.Log) {
	ctx := t.Context()
	before := now()
	add(t, l, "parent")
	a, err := l.Append(ctx, store.Batch{Context: "child", Create: &store.Origin{Parent: "parent", Call: "1.2"}})
	if err != nil {
		t.Fatal(err)
	}
	// A context that exists keeps its origin.
	add(t, l, "child")
	infos := collect(t, l.Contexts(ctx, store.ContextFilter{Prefix: "child"}))
	if len(infos) != 1 {
		t.Fatalf("%d contexts", len(infos))
	}
	equal(t, "origin", infos[0].Origin, store.Origin{Parent: "parent", Call: "1.2"})
	equal(t, "created", infos[0].Created, a.Date)
	if a.Date.Before(before) || a.Date.After(time.Now()) || infos[0].Updated.Before(a.Date) {
		t.Errorf("created %v, updated %v, after %v", a.Date, infos[0].Updated, before)
	}
	head, err := l.Head(ctx, "child")
	if head != 0 || err != nil {
		t.Errorf("Head: %d, %v", head, err)
	}
}

func testSeq(t *testing.T, l store.Log) {
	two := parse(t, `[{"type":"data","data":1},{"type":"text","text":"x"}]`)
	equal(t, "first", add(t, l, "a", two...).Seq, int64(2))
	equal(t, "other context", add(t, l, "b", two[0]).Seq, int64(1))
	equal(t, "second", add(t, l, "a", two...).Seq, int64(4))
	equal(t, "nothing", add(t, l, "a").Seq, int64(4))
	var got []string
	for _, m := range collect(t, l.Messages(t.Context(), store.Filter{Context: "a"})) {
		got = append(got, fmt.Sprint(m.Context, m.Seq))
	}
	equal(t, "messages", got, []string{"a1", "a2", "a3", "a4"})
}

func testConflict(t *testing.T, l store.Log) {
	ctx := t.Context()
	message := parse(t, `{"type":"data","data":1}`)
	appendAt := func(name string, seq int64) error {
		_, err := l.Append(ctx, store.Batch{Context: name, ExpectSeq: seq, Create: &store.Origin{}, Messages: message})
		return err
	}
	var conflict *store.ConflictError
	if err := appendAt("c", 1); !errors.As(err, &conflict) {
		t.Fatalf("a new context at 1: %v", err)
	}
	if len(collect(t, l.Contexts(ctx, store.ContextFilter{}))) != 0 {
		t.Fatal("a refused append made a context")
	}
	if err := appendAt("c", 0); err != nil {
		t.Fatal(err)
	}
	for _, seq := range []int64{0, 2} {
		if err := appendAt("c", seq); !errors.As(err, &conflict) {
			t.Fatalf("at %d: %v", seq, err)
		}
		equal(t, "conflict", *conflict, store.ConflictError{Context: "c", Expected: seq, Actual: 1})
	}
	if err := appendAt("c", 1); err != nil {
		t.Fatal(err)
	}
}

func testAllOrNone(t *testing.T, l store.Log) {
	ctx := t.Context()
	add(t, l, "c", parse(t, `{"type":"data","data":1}`)...)
	_, err := l.Append(ctx, store.Batch{
		Context: "c", ExpectSeq: 0, Messages: parse(t, `[{"type":"data","data":2},{"type":"data","data":3}]`),
		Journal: []store.Entry{{Event: "e"}},
	})
	if err == nil {
		t.Fatal("no conflict")
	}
	head, err := l.Head(ctx, "c")
	equal(t, "head", head, int64(1))
	equal(t, "error", err, nil)
	equal(t, "journal", len(collect(t, l.Journal(ctx, store.JournalFilter{}))), 0)
	equal(t, "operations", len(collect(t, l.Touching(ctx, store.Query{Context: "c", Path: store.KindPath("data")}))), 1)
}

func testDates(t *testing.T, l store.Log) {
	ctx := t.Context()
	given := time.Date(2020, 2, 29, 23, 59, 59, 123_456_789, time.FixedZone("x", 3600))
	messages := parse(t, `[{"type":"data","data":1},{"type":"data","data":2}]`)
	messages[0].Date = given
	before := now()
	a, err := l.Append(ctx, store.Batch{
		Context: "c", Create: &store.Origin{}, Messages: messages,
		Journal: []store.Entry{{Event: "e", Date: given, Ahead: 1}, {Event: "f"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if a.Date.Before(before) || a.Date.After(time.Now()) || a.Date.Location() != time.UTC || a.Date.Nanosecond()%1e6 != 0 {
		t.Errorf("date %v", a.Date)
	}
	want := []time.Time{given.UTC().Truncate(time.Millisecond), a.Date}
	var got []time.Time
	for _, m := range collect(t, l.Messages(ctx, store.Filter{Context: "c"})) {
		got = append(got, m.Date)
	}
	equal(t, "messages", got, want)
	got = nil
	for _, e := range collect(t, l.Journal(ctx, store.JournalFilter{})) {
		got = append(got, e.Date)
	}
	equal(t, "journal", got, want)
	for _, date := range got {
		equal(t, "location", date.Location().String(), "UTC")
	}
	equal(t, "given messages", messages[1].Date.IsZero() && messages[0].Seq == 0, true)
	info := collect(t, l.Contexts(ctx, store.ContextFilter{}))[0]
	equal(t, "updated", info.Updated.Truncate(time.Millisecond), a.Date)
	equal(t, "created", info.Created, want[0])
}

// testDatesNeverGoBack: a date before the context's newest, or before the date of the item ahead,
// is raised to it.
func testDatesNeverGoBack(t *testing.T, l store.Log) {
	ctx := t.Context()
	at := func(hour int) time.Time { return time.Date(2190, 1, 1, hour, 0, 0, 0, time.UTC) }
	put := func(name string, origin *store.Origin, journal []store.Entry, hours ...int) {
		t.Helper()
		b := store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: origin, Journal: journal}
		for _, hour := range hours {
			m := store.Message{Type: store.TypeData, Kind: "data", Data: store.Some(true)}
			if hour > 0 {
				m.Date = at(hour)
			}
			b.Messages = append(b.Messages, m)
		}
		if _, err := l.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	dates := func(name string) (messages, entries []time.Time) {
		for _, m := range collect(t, l.Messages(ctx, store.Filter{Context: name})) {
			messages = append(messages, m.Date)
		}
		for _, e := range collect(t, l.Journal(ctx, store.JournalFilter{Context: name})) {
			entries = append(entries, e.Date)
		}
		return messages, entries
	}
	put("c", &store.Origin{}, []store.Entry{{Event: "a", Date: at(3), Ahead: 2}, {Event: "b", Date: at(2)}}, 2, 1, 5)
	messages, entries := dates("c")
	equal(t, "messages", messages, []time.Time{at(2), at(3), at(5)})
	equal(t, "entries", entries, []time.Time{at(3), at(5)})
	put("c", nil, nil, 0, 4, 6)
	put("c", nil, []store.Entry{{Event: "c", Date: at(9)}})
	put("c", nil, nil, 7)
	messages, _ = dates("c")
	equal(t, "more messages", messages, []time.Time{at(2), at(3), at(5), at(5), at(5), at(6), at(9)})
	// A fork goes on from the messages that it shares, events too, and another context has dates of
	// its own.
	put("f", &store.Origin{Fork: "c", At: 6}, nil, 4)
	put("ff", &store.Origin{Fork: "f", At: 6}, nil)
	put("ff", nil, nil, 4)
	put("d", &store.Origin{}, nil, 1)
	var last []time.Time
	for _, name := range []string{"f", "ff", "d"} {
		messages, _ := dates(name)
		last = append(last, messages[len(messages)-1])
	}
	equal(t, "the last of others", last, []time.Time{at(9), at(9), at(1)})
}

func testCancelled(t *testing.T, l store.Log) {
	add(t, l, "c", parse(t, `{"type":"data","data":1}`)...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, appended := l.Append(ctx, store.Batch{Context: "c", Messages: parse(t, `{"type":"data","data":1}`), ExpectSeq: store.AnySeq})
	_, head := l.Head(ctx, "c")
	_, counted := l.CountContexts(ctx, store.ContextFilter{})
	_, info := l.Info(ctx, "c")
	_, messages := drain(l.Messages(ctx, store.Filter{Context: "c"}))
	_, touching := drain(l.Touching(ctx, store.Query{Context: "c", Path: store.KindPath("data")}))
	_, kinds := l.Kinds(ctx, "c")
	_, holder := l.Holder(ctx, "c")
	for i, err := range []error{appended, head, counted, info, messages, touching, kinds, holder} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d: %v", i, err)
		}
	}
	n, err := l.Head(t.Context(), "c")
	if n != 1 || err != nil {
		t.Errorf("Head: %d, %v", n, err)
	}
}

func testContexts(t *testing.T, l store.Log) {
	names := func(prefix string) []string {
		var names []string
		for _, info := range collect(t, l.Contexts(t.Context(), store.ContextFilter{Prefix: prefix})) {
			names = append(names, fmt.Sprintf("%s:%d", info.Context, info.Messages))
		}
		return names
	}
	one := parse(t, `{"type":"data","data":1}`)
	old := parse(t, `{"type":"data","data":1,"date":"2001-01-01T00:00:00Z"}`)
	for _, name := range []string{"order-1", "order-2", "order", "Order-3", "odd%_", "ordeś"} {
		add(t, l, name, one...)
	}
	add(t, l, "order-1", old...)
	equal(t, "all", names(""), []string{"order-1:2", "ordeś:1", "odd%_:1", "Order-3:1", "order:1", "order-2:1"})
	equal(t, "prefix", names("order"), []string{"order-1:2", "order:1", "order-2:1"})
	equal(t, "odd prefix", names("odd%_"), []string{"odd%_:1"})
	equal(t, "no prefix", names("x"), []string(nil))
	if _, err := l.Append(t.Context(), store.Batch{Context: "order-2", ExpectSeq: store.AnySeq, Journal: []store.Entry{{Event: "e"}}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range collect(t, l.Contexts(t.Context(), store.ContextFilter{})) {
		info, err := l.Info(t.Context(), want.Context)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "info", info, want)
	}
	if _, err := l.Info(t.Context(), "orde"); !errors.Is(err, store.ErrNoContext) {
		t.Errorf("info of none: %v", err)
	}
	equal(t, "after a journal entry", names("order"), []string{"order-2:1", "order-1:2", "order:1"})
}

func testClosed(t *testing.T, l store.Log) {
	ctx := t.Context()
	add(t, l, "c", parse(t, `{"type":"data","data":1}`)...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, appended := l.Append(ctx, store.Batch{Context: "c", ExpectSeq: store.AnySeq})
	_, head := l.Head(ctx, "c")
	_, counted := l.CountContexts(ctx, store.ContextFilter{})
	_, messages := drain(l.Messages(ctx, store.Filter{Context: "c"}))
	_, touching := drain(l.Touching(ctx, store.Query{Context: "c", Path: store.KindPath("data")}))
	_, journal := drain(l.Journal(ctx, store.JournalFilter{}))
	_, contexts := drain(l.Contexts(ctx, store.ContextFilter{}))
	_, kinds := l.Kinds(ctx, "c")
	_, holder := l.Holder(ctx, "c")
	for i, err := range []error{appended, head, counted, messages, touching, journal, contexts, kinds, holder} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%d: %v", i, err)
		}
	}
}
