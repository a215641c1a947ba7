package memory_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"obelus/store"
	"obelus/store/memory"
	"obelus/store/sqlite"
)

// TestCopy holds that a copy of contexts of a file has what they have, with their positions, also of
// a fork without its origin, and that both can be appended to and forked.
func TestCopy(t *testing.T) {
	file, err := sqlite.Open(filepath.Join(t.TempDir(), "log.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	appended := func(l store.Log, name string, o store.Origin, value string) {
		t.Helper()
		b := store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &o, Journal: []store.Entry{{Call: "1.1", Event: "done", Data: `{"a":1}`}}}
		b.Messages, err = store.ParseMessages([]byte(`[{"type":"data","kind":"s","path":"†s.a","data":{"a":` + value + `},"_call":{"_tool":"t"},"call":"1.1"}]`))
		if err != nil {
			t.Fatal(err)
		}
		b.Journal[0].Ahead = 0
		if _, err := l.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	appended(file, "other", store.Origin{}, "0")
	for i := range 3 {
		appended(file, "root", store.Origin{}, fmt.Sprint(i))
		appended(file, "root.1.1", store.Origin{Parent: "root", Call: "1.1"}, fmt.Sprint(i))
	}
	appended(file, "fork", store.Origin{Fork: "root", At: 2}, "7")
	for _, names := range [][]string{{"root", "root.1.1", "fork", "absent", "root"}, {"fork"}} {
		copied, err := memory.Copy(t.Context(), file, names...)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if diff := cmp.Diff(contents(t, file, name), contents(t, copied, name)); diff != "" {
				t.Errorf("of %v, %s is not as it was: %s", names, name, diff)
			}
		}
		if n := len(contents(t, copied, "other")); n != 0 {
			t.Errorf("%d things of a context that was not asked for", n)
		}
		appended(copied, "fork", store.Origin{}, "8")
		appended(copied, "again", store.Origin{Fork: "fork", At: 3}, "9")
		op := contents(t, copied, "again")
		if len(op) != 8 {
			t.Errorf("a fork of the copy has %v", op)
		}
	}
}

// contents returns the messages and the journal of a context as texts.
func contents(t *testing.T, l store.Reader, name string) (all []string) {
	t.Helper()
	for m, err := range l.Messages(context.Background(), store.Filter{Context: name}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(m.Context, m.Seq, m.Date, m.Path, string(store.EncodeJSON(m.Data.Value)), m.Call))
	}
	for e, err := range l.Journal(context.Background(), store.JournalFilter{Context: name}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(e))
	}
	return all
}
