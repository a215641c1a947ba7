package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// sight is how a file looked that is read as one that nobody changes: without
// locks, so that whoever does change it is noticed by its looks alone.
type sight struct {
	path string // where SQLite keeps its files beside it
	file os.FileInfo
	at   time.Time
	tail bool // the write-ahead log holds what the file does not
}

func look(path string) (*sight, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	s := &sight{path: path, at: time.Now()}
	// Before the file: who carries its write-ahead log over removes it after that.
	wal, err := os.Stat(path + "-wal")
	s.tail = err == nil && wal.Size() > 0
	s.file, err = os.Stat(path)
	return s, err
}

// tick is how far apart two changes of a file must be for its time to tell them
// from one.
const tick = 20 * time.Millisecond

// stale tells whether there may be more to read now.
func (s *sight) stale(now *sight) bool {
	return now.tail || !os.SameFile(s.file, now.file) || s.changed(now.file) || s.at.Sub(s.file.ModTime()) < tick
}

func (s *sight) changed(now os.FileInfo) bool {
	return s.file.Size() != now.Size() || !s.file.ModTime().Equal(now.ModTime())
}

var errWrittenMeanwhile = &problem{ErrLocked, "was written by another process while it was read, where a reader can't lock it: try again"}

// sound gives the error of a read, or that of one that may have seen half of a
// change. A file that another has replaced stays as it was.
func (s *sight) sound(err error) error {
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
