package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func answerTo(ctx context.Context, l *Log, sql string) (lines []string, err error) {
	err = l.Query(ctx, sql,
		func(names []string) error {
			lines = append(lines, strings.Join(names, "|"))
			return nil
		},
		func(values []any) error {
			lines = append(lines, fmt.Sprintf("%v", values))
			return nil
		})
	return lines, err
}

func TestQuery(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l, written("†s.a", "1"), written("†s.b", "2"))
	for sql, want := range map[string]string{
		"SELECT seq, path FROM log ORDER BY seq":                     "seq|path [1 †s.a] [2 †s.b]",
		"SELECT 1 AS i, 1.5, 'x', x'01', NULL AS n -- the end\n;;":   "i|1.5|'x'|x'01'|n [1 1.5 x [1] <nil>]",
		"SELECT ';' AS a, 1 AS \"x;y\", 2 AS [p;q] /* ; ; SELECT */": "a|x;y|p;q [; 1 2]",
		"SELECT count(*) AS n FROM pragma_table_info('calls')":       "n [26]",
		"SELECT 'it''s; so' AS a":                                    "a [it's; so]",
	} {
		got, err := answerTo(t.Context(), l, sql)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v", sql, got, err)
		}
	}
	for sql, want := range map[string]string{
		"":                               "the query is empty",
		"-- nothing\n;":                  "the query is empty",
		"SELECT 1; SELECT 2":             "more than one statement: give one query at a time",
		"SELECT 1; DELETE FROM contexts": "more than one statement: give one query at a time",
		"SELECT ?":                       "the query has parameters: write their values into it",
		"SELECT * FROM nowhere":          "no such table: nowhere",
		"SELECT json('{')":               "malformed JSON",
		"SELEC 1":                        `near "SELEC": syntax error`,
		"SELECT 'x":                      `unrecognized token: "'x"`,
	} {
		var wrong *QueryError
		if got, err := answerTo(t.Context(), l, sql); !errors.As(err, &wrong) || err.Error() != want {
			t.Errorf("%s: %q, %v", sql, got, err)
		}
	}
	stop := errors.New("stop")
	if err := l.Query(t.Context(), "SELECT 1", func([]string) error { return nil }, func([]any) error { return stop }); err != stop {
		t.Errorf("who has had enough: %v", err)
	}
}

// TestQuery_OnlyReads: neither the log nor any other file is changed or made,
// not even where the log itself is open for writing.
func TestQuery_OnlyReads(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l, written("†s.a", "1"))
	folder := filepath.Dir(l.path)
	content := func() (all []string) {
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f.Name(), "-shm") { // holds who reads
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, f.Name(), string(text))
		}
		return all
	}
	before := content()
	for _, sql := range []string{
		"DELETE FROM leases", "INSERT INTO pruning VALUES ('x')", "UPDATE contexts SET updated = ''", "DROP VIEW calls", "CREATE TABLE t (x)",
		"CREATE TEMP TABLE t (x)", "CREATE TEMP VIEW v AS SELECT 1", "REINDEX", "ANALYZE", "VACUUM", "VACUUM INTO '" + folder + "/new.db'",
		"ATTACH '" + folder + "/new.db' AS n", "ATTACH 'file:" + folder + "/new.db?mode=rwc' AS n", "DETACH main", "BEGIN IMMEDIATE", "SAVEPOINT s",
		"PRAGMA writable_schema = 1", "PRAGMA query_only = 0", "PRAGMA user_version = 9", "PRAGMA journal_mode = DELETE", "PRAGMA wal_checkpoint",
		"PRAGMA optimize", "PRAGMA temp_store_directory = '/'", "SELECT * FROM pragma_user_version(9)", "SELECT load_extension('x')",
	} {
		var wrong *QueryError
		if got, err := answerTo(t.Context(), l, sql); !errors.As(err, &wrong) {
			t.Errorf("%s: %q, %v", sql, got, err)
		}
	}
	c, release, err := l.readers.alone()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.script("PRAGMA query_only = 0; DELETE FROM leases"); err == nil {
		t.Error("the connection itself can write")
	}
	release()
	if diff := cmp.Diff(before, content()); diff != "" {
		t.Errorf("files have changed (-before +after):\n%s", diff)
	}
}

func TestQuery_Stops(t *testing.T) {
	l := open(t, newPath(t), Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := answerTo(ctx, l, "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestRelations: every table and view is described, and nothing else.
func TestRelations(t *testing.T) {
	l := open(t, newPath(t), Options{})
	all, err := l.Relations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, r := range all {
		got = append(got, r.Name)
		if !strings.HasSuffix(r.Holds, ".") || len(r.Columns) == 0 {
			t.Errorf("%+v", r)
		}
	}
	err = plain(t, l.path).each(t.Context(), selectRelations, nil, func(row []driver.Value) (bool, error) {
		want = append(want, text(row[0]))
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || len(all) != len(relations) {
		t.Errorf("(-schema +described):\n%s", diff)
	}
}
