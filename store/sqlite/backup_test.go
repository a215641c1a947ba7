package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"obelus/store"
)

// TestBackup copies a log while others append to it.
func TestBackup(t *testing.T) {
	l := open(t, newPath(t), Options{Synchronous: "normal"})
	var messages []store.Message
	for range 3000 {
		messages = append(messages, written("†s.a", strings.Repeat("x", 1000)))
	}
	add(t, l, messages...)
	if epoch := mustHold(t, l); epoch != 1 {
		t.Fatal(epoch)
	}
	before := seqs(t, l, "c")
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for ctx.Err() == nil {
				if err := appendOne(ctx, l); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	err := l.Backup(t.Context(), path)
	most := seqs(t, l, "c")
	stop()
	writers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	integrity(t, path)
	header, err := os.ReadFile(path)
	if err != nil || header[18] != 2 || header[19] != 2 {
		t.Errorf("not a file with a write-ahead log: %v, %v", header[18:20], err)
	}
	cp := open(t, path, Options{})
	if n := seqs(t, cp, "c"); n < before || n > most {
		t.Errorf("%d messages, not between %d and %d", n, before, most)
	}
	sameStart(t, l, cp)
	if holder, err := cp.Holder(t.Context(), "c"); holder != "" || err != nil {
		t.Errorf("held by %s, %v", holder, err)
	}
	if epoch := mustHold(t, cp); epoch != 2 {
		t.Errorf("epoch %d", epoch)
	}
	onlyFile(t, filepath.Dir(path), "copy.db")
}

func mustHold(t *testing.T, l *Log) int64 {
	t.Helper()
	epoch, err := useLease(t, l, store.Lease{For: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return epoch
}

// sameStart compares the messages and the events of a copy with those of its
// original.
func sameStart(t *testing.T, original, copied *Log) {
	t.Helper()
	sum := func(l *Log, messages, events string) string {
		got, err := answerTo(t.Context(), l, `SELECT (SELECT group_concat(seq || data) FROM (SELECT seq, data FROM messages WHERE seq <= `+messages+` ORDER BY seq)),
			(SELECT group_concat(n || event) FROM (SELECT n, event FROM journal WHERE n <= `+events+` ORDER BY n))`)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(got[1:], "")
	}
	ends, err := answerTo(t.Context(), copied, "SELECT max(seq), (SELECT COALESCE(max(n), 0) FROM journal) FROM messages")
	if err != nil {
		t.Fatal(err)
	}
	messages, events, _ := strings.Cut(strings.Trim(ends[1], "[]"), " ")
	if sum(original, messages, events) != sum(copied, messages, events) {
		t.Error("the copy differs from what it is one of")
	}
}

func onlyFile(t *testing.T, folder, name string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if base, _, _ := strings.Cut(f.Name(), "-"); name == "" || base != name {
			t.Errorf("left behind: %s", f.Name())
		}
	}
}

func TestBackup_Refused(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l, written("†s.a", "1"))
	folder := t.TempDir()
	path := filepath.Join(folder, "there.db")
	if err := os.WriteFile(path, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := l.Backup(t.Context(), path); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); string(text) != "mine" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if err := l.Backup(t.Context(), filepath.Join(folder, "none", "x.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := l.Backup(t.Context(), l.path); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	onlyFile(t, folder, "there.db")
}

// TestBackup_Damaged holds that there is no copy of a log that is not whole.
func TestBackup_Damaged(t *testing.T) {
	folder := t.TempDir()
	err := open(t, damagedLog(t, 50), Options{}).Backup(t.Context(), filepath.Join(folder, "copy.db"))
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "copy.db was not made, for the log is damaged (") {
		t.Error(err)
	}
	onlyFile(t, folder, "none")
}

// dying ends after it was asked a few times.
type dying struct {
	context.Context
	left int
}

func (d *dying) Err() error {
	if d.left--; d.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestBackup_CutOff: what is not finished leaves nothing.
func TestBackup_CutOff(t *testing.T) {
	l := open(t, newPath(t), Options{Synchronous: "normal"})
	var messages []store.Message
	for range 3000 {
		messages = append(messages, written("†s.a", strings.Repeat("x", 4000)))
	}
	add(t, l, messages...)
	folder := t.TempDir()
	if err := l.Backup(&dying{t.Context(), 3}, filepath.Join(folder, "x.db")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	onlyFile(t, folder, "")
}

// TestBackup_AfterKill: what processes that have died left of copies to a name is
// removed by the next to it, and nothing else.
func TestBackup_AfterKill(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l, written("†s.a", "1"))
	living := holding(t, newPath(t))
	alive := self()
	alive.pid, alive.started = int64(living.Process.Pid), started(int64(living.Process.Pid))
	killed := holding(t, newPath(t))
	dead := self()
	dead.pid, dead.started = int64(killed.Process.Pid), started(int64(killed.Process.Pid))
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	earlier, elsewhere, within := dead, dead, dead
	earlier.boot, elsewhere.host, within.namespace = "another boot", "another host", "another container"
	reused, unknown := alive, alive
	reused.started, unknown.boot, unknown.started = "1", "", ""

	folder := t.TempDir()
	path, other := filepath.Join(folder, "x-1.db"), filepath.Join(folder, "y.db")
	before := map[string]bool{}
	leave := func(name string, stays bool) {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		before[filepath.Base(name)] = stays
	}
	gone := []process{dead}
	if alive.started != "" {
		gone = append(gone, reused)
	}
	for _, by := range gone {
		leave(draftName(path, by), false)
		leave(draftName(path, by)+"-journal", false)
	}
	old := draftName(path, earlier) // than any copy that is being made
	leave(old, false)
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, by := range []process{alive, unknown, elsewhere, within, earlier, self()} {
		leave(draftName(path, by), true)
		leave(draftName(path, by)+"-journal", true)
	}
	leave(draftName(other, dead), true)
	for _, end := range []string{".new-mine", ".new-a-b-c-d-e-f", "-journal", ".new"} {
		leave(path+end, true)
	}
	if err := l.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	before["x-1.db"] = true
	left := map[string]bool{}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if left[f.Name()] = true; !before[f.Name()] {
			t.Errorf("left behind: %s", f.Name())
		}
	}
	for name, stays := range before {
		if stays && !left[name] {
			t.Errorf("removed: %s", name)
		}
	}
}
