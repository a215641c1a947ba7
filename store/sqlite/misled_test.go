package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"obelus/store"
)

// writtenLog makes a log of two contexts, each with messages of calls at †state.s1 … †state.s6, and
// closes it.
func writtenLog(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log.db")
	log, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"aaaa", "bbbb"} {
		for i := 1; i <= 6; i++ {
			at := store.MustParsePath(fmt.Sprintf("†state.s%d", i))
			m := store.Message{
				Type: store.TypeData, Kind: "state", Path: at, Producer: map[string]any{"_tool": "t"}, Call: "1.1",
				Data: store.Some(map[string]any{fmt.Sprintf("s%d", i): fmt.Sprintf("%s %d", name, i)}),
			}
			if _, err := log.Append(t.Context(), store.Batch{Context: name, Create: &store.Origin{}, ExpectSeq: store.AnySeq, Messages: []store.Message{m}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestIndex_LeadsToAnotherMessage holds that no value of one path or context is given for
// that of another where an index has been damaged.
func TestIndex_LeadsToAnotherMessage(t *testing.T) {
	at := store.MustParsePath("†state.s2")
	for what, damage := range map[string]func(file []byte) []byte{
		// Of the index of messages: context, seq and row number, each a byte.
		"to another seq":     swapAfter("\x04\x15\x01\x01bbbb\x02", "\x04\x15\x01\x01bbbb\x05"),
		"to another context": swapAfter("\x04\x15\x01\x01bbbb\x02", "\x04\x15\x01\x01aaaa\x03"),
		// Of what is written where: context, path and seq.
		"to another path": swapAfter("bbbb†state.s2", "bbbb†state.s5"),
	} {
		path := writtenLog(t)
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if file = damage(file); file == nil {
			t.Fatalf("%s: the rows were not found", what)
		}
		if err := os.WriteFile(path, file, 0o666); err != nil {
			t.Fatal(err)
		}
		log, err := Open(path, Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []any
		for op, opErr := range log.Touching(t.Context(), store.Query{Context: "bbbb", Path: at}) {
			if err = opErr; err != nil {
				break
			}
			got = append(got, op.Value)
		}
		if !errors.Is(err, ErrDamaged) || len(got) > 0 {
			t.Errorf("%s: value %v, %v", what, got, err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestIndex_MessagesOfAnother holds the same of reading messages one after the other.
func TestIndex_MessagesOfAnother(t *testing.T) {
	path := writtenLog(t)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if file = swapAfter("\x04\x15\x01\x01bbbb\x02", "\x04\x15\x01\x01aaaa\x02")(file); file == nil {
		t.Fatal("the rows were not found")
	}
	if err := os.WriteFile(path, file, 0o666); err != nil {
		t.Fatal(err)
	}
	log, err := Open(path, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for m, msgErr := range log.Messages(t.Context(), store.Filter{Context: "bbbb"}) {
		if err = msgErr; err == nil && m.Seq == 2 {
			t.Errorf("%v is given for message 2 of bbbb", m.Data.Value)
		}
	}
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "another message") {
		t.Errorf("got %v", err)
	}
}

// swapAfter swaps the bytes that follow on two texts, each of which is in the file once.
func swapAfter(a, b string) func([]byte) []byte {
	return func(file []byte) []byte {
		i, j := bytes.Index(file, []byte(a)), bytes.Index(file, []byte(b))
		if i < 0 || j < 0 {
			return nil
		}
		i, j = i+len(a), j+len(b)
		file[i], file[j] = file[j], file[i]
		return file
	}
}

// TestOpenedTogether_MigratedMeanwhile holds that who waited for another process to bring
// the file up to date takes it as it is then, also with a run at work in it.
func TestOpenedTogether_MigratedMeanwhile(t *testing.T) {
	path := newPath(t)
	add(t, open(t, path, Options{}), written("†s.a", "1"))
	list, err := ownMigrations()
	if err != nil {
		t.Fatal(err)
	}
	c := plain(t, path)
	parent, own := int64(os.Getppid()), self()
	if err := c.exec(replaceLease, "c", int64(1), own.host, own.boot, own.namespace, parent, started(parent), time.Now().Add(time.Minute).UnixMilli()); err != nil {
		t.Fatal(err)
	}
	if err := c.unused(len(list)-1, len(list)); !errors.Is(err, ErrLocked) {
		t.Fatalf("the lease does not hold: %v", err)
	}
	if err := c.atomically(time.Second, func() error { return c.migrateLocked(list) }); err != nil {
		t.Error(err)
	}
}

// TestLog_FilesBesideItGone holds that a log is neither written nor read that has lost its
// write-ahead log or its shared memory, and keeps what it had acknowledged when it is closed.
func TestLog_FilesBesideItGone(t *testing.T) {
	for _, ending := range []string{"-wal", "-shm"} {
		for _, linked := range []bool{false, true} {
			real := filepath.Join(t.TempDir(), "log.db")
			path := real
			if linked {
				path = filepath.Join(t.TempDir(), "link.db")
				if err := os.Symlink(real, path); err != nil {
					t.Skip("no symbolic links here:", err)
				}
				if other, err := Open(real, Options{}); err != nil || other.Close() != nil {
					t.Fatal(err)
				}
			}
			log, err := Open(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			note := store.Message{Type: store.TypeText, Data: store.Some("kept")}
			batch := store.Batch{Context: "c", Create: &store.Origin{}, Messages: []store.Message{note}}
			if _, err := log.Append(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(real + ending); err != nil {
				t.Fatal(err)
			}
			if _, err := log.Append(t.Context(), batch); !errors.Is(err, ErrMoved) || !strings.Contains(err.Error(), "has lost the files beside it (-wal, -shm)") {
				t.Errorf("%s: append: %v", ending, err)
			}
			if _, err := log.Head(t.Context(), "c"); !errors.Is(err, ErrMoved) {
				t.Errorf("%s: head: %v", ending, err)
			}
			if err := log.Close(); err != nil {
				t.Errorf("%s: close: %v", ending, err)
			}
			if log, err = Open(real, Options{}); err != nil {
				t.Fatal(err)
			}
			if seq, err := log.Head(t.Context(), "c"); err != nil || seq != 1 {
				t.Errorf("%s: %d messages are left, %v", ending, seq, err)
			}
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
