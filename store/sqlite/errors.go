package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/mattn/go-sqlite3"

	"obelus/store"
)

// Faults of a file, for errors.Is. The errors that functions return name the file and say what to
// do.
var (
	// ErrLocked: another process wrote for longer than the busy timeout.
	ErrLocked = store.NewError(store.Busy, "the log is locked by another process")
	// ErrFull: there is no room on the disk.
	ErrFull = errors.New("no room on the disk")
	// ErrIO: an operation on the disk failed, and may succeed another time.
	ErrIO = errors.New("the disk failed")
	// ErrReadOnly: the file, or the way in which it was opened, admits no
	// writing.
	ErrReadOnly = store.NewError(store.Refused, "the log is read-only")
	// ErrMoved: the file is no longer where it was opened.
	ErrMoved = errors.New("the log was moved")
	// ErrNotOurs: the file is something else than a log. It was not touched.
	ErrNotOurs = store.NewError(store.Damaged, "not a log of obelus")
	// ErrNewer: a newer obelus made the file, or has brought it up to date since it
	// was opened.
	ErrNewer = store.NewError(store.Damaged, "the log is of a newer version")
	// ErrOlder: an older obelus made the file, and it was opened for reading
	// only, or has replaced it since; opening it for writing brings it up to date.
	ErrOlder = errors.New("the log is of an older version")
	// ErrDamaged: the file is not a whole database any more, or the disk can't read its contents.
	ErrDamaged = store.NewError(store.Damaged, "the log is damaged")
)

// fileError is an error in words for people, about one file.
type fileError struct {
	text  string
	kind  error
	cause error
}

func (e *fileError) Error() string { return e.text }

func (e *fileError) Unwrap() []error { return []error{e.kind, e.cause} }

// Temporary reports whether the same operation may succeed once there is room, another process has
// finished, permissions have changed, the file is back or the disk is repaired.
func (e *fileError) Temporary() bool {
	return e.kind == ErrFull || e.kind == ErrLocked || e.kind == ErrReadOnly || e.kind == ErrIO || e.kind == ErrMoved
}

// problem is something that is wrong with a file, found here and not by
// SQLite; advice follows the file's name.
type problem struct {
	kind   error
	advice string
}

func (p *problem) Error() string { return p.advice }

func (p *problem) Unwrap() error { return p.kind }

var errUnwritable = &problem{ErrReadOnly, "can't be written: the file or its folder is read-only; change its permissions or use another file"}

var errOpenedReadOnly = &problem{ErrReadOnly, "was opened for reading only"}

// noRoom are the system's ways to say that a file can't grow: SQLite calls only
// the first of them a full disk.
var noRoom = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}

// explain turns an error of SQLite into one for people. Errors about contexts and not about the
// file stay as they are.
func explain(path string, err error) error {
	if err == nil {
		return nil
	}
	var conflict *store.ConflictError
	var fork *store.ForkError
	var needed *store.NeededError
	var held *store.HeldError
	var changed *store.ChangedError
	var told *fileError
	var ours *problem
	var theirs sqlite3.Error
	var system *fs.PathError
	say := func(kind error, format string, args ...any) error {
		return &fileError{path + " " + fmt.Sprintf(format, args...), kind, err}
	}
	if errors.As(err, &theirs) { // the backup's errors say more
		theirs.Code &= sqlite3.ErrNo(sqlite3.ErrNoMask)
	}
	switch {
	case errors.As(err, &told), errors.As(err, &conflict), errors.As(err, &held), errors.As(err, &fork), errors.As(err, &needed), errors.As(err, &changed),
		errors.Is(err, store.ErrNoContext), errors.Is(err, store.ErrExists), errors.Is(err, store.ErrNoCode), errors.Is(err, store.ErrClosed),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &ours):
		return say(ours.kind, "%s", ours.advice)
	case theirs.Code == sqlite3.ErrFull, slices.Contains(noRoom, error(theirs.SystemErrno)), isFull(err):
		return say(ErrFull, "can't grow: no room on the disk, or no more is allowed; nothing was appended; make room and try again")
	case errors.Is(err, syscall.EROFS), theirs.SystemErrno == syscall.EROFS, unwritable(theirs.Code) && onReadOnlyDisk(path):
		return say(ErrReadOnly, "can't be written: its folder is on a disk that is mounted read-only; mount it for writing, or use a file elsewhere")
	case theirs.Code == sqlite3.ErrIoErr, theirs.SystemErrno == syscall.EIO, errors.Is(err, syscall.EIO):
		what := syscall.EIO.Error()
		if theirs.Code != 0 {
			what = theirs.Error()
		}
		return say(ErrIO, "can't be read or written (%s): see to its disk, and try again", what)
	case errors.As(err, &system):
		return fmt.Errorf("%s: %w", path, system.Err)
	case theirs.Code == 0:
		return fmt.Errorf("%s: %w", path, err)
	}
	switch theirs.Code {
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return say(ErrLocked, "is locked by another process that writes to it: try again when it has finished")
	case sqlite3.ErrReadonly, sqlite3.ErrPerm:
		return say(errUnwritable.kind, "%s", errUnwritable.advice)
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB:
		return say(ErrDamaged, "is damaged, or its disk is (%s): see to the disk; restore a copy (without the -wal and -shm beside this one), or save what can be read with sqlite3's .recover", theirs.Error())
	case sqlite3.ErrCantOpen:
		if full, err := filepath.Abs(path); err == nil && len(full) > longestPath {
			return fmt.Errorf("%s can't be opened: its path has %d bytes, and SQLite takes %d", path, len(full), longestPath)
		}
		return fmt.Errorf("%s can't be opened (%s): check the permissions of the file and of its folder, which must hold files beside it", path, theirs.Error())
	}
	return fmt.Errorf("%s: %s", path, strings.TrimPrefix(theirs.Error(), "sqlite3: "))
}

// longestPath is the longest name that SQLite takes, with its suffixes.
const longestPath = 512 - len("-journal")

// isFull reports whether an error of the system means that there is no room.
func isFull(err error) bool {
	return slices.ContainsFunc(noRoom, func(full error) bool { return errors.Is(err, full) })
}

// unwritable reports whether an error of SQLite may mean that it can make no file beside another.
func unwritable(code sqlite3.ErrNo) bool {
	return code == sqlite3.ErrCantOpen || code == sqlite3.ErrReadonly || code == sqlite3.ErrPerm
}

// isBusy reports whether another connection is in the way.
func isBusy(err error) bool {
	theirs, ok := errors.AsType[sqlite3.Error](err)
	return ok && (theirs.Code == sqlite3.ErrBusy || theirs.Code == sqlite3.ErrLocked)
}
