package sqlite

import (
	"context"
	"database/sql/driver"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write new.db anew")

// TestNewLog: a new log is what the migrations lead to, and empty.
func TestNewLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	migrated, err := dial(path, "rwc", Options{Synchronous: "off"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := ownMigrations()
	if err != nil {
		t.Fatal(err)
	}
	if err := migrated.migrate(Options{BusyTimeout: time.Second}, list); err != nil {
		t.Fatal(err)
	}
	want := about(t, migrated)
	for _, sql := range []string{"PRAGMA journal_mode = WAL", "VACUUM"} {
		if err := migrated.script(sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := migrated.close(); err != nil {
		t.Fatal(err)
	}
	if *update {
		made, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile("new.db", made, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	path = filepath.Join(t.TempDir(), "log.db")
	if err := fill(path); err != nil {
		t.Fatal(err)
	}
	made, err := dial(path, "rw", Options{Synchronous: "off"})
	if err != nil {
		t.Fatal(err)
	}
	defer made.close()
	if got := about(t, made); got != want {
		t.Errorf("a new log is not what the migrations lead to (go generate ./store/sqlite): it is\n%s\nnot\n%s", got, want)
	}
}

// about is all that a database without rows is: its schema, its numbers, and
// whether it is whole.
func about(t *testing.T, c *conn) string {
	row, err := c.one(context.Background(), `SELECT format('%s\n%d %x %d %s %s', (SELECT group_concat(sql, ';\n') FROM (SELECT sql FROM sqlite_schema ORDER BY type, name)),
		user_version, application_id, page_size, encoding, integrity_check)
		FROM pragma_user_version, pragma_application_id, pragma_page_size, pragma_encoding, pragma_integrity_check`)
	if err != nil {
		t.Fatal(err)
	}
	all := text(row[0])
	tables := []string{}
	err = c.each(context.Background(), "SELECT name FROM sqlite_schema WHERE type = 'table'", nil, func(row []driver.Value) (bool, error) {
		tables = append(tables, text(row[0]))
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if row, err := c.one(context.Background(), "SELECT count(*) FROM "+table); err != nil || integer(row[0]) > 0 {
			t.Errorf("%s has %v rows, %v", table, row, err)
		}
	}
	return all
}
