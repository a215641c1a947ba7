package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// backupPages is how many pages are copied before anybody may interrupt.
const backupPages = 1024

// Backup copies the log, as it is at this moment, to a new file, while others go
// on writing. The copy is a log like any other, but nobody holds a lease in it. A
// file that is there already is left as it is ([fs.ErrExist]); if the copy can't
// be finished there is none.
func (l *Log) Backup(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if _, err := os.Lstat(absolute); err == nil {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	draft := fmt.Sprintf("%s.new-%s", absolute, rand.Text())
	defer func() {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			_ = os.Remove(draft + suffix)
		}
	}()
	from, release, err := l.readers.alone()
	if err != nil {
		return explain(l.path, err)
	}
	err = from.sight.sound(from.copyTo(ctx, draft))
	release()
	if err == nil {
		err = giveBack(draft)
	}
	if err == nil {
		err = place(draft, absolute)
	}
	return explain(path, err)
}

// copyTo copies all pages. The transaction keeps them as they are now, so that
// who writes meanwhile does not make it begin again.
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

// giveBack ends the leases in a copy: they are those of the original.
func giveBack(path string) error {
	c, err := openForWriting(path, Options{Synchronous: "full", BusyTimeout: defaultBusyTimeout})
	if err != nil {
		return err
	}
	return errors.Join(c.script("UPDATE leases SET until = 0; PRAGMA wal_checkpoint(TRUNCATE)"), c.close())
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
		return syncFolder(filepath.Dir(path))
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
