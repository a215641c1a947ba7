package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// object names a table, an index, a view or a trigger.
type object struct{ kind, name string }

func (o object) String() string { return fmt.Sprintf("the %.20s %.60q", o.kind, o.name) }

// objects returns the schema of a database: of each object the table that it is of, and its SQL.
// The tables that ANALYZE makes are left out.
func (c *conn) objects(ctx context.Context) (map[object]string, error) {
	const all = `SELECT type, name, tbl_name || char(0) || COALESCE(sql, '') FROM sqlite_schema
		WHERE NOT (type = 'table' AND name IN ('sqlite_stat1', 'sqlite_stat4'))`
	found := map[object]string{}
	err := c.each(ctx, all, nil, func(row []driver.Value) (bool, error) {
		found[object{text(row[0]), text(row[1])}] = withoutComments(text(row[2]))
		return true, nil
	})
	return found, err
}

// withoutComments returns the SQL of a log without what may have been worded otherwise. What looks
// like a comment in a string is kept.
func withoutComments(sql string) string {
	var words []string
	quotes := 0
	for line := range strings.Lines(sql) {
		code, _, _ := strings.Cut(line, "--")
		before := strings.Count(code, "'")
		if inString := (quotes+before)%2 == 1; inString {
			code, before = line, strings.Count(line, "'")
		}
		quotes += before
		words = append(words, strings.Fields(code)...)
	}
	return strings.Join(words, " ")
}

// newObjects returns the schema that some migrations lead to.
func newObjects(ctx context.Context, o Options, list []migration) (map[object]string, error) {
	c, err := dial("new", "memory", o)
	if err != nil {
		return nil, err
	}
	var made map[object]string
	if err = c.migrate(o, list); err == nil {
		made, err = c.objects(ctx)
	}
	return made, errors.Join(err, c.close())
}

// checkObjects returns an error that names what a copy's schema has more, less or otherwise than
// that of a log of its version. It writes nothing, so that no trigger of others runs.
func checkObjects(ctx context.Context, path string, o Options) error {
	list, err := ownMigrations()
	if err != nil {
		return err
	}
	c, err := dial(path, "rw", o)
	if err != nil {
		return err
	}
	var have, want map[object]string
	version, err := c.version(list)
	if err == nil {
		have, err = c.objects(ctx)
	}
	if err == nil {
		want, err = newObjects(ctx, o, list[:version])
	}
	if err = errors.Join(err, c.close()); err != nil {
		return err
	}
	differences := compareObjects(have, want)
	if len(differences) == 0 {
		return nil
	}
	const enough = 5
	if more := len(differences) - enough; more > 0 {
		differences = append(differences[:enough], fmt.Sprintf("and %d more", more))
	}
	return &problem{ErrNotOurs, fmt.Sprintf("is not as obelus makes a log (of schema version %d): %s; restore another copy, or undo that in this one with sqlite3",
		version, strings.Join(differences, ", "))}
}

// compareObjects returns how a schema differs from the one that is wanted.
func compareObjects(have, want map[object]string) (differences []string) {
	both := maps.Clone(have)
	maps.Copy(both, want)
	for _, o := range slices.SortedFunc(maps.Keys(both), func(a, b object) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) }) {
		is, there := have[o]
		should, known := want[o]
		switch {
		case !known:
			differences = append(differences, o.String()+" was added")
		case !there:
			differences = append(differences, o.String()+" is missing")
		case is != should:
			differences = append(differences, o.String()+" was changed")
		}
	}
	return differences
}

// largestNumber bounds what columns of numbers hold: half of what JSON readers count exactly, so
// that a log can go on from there.
const largestNumber = 1 << 52

// selectNumbers finds all columns of numbers, and the numbers of rows.
const selectNumbers = `SELECT l.name, c.name FROM pragma_table_list AS l CROSS JOIN pragma_table_xinfo(l.name) AS c
		WHERE l.schema = 'main' AND l.type = 'table' AND c.type = 'INTEGER'
	UNION ALL SELECT name, 'rowid' FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT wr AND name NOT LIKE 'sqlite%'
	UNION ALL SELECT 'sqlite_sequence', 'seq'`

// selectsImpossible find rows that no appends lead to. Each returns a context that has one.
var selectsImpossible = []struct{ sql, what string }{
	{`SELECT context FROM (SELECT context, min(seq) AS first, max(seq) AS last, count(*) AS messages FROM messages GROUP BY context) AS m
		WHERE first <> 1 + COALESCE((SELECT max(upto) FROM lineage AS l WHERE l.context = m.context), 0) OR messages <> last - first + 1`,
		"has messages whose seqs are not 1, 2, 3 … without gaps"},
	{`SELECT context FROM writes AS w WHERE NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.context = w.context AND m.seq = w.seq)
		UNION ALL SELECT context FROM leaves AS w WHERE NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.context = w.context AND m.seq = w.seq)`,
		"has writes of a message that is not there"},
	{`SELECT context FROM lineage AS s WHERE n > COALESCE((SELECT max(n) FROM journal), 0) OR upto > COALESCE(
		(SELECT max(seq) FROM messages AS m WHERE m.context = s.ancestor), (SELECT max(upto) FROM lineage AS l WHERE l.context = s.ancestor), 0)`,
		"shares more of another context than that has"},
	{`SELECT context FROM (SELECT context, max(seq) AS last FROM journal GROUP BY context) AS j WHERE last > COALESCE(
		(SELECT max(seq) FROM messages AS m WHERE m.context = j.context), (SELECT max(upto) FROM lineage AS l WHERE l.context = j.context), 0)`,
		"has an event after a message that is not there"},
}

// checkNumbers returns an error that names a number, such as a seq or a position in the journal,
// that no log leads to.
func (c *conn) checkNumbers(ctx context.Context) error {
	impossible := func(format string, args ...any) error {
		return &problem{ErrNotOurs, "holds what no log of obelus does: " + fmt.Sprintf(format, args...) + "; restore another copy"}
	}
	err := c.each(ctx, selectNumbers, nil, func(column []driver.Value) (bool, error) {
		table, name := text(column[0]), text(column[1])
		find := fmt.Sprintf("SELECT substr(quote(%[1]s), 1, 60) FROM %[2]s WHERE typeof(%[1]s) NOT IN ('integer', 'null') OR %[1]s NOT BETWEEN 0 AND %[3]d LIMIT 1",
			name, table, largestNumber)
		err := c.each(ctx, find, nil, func(row []driver.Value) (bool, error) {
			return false, impossible("%s.%s is %s in a row", table, name, text(row[0]))
		})
		return true, err
	})
	for _, s := range selectsImpossible {
		if err != nil {
			return err
		}
		err = c.each(ctx, s.sql+" LIMIT 1", nil, func(row []driver.Value) (bool, error) {
			return false, impossible("the context %.60q %s", text(row[0]), s.what)
		})
	}
	return err
}

const selectContents = `SELECT (SELECT count(*) FROM contexts), (SELECT count(*) FROM messages),
	(SELECT max(date) FROM (SELECT max(date) AS date FROM messages UNION ALL SELECT max(date) FROM journal))`

// readContents checks the rows of a copy, and returns what it holds.
func readContents(ctx context.Context, path string, o Options) (held Restored, err error) {
	c, err := dial(path, "rw", o)
	if err != nil {
		return held, err
	}
	var row []driver.Value
	if err = c.checkNumbers(ctx); err == nil {
		row, err = c.one(ctx, selectContents)
	}
	if err == nil {
		held = Restored{Contexts: integer(row[0]), Messages: integer(row[1])}
		if row[2] != nil {
			held.Newest, err = date(row[2])
		}
	}
	return held, errors.Join(err, c.close())
}

// Restored is what [Restore] has put in the place of a log.
type Restored struct {
	Contexts, Messages int64
	Newest             time.Time // date of the newest message or event; zero if there is none
	Aside              string    // new name of the log that was there; empty if there was none
}
