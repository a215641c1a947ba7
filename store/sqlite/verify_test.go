package sqlite

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"obelus/store"
)

var alteredCopies = flag.Int("altered-copies", 15, "how many altered copies of a log are restored")

// TestRestore_Altered holds that a copy in which anything was altered is refused, and nothing
// changes; or that the log which it becomes is read, and written, as one of ours: nothing that was
// added to it is run.
func TestRestore_Altered(t *testing.T) {
	dir := t.TempDir()
	l := open(t, filepath.Join(dir, "origin.db"), Options{})
	addMany(t, l, 20)
	original := filepath.Join(dir, "original.db")
	if err := l.Backup(t.Context(), original); err != nil {
		t.Fatal(err)
	}
	restores := 0
	for n := range *alteredCopies {
		r := rand.New(rand.NewPCG(uint64(n), 0))
		copied, path := filepath.Join(dir, fmt.Sprint("copy", n)), filepath.Join(dir, fmt.Sprint("log", n))
		text, err := os.ReadFile(original)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied, text, 0o666); err != nil {
			t.Fatal(err)
		}
		what, refused := alter(t, r, copied)
		before, err := os.ReadFile(copied)
		if err != nil {
			t.Fatal(err)
		}
		restored, err := Restore(t.Context(), copied, path, false)
		if after, _ := os.ReadFile(copied); !bytes.Equal(before, after) {
			t.Errorf("%s: the copy was changed", what)
		}
		if err != nil {
			if _, there := os.Lstat(path); there == nil {
				t.Errorf("%s: %v, and it was restored", what, err)
			}
			if !errors.Is(err, ErrNotOurs) && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if refused {
			t.Errorf("%s: it was restored", what)
			continue
		}
		restores++
		log := open(t, path, Options{})
		messages := int64(0)
		for _, name := range []string{"c", "f", "g"} {
			head := seqs(t, log, name)
			messages += head
			added := store.Batch{Context: name, ExpectSeq: head, Messages: []store.Message{written("†state.new", "1")}, Journal: []store.Entry{{Event: "x"}}}
			if a, err := log.Append(t.Context(), added); err != nil || a.Seq != head+1 {
				t.Errorf("%s: context %s, %d messages: %+v, %v", what, name, head, a, err)
			}
			for _, err := range log.Journal(t.Context(), store.JournalFilter{Context: name}) {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		if restored.Contexts != 3 || restored.Messages == 0 || restored.Messages > messages || restored.Newest.IsZero() {
			t.Errorf("%s: %+v", what, restored)
		}
	}
	if restores == 0 && *alteredCopies >= 60 {
		t.Error("no copy was restored")
	}
}

// alter changes something in a file, and reports what; refused is set if it can't be restored.
func alter(t *testing.T, r *rand.Rand, path string) (what string, refused bool) {
	t.Helper()
	c := plain(t, path)
	pick := func(sql string) []string {
		var all [][]string
		if err := c.each(t.Context(), sql, nil, func(row []driver.Value) (bool, error) {
			var columns []string
			for _, v := range row {
				columns = append(columns, text(v))
			}
			all = append(all, columns)
			return true, nil
		}); err != nil {
			t.Fatal(err)
		}
		return all[r.IntN(len(all))]
	}
	run := func(sql string) {
		t.Helper()
		what = sql
		if err := c.script(sql); err != nil {
			t.Fatal(sql, err)
		}
	}
	switch r.IntN(9) {
	case 0: // nothing
	case 1:
		o := pick("SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view', 'index') AND sql IS NOT NULL")
		run(fmt.Sprintf("DROP %s %s", o[0], o[1]))
		refused = true
	case 2:
		table := pick("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")[0]
		run([]string{
			"CREATE TRIGGER zz AFTER INSERT ON " + table + " BEGIN SELECT raise(ABORT, 'a trigger of others'); END",
			"CREATE TRIGGER zz BEFORE DELETE ON leases BEGIN SELECT raise(ABORT, 'a trigger of others'); END",
			"CREATE TABLE zz (a)", "CREATE VIEW zz AS SELECT * FROM " + table, "CREATE INDEX zz ON " + table + " (1)",
			"ALTER TABLE " + table + " ADD COLUMN zz",
		}[r.IntN(6)])
		refused = true
	case 3, 4, 5: // a number, by whoever puts the triggers back
		column := pick(selectNumbers)
		value := []string{"9223372036854775807", "-1", "-9223372036854775808", "9007199254740993", "'x'", "1.5", "x'00'"}[r.IntN(7)]
		withoutTriggers(t, c, func() {
			what = fmt.Sprintf("UPDATE %s SET %s = %s", column[0], column[1], value)
			_ = c.script("PRAGMA ignore_check_constraints = ON")
			if err := c.script(fmt.Sprintf("UPDATE OR IGNORE %[1]s SET %[2]s = %[3]s WHERE rowid = (SELECT rowid FROM %[1]s LIMIT 1)", column[0], column[1], value)); err != nil && strings.Contains(err.Error(), "no such column: rowid") {
				_ = c.script(what)
			}
		})
	case 6:
		table := []string{"messages", "journal", "writes", "leaves", "lineage"}[r.IntN(5)]
		withoutTriggers(t, c, func() {
			run(fmt.Sprintf("DELETE FROM %s WHERE seq %% %d = 0", map[bool]string{true: table, false: "messages"}[table != "lineage"], 2+r.IntN(5)))
		})
	case 7:
		run(fmt.Sprintf("PRAGMA user_version = %d", []int{-1, 0, 3, 1000}[r.IntN(4)]))
		refused = true
	case 8:
		if err := c.script("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(path)
		if err == nil {
			at := r.IntN(len(whole))
			what, refused = fmt.Sprintf("cut at %d of %d", at, len(whole)), true
			err = os.WriteFile(path, whole[:at], 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return what, refused
}

// withoutTriggers does something while a database has no triggers.
func withoutTriggers(t *testing.T, c *conn, do func()) {
	t.Helper()
	var drops, creates strings.Builder
	if err := c.each(t.Context(), "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'", nil, func(row []driver.Value) (bool, error) {
		fmt.Fprintf(&drops, "DROP TRIGGER %s;", text(row[0]))
		fmt.Fprintf(&creates, "%s;", text(row[1]))
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.script(drops.String()); err != nil {
		t.Fatal(err)
	}
	do()
	if err := c.script(creates.String()); err != nil {
		t.Fatal(err)
	}
}

// TestRestore_CommentsInStrings holds that a schema whose strings look like comments is another one.
func TestRestore_CommentsInStrings(t *testing.T) {
	const ours = "CREATE TRIGGER t BEGIN -- it's guarded\n  SELECT 'kept as it is'; END"
	for changed, same := range map[string]bool{
		"CREATE TRIGGER t BEGIN -- isn't it\n\tSELECT 'kept as it is'; END":                           true,
		"CREATE TRIGGER t BEGIN SELECT 'kept as --' || (SELECT 1) || '\nit is'; END":                  false,
		"CREATE TRIGGER t BEGIN SELECT 'kept as\n--' || (SELECT 1) || '\nit is'; END":                 false,
		"CREATE TRIGGER t BEGIN SELECT 'kept as it is'; DELETE FROM messages; -- SELECT ''; END\nEND": false,
	} {
		if (withoutComments(changed) == withoutComments(ours)) != same {
			t.Errorf("%q is taken for ours: %v", changed, !same)
		}
	}
}
