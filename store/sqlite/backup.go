package sqlite

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// backupPages is the number of pages that are copied between checks for an interruption.
const backupPages = 1024

// Backup copies the log, as it is at this moment, to a new file, while others go on writing. The
// copy is a log like any other, without holders of leases. An existing file is left as it is
// ([fs.ErrExist]); if the copy can't be finished, or shows that the log is damaged ([ErrDamaged]),
// there is none. The remains of a backup whose process was killed are removed by the next one to
// the same name.
func (l *Log) Backup(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := CheckPath(path); err != nil {
		return err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	removeDrafts(absolute)
	if _, err := os.Lstat(absolute); err == nil {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	draft := draftName(absolute, self())
	defer removeWithCompanions(draft)
	from, release, err := l.readers.alone()
	if err != nil {
		return explain(l.path, err)
	}
	err = from.fingerprint.check(from.copyTo(ctx, draft))
	release()
	if err == nil {
		err = clearLeases(ctx, draft)
	}
	if err == nil {
		err = place(draft, absolute)
	}
	if err = explain(path, err); errors.Is(err, ErrFull) {
		return explain(path, errNoRoomForCopy)
	}
	return err
}

var errNoRoomForCopy = &problem{ErrFull, "was not made: no room on the disk, or no more is allowed; make room and try again"}

// draftName is the name of an unfinished copy. It names the process that writes it.
func draftName(path string, by process) string {
	return fmt.Sprintf("%s.new-%s-%s-%s-%d-%s-%s", path, short(by.host), short(by.boot), short(by.namespace), by.pid, by.started, rand.Text()[:8])
}

// short is what stands for some text in a file's name.
func short(text string) string { return fmt.Sprintf("%.3x", sha256.Sum256([]byte(text))) }

// removeDrafts removes what processes that have died left of copies to a name.
func removeDrafts(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil { // the caller gets the error
		return
	}
	for _, e := range entries {
		name, of := strings.CutPrefix(e.Name(), filepath.Base(path))
		if by, ok := draftWriter(name); of && ok && (by.dead() || abandoned(e)) {
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}

// abandoned reports whether a draft is so old that no process can be writing it; whether the
// process of a draft from before the last boot lives can't be known.
func abandoned(e os.DirEntry) bool {
	info, err := e.Info()
	return err == nil && time.Since(info.ModTime()) > 24*time.Hour
}

// draftWriter finds the process that writes a draft in the suffix of its name, or of a file beside
// it.
func draftWriter(name string) (by process, ok bool) {
	fields := strings.Split(name, "-")
	if len(fields) < 7 || fields[0] != ".new" {
		return by, false
	}
	own := self()
	long := func(field, own string) string {
		switch field {
		case short(own):
			return own
		case short(""): // it is not known
			return ""
		}
		return field
	}
	pid, err := strconv.ParseInt(fields[4], 10, 64)
	by = process{host: long(fields[1], own.host), boot: long(fields[2], own.boot), namespace: long(fields[3], own.namespace), pid: pid, started: fields[5]}
	return by, err == nil && pid > 0
}

// copyTo copies all pages. The transaction keeps them as they are now, so that a write meanwhile
// does not make the copy start again.
func (c *conn) copyTo(ctx context.Context, path string) error {
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666); err != nil {
		return err
	} else if err := f.Close(); err != nil {
		return err
	}
	to, err := dial(path, "rw", Options{Synchronous: "full", BusyTimeout: defaultBusyTimeout})
	if err != nil {
		return err
	}
	if err := c.script("BEGIN; SELECT count(*) FROM sqlite_schema"); err != nil {
		return errors.Join(err, to.close())
	}
	err = c.copyPages(ctx, to)
	return errors.Join(err, c.rollback(), to.close())
}

func (c *conn) copyPages(ctx context.Context, to *conn) error {
	backup, err := to.raw.Backup("main", c.raw, "main")
	if err != nil {
		return err
	}
	done := false
	for !done && err == nil {
		if err = ctx.Err(); err == nil {
			done, err = backup.Step(backupPages)
		}
	}
	return errors.Join(err, backup.Finish())
}

// clearLeases ends the leases in a copy: they belong to the original.
func clearLeases(ctx context.Context, path string) error {
	c, err := openForWriting(path, Options{Synchronous: "full", BusyTimeout: defaultBusyTimeout})
	if err != nil {
		return err
	}
	err = c.script("UPDATE leases SET until = 0; PRAGMA wal_checkpoint(TRUNCATE)")
	if err == nil {
		err = c.checkIntegrity(ctx)
	}
	return errors.Join(err, c.close())
}

// checkIntegrity reports damage to a database, as far as SQLite finds it quickly.
func (c *conn) checkIntegrity(ctx context.Context) error {
	row, err := c.one(ctx, "PRAGMA quick_check(1)")
	if err != nil || text(row[0]) == "ok" {
		return err
	}
	what := strings.TrimPrefix(text(row[0]), "*** in database main ***\n")
	return &problem{ErrDamaged, fmt.Sprintf("was not made, for the log is damaged (%s): see to its disk; restore an older copy, or save what can be read with sqlite3's .recover", what)}
}

// place gives a draft its name, unless another has it.
func place(draft, path string) error {
	err := os.Link(draft, path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // a file system without hard links
		if _, missing := os.Lstat(path); errors.Is(missing, fs.ErrNotExist) {
			err = os.Rename(draft, path)
		}
	}
	var link *os.LinkError
	switch {
	case err == nil:
		if err = syncFolder(filepath.Dir(path)); err != nil {
			_ = os.Remove(path)
		}
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
