package sqlite

import (
	"context"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"obelus/store"
)

// applicationID marks a file as a log of obelus: "Obel".
const applicationID = 0x4f62656c

//go:embed migrations/*.sql
var embedded embed.FS

// newLog is an empty log, as a file: what all migrations lead to. To write it takes
// a tenth of the time that they do.
//
//go:generate go test -run TestNewLog -update .
//go:embed new.db
var newLog []byte

// migration brings a schema from the version before to its own.
type migration struct {
	name string
	sql  string
	fill func(c *conn) error // the part that SQL alone can't do, after it; may be nil
}

// fills are what follows the SQL of a migration.
var fills = map[string]func(c *conn) error{"005_values.sql": (*conn).markAll}

// migrations reads a folder of 001_name.sql, 002_name.sql …: the number of a
// file is the version that it leads to.
func migrations(folder fs.FS) ([]migration, error) {
	names, err := fs.Glob(folder, "*.sql")
	if err != nil {
		return nil, err
	}
	var list []migration
	for i, name := range names {
		if !strings.HasPrefix(name, fmt.Sprintf("%03d_", i+1)) {
			return nil, fmt.Errorf("migration %s should be number %03d", name, i+1)
		}
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		list = append(list, migration{name, string(text), fills[name]})
	}
	return list, nil
}

// ownMigrations are the migrations of the logs of obelus, which must never change.
var ownMigrations = sync.OnceValues(func() ([]migration, error) {
	folder, err := fs.Sub(embedded, "migrations")
	if err != nil {
		return nil, err
	}
	return migrations(folder)
})

// version reads the version of a file's schema, and refuses one newer than the last migration.
func (c *conn) version(list []migration) (int, error) {
	row, err := c.one(context.Background(), "PRAGMA user_version")
	if err != nil {
		return 0, err
	}
	have := int(integer(row[0]))
	return have, checkVersion(have, len(list))
}

func checkVersion(have, ours int) error {
	if have < 0 {
		return &problem{ErrNotOurs, fmt.Sprintf("has the schema version %d, which no log of obelus has", have)}
	}
	if have <= ours {
		return nil
	}
	return &problem{ErrNewer, fmt.Sprintf("was made by a newer obelus: its schema is version %d, this obelus knows up to version %d; use the newer obelus", have, ours)}
}

// migrate brings a file's schema up to date, all in one transaction. Several
// processes may try at once: one does it, the others find it done.
func (c *conn) migrate(o Options, list []migration) error {
	if have, err := c.version(list); err != nil || have == len(list) {
		return err
	}
	return c.atomically(o.BusyTimeout, func() error { return c.migrateLocked(list) })
}

func (c *conn) migrateLocked(list []migration) error {
	have, err := c.version(list)
	// Another process has done it meanwhile, and may be at work.
	if err != nil || have == len(list) {
		return err
	}
	if err := c.unused(have, len(list)); err != nil {
		return err
	}
	for _, m := range list[have:] {
		if err := c.script(m.sql); err != nil {
			return fmt.Errorf("bringing it up to date (%s): %w", m.name, err)
		}
		if m.fill == nil {
			continue
		}
		if err := m.fill(c); err != nil {
			return fmt.Errorf("bringing it up to date (%s): %w", m.name, err)
		}
	}
	return c.script(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(list)))
}

// unused refuses to migrate a file that an older obelus has open, as far as the file shows it: that
// would fail then, or go on writing in its own way.
func (c *conn) unused(have, want int) error {
	row, err := c.one(context.Background(), "SELECT count(*) FROM sqlite_schema WHERE name = 'leases'")
	if err != nil || integer(row[0]) == 0 {
		return err
	}
	var held *store.HeldError
	if err := c.anyHeld(context.Background()); !errors.As(err, &held) {
		return err
	}
	return &problem{ErrLocked, fmt.Sprintf("was made by an older obelus (schema version %d, not %d), by which %s runs context %s in it: wait until that has finished, or stop it",
		have, want, held.Holder, held.Context)}
}

// markAll writes the marks of the existing messages.
func (c *conn) markAll() error {
	const all = "SELECT " + storedColumns + ", context || ' ' || seq FROM messages WHERE type = 'data' AND data IS NOT NULL"
	return c.each(context.Background(), all, nil, func(row []driver.Value) (bool, error) {
		m, err := message(row)
		if err != nil {
			return false, err
		}
		op, ok := m.Op()
		if !ok {
			return true, nil
		}
		touches, leaves := op.Marks()
		for _, mark := range touches {
			if mark.Form == store.FormOntoUnlisted {
				mark.Path = op.Path // the row of a merge of many leaves at that time
			}
			err := c.exec("UPDATE writes SET form = ?5 WHERE context = ?1 AND path = ?2 AND instance = ?3 AND seq = ?4",
				m.Context, mark.Path.String(), m.Instance, m.Seq, int64(mark.Form))
			if err != nil {
				return false, err
			}
		}
		return true, c.mark(insertLeaf, leaves, m.Context, m.Instance, m.Seq)
	})
}
