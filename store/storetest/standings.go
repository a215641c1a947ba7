package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"obelus/store"
)

// put appends a batch wherever its context ends, and creates that.
func put(t *testing.T, l store.Log, b store.Batch) store.Appended {
	t.Helper()
	b.ExpectSeq = store.AnySeq
	if b.Create == nil {
		b.Create = &store.Origin{}
	}
	a, err := l.Append(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func standingOf(t *testing.T, l store.Log, name string) store.Standing {
	t.Helper()
	info, err := l.Info(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Standing
}

func testStanding(t *testing.T, l store.Log) {
	due := time.Date(2026, 11, 26, 3, 0, 0, 7e6, time.UTC)
	one := store.Standing{
		Status: "waiting", Plan: "plans/a.lua", Error: "no", Tick: 2, Calls: 9, Done: 1, Failed: 2, Waiting: 3, Held: 4,
		Due: due.Add(123 * time.Microsecond), Wakes: true, Labels: map[string]string{"customer": "7", "a b\"": "†"},
		Retrying: 5, Background: 6, WaitingOn: []string{"†input.\"a b\"", "†state.x"},
	}
	stored := one
	stored.Due = due
	put(t, l, store.Batch{Context: "c", Standing: &one})
	equal(t, "with its creation", standingOf(t, l, "c"), stored)
	put(t, l, store.Batch{Context: "c", Journal: []store.Entry{{Event: "e"}}})
	equal(t, "left alone", standingOf(t, l, "c"), stored)
	put(t, l, store.Batch{Context: "c", Standing: &store.Standing{Status: "done"}})
	equal(t, "replaced as a whole", standingOf(t, l, "c"), store.Standing{Status: "done"})
	put(t, l, store.Batch{Context: "d", Messages: parse(t, `{"type":"data","data":1}`)})
	equal(t, "without any", standingOf(t, l, "d"), store.Standing{})

	// An append that is refused changes nothing.
	_, err := l.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: 7, Standing: &one})
	equal(t, "refused", errors.As(err, new(*store.ConflictError)), true)
	equal(t, "after that", standingOf(t, l, "c"), store.Standing{Status: "done"})

	// A fork begins with what its own append says.
	put(t, l, store.Batch{Context: "f", Create: &store.Origin{Fork: "d", At: 1}})
	equal(t, "of a fork", standingOf(t, l, "f"), store.Standing{})
}

// testStandingOfHolder: while a context is being run its status and its due time are exact, and
// the rest is in the end.
func testStandingOfHolder(t *testing.T, l store.Log) {
	steps := func(status string, done int, due time.Time, hold time.Duration, epoch int64) store.Batch {
		return store.Batch{
			Context: "c", Messages: parse(t, fmt.Sprintf(`{"type":"data","data":%d}`, done)), Lease: &store.Lease{Epoch: epoch, For: hold},
			Standing: &store.Standing{Status: status, Done: done, Due: due},
		}
	}
	began := now()
	epoch := put(t, l, steps("running", 0, began, time.Hour, 0)).Epoch
	for done := 1; done < 20; done++ {
		put(t, l, steps("running", done, began, time.Hour, epoch))
	}
	put(t, l, steps("pausing", 20, began, time.Hour, epoch))
	equal(t, "another status", standingOf(t, l, "c"), store.Standing{Status: "pausing", Done: 20, Due: began})
	put(t, l, steps("pausing", 21, began.Add(time.Hour), time.Hour, epoch))
	equal(t, "another due time", standingOf(t, l, "c"), store.Standing{Status: "pausing", Done: 21, Due: began.Add(time.Hour)})
	put(t, l, steps("pausing", 22, began.Add(time.Hour), time.Hour, epoch))
	put(t, l, store.Batch{Context: "c", Lease: &store.Lease{Epoch: epoch}})
	info, err := l.Info(t.Context(), "c")
	equal(t, "error", err, nil)
	equal(t, "in the end", info.Standing, store.Standing{Status: "pausing", Done: 22, Due: began.Add(time.Hour)})
	equal(t, "bytes", info.Bytes, int64(10+2*13))

	// A holder that crashed may have left bytes out: they are counted anew when its lease is taken.
	epoch = put(t, l, store.Batch{Context: "c", Lease: &store.Lease{For: lapsed}}).Epoch
	put(t, l, store.Batch{Context: "c", Messages: parse(t, `{"type":"data","data":"abc"}`), Lease: &store.Lease{Epoch: epoch, For: lapsed}})
	put(t, l, store.Batch{Context: "c", Lease: &store.Lease{}})
	info, err = l.Info(t.Context(), "c")
	equal(t, "error", err, nil)
	equal(t, "bytes after a crash", info.Bytes, int64(10+2*13+5))
}

func testWake(t *testing.T, l store.Log) {
	later := now().Add(time.Hour)
	put(t, l, store.Batch{Context: "waits", Standing: &store.Standing{Status: "waiting", Wakes: true, Due: later}})
	put(t, l, store.Batch{Context: "done", Standing: &store.Standing{Status: "done"}})
	due := func() (names []string) {
		for _, info := range collect(t, l.Contexts(t.Context(), store.ContextFilter{Due: time.Now()})) {
			names = append(names, info.Context)
		}
		return names
	}
	equal(t, "before", due(), []string(nil))
	for _, name := range []string{"done", "waits", "new"} {
		put(t, l, store.Batch{Context: name, Journal: []store.Entry{{Event: "e"}}, Wake: true})
	}
	equal(t, "woken", due(), []string{"waits"})
	put(t, l, store.Batch{Context: "waits", Standing: &store.Standing{Status: "waiting", Wakes: true}})
	equal(t, "looked at", due(), []string(nil))
	before := collect(t, l.Contexts(t.Context(), store.ContextFilter{}))[0].Context
	put(t, l, store.Batch{Context: "waits", Standing: &store.Standing{Status: "waiting", Wakes: true, Due: later}})
	equal(t, "a standing alone is no append: the newest", collect(t, l.Contexts(t.Context(), store.ContextFilter{}))[0].Context, before)
	put(t, l, store.Batch{Context: "born", Standing: &store.Standing{Status: "waiting", Wakes: true}, Wake: true})
	equal(t, "woken with its creation", due(), []string{"born"})
}

func testExpectN(t *testing.T, l store.Log) {
	entry := []store.Entry{{Event: "e"}}
	first := put(t, l, store.Batch{Context: "c", Journal: entry}).N
	expect := func(n int64) error {
		_, err := l.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, ExpectN: n, Standing: &store.Standing{Status: "done"}})
		return err
	}
	put(t, l, store.Batch{Context: "other", Journal: entry})
	equal(t, "entries of others don't count", expect(first), nil)
	second := put(t, l, store.Batch{Context: "c", Journal: entry, Messages: parse(t, `{"type":"data","data":1}`)}).N
	equal(t, "positions grow", second > first, true)
	var conflict *store.ConflictError
	equal(t, "a newer entry", errors.As(expect(first), &conflict), true)
	equal(t, "conflict", *conflict, store.ConflictError{Context: "c"})
	equal(t, "the newest", expect(second), nil)
	equal(t, "none, where there are some", errors.As(expect(store.NoEntries), &conflict), true)

	// A context without entries, in a log where others have some.
	put(t, l, store.Batch{Context: "silent", Messages: parse(t, `{"type":"data","data":1}`)})
	b := store.Batch{Context: "silent", ExpectSeq: store.AnySeq, ExpectN: store.NoEntries, Journal: entry}
	_, err := l.Append(t.Context(), b)
	equal(t, "none", err, nil)
	_, err = l.Append(t.Context(), b)
	equal(t, "none, a second time", errors.As(err, &conflict), true)
}

// testExpectNOfFork: a fork is refused where it would share entries that its maker does not expect,
// and entries that it would not share don't matter.
func testExpectNOfFork(t *testing.T, l store.Log) {
	message, entry := parse(t, `{"type":"data","data":1}`), []store.Entry{{Event: "e"}}
	fork := func(from string, at, n int64, name string) error {
		_, err := l.Append(t.Context(), store.Batch{Context: name, ExpectSeq: store.AnySeq, ExpectN: n, Create: &store.Origin{Fork: from, At: at}, Standing: &store.Standing{Status: "done"}})
		return err
	}
	conflict := func(err error) bool { return errors.As(err, new(*store.ConflictError)) }

	put(t, l, store.Batch{Context: "c", Messages: message})
	equal(t, "no entries", fork("c", 1, store.NoEntries, "f1"), nil)
	first := put(t, l, store.Batch{Context: "c", Journal: entry}).N
	equal(t, "no entries, where there are some", conflict(fork("c", 1, store.NoEntries, "f2")), true)
	second := put(t, l, store.Batch{Context: "c", Journal: entry}).N
	equal(t, "a newer entry", conflict(fork("c", 1, first, "f2")), true)
	_, err := l.Head(t.Context(), "f2")
	equal(t, "no fork is left", errors.Is(err, store.ErrNoContext), true)
	put(t, l, store.Batch{Context: "c", Messages: message, Journal: entry})
	equal(t, "a newer entry that it does not share", fork("c", 1, second, "f2"), nil)
	equal(t, "a newer entry that it shares", conflict(fork("c", 2, second, "f3")), true)
	equal(t, "any", fork("c", 2, 0, "f3"), nil)

	// Of a fork, the entries that it shares count too.
	equal(t, "a fork of a fork", conflict(fork("f3", 2, second, "g")), true)
	own := put(t, l, store.Batch{Context: "f3", Journal: entry}).N
	equal(t, "its own entry", conflict(fork("f3", 2, own-1, "g")), true)
	equal(t, "an earlier part of it", fork("f3", 1, second, "g"), nil)
}

// testContextFilters: every filter picks, counts and orders what [store.ContextFilter.Picks] says,
// from any place in a list on.
func testContextFilters(t *testing.T, l store.Log) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	for i := range 400 {
		b := store.Batch{Context: fmt.Sprintf("%s-%03d", pick("order", "Day", "x"), i), Create: &store.Origin{}}
		if random.IntN(3) == 0 {
			b.Create = &store.Origin{Parent: pick("p", "q"), Call: "1.1"}
		}
		if status := pick("", "done", "failed", "waiting"); status != "" {
			b.Standing = &store.Standing{Status: status, Plan: pick("plans/a.lua", "plans/Été_%.lua"), Held: random.IntN(2)}
			if random.IntN(2) == 0 {
				b.Standing.Labels = map[string]string{"customer": pick("7", "ACME"), "x": "1"}
			}
			b.Standing.Retrying = max(0, random.IntN(4)-2)
			if status == "waiting" {
				b.Standing.WaitingOn = []string{pick("†a", "†input.a"), "†input.b"}
			}
			if random.IntN(2) == 0 {
				b.Standing.Due = now().Add(time.Duration(random.IntN(3)-1) * time.Hour)
			}
		}
		put(t, l, b)
	}
	all := collect(t, l.Contexts(t.Context(), store.ContextFilter{}))
	equal(t, "contexts", len(all), 400)
	for i, info := range all[1:] {
		if all[i].Mark().Compare(info.Mark()) >= 0 {
			t.Fatalf("%s comes before %s", all[i].Context, info.Context)
		}
	}
	random.Shuffle(3, func(int, int) {})
	for range 300 {
		var f store.ContextFilter
		for range 1 + random.IntN(3) {
			switch random.IntN(14) {
			case 0:
				f.Prefix = pick("order-", "D", "x-00")
			case 1:
				f.Roots = true
			case 2:
				f.Parent = pick("p", "q")
			case 3:
				f.Since = all[random.IntN(len(all))].Updated
			case 4:
				f.Until = all[random.IntN(len(all))].Updated.Add(time.Nanosecond)
			case 5:
				f.Statuses = []string{pick("", "done"), pick("failed", "waiting")}
			case 6:
				f.Plan = pick("plans/a.lua", "plans/Été_%.lua")
			case 7:
				f.Text = pick("ORDER", "acme", "_%", "99", "tÉ")
			case 8:
				f.Labels = map[string]string{"customer": pick("7", "ACME", "acme")}
			case 9:
				f.Held = true
			case 10:
				f.Due = time.Now()
			case 11:
				f.Retrying = true
			case 12:
				f.WaitingOn = pick("†a", "†input.a", "†input", "†input.b")
			case 13:
				f.Among = []string{}
				for range random.IntN(200) {
					f.Among = append(f.Among, all[random.IntN(len(all))].Context)
				}
			}
		}
		if random.IntN(3) == 0 {
			f.After = all[random.IntN(len(all))].Mark()
		}
		var want []store.ContextInfo
		counts := map[string]int64{}
		for _, info := range all {
			if f.Picks(&info) {
				want = append(want, info)
				counts[info.Standing.Status]++
			}
		}
		got := collect(t, l.Contexts(t.Context(), f))
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%+v: %s", f, diff)
		}
		counted, err := l.CountContexts(t.Context(), f)
		equal(t, "error", err, nil)
		equal(t, fmt.Sprintf("counts of %+v", f), counted, counts)
	}
}

// testAwait: what waits for appends hears of those to any context, and of the log's end.
func testAwait(t *testing.T, l store.Log) {
	entry := []store.Entry{{Event: "e"}}
	first := put(t, l, store.Batch{Context: "a", Journal: entry}).N
	n, err := l.Await(t.Context(), 0)
	equal(t, "error", err, nil)
	equal(t, "what is there", n, first)
	heard := make(chan int64)
	wait := func(after int64) {
		n, err := l.Await(t.Context(), after)
		if err != nil {
			t.Error(err)
		}
		heard <- n
	}
	for _, name := range []string{"a", "b"} {
		go wait(n)
		go wait(n)
		put(t, l, store.Batch{Context: name, Lease: &store.Lease{}}) // no entry
		next := put(t, l, store.Batch{Context: name, Journal: entry}).N
		for range 2 {
			equal(t, "heard of", <-heard, next)
		}
		n = next
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.Await(ctx, n)
	equal(t, "cancelled", errors.Is(err, context.Canceled), true)
	ended := make(chan error)
	go func() {
		_, err := l.Await(t.Context(), n)
		ended <- err
	}()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	equal(t, "closed", errors.Is(<-ended, store.ErrClosed), true)
}

// testOnce: a context that is to be made is made once, and its name stays taken after it is pruned.
func testOnce(t *testing.T, l store.Log) {
	make := func(name string, once bool) error {
		_, err := l.Append(t.Context(), store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}, Once: once, Journal: []store.Entry{{Event: "e"}}})
		return err
	}
	prune := func(name string) {
		t.Helper()
		info, err := l.Info(t.Context(), name)
		if err == nil {
			err = l.Prune(t.Context(), info)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "once", make("c", true), nil)
	equal(t, "twice", errors.Is(make("c", true), store.ErrExists), true)
	equal(t, "another append", make("c", false), nil)
	equal(t, "another context", make("d", false), nil)
	equal(t, "one that exists", errors.Is(make("d", true), store.ErrExists), true)
	prune("c")
	prune("d")
	err := make("c", true)
	equal(t, "after it was pruned", errors.Is(err, store.ErrExists), true)
	equal(t, "the reason", strings.Contains(err.Error(), "c was pruned on "), true)
	equal(t, "a name that was not to be made once", make("d", true), nil)
	equal(t, "made by other means", make("c", false), nil)
	equal(t, "its messages", errors.Is(make("c", true), store.ErrExists), true)
}
