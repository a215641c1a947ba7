package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"obelus/store"
)

// Reasons why a copy is restored only if Restore is told to replace, for errors.Is.
var (
	// ErrNotEmpty: the log that a copy is to replace holds contexts.
	ErrNotEmpty = store.NewError(store.Refused, "the log is not empty")
	// ErrEmptyCopy: the copy holds no contexts.
	ErrEmptyCopy = store.NewError(store.Refused, "the copy is empty")
)

// Restore puts a copy of a log, as [Log.Backup] makes it, in the place of the log in a file. The
// copy is only read, and is checked, and brought up to date if an older obelus made it, before
// anything else changes. The log that was in the file is moved aside with all that it holds.
//
// It is refused while another process has that log open ([ErrLocked]), and, unless replace is set,
// if that log holds contexts ([ErrNotEmpty]) or is damaged, or the copy is empty ([ErrEmptyCopy]).
// A file that is no log of obelus is never moved, and a copy that has other tables, indexes, views
// or triggers than a log of its version, or impossible numbers, is never restored ([ErrNotOurs]).
func Restore(ctx context.Context, from, path string, replace bool) (restored Restored, err error) {
	if err := cmp.Or(CheckPath(from), CheckPath(path)); err != nil {
		return restored, err
	}
	source, err := filepath.Abs(from)
	if err != nil {
		return restored, fmt.Errorf("%s: %w", from, err)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return restored, fmt.Errorf("%s: %w", path, err)
	}
	if sameFile(source, absolute) {
		return restored, explain(from, &problem{ErrNotOurs, "is the log itself, and no copy of it"})
	}
	if err := os.MkdirAll(filepath.Dir(absolute), 0o777); err != nil {
		return restored, err
	}
	removeDrafts(absolute)
	draft := draftName(absolute, self())
	defer removeWithCompanions(draft)
	held, err := copyFile(ctx, source, draft)
	if err != nil {
		if err = explain(from, err); errors.Is(err, ErrDamaged) {
			err = explain(from, &problem{ErrDamaged, "is damaged: restore an older copy, or save what can be read with sqlite3's .recover"})
		}
		return restored, err
	}
	if held.Contexts == 0 && !replace {
		return restored, explain(from, errEmptyCopy)
	}
	switch _, err := os.Lstat(absolute); {
	case err == nil:
		if err := checkReplaceable(ctx, absolute, replace); err != nil {
			return restored, explain(path, err)
		}
		if held.Aside, err = moveAside(absolute); err != nil {
			return restored, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return restored, err
	}
	return held, explain(path, place(draft, absolute))
}

var errEmptyCopy = &problem{ErrEmptyCopy, "is empty: it holds no contexts; if it was copied by hand, what it held was perhaps in the -wal beside it, which was left behind: copy both, or have obelus backup make a copy, which is whole"}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	two, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(one, two)
}

// companions are the suffixes of the files that SQLite keeps beside a database.
var companions = []string{"-wal", "-shm", "-journal"}

func removeWithCompanions(path string) {
	for _, suffix := range append([]string{""}, companions...) {
		_ = os.Remove(path + suffix)
	}
}

// copyFile copies a log to a new file, without its leases, and checks the copy. It returns what
// that holds.
func copyFile(ctx context.Context, path, draft string) (held Restored, err error) {
	o, err := Options{ReadOnly: true}.complete()
	if err != nil {
		return held, err
	}
	release, err := enter(path, o)
	if err != nil {
		return held, err
	}
	readers := newPool(path, o, release)
	from, done, err := readers.alone()
	if err == nil {
		err = from.fingerprint.check(from.copyTo(ctx, draft))
		done()
	}
	readers.close()
	if err == nil {
		err = checkObjects(ctx, draft, o)
	}
	if err == nil {
		err = clearLeases(ctx, draft)
	}
	if err != nil {
		return held, err
	}
	return readContents(ctx, draft, o)
}

// checkReplaceable returns an error if the log in a file can't be moved aside. A log that can be is
// in that file alone then, without a write-ahead log beside it.
func checkReplaceable(ctx context.Context, path string, replace bool) error {
	o, err := Options{}.complete()
	if err != nil {
		return err
	}
	release, err := enter(path, o)
	if err != nil {
		return err
	}
	defer release()
	c, err := dial(path, "rw", o)
	if err == nil {
		err = c.checkIdle(ctx, replace)
		err = errors.Join(err, c.close())
	}
	if replace && errors.Is(explain(path, err), ErrDamaged) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path + "-wal"); err == nil { // the last connection removes it
		return &problem{ErrLocked, "is open in another process: end that first"}
	}
	return nil
}

// checkIdle returns an error if a run of the log goes on, or, without replace, if it holds
// contexts. It writes all that the log holds into its file.
func (c *conn) checkIdle(ctx context.Context, replace bool) error {
	now, running := time.Now(), ""
	err := c.each(ctx, `SELECT epoch, host, boot, namespace, pid, started, until, context FROM leases WHERE until > 0`, nil, func(row []driver.Value) (bool, error) {
		if holder := leaseOf(row).holds(now); holder != "" {
			running = fmt.Sprintf("is in use: %s runs context %s; let it end, or stop it", holder, text(row[7]))
		}
		return running == "", nil
	})
	if err != nil {
		return err
	}
	if running != "" {
		return &problem{ErrLocked, running}
	}
	if !replace {
		row, err := c.one(ctx, "SELECT count(*) FROM contexts")
		if err != nil {
			return err
		}
		if n := integer(row[0]); n > 0 {
			return &problem{ErrNotEmpty, fmt.Sprintf("is not empty: it holds %d contexts", n)}
		}
	}
	return c.script("PRAGMA wal_checkpoint(TRUNCATE)")
}

// moveAside renames a log and the files beside it, and returns the new name, which has the time.
func moveAside(path string) (aside string, err error) {
	stamp := path + time.Now().UTC().Format(".before-20060102-150405")
	for n := 1; ; n++ {
		aside = stamp
		if n > 1 {
			aside = fmt.Sprintf("%s-%d", stamp, n)
		}
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	for _, suffix := range append([]string{""}, companions...) {
		err := os.Rename(path+suffix, aside+suffix)
		if err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
			return "", err
		}
	}
	return aside, nil
}
