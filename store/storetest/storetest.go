// Package storetest holds the behaviour that every [store.Log] must have. Implementations are
// tested with [Run].
package storetest

import (
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/store"
)

// Run runs the suite. Each of its tests takes a log of its own from open,
// empty, and closes it.
func Run(t *testing.T, open func(t *testing.T) store.Log) {
	tests := []struct {
		name string
		run  func(*testing.T, store.Log)
	}{
		{"append/absent context", testAbsentContext},
		{"append/create", testCreate},
		{"append/seq", testSeq},
		{"append/conflict", testConflict},
		{"append/all or none", testAllOrNone},
		{"append/dates", testDates},
		{"append/dates never go back", testDatesNeverGoBack},
		{"append/cancelled", testCancelled},
		{"contexts", testContexts},
		{"contexts/filters", testContextFilters},
		{"standings", testStanding},
		{"standings/of a holder", testStandingOfHolder},
		{"standings/wake", testWake},
		{"append/journal position", testExpectN},
		{"append/journal position of a fork", testExpectNOfFork},
		{"await", testAwait},
		{"append/once", testOnce},
		{"closed", testClosed},
		{"messages/round trip", testRoundTrip},
		{"messages/numbers", testNumbers},
		{"messages/filters", testFilters},
		{"messages/path filter", testPathFilter},
		{"messages/size", testSize},
		{"journal", testJournal},
		{"iterators/stop early", testStopEarly},
		{"iterators/append inside", testAppendInside},
		{"touching/order", testTouchingOrder},
		{"touching/siblings", testTouchingSiblings},
		{"touching/merge", testTouchingMerge},
		{"touching/odd keys", testTouchingOddKeys},
		{"touching/random", testTouchingRandom},
		{"leases/held", testLeaseHeld},
		{"leases/lapsed", testLeaseLapsed},
		{"leases/undone", testLeaseUndone},
		{"leases/alone", testLeaseAlone},
		{"kinds", testKinds},
		{"code", testCode},
		{"exchanges", testExchanges},
		{"logs", testLogs},
		{"logs/bound", testLogsBound},
		{"logs/forked", testLogsForked},
		{"forks", testFork},
		{"forks/within", testForkWithin},
		{"forks/refused", testForkRefused},
		{"forks/random", testForkRandom},
		{"prune", testPrune},
		{"prune/changed", testPruneChanged},
		{"prune/taken", testPruneTaken},
		{"prune/leases", testPruneLease},
		{"concurrent/appenders", testAppenders},
		{"concurrent/conflicts", testConcurrentConflicts},
		{"concurrent/readers", testReaders},
		{"concurrent/leases", testLeaseTakers},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := open(t)
			t.Cleanup(func() {
				if err := l.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			test.run(t, l)
		})
	}
}

var comparePaths = cmp.Comparer(func(a, b store.Path) bool { return a == b })

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, comparePaths); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// collect takes all that an iterator yields, and holds it to its contract: an
// error comes last, and once.
func collect[T any](t *testing.T, s iter.Seq2[T, error]) []T {
	t.Helper()
	all, err := drain(s)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func drain[T any](s iter.Seq2[T, error]) (all []T, failed error) {
	for v, err := range s {
		if failed != nil {
			panic("an iterator went on after an error")
		}
		if failed = err; err == nil {
			all = append(all, v)
		}
	}
	return all, failed
}

// add appends messages to a context and makes it if need be.
func add(t *testing.T, l store.Log, name string, messages ...store.Message) store.Appended {
	t.Helper()
	a, err := l.Append(t.Context(), store.Batch{
		Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: messages,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// parse reads JSON messages.
func parse(t *testing.T, text string) []store.Message {
	t.Helper()
	messages, err := store.ParseMessages([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

// written is a message of a call that wrote a value at a path.
func written(path store.Path, method store.Method, value any) store.Message {
	return store.Message{
		Type: store.TypeData, Kind: path.Kind(), Path: path, Method: method,
		Data:     store.Some(store.Wrap(path, value)),
		Producer: map[string]any{"_tool": "t"}, Call: "1.1", Written: "2026-01-02T03:04:05.678Z",
	}
}

// seqsOf gives the seqs of operations or messages, never nil.
func seqsOf[T any](values []T, seq func(T) int64) []int64 {
	seqs := []int64{}
	for _, v := range values {
		seqs = append(seqs, seq(v))
	}
	return seqs
}

func opSeq(op store.Op) int64           { return op.Seq }
func messageSeq(m *store.Message) int64 { return m.Seq }
func entryN(e store.Entry) int64        { return e.N }

// now is the present as a log would date it.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
