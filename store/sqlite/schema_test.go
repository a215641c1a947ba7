package sqlite

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"obelus/store"
)

// TestAppendOnly: the database itself refuses to change what is in the log.
func TestAppendOnly(t *testing.T) {
	l := open(t, newPath(t), Options{})
	add(t, l, written("†s.a", "1"), written("†s.b", map[string]any{"c": "2"}))
	if err := appendOne(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	_, err := l.Append(t.Context(), store.Batch{
		Context: "f", ExpectSeq: store.AnySeq, Create: &store.Origin{Fork: "c", At: 3},
		Code: []*store.Code{{Digest: "d", Scripts: []store.Script{{Path: "p", SHA256: "s"}}}}, Journal: []store.Entry{{Event: "x"}},
	})
	if err == nil {
		_, err = l.Append(t.Context(), store.Batch{Context: "f", ExpectSeq: store.AnySeq, Journal: []store.Entry{{Event: "x", Exchanges: []store.Exchange{{Hash: "h"}}}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	other := store.Batch{Context: "other", ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: []store.Message{written("†s.b", map[string]any{"c": "2"})}}
	if _, err := l.Append(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	c := plain(t, l.path)
	if err := c.script("INSERT INTO pruning (context) VALUES ('c')"); err == nil || !strings.Contains(err.Error(), "a fork needs this context") {
		t.Errorf("a context that a fork needs: %v", err)
	}
	for _, sql := range []string{
		"UPDATE messages SET data = '3'",
		"DELETE FROM messages WHERE seq = 3",
		"INSERT OR REPLACE INTO messages (context, seq, date, type, data) VALUES ('c', 1, 'd', 'text', '3')",
		"REPLACE INTO messages (context, seq, date, type, data) VALUES ('c', 3, 'd', 'text', '3')",
		"INSERT OR IGNORE INTO messages (context, seq, date, type, data) VALUES ('c', 3, 'd', 'text', '3')",
		"INSERT INTO messages (context, seq, date, type, data) VALUES ('c', 5, 'd', 'text', '3')",
		"INSERT INTO messages (context, seq, date, type, data) VALUES ('new', 2, 'd', 'text', '3')",
		"INSERT INTO messages (context, seq, date, type, data) VALUES ('new', NULL, 'd', 'text', '3')",
		"UPDATE OR REPLACE messages SET seq = 1 WHERE seq = 2",
		"INSERT INTO messages (context, seq, date, type) VALUES ('c', 1, 'd', 'text') ON CONFLICT DO UPDATE SET date = 'x'",
		"REPLACE INTO messages (rowid, context, seq, date, type, data) VALUES (2, 'c', 4, 'd', 'text', '3')",
		"REPLACE INTO messages (rowid, context, seq, date, type, data) VALUES (2, 'new', 1, 'd', 'text', '3')",
		"INSERT INTO messages (rowid, context, seq, date, type, data) VALUES (-1, 'c', 4, 'd', 'text', '3')",
		"INSERT INTO scripts (rowid, sha256, path, source) VALUES (-1, 't', 'p', 'x')",
		"UPDATE writes SET seq = 9",
		"DELETE FROM writes",
		"REPLACE INTO writes (context, path, instance, seq, form) SELECT context, path, instance, seq, 2 FROM writes",
		"UPDATE leaves SET seq = 9",
		"DELETE FROM leaves",
		"REPLACE INTO leaves (context, path, instance, seq, form) SELECT context, path, instance, seq, 2 FROM leaves",
		"UPDATE journal SET event = 'x'",
		"DELETE FROM journal",
		"REPLACE INTO journal (n, context, seq, date, event) VALUES (2, 'c', 1, 'd', 'x')",
		"INSERT INTO journal (n, context, seq, date, event) VALUES (1, 'c', 1, 'd', 'x')",
		"DELETE FROM contexts",
		"DELETE FROM lineage WHERE context = 'f'",
		"UPDATE lineage SET upto = 1",
		"REPLACE INTO lineage (context, ancestor, upto, n) VALUES ('f', 'c', 1, 1)",
		"INSERT INTO lineage (context, ancestor, upto, n) VALUES ('c', 'f', 1, 1)",
		"REPLACE INTO scripts (sha256, path, source) VALUES ('s', 'p', 'x')",
		"REPLACE INTO scripts (rowid, sha256, path, source) VALUES (1, 't', 'p', 'x')",
		"REPLACE INTO generations (generation, path, sha256) VALUES ('d', 'p', 'x')",
		"DELETE FROM generations",
		"DELETE FROM scripts",
		"UPDATE scripts SET source = ''",
		"UPDATE generations SET sha256 = ''",
		"UPDATE exchanges SET answer = ''",
		"DELETE FROM exchanges",
		"REPLACE INTO exchanges SELECT * FROM exchanges",
		"INSERT INTO exchanges SELECT 99, position, context, call, hash, request, request_bytes, answer, answer_bytes, error, usage FROM exchanges",
		"INSERT INTO exchanges (rowid, n, position, context, hash, request_bytes, answer_bytes) SELECT -1, n, 2, context, hash, 0, 0 FROM exchanges",
		"UPDATE contexts SET created = 'x'",
		"UPDATE contexts SET context = 'x'",
		"REPLACE INTO contexts (context, created, updated) VALUES ('c', 'd', 'd')",
		// A context goes as a whole.
		"INSERT INTO pruning VALUES ('f'); DELETE FROM journal WHERE context = 'f'",
		"INSERT OR IGNORE INTO pruning VALUES ('f'); DELETE FROM lineage WHERE context = 'f'",
		"INSERT INTO pruning VALUES ('other'); DELETE FROM messages WHERE context = 'other' AND seq = 1",
		"DELETE FROM writes WHERE context = 'other'",
		"DELETE FROM leaves WHERE context = 'other'",
	} {
		if err := c.script(sql); err == nil || !strings.Contains(err.Error(), "the log is append-only") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if n := seqs(t, l, "c"); n != 3 {
		t.Errorf("%d messages", n)
	}
	if err := c.script("DELETE FROM contexts WHERE context = 'other'"); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"messages", "writes", "leaves", "journal", "leases", "pruning"} {
		if row, err := c.one(t.Context(), "SELECT count(*) FROM "+table+" WHERE context = 'other'"); err != nil || integer(row[0]) != 0 {
			t.Errorf("%s of a context that is gone: %v, %v", table, row, err)
		}
	}
}

// TestHistory: the view gives for every write its value, and for every leaf that
// the write leaves below that, whatever the keys.
func TestHistory(t *testing.T) {
	l := open(t, newPath(t), Options{})
	var messages []store.Message
	for _, key := range []string{"a", "first-name", ".", "[", `"`, `\`, `"]`, `["`, `a"].b`, `\"`, `\\"`, "ключ", "\n", "\u2028", "'", "$", "0", ""} {
		path := store.KindPath("s").Child("x").Child(key)
		for i, p := range []store.Path{path, path.Child("y"), path.Child(key)} {
			messages = append(messages, written(p.String(), fmt.Sprint("value ", i)))
		}
	}
	inArray, err := store.ParseMessages([]byte(`[
		{"type":"data","kind":"s","data":{"list":[0,{"é":[null,{"n":1.10}]}]},"path":"†s.list[1].é[1]","_call":{"_tool":"t"}},
		{"type":"data","kind":"s","data":{"list":[null]},"path":"†s.list[0]","_call":{"_tool":"t"}},
		{"type":"data","kind":"s","data":[[1,2],[3,4]],"path":"†s.1.0","_call":{"_tool":"t"}},
		{"type":"data","kind":"s","data":{"a":1,"b":{"c":null,"d":[]},"e":{}}},
		{"type":"data","kind":"s","data":{"a":{"b":1}},"path":"†s.a","_call":{"_tool":"t"},"_outputMethod":"merge"},
		{"type":"data","kind":"s","data":{"y":{"status":"active","tags":["a"],"none":{},"é é":{"n":1.10}}},"path":"†s.y","_call":{"_tool":"t"}},
		{"type":"data","kind":"error","data":{"message":"x"},"_call":{"_outputPath":"†error"}}
	]`))
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, append(messages, inArray...)...)
	var want, got []string
	for m, err := range l.Messages(t.Context(), store.Filter{Context: "c"}) {
		if err != nil {
			t.Fatal(err)
		}
		op, _ := m.Op()
		var paths []store.Path
		at, below := op.Marks()
		for _, mark := range append(at, below...) {
			paths = append(paths, mark.Path)
		}
		slices.SortFunc(paths, func(a, b store.Path) int { return strings.Compare(a.String(), b.String()) })
		for _, p := range paths {
			value, ok := store.Dig(m.Data.Value, p)
			if !ok {
				t.Fatal(p)
			}
			want = append(want, fmt.Sprintf("%d %s %s %s", op.Seq, p, op.Method, store.EncodeJSON(value)))
		}
	}
	err = plain(t, l.path).each(t.Context(), "SELECT seq, path, method, value, tool FROM history WHERE context = 'c' ORDER BY seq, path", nil, func(row []driver.Value) (bool, error) {
		got = append(got, fmt.Sprintf("%d %s %s %s", row[0], row[1], row[2], row[3]))
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPlans: nothing is sorted or scanned that an index gives in order.
func TestPlans(t *testing.T) {
	c := plain(t, open(t, newPath(t), Options{}).path)
	messages := func(f store.Filter) string {
		f.Context = "c"
		sql, _ := selectMessages(f)
		return sql
	}
	logs := func(f store.LogFilter) string {
		sql, _ := selectLogs(f, span{})
		return sql
	}
	for name, test := range map[string]struct{ sql, want string }{
		"at":     {selectAt, "SEARCH w USING PRIMARY KEY (context=? AND path=? AND instance=? AND seq<?)"},
		"below":  {selectBelow, "SEARCH writes USING PRIMARY KEY (context=? AND path>? AND path<?)"},
		"one":    {selectOne, "SEARCH m USING INDEX sqlite_autoindex_messages_1 (context=? AND seq=?)"},
		"window": {selectWindow, "SEARCH m USING INDEX sqlite_autoindex_messages_1 (context=? AND seq>? AND seq<?)"},
		"lease":  {selectLease, "SEARCH leases USING PRIMARY KEY (context=?)"},
		"all":    {messages(store.Filter{}), "SEARCH m USING INDEX sqlite_autoindex_messages_1 (context=?)"},
		"newest": {messages(store.Filter{Newest: true, After: 1}), "SEARCH m USING INDEX sqlite_autoindex_messages_1 (context=? AND seq>?)"},
		"schema": {messages(store.Filter{Schema: true, Kind: "s", Newest: true}), "SEARCH m USING INDEX messages_schema (context=? AND kind=?)"},
		"logs":   {logs(store.LogFilter{After: 1, Level: store.LevelWarn}), "SEARCH logs USING INDEX logs_context (context=? AND rowid>?)"},
		"call":   {logs(store.LogFilter{Call: "1.2", After: 1, Newest: true}), "SEARCH logs USING INDEX logs_call (context=? AND call=?)"},
		"kept":   {selectExchanges, "SEARCH exchanges USING INDEX sqlite_autoindex_exchanges_1 (n=?)"},
		"plans":  {messages(store.Filter{Type: store.TypePlan, Newest: true}), "SEARCH m USING INDEX messages_other (context=? AND type=?)"},
	} {
		plan := strings.Join(explainPlan(t, c, test.sql), "\n")
		if !strings.Contains(plan, test.want) || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "SCAN ") {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
	// Only the kinds that were found are sorted.
	if plan := strings.Join(explainPlan(t, c, selectKinds), "\n"); !strings.Contains(plan, "SEARCH writes USING PRIMARY KEY (context=? AND (path,instance,seq)>(?,?,?))") {
		t.Errorf("kinds:\n%s", plan)
	}
	// What touches a path is gathered as seqs; the messages stream.
	plan := explainPlan(t, c, messages(store.Filter{Path: store.MustParsePath("†s.a.b"), Newest: true}))
	if plan[0] != "SEARCH m USING INDEX sqlite_autoindex_messages_1 (context=? AND seq=?)" || slices.Contains(plan, "USE TEMP B-TREE FOR ORDER BY") {
		t.Errorf("path:\n%s", strings.Join(plan, "\n"))
	}
}

// TestPlans_OfLists: a list is read in the order of an index until its page is full, and a filter
// by columns that are in no index reads the table in its own order.
func TestPlans_OfLists(t *testing.T) {
	c := plain(t, open(t, newPath(t), Options{}).path)
	then := store.ContextMark{Updated: time.Now(), Context: "c"}
	for name, test := range map[string]struct {
		filter store.ContextFilter
		want   string
	}{
		"all":     {store.ContextFilter{}, "SCAN c USING COVERING INDEX contexts_updated"},
		"roots":   {store.ContextFilter{Roots: true, After: then}, "SEARCH c USING COVERING INDEX contexts_updated (updated<?)"},
		"parent":  {store.ContextFilter{Parent: "p"}, "SEARCH c USING INDEX contexts_parent (parent=?)"},
		"due":     {store.ContextFilter{Due: then.Updated}, "SEARCH c USING INDEX contexts_due (due<?)"},
		"held":    {store.ContextFilter{Held: true}, "SEARCH c USING INDEX contexts_held (held>?)"},
		"retries": {store.ContextFilter{Retrying: true}, "SEARCH c USING INDEX contexts_retrying (retrying>?)"},
		"waiting": {store.ContextFilter{WaitingOn: "†x"}, "SCAN c USING INDEX contexts_waiting"},
		"text":    {store.ContextFilter{Text: "x"}, "SCAN c"},
		"further": {store.ContextFilter{Text: "x", Since: then.Updated, Until: then.Updated, After: then}, "SCAN c"},
		"plan":    {store.ContextFilter{Plan: "x", After: then}, "SCAN c"},
		"label":   {store.ContextFilter{Labels: map[string]string{"x": "y"}, After: then}, "SCAN c"},
		"in due":  {store.ContextFilter{Text: "x", Due: then.Updated}, "SEARCH c USING INDEX contexts_due (due<?)"},
	} {
		sql, _ := selectContexts(&test.filter, firstPage)
		plan := explainPlan(t, c, sql)
		if got := strings.TrimSpace(plan[1]); got != test.want {
			t.Errorf("%s: %s\n%s", name, got, strings.Join(plan, "\n"))
		}
	}
}

// explainPlan gives the steps of a query's plan, those of its parts indented.
func explainPlan(t *testing.T, c *conn, sql string) (plan []string) {
	t.Helper()
	s, err := c.prepare(statementKey{sql: sql})
	if err != nil {
		t.Fatal(err)
	}
	values := make([]driver.Value, s.NumInput())
	err = c.each(t.Context(), "EXPLAIN QUERY PLAN "+sql, values, func(row []driver.Value) (bool, error) {
		indent := ""
		if integer(row[1]) != 0 {
			indent = "  "
		}
		plan = append(plan, indent+text(row[3]))
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
