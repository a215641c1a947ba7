package cmd

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"obelus/store"
)

// check holds the log against what must be so at any time, and against what the
// last command has said before it ended.
func (s *site) check(last ended) {
	s.t.Helper()
	if s.log == nil {
		if last.stdout != "" {
			s.t.Fatalf("it said %s, and there is no log", last.stdout)
		}
		return
	}
	db := s.db()
	defer db.Close()
	if last.status < 0 {
		s.sound(db, last)
	}
	for line := range strings.Lines(last.stdout) {
		s.acknowledged(db, line)
	}
}

// sound holds the file against what must be so whatever has happened.
func (s *site) sound(db *sql.DB, last ended) {
	s.t.Helper()
	if got := s.rows(db, "PRAGMA integrity_check"); !slices.Equal(got, []string{"ok"}) {
		s.t.Fatalf("the file is damaged: %s", got)
	}
	for what, query := range impossible {
		if got := s.rows(db, query); len(got) > 0 {
			s.t.Fatalf("%s: %s, after %s\n%s", what, got, last.args, last.stderr)
		}
	}
}

// impossible are queries that find what must never be.
var impossible = map[string]string{
	"a reference to nothing":   "PRAGMA foreign_key_check",
	"a context with a gap":     "SELECT context, count(*), max(seq) FROM log GROUP BY context HAVING count(*) <> max(seq) OR min(seq) <> 1",
	"a message of no context":  "SELECT context FROM messages EXCEPT SELECT context FROM contexts",
	"an event of no context":   "SELECT context FROM journal EXCEPT SELECT context FROM contexts",
	"a journal out of step":    "SELECT j.context, j.n FROM journal AS j WHERE j.seq > (SELECT max(seq) FROM log WHERE context = j.context)",
	"a file that is left over": "SELECT context FROM pruning",

	"a call that is there twice": "SELECT context, call FROM calls GROUP BY context, call HAVING count(*) > 1",
	"a plan with other calls than it has": `SELECT s.context, j.data ->> '$.tick' FROM spans AS s JOIN journal AS j ON j.context = s.source AND j.n <= s.n
		JOIN messages AS m ON m.context = s.source AND m.seq = j.data ->> '$.seq' WHERE j.event = 'plan' AND j.call IS NULL
		AND json_array_length(m.data) <> (SELECT count(*) FROM calls AS c WHERE c.context = s.context AND c.tick = j.data ->> '$.tick')`,

	"two outcomes of one call": `SELECT context, call, before, event FROM (
		SELECT s.context, j.call, j.event, lag(j.event) OVER (PARTITION BY s.context, j.call ORDER BY j.n) AS before
		FROM spans AS s JOIN journal AS j ON j.context = s.source AND j.n <= s.n WHERE j.call IS NOT NULL)
		WHERE before IN ('done', 'failed', 'skipped') AND event <> 'blocked'`,
	"a message that is there twice": `SELECT context, call, path, instance FROM log AS l WHERE call IS NOT NULL
		GROUP BY context, call, path, instance HAVING count(*) > 1 + (
			SELECT count(*) FROM spans AS s JOIN journal AS j ON j.context = s.source AND j.n <= s.n
			WHERE s.context = l.context AND j.call = l.call AND j.event = 'blocked')`,
	"an outcome without what it wrote": `SELECT c.context, c.call FROM calls AS c, json_each(c.writes) AS w WHERE c.status = 'done' AND NOT EXISTS (
		SELECT 1 FROM log AS l WHERE l.context = c.context AND l.call = c.call AND l.path = w.value)`,
	"a message without its outcome": `SELECT l.context, l.call FROM log AS l WHERE l.call IS NOT NULL AND NOT EXISTS (
		SELECT 1 FROM spans AS s JOIN journal AS j ON j.context = s.source AND j.n <= s.n
		WHERE s.context = l.context AND j.call = l.call AND j.event = 'done')`,
}

// acknowledged holds the log against a line that a command printed. Of a call that has run
// it may hold the outcome alone.
func (s *site) acknowledged(db *sql.DB, line string) {
	s.t.Helper()
	var said struct{ Context, Call, Status, Started string }
	if json.Unmarshal([]byte(line), &said) != nil || said.Status == "" {
		return // it was cut off, or is the name of a fork
	}
	query := fmt.Sprintf(`SELECT 1 FROM spans AS s JOIN journal AS j ON j.context = s.source AND j.n <= s.n
		WHERE s.context = '%s' AND j.call = '%s' AND (j.event = '%s' OR '%[3]s' = 'running' AND j.data ->> '$.started' = '%s') LIMIT 1`,
		said.Context, said.Call, said.Status, said.Started)
	if said.Call == "" {
		query = fmt.Sprintf("SELECT 1 FROM runs WHERE context = '%s' AND status = '%s'", said.Context, said.Status)
	}
	if len(s.rows(db, query)) == 0 {
		s.t.Fatalf("it has said what the log does not hold: %s", line)
	}
}

// db opens the copy with SQLite alone.
func (s *site) db() *sql.DB {
	db, err := sql.Open("sqlite3", "file:"+s.copied()+"?mode=ro")
	if err != nil {
		s.t.Fatal(err)
	}
	return db
}

func (s *site) rows(db *sql.DB, query string) []string {
	s.t.Helper()
	text, err := rowsOf(db, query)
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return strings.Fields(text)
}

// account is all that a log holds, but for what may differ from run to run: the
// order of what runs side by side, dates, attempts.
func (s *site) account() string {
	s.t.Helper()
	s.look()
	defer s.leave()
	db := s.db()
	defer db.Close()
	s.sound(db, ended{})
	var all []string
	for _, query := range []string{
		"SELECT context, type, kind, instance, path, method, data, call FROM log",
		"SELECT context, call, tool, status, writes, error FROM calls WHERE tool <> 'note'",
		"SELECT context, parent, parent_call, fork FROM contexts",
		"SELECT DISTINCT context, tick, plan, status FROM runs",
	} {
		text, err := rowsOf(db, query)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, strings.Split(text, "\n")...)
	}
	for _, held := range strings.Fields(strings.Join(s.rows(db, "SELECT DISTINCT context || '|' || kind || '|' || instance FROM log WHERE kind <> ''"), "\n")) {
		part := strings.Split(held, "|")
		args := []string{"--db", s.copied(), "get", part[1], "-c", part[0]}
		if part[2] != "" {
			args = append(args, "--instance", part[2])
		}
		all = append(all, held+" "+s.unordered(s.undisturbed(args).stdout))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// unordered is a value with its lists sorted.
func (s *site) unordered(text string) string {
	s.t.Helper()
	v, err := store.DecodeJSON([]byte(text))
	if err != nil {
		s.t.Fatalf("%q: %v", text, err)
	}
	var sort func(any)
	sort = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, e := range v {
				sort(e)
			}
		case []any:
			for _, e := range v {
				sort(e)
			}
			slices.SortFunc(v, func(a, b any) int { return bytes.Compare(store.EncodeJSON(a), store.EncodeJSON(b)) })
		}
	}
	sort(v)
	return string(store.EncodeJSON(v))
}

// same holds what a log holds in the end against what it holds if nothing
// happens.
func (s *site) same(want string) {
	s.t.Helper()
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(s.account(), "\n")); diff != "" {
		s.t.Errorf("it came to something else:\n%s", diff)
	}
}
