package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"obelus/store"
)

// addLines appends lines of one call.
func addLines(t *testing.T, l store.Log, name, call string, keep int64, texts ...string) {
	t.Helper()
	b := store.Batch{Context: name, ExpectSeq: store.AnySeq, KeepLogs: keep}
	for _, text := range texts {
		b.Logs = append(b.Logs, store.LogLine{Call: call, Tool: "pay", Attempt: 1, Date: now(), Level: store.LevelInfo, Printed: true, Text: text})
	}
	if _, err := l.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// linesOf are the lines that a filter picks, each as "call#line text".
func linesOf(t *testing.T, l store.Log, f store.LogFilter) string {
	t.Helper()
	var lines []string
	last := int64(0)
	for _, line := range collect(t, l.Logs(t.Context(), f)) {
		if line.Context != f.Context {
			t.Errorf("a line of %s has the context %s", f.Context, line.Context)
		}
		if !f.Newest && line.N <= last {
			t.Errorf("line %d follows line %d", line.N, last)
		}
		last = line.N
		lines = append(lines, fmt.Sprintf("%s#%d %s", line.Call, line.Line, line.Text))
	}
	return strings.Join(lines, ", ")
}

func testLogs(t *testing.T, l store.Log) {
	step(t, l, "c", 1)
	before, err := l.Info(t.Context(), "c")
	equal(t, "error", err, nil)
	date := now()
	logged := store.LogLine{
		Call: "1.1", Tool: "pay", Attempt: 2, Date: date, Level: store.LevelWarn, Text: "two\nlines",
		Fields: map[string]any{"id": json.Number("17"), "list": []any{"a", nil}},
	}
	b := store.Batch{Context: "c", ExpectSeq: store.AnySeq, KeepLogs: 1 << 20, Logs: []store.LogLine{logged}}
	_, err = l.Append(t.Context(), b)
	equal(t, "error", err, nil)
	logged.Context, logged.Line = "c", 1
	got := collect(t, l.Logs(t.Context(), store.LogFilter{Context: "c"}))
	logged.N = got[0].N
	equal(t, "a line", got, []store.LogLine{logged})

	addLines(t, l, "c", "1.2", 1<<20, "a", "b")
	addLines(t, l, "c", "1.1", 1<<20, "c")
	equal(t, "all", linesOf(t, l, store.LogFilter{Context: "c"}), "1.1#1 two\nlines, 1.2#1 a, 1.2#2 b, 1.1#2 c")
	equal(t, "newest first", linesOf(t, l, store.LogFilter{Context: "c", Newest: true}), "1.1#2 c, 1.2#2 b, 1.2#1 a, 1.1#1 two\nlines")
	equal(t, "of a call", linesOf(t, l, store.LogFilter{Context: "c", Call: "1.2"}), "1.2#1 a, 1.2#2 b")
	equal(t, "of a level", linesOf(t, l, store.LogFilter{Context: "c", Level: store.LevelWarn}), "1.1#1 two\nlines")
	equal(t, "after one", linesOf(t, l, store.LogFilter{Context: "c", After: logged.N, Call: "1.1"}), "1.1#2 c")
	equal(t, "of another context", linesOf(t, l, store.LogFilter{Context: "absent"}), "")

	info, err := l.Info(t.Context(), "c")
	equal(t, "error", err, nil)
	equal(t, "info", info, before)
	_, err = l.Append(t.Context(), store.Batch{Context: "absent", ExpectSeq: store.AnySeq, Logs: []store.LogLine{logged}})
	equal(t, "of an absent context", errors.Is(err, store.ErrNoContext), true)
}

// testLogsBound: of one call the newest lines stay that have room, at least one.
func testLogsBound(t *testing.T, l store.Log) {
	step(t, l, "c", 1)
	size := (&store.LogLine{Text: "1"}).Size()
	addLines(t, l, "c", "1.1", 3*size, "1", "2", "3", "4")
	addLines(t, l, "c", "1.2", 3*size, "x")
	equal(t, "at once", linesOf(t, l, store.LogFilter{Context: "c"}), "1.1#2 2, 1.1#3 3, 1.1#4 4, 1.2#1 x")
	addLines(t, l, "c", "1.1", 3*size, "5")
	equal(t, "by and by", linesOf(t, l, store.LogFilter{Context: "c", Call: "1.1"}), "1.1#3 3, 1.1#4 4, 1.1#5 5")
	addLines(t, l, "c", "1.1", 3*size, strings.Repeat("long", 100))
	equal(t, "one that is too long", linesOf(t, l, store.LogFilter{Context: "c", Call: "1.1"}), "1.1#6 "+strings.Repeat("long", 100))
	addLines(t, l, "c", "1.1", 0, "7")
	equal(t, "no room", linesOf(t, l, store.LogFilter{Context: "c", Call: "1.1"}), "1.1#7 7")

	left := store.LogLine{Call: "1.1", Date: now(), Level: store.LevelInfo, Text: "12", Dropped: 4}
	_, err := l.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, KeepLogs: 1 << 20, Logs: []store.LogLine{left}})
	equal(t, "error", err, nil)
	equal(t, "dropped before", linesOf(t, l, store.LogFilter{Context: "c"}), "1.2#1 x, 1.1#7 7, 1.1#12 12")
}

// testLogsForked: a fork has the lines up to the newest entry that it shares, and prune removes the
// lines of a context.
func testLogsForked(t *testing.T, l store.Log) {
	step(t, l, "p", 1)
	addLines(t, l, "p", "1.1", 1<<20, "shared")
	pause(t)
	step(t, l, "p", 2)
	pause(t)
	addLines(t, l, "p", "1.2", 1<<20, "not shared")
	step(t, l, "p", 3)
	_, err := fork(l, "p", 2, "f")
	equal(t, "error", err, nil)
	addLines(t, l, "f", "1.1", 1<<20, "own")
	equal(t, "fork", linesOf(t, l, store.LogFilter{Context: "f"}), "1.1#1 shared, 1.1#1 own")
	equal(t, "parent", linesOf(t, l, store.LogFilter{Context: "p"}), "1.1#1 shared, 1.2#1 not shared")
	equal(t, "error", prune(t, l, "f"), nil)
	equal(t, "pruned", linesOf(t, l, store.LogFilter{Context: "f"}), "")
	step(t, l, "f", 1)
	equal(t, "made anew", linesOf(t, l, store.LogFilter{Context: "f"}), "")
	addLines(t, l, "f", "1.1", 1<<20, "again")
	again := collect(t, l.Logs(t.Context(), store.LogFilter{Context: "f"}))[0].N
	equal(t, "error", prune(t, l, "f"), nil)
	step(t, l, "f", 1)
	addLines(t, l, "f", "1.1", 1<<20, "once more")
	equal(t, "a reader's position", linesOf(t, l, store.LogFilter{Context: "f", After: again}), "1.1#1 once more")
	last := collect(t, l.Logs(t.Context(), store.LogFilter{Context: "p", Newest: true}))[0].N
	equal(t, "after", linesOf(t, l, store.LogFilter{Context: "f", After: last}), "1.1#1 once more")
}

// pause waits until the clock of a log, which has milliseconds, shows another time.
func pause(t *testing.T) {
	t.Helper()
	for began := now(); now().Equal(began); {
		time.Sleep(100 * time.Microsecond)
	}
}
