package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// fingerprint is the state of a file that is read as immutable: without locks, so that a change is
// noticed by the file's size and times alone.
type fingerprint struct {
	path       string // where SQLite keeps its files beside it
	file       os.FileInfo
	at         time.Time
	walPending bool // the write-ahead log holds messages that the file does not
}

func look(path string) (*fingerprint, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	s := &fingerprint{path: path, at: time.Now()}
	// Before the file: a checkpoint removes the write-ahead log after it has written the file.
	wal, err := os.Stat(path + "-wal")
	s.walPending = err == nil && wal.Size() > 0
	s.file, err = os.Stat(path)
	return s, err
}

// tick is the least time between two changes of a file that its times distinguish.
const tick = 20 * time.Millisecond

// stale reports whether there may be more to read now.
func (s *fingerprint) stale(now *fingerprint) bool {
	return now.walPending || !os.SameFile(s.file, now.file) || s.changed(now.file) || s.at.Sub(s.file.ModTime()) < tick
}

func (s *fingerprint) changed(now os.FileInfo) bool {
	return s.file.Size() != now.Size() || !s.file.ModTime().Equal(now.ModTime())
}

var errWrittenMeanwhile = &problem{ErrLocked, "was written by another process while it was read, where a reader can't lock it: try again"}

// check returns the error of a read, or an error if the read may have seen half of a change. A file
// that another has replaced stays as it was.
func (s *fingerprint) check(err error) error {
	if s == nil {
		return err
	}
	now, gone := os.Stat(s.path)
	if gone == nil && os.SameFile(s.file, now) && s.changed(now) {
		return errWrittenMeanwhile
	}
	return err
}

func unreadableTail(path string) error {
	name := filepath.Base(path)
	return &problem{ErrReadOnly, fmt.Sprintf("can't be read as it is: what was written last is in %s-wal, and to read that takes %[1]s-shm, which can't be opened or made beside it; copy %[1]s and %[1]s-wal to a folder where you have the permission to write, and read the copy", name)}
}
