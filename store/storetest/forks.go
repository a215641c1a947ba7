package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"obelus/store"
	"obelus/store/memory"
)

// fork makes a fork with an event of its own.
func fork(l store.Log, from string, at int64, name string) (store.Appended, error) {
	return l.Append(context.Background(), store.Batch{
		Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{Fork: from, At: at}, Journal: []store.Entry{{Event: "fork"}},
	})
}

// step appends messages that set a path, with an event.
func step(t *testing.T, l store.Log, name string, values ...int) {
	t.Helper()
	b := store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}, Journal: []store.Entry{{Event: "step", Call: fmt.Sprint(values)}}}
	for _, v := range values {
		b.Messages = append(b.Messages, written(store.MustParsePath("†s.a"), "", v))
	}
	if _, err := l.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// contentOf is the content of a context as text.
func contentOf(t *testing.T, l store.Log, name string) (text string) {
	t.Helper()
	for _, m := range collect(t, l.Messages(t.Context(), store.Filter{Context: name})) {
		value, _ := store.Dig(m.Data.Value, m.Path)
		text += fmt.Sprintf("%s %d=%v ", m.Context, m.Seq, value)
	}
	for _, e := range collect(t, l.Journal(t.Context(), store.JournalFilter{Context: name})) {
		text += fmt.Sprintf("%s %d %s%s ", e.Context, e.Seq, e.Event, e.Call)
	}
	resolved, err := store.Resolver{Log: l, Context: name}.Resolve(t.Context(), store.MustParsePath("†s.a"), "")
	equal(t, "error", err, nil)
	return text + fmt.Sprint(resolved.Value)
}

func testFork(t *testing.T, l store.Log) {
	step(t, l, "p", 1)
	step(t, l, "p", 2, 3)
	step(t, l, "p")
	step(t, l, "p", 4)
	_, err := fork(l, "p", 3, "f")
	equal(t, "error", err, nil)
	equal(t, "at once", contentOf(t, l, "f"), "f 1=1 f 2=2 f 3=3 f 1 step[1] f 3 step[2 3] f 3 step[] f 3 fork 3")
	step(t, l, "f", 5)
	step(t, l, "p", 6)
	equal(t, "fork", contentOf(t, l, "f"), "f 1=1 f 2=2 f 3=3 f 4=5 f 1 step[1] f 3 step[2 3] f 3 step[] f 3 fork f 4 step[5] 5")
	equal(t, "parent", contentOf(t, l, "p"), "p 1=1 p 2=2 p 3=3 p 4=4 p 5=6 p 1 step[1] p 3 step[2 3] p 3 step[] p 4 step[4] p 5 step[6] 6")

	// Forks of a fork: beyond where it was forked, there, and before.
	for at, want := range map[int64]string{
		4: "g 1=1 g 2=2 g 3=3 g 4=5 g 1 step[1] g 3 step[2 3] g 3 step[] g 3 fork g 4 step[5] g 4 fork 5",
		3: "g 1=1 g 2=2 g 3=3 g 1 step[1] g 3 step[2 3] g 3 step[] g 3 fork g 3 fork 3",
		1: "g 1=1 g 1 step[1] g 1 fork 1",
	} {
		_, err := fork(l, "f", at, "g")
		equal(t, "error", err, nil)
		equal(t, fmt.Sprintf("fork at %d", at), contentOf(t, l, "g"), want)
		equal(t, "pruned", prune(t, l, "g"), nil)
	}
	head, err := l.Head(t.Context(), "f")
	equal(t, "error", err, nil)
	equal(t, "head", head, int64(4))
	info := collect(t, l.Contexts(t.Context(), store.ContextFilter{Prefix: "f"}))[0]
	equal(t, "forks of p", collect(t, l.Contexts(t.Context(), store.ContextFilter{Fork: "p"})), []store.ContextInfo{info})
	equal(t, "forks of f", collect(t, l.Contexts(t.Context(), store.ContextFilter{Fork: "f"})), []store.ContextInfo(nil))
	alone, err := l.Info(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "info", alone, info)
	equal(t, "origin", info.Origin, store.Origin{Fork: "p", At: 3})
	equal(t, "messages", info.Messages, int64(4))
	// Messages of the parent after the fork are no part of it, as of any seq.
	for at, want := range map[int64]string{2: "1=1 2=2 ", 3: "1=1 2=2 3=3 ", 4: "1=1 2=2 3=3 4=5 ", 9: "1=1 2=2 3=3 4=5 "} {
		got := ""
		for _, m := range collect(t, l.Messages(t.Context(), store.Filter{Context: "f", At: at})) {
			value, _ := store.Dig(m.Data.Value, m.Path)
			got += fmt.Sprintf("%d=%v ", m.Seq, value)
		}
		equal(t, fmt.Sprintf("messages at %d", at), got, want)
		resolved, err := store.Resolver{Log: l, Context: "f", At: at}.Resolve(t.Context(), store.MustParsePath("†s.a"), "")
		equal(t, "error", err, nil)
		equal(t, fmt.Sprintf("value at %d", at), fmt.Sprint(resolved.Value), map[int64]string{2: "2", 3: "3", 4: "5", 9: "5"}[at])
	}
	entries := collect(t, l.Journal(t.Context(), store.JournalFilter{Context: "f", Seq: 3, Newest: true}))
	equal(t, "from seq 3", seqsOf(entries, func(e store.Entry) int64 { return e.Seq }), []int64{4, 3, 3, 3})
	all := collect(t, l.Journal(t.Context(), store.JournalFilter{}))
	all = slices.DeleteFunc(all, func(e store.Entry) bool { return e.Context == "" })
	equal(t, "all entries", len(all), 7)
}

// testForkWithin: a batch can be divided after each of its entries, and ahead of a call's write or
// a plan.
func testForkWithin(t *testing.T, l store.Log) {
	given := parse(t, `[{"type":"data","kind":"s","data":{"b":1}},{"type":"data","kind":"s","data":{"b":2}}]`)
	one, two, three := written(store.MustParsePath("†s.a"), "", 1), written(store.MustParsePath("†s.a"), "", 2), written(store.MustParsePath("†s.a"), "", 3)
	b := store.Batch{
		Context: "p", ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: append(given, one, two, three),
		Journal: []store.Entry{{Event: "begin", Ahead: 5}, {Event: "one", Ahead: 2}, {Event: "last"}},
	}
	appended, err := l.Append(t.Context(), b)
	equal(t, "error", err, nil)
	entries := collect(t, l.Journal(t.Context(), store.JournalFilter{Context: "p"}))
	equal(t, "seqs", seqsOf(entries, func(e store.Entry) int64 { return e.Seq }), []int64{0, 3, 5})
	equal(t, "positions", seqsOf(entries, func(e store.Entry) int64 { return e.N }), []int64{appended.N - 7, appended.N - 3, appended.N})
	equal(t, "ahead of none", entries[0].Ahead, 0)
	for at, want := range map[int64]string{
		1: "begin fork", 2: "begin fork", 3: "begin one fork", 5: "begin one last fork",
	} {
		_, err := fork(l, "p", at, "f")
		equal(t, "error", err, nil)
		events := ""
		for _, e := range collect(t, l.Journal(t.Context(), store.JournalFilter{Context: "f"})) {
			events += e.Event + " "
		}
		equal(t, fmt.Sprintf("fork at %d", at), strings.TrimSpace(events), want)
		equal(t, "pruned", prune(t, l, "f"), nil)
	}
	_, err = fork(l, "p", 4, "f")
	var refused *store.ForkError
	equal(t, "refused", errors.As(err, &refused), true)
	equal(t, "refused at 4", refused, &store.ForkError{Context: "p", At: 4, Before: 3, After: 5})

	plan := store.Message{Type: store.TypePlan, Data: store.Some([]any{})}
	_, err = l.Append(t.Context(), store.Batch{Context: "p", ExpectSeq: store.AnySeq, Messages: append(given, plan, two), Journal: []store.Entry{{Event: "plan"}}})
	equal(t, "error", err, nil)
	_, err = fork(l, "p", 7, "f")
	equal(t, "error", err, nil)
	_, err = fork(l, "p", 8, "g")
	equal(t, "refused", errors.As(err, &refused), true)
	equal(t, "refused at 8", refused, &store.ForkError{Context: "p", At: 8, Before: 7, After: 9})
}

func testForkRefused(t *testing.T, l store.Log) {
	step(t, l, "p", 1)
	step(t, l, "p", 2, 3, 4)
	add(t, l, "empty")
	for _, test := range []struct {
		from string
		at   int64
		name string
		want error
	}{
		{"p", 2, "f", &store.ForkError{Context: "p", At: 2, Before: 1, After: 4}},
		{"p", 3, "f", &store.ForkError{Context: "p", At: 3, Before: 1, After: 4}},
		{"p", 5, "f", &store.ForkError{Context: "p", At: 5, Head: 4}},
		{"p", 0, "f", &store.ForkError{Context: "p", Head: 4}},
		{"empty", 1, "f", &store.ForkError{Context: "empty", At: 1}},
	} {
		_, err := fork(l, test.from, test.at, test.name)
		var got *store.ForkError
		if !errors.As(err, &got) {
			t.Fatalf("%s at %d: %v", test.from, test.at, err)
		}
		equal(t, fmt.Sprintf("%s at %d", test.from, test.at), got, test.want)
	}
	_, err := fork(l, "p", 1, "empty")
	equal(t, "a name that is taken", errors.Is(err, store.ErrExists), true)
	_, err = fork(l, "absent", 1, "f")
	equal(t, "an absent context", errors.Is(err, store.ErrNoContext), true)
	refused := store.Batch{Context: "f", ExpectSeq: 7, Create: &store.Origin{Fork: "p", At: 4}}
	_, err = l.Append(t.Context(), refused)
	equal(t, "at another seq", errors.As(err, new(*store.ConflictError)), true)
	_, err = l.Head(t.Context(), "f")
	equal(t, "nothing is left of them", errors.Is(err, store.ErrNoContext), true)
	equal(t, "what is made under that name", add(t, l, "f", parse(t, `{"type":"data","data":1}`)...).Seq, int64(1))
}

// testForkRandom: a fork reads as a copy would.
func testForkRandom(t *testing.T, l store.Log) {
	r := rand.New(rand.NewPCG(7, 11))
	paths := []store.Path{store.MustParsePath("†s"), store.MustParsePath("†s.a"), store.MustParsePath("†s.a.b"), store.MustParsePath("†t.list"), store.MustParsePath("†u")}
	twin := memory.New()
	names := []string{"c0"}
	for i := range 300 {
		name := names[r.IntN(len(names))]
		if head, _ := l.Head(t.Context(), name); head > 0 && r.IntN(10) == 0 && len(names) < 20 {
			made := fmt.Sprintf("c%d", len(names))
			at := 1 + r.Int64N(head)
			_, err := fork(l, name, at, made)
			_, want := fork(twin, name, at, made)
			equal(t, "fork", fmt.Sprint(err), fmt.Sprint(want))
			if err == nil {
				names = append(names, made)
			}
			continue
		}
		p := paths[r.IntN(len(paths))]
		method := []store.Method{"", store.Push, store.Merge}[r.IntN(3)]
		b := store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}, Journal: []store.Entry{{Event: "e"}}}
		for n := range 1 + r.IntN(3) {
			m := written(p, method, map[string]any{"i": i, "n": n})
			if r.IntN(3) == 0 {
				m.Call = ""
			}
			b.Messages = append(b.Messages, m)
		}
		if r.IntN(2) == 0 {
			b.Journal = []store.Entry{{Event: "early", Ahead: r.IntN(len(b.Messages) + 1)}, {Event: "e"}}
		}
		for _, log := range []store.Log{l, twin} {
			if _, err := log.Append(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range names {
		for _, p := range paths {
			for _, at := range []int64{0, 1, 5, 20} {
				got, err := store.Resolver{Log: l, Context: name, At: at}.Resolve(t.Context(), p, "")
				equal(t, "error", err, nil)
				want, err := store.Resolver{Log: twin, Context: name, At: at}.Resolve(t.Context(), p, "")
				equal(t, "error", err, nil)
				equal(t, fmt.Sprintf("%s of %s at %d", p, name, at), store.EncodeJSON(got.Value), store.EncodeJSON(want.Value))
				equal(t, "provenance", got.From, want.From)
			}
			f := store.Filter{Context: name, Path: p, Newest: true}
			equal(t, "messages", seqsOf(collect(t, l.Messages(t.Context(), f)), messageSeq), seqsOf(collect(t, twin.Messages(t.Context(), f)), messageSeq))
		}
		placed := func(l store.Log) (all [][2]int64) {
			for _, e := range collect(t, l.Journal(t.Context(), store.JournalFilter{Context: name})) {
				all = append(all, [2]int64{e.N, e.Seq})
			}
			return all
		}
		equal(t, "entries", placed(l), placed(twin))
		got, err := l.Kinds(t.Context(), name)
		equal(t, "error", err, nil)
		want, err := twin.Kinds(t.Context(), name)
		equal(t, "error", err, nil)
		equal(t, "kinds", got, want)
	}
}

// prune removes contexts as they stand.
func prune(t *testing.T, l store.Log, names ...string) error {
	t.Helper()
	var contexts []store.ContextInfo
	for _, name := range names {
		info := store.ContextInfo{Context: name}
		for _, found := range collect(t, l.Contexts(t.Context(), store.ContextFilter{Prefix: name})) {
			if found.Context == name {
				info = found
			}
		}
		contexts = append(contexts, info)
	}
	return l.Prune(t.Context(), contexts...)
}

// testPruneChanged: a context that was appended to after it was read is not removed, be it a
// message or an event alone.
func testPruneChanged(t *testing.T, l store.Log) {
	step(t, l, "other", 1)
	for _, b := range []store.Batch{
		{Messages: parse(t, `{"type":"data","data":1}`)},
		{Journal: []store.Entry{{Event: "e"}}},
		{Messages: parse(t, `{"type":"data","data":2}`), Lease: &store.Lease{}},
	} {
		step(t, l, "c", 1)
		before := collect(t, l.Contexts(t.Context(), store.ContextFilter{}))
		b.Context, b.ExpectSeq = "c", store.AnySeq
		_, err := l.Append(t.Context(), b)
		equal(t, "error", err, nil)
		var changed *store.ChangedError
		equal(t, "changed", errors.As(l.Prune(t.Context(), before...), &changed) && changed.Context == "c", true)
		equal(t, "contexts", len(collect(t, l.Contexts(t.Context(), store.ContextFilter{}))), 2)
		equal(t, "as it stands", prune(t, l, "c"), nil)
	}
}

// testPruneTaken: a run that has begun and died since the context was read is not removed either,
// although it had only just been appended to.
func testPruneTaken(t *testing.T, l store.Log) {
	step(t, l, "c", 1)
	before := collect(t, l.Contexts(t.Context(), store.ContextFilter{}))
	epoch := mustLease(t, l, 0, time.Millisecond)
	b := store.Batch{Context: "c", ExpectSeq: store.AnySeq, Journal: []store.Entry{{Event: "plan"}}, Lease: &store.Lease{Epoch: epoch, For: time.Millisecond}}
	_, err := l.Append(t.Context(), b)
	equal(t, "error", err, nil)
	for { // until it has lapsed
		if holder, err := l.Holder(t.Context(), "c"); err != nil {
			t.Fatal(err)
		} else if holder == "" {
			break
		}
	}
	var changed *store.ChangedError
	equal(t, "changed", errors.As(l.Prune(t.Context(), before...), &changed), true)
}

// testPruneLease: the former holder of a removed context can record nothing in the next one of its
// name.
func testPruneLease(t *testing.T, l store.Log) {
	step(t, l, "other", 1)
	before := int64(0)
	for range 3 {
		step(t, l, "c", 1)
		epoch := mustLease(t, l, 0, time.Hour)
		if epoch <= before {
			t.Fatalf("the lease of a new context has the epoch %d, after %d", epoch, before)
		}
		if before > 0 {
			refuseLease(t, l, before, time.Hour, "this process")
		}
		before = mustLease(t, l, epoch, 0)
		equal(t, "pruned", prune(t, l, "c"), nil)
	}
}

func testPrune(t *testing.T, l store.Log) {
	step(t, l, "a", 1)
	step(t, l, "a", 2)
	step(t, l, "other", 9)
	for _, f := range [][2]string{{"a", "b"}, {"b", "c"}} {
		if _, err := fork(l, f[0], 2, f[1]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fork(l, "b", 1, "d"); err != nil { // which needs a, and not b
		t.Fatal(err)
	}
	needed := func(fork string, names ...string) {
		t.Helper()
		var got *store.NeededError
		if err := prune(t, l, names...); !errors.As(err, &got) || fork != "" && got.Fork != fork {
			t.Fatalf("pruning %v: %v", names, err)
		}
	}
	needed("", "a")
	needed("d", "a", "b", "c")
	needed("c", "b")
	before := contentOf(t, l, "c")
	equal(t, "absent", errors.Is(prune(t, l, "d", "absent"), store.ErrNoContext), true)
	equal(t, "the fork that could go", contentOf(t, l, "d"), "d 1=1 d 1 step[1] d 1 fork 1")

	epoch := int64(0)
	if a, err := l.Append(t.Context(), store.Batch{Context: "d", ExpectSeq: store.AnySeq, Lease: &store.Lease{For: time.Hour}}); err == nil {
		epoch = a.Epoch
	}
	var held *store.HeldError
	equal(t, "held", errors.As(prune(t, l, "d"), &held), true)
	if _, err := l.Append(t.Context(), store.Batch{Context: "d", ExpectSeq: store.AnySeq, Lease: &store.Lease{Epoch: epoch}}); err != nil {
		t.Fatal(err)
	}
	equal(t, "d", prune(t, l, "d"), nil)
	equal(t, "c is as it was", contentOf(t, l, "c"), before)
	if _, err := fork(l, "c", 1, "e"); err != nil {
		t.Fatal(err)
	}
	info := collect(t, l.Contexts(t.Context(), store.ContextFilter{Prefix: "e"}))[0]
	equal(t, "what e shares", info.Shares, []string{"a"})
	equal(t, "what e was forked from, and does not need", prune(t, l, "c"), nil)
	needed("e", "a", "b")
	equal(t, "e is as it was", contentOf(t, l, "e"), "e 1=1 e 1 step[1] e 1 fork 1")
	last := collect(t, l.Journal(t.Context(), store.JournalFilter{Newest: true}))[0].N
	equal(t, "e", prune(t, l, "e"), nil)
	equal(t, "all", prune(t, l, "a", "b"), nil)
	equal(t, "what is left", contentOf(t, l, "other"), "other 1=9 other 1 step[9] 9")
	equal(t, "contexts", len(collect(t, l.Contexts(t.Context(), store.ContextFilter{}))), 1)
	added, err := l.Append(t.Context(), store.Batch{Context: "other", ExpectSeq: store.AnySeq, Journal: []store.Entry{{Event: "later"}}})
	equal(t, "error", err, nil)
	if added.N <= last {
		t.Errorf("the position %d is given again, after %d", added.N, last)
	}
	step(t, l, "a", 7) // the name is free again
	equal(t, "anew", contentOf(t, l, "a"), "a 1=7 a 1 step[7] 7")
}
