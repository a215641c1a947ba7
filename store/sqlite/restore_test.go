package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"

	"obelus/store"
	"obelus/store/sqlite"
)

// TestRestore_InUse holds that a log which anybody has open stays in its place, and that logs that
// are moved aside keep each a name of their own.
func TestRestore_InUse(t *testing.T) {
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "log.db"), filepath.Join(dir, "copy.db")
	log, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	message := store.Message{Type: store.TypeText, Data: store.Some("a")}
	if _, err := log.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: []store.Message{message}}); err != nil {
		t.Fatal(err)
	}
	if err := log.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	if restored, err := sqlite.Restore(t.Context(), copied, path, true); !errors.Is(err, sqlite.ErrLocked) {
		t.Errorf("restored over an open log: %+v, %v", restored, err)
	}
	if _, err := log.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: []store.Message{message}}); err != nil {
		t.Errorf("the log that was not replaced: %v", err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Restore(t.Context(), copied, path, false); !errors.Is(err, sqlite.ErrNotEmpty) {
		t.Error(err)
	}
	for range 3 { // within one second too, each keeps what was there
		if _, err := sqlite.Restore(t.Context(), copied, path, true); err != nil {
			t.Fatal(err)
		}
	}
	asides, err := filepath.Glob(path + ".before-*")
	if err != nil || len(asides) != 3 {
		t.Errorf("%q, %v", asides, err)
	}
	if drafts, err := filepath.Glob(path + ".new-*"); err != nil || len(drafts) > 0 {
		t.Errorf("left behind: %q, %v", drafts, err)
	}
}
