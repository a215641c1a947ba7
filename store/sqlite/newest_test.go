package sqlite

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write schema.sql anew")

// TestNewestSchema: a new log is made as the migrations would make it.
func TestNewestSchema(t *testing.T) {
	c, err := dial(filepath.Join(t.TempDir(), "log.db"), "rwc", Options{Synchronous: "off"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	list, err := ownMigrations()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.migrate(Options{BusyTimeout: time.Second}, list); err != nil {
		t.Fatal(err)
	}
	want := schemaOf(t, c)
	if *update {
		if err := os.WriteFile("schema.sql", []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if newest != want {
		t.Errorf("schema.sql is not what the migrations lead to: go generate ./store/sqlite")
	}
	l, err := Open(filepath.Join(t.TempDir(), "log.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := schemaOf(t, l.writer.conn); got != want {
		t.Errorf("a new log has the schema\n%s", got)
	}
}

// schemaOf is the SQL that makes a database as it is.
func schemaOf(t *testing.T, c *conn) string {
	var b strings.Builder
	b.WriteString("-- What a new log is made by. It is written by go generate: what the migrations lead to.\n")
	row := func(sql string) string {
		row, err := c.one(context.Background(), sql)
		if err != nil {
			t.Fatal(err)
		}
		return text(row[0])
	}
	b.WriteString(row(`SELECT group_concat(sql || ';', char(10, 10)) FROM (SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid)`))
	b.WriteString(row(`SELECT char(10, 10) || 'PRAGMA application_id = ' || application_id || ';' || char(10) || 'PRAGMA user_version = ' || user_version || ';' || char(10)
		FROM pragma_application_id, pragma_user_version`))
	return b.String()
}
