package sqlite

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// opened lists the files that this process has open as logs. Looking at a
// file's header opens and closes it, and closing any descriptor of a file
// drops every POSIX lock that the process holds on it, SQLite's among them:
// another process could then take the write-ahead log away from under the one
// that reads it. So a file that is open here is not looked at again.
var opened struct {
	sync.Mutex
	files []os.FileInfo
}

// enter makes the file if it is absent, makes sure that it is a log, and notes
// that it is open until release is called.
func enter(path string, o Options) (release func(), err error) {
	opened.Lock()
	defer opened.Unlock()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !o.ReadOnly {
		if err = create(path); err == nil {
			info, err = os.Stat(path)
		}
	}
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(opened.files, func(f os.FileInfo) bool { return os.SameFile(f, info) }) {
		if err := checkHeader(path, info, o); err != nil {
			return nil, err
		}
	}
	if !o.ReadOnly && unwritableFile(path) { // SQLite would say so only at the first append
		return nil, errUnwritable
	}
	opened.files = append(opened.files, info)
	return func() {
		opened.Lock()
		defer opened.Unlock()
		i := slices.IndexFunc(opened.files, func(f os.FileInfo) bool { return os.SameFile(f, info) })
		opened.files = slices.Delete(opened.files, i, i+1)
	}, nil
}

// location is where a log was opened, and which files it and those beside it were.
type location struct {
	path   string
	file   os.FileInfo
	beside []besideFile
}

// besideFile is one of the files that SQLite keeps beside a log that is open for writing, and
// neither removes nor replaces as long as it is.
type besideFile struct {
	path string
	file os.FileInfo
}

// locate identifies the files of a log that has been opened: opening may have replaced the file, on
// a disk that copies on write.
func locate(path string) (*location, error) {
	file, err := os.Stat(path)
	return &location{path: path, file: file}, err
}

// locateBeside notes which files are beside the log, once it has been written to. SQLite
// keeps them where a link to the log leads.
func (l *location) locateBeside() error {
	real, err := filepath.EvalSymlinks(l.path)
	if err != nil {
		return err
	}
	for _, ending := range []string{"-wal", "-shm"} {
		info, err := os.Stat(real + ending)
		if err != nil {
			return err
		}
		l.beside = append(l.beside, besideFile{real + ending, info})
	}
	return nil
}

// check reports whether the file and those beside it are still where they were opened. Writing to a
// file that has been removed or replaced would lose the appends; without the files beside it
// processes do not see each other's locks.
func (l *location) check() error {
	if l == nil {
		return nil
	}
	if replaced(l.path, l.file) {
		return errMoved
	}
	for _, b := range l.beside {
		if replaced(b.path, b.file) {
			return errBesideGone
		}
	}
	return nil
}

// replaced reports whether another file, or none, is where a file was.
func replaced(path string, was os.FileInfo) bool {
	if sameInode(path, was) {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && !os.SameFile(was, now) || errors.Is(err, fs.ErrNotExist)
}

var (
	errMoved      = &problem{ErrMoved, "was moved, removed or replaced while it was open: put it back, or start again what has it open"}
	errBesideGone = &problem{ErrMoved, "has lost the files beside it (-wal, -shm) while it was open: end what has it open, not by killing it, which saves what they held, and start again"}
)

const magic = "SQLite format 3\x00"

// checkHeader reads the first bytes of a file, before SQLite does anything to
// it. An empty file is a log that has yet to be made.
func checkHeader(path string, info os.FileInfo, o Options) error {
	notOurs := func(what string) error {
		return &problem{ErrNotOurs, "is not a log of obelus but " + what + ": it was left as it is; name another file"}
	}
	if !info.Mode().IsRegular() {
		return notOurs("a folder or a device")
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var header [100]byte
	switch n, err := io.ReadFull(f, header[:]); {
	case err == io.EOF && !o.ReadOnly:
		return nil
	case err == io.EOF:
		return notOurs("empty")
	case err != nil && err != io.ErrUnexpectedEOF:
		return err
	case n < len(magic) || string(header[:len(magic)]) != magic:
		return notOurs("something else")
	case n < len(header) || binary.BigEndian.Uint32(header[68:]) != applicationID:
		return notOurs("another database")
	}
	list, err := ownMigrations()
	if err != nil {
		return err
	}
	return checkVersion(int(binary.BigEndian.Uint32(header[60:])), len(list))
}

// create makes a log under another name and then links it to its own, so that no process ever sees
// half of one; of several that do so at once, one wins.
func create(path string) error {
	folder := filepath.Dir(path)
	parents := parentsOf(folder)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	draft := fmt.Sprintf("%s.new-%s", path, rand.Text())
	defer os.Remove(draft)
	if err := fill(draft); err != nil {
		return err
	}
	if err := os.Link(draft, path); err != nil && !errors.Is(err, fs.ErrExist) {
		// A file system without hard links: SQLite's locks decide which process makes it.
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, fileMode)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return err
		}
	}
	err := syncFolder(folder)
	for _, parent := range parents {
		// Also where another process has made the log, since that may not have done this yet.
		if err == nil {
			err = syncFolder(parent)
		}
	}
	return err
}

// parentsOf are the folders in which something is made where a folder is, and the
// one that holds it in any case: it may have been made just now.
func parentsOf(folder string) (parents []string) {
	for above := filepath.Dir(folder); ; above = filepath.Dir(above) {
		parents = append(parents, above)
		if _, err := os.Lstat(above); !errors.Is(err, fs.ErrNotExist) {
			return parents
		}
	}
}

// fileMode is the mode of the files that SQLite makes.
const fileMode = 0o644

// fill makes the log that a new file is.
func fill(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(newLog)
	return errors.Join(err, flush(f), f.Close())
}

// flush writes a file or a folder to the disk. Tests replace it.
var flush = (*os.File).Sync

// syncFolder makes a new name in a folder survive a power failure, where
// folders can be synced at all.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if errors.Is(err, fs.ErrPermission) { // names can be made in a folder that can't be listed
		return nil
	}
	if err != nil {
		return err
	}
	err = flush(f)
	if !errors.Is(err, syscall.EIO) && !isFull(err) { // some file systems can't flush folders
		err = nil
	}
	return errors.Join(err, f.Close())
}

// openForWriting connects to a file, brings it up to date and turns its
// write-ahead log on, in this order: a file that holds anything is ours.
func openForWriting(path string, o Options) (*conn, error) {
	c, err := dial(path, "rw", o)
	if err != nil {
		return nil, err
	}
	list, err := ownMigrations()
	if err == nil {
		err = c.migrate(o, list)
	}
	if err == nil {
		err = patiently(o.BusyTimeout, func() error { return c.script("PRAGMA journal_mode = WAL") })
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}
