package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// disk gives a folder that is a disk of its own.
func disk(t *testing.T, options string) string {
	t.Helper()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, options); err != nil {
		t.Skip("skipped, for no disk can be mounted here:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// TestBackup_DiskFull: a copy for which the disk has no room is none.
func TestBackup_DiskFull(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l, written("†s", strings.Repeat("x", 1_000_000)))
	folder := disk(t, "size=500k")
	err := l.Backup(t.Context(), filepath.Join(folder, "copy.db"))
	if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "copy.db was not made: no room on the disk") {
		t.Error(err)
	}
	onlyFile(t, folder, "none")
}

// readOnlyDisk gives a folder with these files, on a disk that is then mounted
// anew so that nobody can write it.
func readOnlyDisk(t *testing.T, files ...string) string {
	t.Helper()
	folder := disk(t, "")
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, filepath.Base(name)), content, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skip("skipped, for no disk can be mounted read-only here:", err)
	}
	return folder
}

// TestReadOnly_Disk: a log on a disk that nobody can write is read, and who would
// write it is told that the disk is why not.
func TestReadOnly_Disk(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l, written("†s", "x"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	folder := readOnlyDisk(t, l.path)
	path := filepath.Join(folder, "log.db")
	reader := open(t, path, Options{ReadOnly: true})
	if n := seqs(t, reader, "c"); n != 1 {
		t.Errorf("%d messages", n)
	}
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() error{
		"log.db":     func() error { return openAndClose(path, Options{}) },
		"link.db":    func() error { return openAndClose(link, Options{}) },
		"new.db":     func() error { return openAndClose(filepath.Join(folder, "new.db"), Options{}) },
		"a/b/new.db": func() error { return openAndClose(filepath.Join(folder, "a/b/new.db"), Options{}) },
		"backup.db":  func() error { return reader.Backup(t.Context(), filepath.Join(folder, "backup.db")) },
	} {
		if err := try(); !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), name+" can't be written: its folder is on a disk that is mounted read-only") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func openAndClose(path string, o Options) error {
	l, err := Open(path, o)
	if err != nil {
		return err
	}
	return l.Close()
}

// TestReadOnly_DiskWithWAL: what a process that was killed has left is read too,
// if all of it is there.
func TestReadOnly_DiskWithWAL(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l, written("†s", "x"))
	whole := readOnlyDisk(t, l.path, l.path+"-wal", l.path+"-shm") // as they are while it is open
	torn := readOnlyDisk(t, l.path, l.path+"-wal")
	if n := seqs(t, open(t, filepath.Join(whole, "log.db"), Options{ReadOnly: true}), "c"); n != 1 {
		t.Errorf("%d messages", n)
	}
	err := openAndClose(filepath.Join(torn, "log.db"), Options{ReadOnly: true})
	if !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "log.db can't be read as it is: what was written last is in log.db-wal") {
		t.Error(err)
	}
}
