package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"obelus/store"
)

var randomLogs = flag.Int("values", 60, "how many random logs current_values is held to the resolver on")

// valueKeys are keys of random paths: those that quoting and cutting could
// stumble over among them, and none that may be an index.
var valueKeys = []string{"a", "b", "ab", "a.b", "x[y", `"`, `\"]`, "ключ", "", "a b"}

func valuePath(r *rand.Rand, keys []string) store.Path {
	p := store.KindPath([]string{"k", "kk", "error"}[r.IntN(8)/3])
	for range r.IntN(4) {
		p = p.Child(keys[r.IntN(len(keys))])
	}
	return p
}

func valueOf(r *rand.Rand, keys []string, depth int) any {
	n := r.IntN(12)
	switch {
	case n < 4 && depth > 0:
		object := map[string]any{}
		for range r.IntN(4) {
			object[keys[r.IntN(len(keys))]] = valueOf(r, keys, depth-1)
		}
		return object
	case n < 7:
		array := []any{}
		for range r.IntN(3) {
			array = append(array, valueOf(r, keys, 0))
		}
		return array
	case n < 9:
		return []string{"", "text", `"\` + "\n†", "ü"}[r.IntN(4)]
	case n == 9:
		return nil
	}
	return []any{json.Number("1.50"), json.Number("12345678901234567890"), true}[r.IntN(3)]
}

func valueMessage(r *rand.Rand, keys []string) store.Message {
	p := valuePath(r, keys)
	m := store.Message{Type: store.TypeData, Kind: p.Kind(), Instance: []string{"", "", "①", "②"}[r.IntN(4)], Data: store.Some(nil)}
	if r.IntN(4) == 0 {
		m.Data.Value = valueOf(r, keys, 3)
		return m
	}
	m.Data.Value = store.Wrap(p, valueOf(r, keys, 2))
	m.Producer, m.Path, m.Call = map[string]any{"_tool": "t"}, p, "1.1"
	m.Method = append(store.Methods, "")[r.IntN(6)]
	return m
}

// row is what current_values says of a path.
type row struct{ instance, path, value string }

// leavesOf lists the leaves of a value, and those alone that an instance wrote
// to itself.
func leavesOf(t *testing.T, r store.Resolver, seqs map[int64]string, instance string, at store.Path, v any) (all []row) {
	if object, ok := v.(map[string]any); ok && len(object) > 0 {
		for key, e := range object {
			all = append(all, leavesOf(t, r, seqs, instance, at.Child(key), e)...)
		}
		return all
	}
	res, err := r.Resolve(t.Context(), at, instance)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(res.From, func(seq int64) bool { return seqs[seq] == instance }) {
		return nil
	}
	return []row{{instance, at.String(), string(store.EncodeJSON(v))}}
}

// resolved is what current_values should say.
func resolved(t *testing.T, l *Log, name string) (all []row) {
	t.Helper()
	seqs, instances, kinds := map[int64]string{}, map[string]bool{}, map[string]bool{}
	for m, err := range l.Messages(t.Context(), store.Filter{Context: name}) {
		if err != nil {
			t.Fatal(err)
		}
		seqs[m.Seq], instances[m.Instance], kinds[m.Kind] = m.Instance, true, true
	}
	r := store.Resolver{Log: l, Context: name}
	for instance := range instances {
		for kind := range kinds {
			res, err := r.Resolve(t.Context(), store.KindPath(kind), instance)
			if err != nil {
				t.Fatal(err)
			}
			if res.Exists {
				all = append(all, leavesOf(t, r, seqs, instance, store.KindPath(kind), res.Value)...)
			}
		}
	}
	return sorted(all)
}

func sorted(rows []row) []row {
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.instance+a.path, b.instance+b.path) })
	return rows
}

const selectValues = "SELECT json_array(instance, path, value || '') FROM current_values WHERE context = "

// canonical reads a line of selectValues.
func canonical(t *testing.T, line string) row {
	t.Helper()
	var cells [3]*string
	if err := json.Unmarshal([]byte(line), &cells); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if cells[2] == nil {
		return row{*cells[0], *cells[1], "NULL"}
	}
	v, err := store.DecodeJSON([]byte(*cells[2]))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return row{*cells[0], *cells[1], string(store.EncodeJSON(v))}
}

func embeddedValues(t *testing.T, c *conn, name string) (all []row) {
	t.Helper()
	err := c.each(t.Context(), selectValues+"?1", []driver.Value{name}, func(r []driver.Value) (bool, error) {
		all = append(all, canonical(t, text(r[0])))
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sorted(all)
}

// stockValues asks the sqlite3 program.
func stockValues(t *testing.T, path, name string) (all []row) {
	t.Helper()
	out, err := exec.Command("sqlite3", "-readonly", path, selectValues+"'"+name+"'").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		all = append(all, canonical(t, line))
	}
	return sorted(all)
}

// TestCurrentValues holds the view to the resolver over random logs, with
// instances and forks, in the SQLite that is built in and in a stock one.
//
//	go test ./store/sqlite -run TestCurrentValues -values 2000
func TestCurrentValues(t *testing.T) {
	stock := hasStock()
	if !stock {
		t.Log("there is no sqlite3 here: only the SQLite that is built in is tested")
	}
	l := open(t, newPath(t), Options{Synchronous: "normal"})
	c := plain(t, l.path)
	for seed := range *randomLogs {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		keys := valueKeys[:2+r.IntN(len(valueKeys)-1)]
		name := fmt.Sprint("c", seed)
		grow(t, l, r, keys, name, &store.Origin{})
		fork := name + "f"
		grow(t, l, r, keys, fork, &store.Origin{Fork: name, At: 1 + r.Int64N(head(t, l, name))})
		grow(t, l, r, keys, name, nil)
		grow(t, l, r, keys, fork+"f", &store.Origin{Fork: fork, At: 1 + r.Int64N(head(t, l, fork))})
		for _, name := range []string{name, fork, fork + "f"} {
			want := resolved(t, l, name)
			if diff := cmp.Diff(want, embeddedValues(t, c, name), cmp.AllowUnexported(row{})); diff != "" {
				tellLog(t, l, name)
				t.Fatalf("%s (-resolver +view):\n%s", name, diff)
			}
			if !stock || seed%10 != 0 {
				continue
			}
			got := stockValues(t, l.path, name)
			for i, r := range got { // older SQLites find no key with a quote in it
				if r.value == "NULL" && strings.Contains(r.path, `\`) && i < len(want) {
					got[i].value = want[i].value
				}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
				t.Fatalf("%s (-resolver +stock sqlite3):\n%s", name, diff)
			}
		}
	}
}

func hasStock() bool {
	_, err := exec.LookPath("sqlite3")
	return err == nil
}

func head(t *testing.T, l *Log, name string) int64 {
	t.Helper()
	n := int64(0)
	for m, err := range l.Messages(t.Context(), store.Filter{Context: name}) {
		if err != nil {
			t.Fatal(err)
		}
		n = m.Seq
	}
	return n
}

// grow appends random messages, each for itself, so that a fork may begin
// after any.
func grow(t *testing.T, l *Log, r *rand.Rand, keys []string, name string, origin *store.Origin) {
	t.Helper()
	for range 1 + r.IntN(14) {
		m := valueMessage(r, keys)
		_, err := l.Append(t.Context(), store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: origin, Messages: []store.Message{m}})
		if err != nil {
			t.Fatal(err)
		}
		if origin != nil {
			origin = nil
		}
	}
}

func tellLog(t *testing.T, l *Log, name string) {
	t.Helper()
	for m, err := range l.Messages(t.Context(), store.Filter{Context: name}) {
		if err != nil {
			t.Fatal(err)
		}
		op, _ := m.Op()
		t.Logf("%d %q %s %s %s", m.Seq, m.Instance, op.Path, op.Method, store.EncodeJSON(op.Value))
	}
}

// TestCurrentValues_InArrays: where elements were written inside arrays the view
// may leave out what is in them, and say NULL of them, but never what is wrong.
func TestCurrentValues_InArrays(t *testing.T) {
	l := open(t, newPath(t), Options{Synchronous: "normal"})
	c := plain(t, l.path)
	for seed := range *randomLogs {
		r := rand.New(rand.NewPCG(uint64(seed), 6))
		name := fmt.Sprint("c", seed)
		fits(t, l, r, []string{"a", "0", "1", "2", "b"}, name)
		got := map[row]bool{}
		for _, r := range embeddedValues(t, c, name) {
			got[r] = true
		}
		for _, r := range resolved(t, l, name) {
			unknown := row{r.instance, r.path, "NULL"}
			left := strings.ContainsAny(r.path, "012") || got[unknown] && r.value[0] == '[' || r.value == "{}"
			if !got[r] && !left {
				tellLog(t, l, name)
				t.Fatalf("%s: %v is not there", name, r)
			}
			delete(got, r)
			delete(got, unknown)
		}
		if len(got) > 0 {
			tellLog(t, l, name)
			t.Fatalf("%s: %v", name, got)
		}
	}
}

// TestCurrentValues_OfNumbers: an object with numbers for keys has rows where it took
// the place of an array, whoever put it there.
func TestCurrentValues_OfNumbers(t *testing.T) {
	l := open(t, newPath(t), Options{Synchronous: "normal"})
	c := plain(t, l.path)
	patch := func(data any) store.Message {
		return store.Message{Type: store.TypeData, Kind: "s", Data: store.Some(data)}
	}
	numbered := map[string]any{"17": map[string]any{"n": "x"}, "k": "y"}
	merged := written("†s.l", numbered)
	merged.Method = store.Merge
	for name, messages := range map[string][]store.Message{
		"set":    {patch(map[string]any{"l": []any{}}), written("†s.l", numbered)},
		"merge":  {written("†s.l", []any{"a"}), merged},
		"patch":  {written("†s.l", []any{"a"}), patch(map[string]any{"l": numbered})},
		"root":   {patch([]any{"a"}), patch(map[string]any{"l": numbered})},
		"above":  {written("†s.l", []any{"a"}), written("†s", "gone"), written("†s.l.17", numbered["17"]), written("†s.l.k", "y")},
		"nested": {written("†s.l", []any{[]any{}}), written("†s", map[string]any{"l": numbered})},
	} {
		add := store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: messages}
		if _, err := l.Append(t.Context(), add); err != nil {
			t.Fatal(err)
		}
		want := []row{{"", "†s.l.17.n", `"x"`}, {"", "†s.l.k", `"y"`}}
		if diff := cmp.Diff(want, embeddedValues(t, c, name), cmp.AllowUnexported(row{})); diff != "" {
			t.Errorf("%s (-want +view):\n%s", name, diff)
		}
		if diff := cmp.Diff(want, resolved(t, l, name), cmp.AllowUnexported(row{})); diff != "" {
			t.Errorf("%s (-want +resolver):\n%s", name, diff)
		}
	}
}

// fits appends random messages for all instances that fit where they stand.
func fits(t *testing.T, l *Log, r *rand.Rand, keys []string, name string) {
	t.Helper()
	for range 30 {
		m := valueMessage(r, keys)
		m.Instance = ""
		op, _ := m.Op()
		if (store.Resolver{Log: l, Context: name}).CheckOp(t.Context(), op) != nil {
			continue
		}
		if _, err := l.Append(t.Context(), store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: []store.Message{m}}); err != nil {
			t.Fatal(err)
		}
	}
}

// oldColumns are the columns of contexts before version 15, in their order.
const oldColumns = "context, parent, parent_call, created, updated, fork, fork_at"

// TestMigrate_Values: what an older obelus wrote has current values too.
func TestMigrate_Values(t *testing.T) {
	l := open(t, newPath(t), Options{Synchronous: "normal"})
	r := rand.New(rand.NewPCG(1, 7))
	for i := range 20 {
		grow(t, l, r, valueKeys, fmt.Sprint("c", i), &store.Origin{})
	}
	path := filepath.Join(t.TempDir(), "old.db")
	old := older(t, path, 4, "ATTACH '"+l.path+"' AS new; INSERT INTO contexts SELECT "+oldColumns+" FROM new.contexts; INSERT INTO messages SELECT * FROM new.messages; "+
		"INSERT INTO writes SELECT context, path, instance, seq FROM new.writes; DETACH new")
	if err := old.close(); err != nil {
		t.Fatal(err)
	}
	migrated := open(t, path, Options{})
	c := plain(t, path)
	for i := range 20 {
		name := fmt.Sprint("c", i)
		if diff := cmp.Diff(resolved(t, migrated, name), embeddedValues(t, c, name), cmp.AllowUnexported(row{})); diff != "" {
			t.Fatalf("%s:\n%s", name, diff)
		}
	}
	if err := c.script("UPDATE writes SET form = 1"); err == nil {
		t.Error("a form can be changed")
	}
}

// TestMigrate_Messages: messages that stood in the order of their key are all there when
// they stand in that in which they came, and are guarded and told of as before.
func TestMigrate_Messages(t *testing.T) {
	l := open(t, newPath(t), Options{Synchronous: "normal"})
	r := rand.New(rand.NewPCG(1, 10))
	for i := range 10 {
		grow(t, l, r, valueKeys, fmt.Sprint("c", i), &store.Origin{})
	}
	grow(t, l, r, valueKeys, "fork", &store.Origin{Fork: "c1", At: seqs(t, l, "c1")})
	path := filepath.Join(t.TempDir(), "old.db")
	scripts := "ATTACH '" + l.path + "' AS new;"
	scripts += "INSERT INTO contexts SELECT " + oldColumns + " FROM new.contexts;"
	for _, table := range []string{"lineage", "messages", "writes", "leaves", "journal"} {
		scripts += "INSERT INTO " + table + " SELECT * FROM new." + table + ";"
	}
	old := older(t, path, 9, "DROP TRIGGER lineage_insert", "DROP TRIGGER messages_insert", scripts+"DETACH new",
		"CREATE TRIGGER messages_insert BEFORE INSERT ON messages BEGIN SELECT 1; END") // whatever it was
	if err := old.close(); err != nil {
		t.Fatal(err)
	}
	migrated := open(t, path, Options{})
	for i, c := range []*conn{plain(t, path), plain(t, l.path)} {
		for _, sql := range []string{
			"UPDATE messages SET data = 'x'", "DELETE FROM messages WHERE context = 'c1'",
			"INSERT INTO messages (context, seq, date, type) VALUES ('c1', 1, 'x', 'text')", "INSERT INTO messages (context, seq, date, type) VALUES ('c1', 10000, 'x', 'text')",
		} {
			if err := c.script(sql); err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("log %d: %s: %v", i, sql, err)
			}
		}
	}
	for _, name := range []string{"c0", "c1", "c9", "fork"} {
		var all [2][]string
		for i, l := range []*Log{l, migrated} {
			for m, err := range l.Messages(t.Context(), store.Filter{Context: name}) {
				if err != nil {
					t.Fatal(err)
				}
				all[i] = append(all[i], fmt.Sprintf("%+v", *m))
			}
		}
		if diff := cmp.Diff(all[0], all[1]); diff != "" || len(all[0]) == 0 {
			t.Errorf("%s, %d messages:\n%s", name, len(all[0]), diff)
		}
		if diff := cmp.Diff(resolved(t, l, name), embeddedValues(t, plain(t, path), name), cmp.AllowUnexported(row{})); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	grow(t, migrated, r, valueKeys, "c3", nil)
}

// TestViews_Plans: what is asked about a context reads more than an index gives for that
// context in neither SQLite, so that other contexts cost nothing.
func TestViews_Plans(t *testing.T) {
	l := open(t, newPath(t), Options{})
	c := plain(t, l.path)
	for sql, want := range map[string]string{
		"SELECT value FROM current_values WHERE context = 'c' AND path = '†s.a'":                               "SEARCH writes USING PRIMARY KEY (context=? AND path=?)",
		"SELECT path, value FROM current_values WHERE context = 'c'":                                           "SEARCH writes USING PRIMARY KEY (context=?)",
		"SELECT seq, kind FROM log WHERE context = 'c' ORDER BY seq":                                           "SEARCH m USING INDEX sqlite_autoindex_messages_1 (context=? AND seq<?)",
		"SELECT value FROM history WHERE context = 'c' AND path = '†s.a' ORDER BY seq":                         "SEARCH w USING PRIMARY KEY (context=? AND path=?)",
		"SELECT call, status FROM calls WHERE context = 'c' ORDER BY tick, position":                           "SEARCH journal USING INDEX journal_context (context=?)",
		"SELECT call, message FROM failures WHERE context = 'c'":                                               "SEARCH journal USING INDEX journal_context (context=?)",
		"SELECT status FROM runs WHERE context = 'c'":                                                          "SEARCH journal USING INDEX journal_event (context=? AND event=?)",
		"SELECT \"by\", decision, call FROM decisions WHERE context = 'c'":                                     "SEARCH e USING INDEX journal_context (context=? AND rowid<?)",
		"SELECT source FROM calls JOIN scripts ON sha256 = script_sha256 WHERE call = '1.2' AND context = 'c'": "SEARCH journal USING INDEX journal_context (context=?)",
	} {
		plans := []string{strings.Join(explainPlan(t, c, sql), "\n")}
		if hasStock() {
			out, err := exec.Command("sqlite3", "-readonly", l.path, "EXPLAIN QUERY PLAN "+sql).Output()
			if err != nil {
				t.Fatal(err)
			}
			plans = append(plans, string(out))
		}
		for _, plan := range plans {
			if !strings.Contains(plan, want) {
				t.Errorf("%s:\n%s", sql, plan)
			}
			for line := range strings.Lines(plan) {
				if name, ok := strings.CutPrefix(strings.Trim(line, "|`- \n"), "SCAN "); ok && slices.Contains(tables, name) {
					t.Errorf("%s: all of %s is read:\n%s", sql, name, plan)
				}
			}
		}
	}
}

// tables are those of which a context needs a part, as a plan names them: by their
// names, or by those that views give them.
var tables = []string{"contexts", "messages", "writes", "leaves", "journal", "lineage", "e", "j", "l", "m", "o", "p", "r", "w"}

// manyKeys is an object of n keys, with what else it shall have.
func manyKeys(n int, more map[string]any) map[string]any {
	object := map[string]any{}
	for i := range n {
		object["n"+strconv.Itoa(i)] = json.Number(strconv.Itoa(i))
	}
	maps.Copy(object, more)
	return object
}

// TestCurrentValues_ManyLeaves: an object of more leaves than are listed has one row with
// all of its value, or NULL where the index alone can't tell it.
func TestCurrentValues_ManyLeaves(t *testing.T) {
	l := open(t, newPath(t), Options{Synchronous: "normal"})
	c := plain(t, l.path)
	many := manyKeys(300, map[string]any{"list": []any{"x", "y"}, "none": map[string]any{}})
	whole := string(store.EncodeJSON(many))
	patch := func(data any) store.Message {
		return store.Message{Type: store.TypeData, Kind: "s", Data: store.Some(data)}
	}
	by := func(method store.Method, path string, value any) store.Message {
		m := written(path, value)
		m.Method = method
		return m
	}
	of := func(m store.Message) store.Message {
		m.Instance = "①"
		return m
	}
	for name, test := range map[string]struct {
		messages []store.Message
		want     []row
	}{
		"256 leaves":      {[]store.Message{written("†s.a", manyKeys(256, nil))}, nil},
		"set":             {[]store.Message{written("†s.a.x", "old"), written("†s.a", many)}, []row{{"", "†s.a", whole}}},
		"patch":           {[]store.Message{patch(map[string]any{"a": map[string]any{"b": many}})}, []row{{"", "†s.a.b", whole}}},
		"merged, beside":  {[]store.Message{written("†s.b", "old"), by(store.Merge, "†s", map[string]any{"a": many})}, []row{{"", "†s.a", whole}, {"", "†s.b", `"old"`}}},
		"onto a scalar":   {[]store.Message{written("†s.a", "old"), by(store.Merge, "†s.a", many)}, []row{{"", "†s.a", whole}}},
		"onto a list":     {[]store.Message{written("†s.a", []any{"old"}), patch(map[string]any{"a": many})}, []row{{"", "†s.a", whole}}},
		"onto an object":  {[]store.Message{written("†s.a.old", "old"), patch(map[string]any{"a": many})}, []row{{"", "†s.a", "NULL"}}},
		"onto many":       {[]store.Message{written("†s.a", many), patch(map[string]any{"a": many})}, []row{{"", "†s.a", "NULL"}}},
		"within many":     {[]store.Message{written("†s", many), patch(map[string]any{"a": many})}, []row{{"", "†s", "NULL"}, {"", "†s.a", "NULL"}}},
		"assigned":        {[]store.Message{by(store.Assign, "†s.a", many)}, []row{{"", "†s.a", whole}}},
		"assigned onto":   {[]store.Message{written("†s.a.old", "old"), by(store.Assign, "†s.a", many)}, []row{{"", "†s.a", "NULL"}}},
		"below since":     {[]store.Message{written("†s.a", many), written("†s.a.n1", "new")}, []row{{"", "†s.a", "NULL"}, {"", "†s.a.n1", `"new"`}}},
		"{} joins":        {[]store.Message{written("†s.a", many), by(store.Merge, "†s.a", map[string]any{})}, []row{{"", "†s.a", whole}}},
		"{} joins within": {[]store.Message{written("†s.a", many), by(store.Merge, "†s.a.none", map[string]any{})}, []row{{"", "†s.a", "NULL"}}},
		"few assigned":    {[]store.Message{written("†s.a", many), by(store.Assign, "†s.a", map[string]any{"n1": "new"})}, []row{{"", "†s.a", "NULL"}, {"", "†s.a.n1", `"new"`}}},
		"pushed":          {[]store.Message{written("†s.a", many), by(store.Push, "†s.a.list", "z")}, []row{{"", "†s.a", "NULL"}, {"", "†s.a.list", "NULL"}}},
		"set and pushed":  {[]store.Message{written("†s.a", many), written("†s.a.list", []any{}), by(store.Push, "†s.a.list", "z")}, []row{{"", "†s.a", "NULL"}, {"", "†s.a.list", `["z"]`}}},
		"in a list":       {[]store.Message{written("†s.a", many), written("†s.a.list[1]", "z")}, []row{{"", "†s.a", "NULL"}}},
		"replaced above":  {[]store.Message{written("†s.a", many), written("†s", "new")}, []row{{"", "†s", `"new"`}}},
		"replaced":        {[]store.Message{written("†s.a", many), written("†s.a", map[string]any{"b": "new"})}, []row{{"", "†s.a.b", `"new"`}}},
		"of an instance":  {[]store.Message{written("†s.a", many), of(patch(map[string]any{"a": many}))}, []row{{"", "†s.a", whole}, {"①", "†s.a", "NULL"}}},
		"its own alone":   {[]store.Message{written("†s.b", "x"), of(patch(map[string]any{"a": many})), written("†s.a.n1", "global")}, []row{{"", "†s.a.n1", `"global"`}, {"", "†s.b", `"x"`}, {"①", "†s.a", "NULL"}}},
	} {
		add := store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: &store.Origin{}, Messages: test.messages}
		if _, err := l.Append(t.Context(), add); err != nil {
			t.Fatal(err)
		}
		fork := store.Batch{Context: name + " fork", ExpectSeq: store.AnySeq, Create: &store.Origin{Fork: name, At: int64(len(test.messages))}}
		if _, err := l.Append(t.Context(), fork); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{name, name + " fork"} {
			got := embeddedValues(t, c, name)
			if test.want == nil && len(got) == 256 {
				continue
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(row{})); diff != "" {
				t.Errorf("%s (-want +view):\n%s", name, diff)
			}
		}
	}
	row, err := c.one(t.Context(), "SELECT max(n) FROM (SELECT count(*) AS n FROM marks WHERE context <> '256 leaves' GROUP BY context, seq)")
	if err != nil || integer(row[0]) != 2 {
		t.Errorf("a message has %v rows, %v", row, err)
	}
}

// TestCurrentValues_RandomManyLeaves: with objects whose leaves are not listed the view may
// say NULL and leave out what is below that, but it never says what is wrong.
func TestCurrentValues_RandomManyLeaves(t *testing.T) {
	l := open(t, newPath(t), Options{Synchronous: "normal"})
	c := plain(t, l.path)
	known, large, leaves := 0, 0, 0
	for seed := range *randomLogs {
		r := rand.New(rand.NewPCG(uint64(seed), 8))
		keys := [][]string{{"a", "b", "n1", "0", "1"}, {"a", "b", "n1"}}[seed%2]
		name, fork := fmt.Sprint("c", seed), fmt.Sprint("c", seed, "f")
		growMany(t, l, r, keys, name, &store.Origin{})
		growMany(t, l, r, keys, fork, &store.Origin{Fork: name, At: 1 + r.Int64N(head(t, l, name))})
		for _, name := range []string{name, fork} {
			resolver := store.Resolver{Log: l, Context: name}
			got := map[row]bool{}
			for _, row := range embeddedValues(t, c, name) {
				res, err := resolver.Resolve(t.Context(), store.MustParsePath(row.path), row.instance)
				if err != nil {
					t.Fatal(err)
				}
				if value := string(store.EncodeJSON(res.Value)); row.value != "NULL" && (!res.Exists || row.value != value) {
					tellLog(t, l, name)
					t.Fatalf("%s: %q %s is %s, not %s", name, row.instance, row.path, value, row.value)
				}
				got[row] = true
				if known++; len(row.value) > 1000 {
					large++
				}
			}
			for range 40 {
				at := row{[]string{"", "①", "②"}[r.IntN(3)], valuePath(r, keys).String(), ""}
				if numbers := slices.Contains(keys, "0"); numbers && (at.instance != "" || strings.ContainsAny(strings.ReplaceAll(at.path, "n1", ""), "01")) {
					continue // it may stand inside an array
				}
				if !isOwnLeaf(t, l, resolver, at) {
					continue
				}
				leaves++
				covered := func(p store.Path) bool {
					return slices.ContainsFunc(slices.Collect(maps.Keys(got)), func(r row) bool {
						return r.instance == at.instance && r.path == p.String()
					})
				}
				if !slices.ContainsFunc(store.MustParsePath(at.path).Prefixes(), covered) {
					tellLog(t, l, name)
					t.Fatalf("%s: %v is not there", name, at)
				}
			}
		}
	}
	if known < *randomLogs || large < *randomLogs/4 || leaves < *randomLogs {
		t.Errorf("%d logs have %d values, %d of them large, and %d leaves: the test tests nothing", *randomLogs, known, large, leaves)
	}
}

// isOwnLeaf reports whether an instance itself wrote a scalar, an array or {} that stands at
// a path. A {} may have been merged onto an array, and counts for none.
func isOwnLeaf(t *testing.T, l *Log, r store.Resolver, at row) bool {
	t.Helper()
	res, err := r.Resolve(t.Context(), store.MustParsePath(at.path), at.instance)
	if err != nil {
		t.Fatal(err)
	}
	if _, isObject := res.Value.(map[string]any); isObject || !res.Exists {
		return false
	}
	return slices.ContainsFunc(res.From, func(seq int64) bool {
		for m, err := range l.Messages(t.Context(), store.Filter{Context: r.Context, After: seq - 1, At: seq}) {
			if err != nil {
				t.Fatal(err)
			}
			return m.Instance == at.instance
		}
		return false
	})
}

func growMany(t *testing.T, l *Log, r *rand.Rand, keys []string, name string, origin *store.Origin) {
	t.Helper()
	for range 1 + r.IntN(8) {
		m := valueMessage(r, keys)
		if r.IntN(3) == 0 && m.Kind != store.KindError {
			value := manyKeys(253+r.IntN(24), map[string]any{"a": valueOf(r, keys, 2), "b": valueOf(r, keys, 1)})
			m.Data.Value = store.Wrap(valuePathOf(r, keys, m), value)
		}
		_, err := l.Append(t.Context(), store.Batch{Context: name, ExpectSeq: store.AnySeq, Create: origin, Messages: []store.Message{m}})
		if err != nil {
			t.Fatal(err)
		}
		origin = nil
	}
}

// valuePathOf is where a message's value shall stand: where its call writes, or anywhere in
// its kind.
func valuePathOf(r *rand.Rand, keys []string, m store.Message) store.Path {
	p := store.KindPath(m.Kind)
	if m.Producer != nil {
		return m.Path
	}
	for range r.IntN(3) {
		p = p.Child(keys[r.IntN(len(keys))])
	}
	return p
}

// TestMigrate_ManyLeaves: what an older obelus wrote of many leaves, a row for each, keeps
// its values, and is found once from above, at and below its path.
func TestMigrate_ManyLeaves(t *testing.T) {
	many := manyKeys(300, map[string]any{"b": map[string]any{"c": "x"}})
	patch := store.Message{Type: store.TypeData, Kind: "s", Data: store.Some(map[string]any{"a": many})}
	// Where more stands below a path than there are messages, the messages are read.
	beside := store.Message{Type: store.TypeData, Kind: "s", Data: store.Some(map[string]any{"c": manyKeys(200, nil)})}
	path := filepath.Join(t.TempDir(), "log.db")
	old := older(t, path, 11, insertOldContext)
	for seq, m := range []store.Message{patch, written("†s.a.b", "y"), written("†s.k", many)} {
		op, _ := m.Op()
		row := newRequest(store.Batch{Messages: []store.Message{m}}).messages[0]
		values := append([]driver.Value{"c", int64(seq + 1), "2026-01-02T03:04:05.678Z", "data"}, row.columns...)
		if err := old.exec(insertMessage, values...); err != nil {
			t.Fatal(err)
		}
		form := map[store.Method]store.Form{store.Merge: store.FormOnto, store.Set: store.FormObject}[op.Method]
		leaves := []store.Mark{{Path: op.Path.Child("a").Child("b").Child("c"), Form: store.FormString}}
		object, _ := op.Value.(map[string]any)
		switch {
		case seq == 1:
			form, leaves = store.FormString, nil
		case seq == 2:
			leaves[0].Path = op.Path.Child("b").Child("c")
		default:
			object = many
		}
		for key, v := range object {
			at := op.Path.Child(key)
			if seq == 0 {
				at = op.Path.Child("a").Child(key)
			}
			if store.TypeName(v) == "number" {
				leaves = append(leaves, store.Mark{Path: at, Form: store.FormScalar})
			}
		}
		if err := old.mark(insertWrite, []store.Mark{{Path: op.Path, Form: form}}, "c", "", int64(seq+1)); err != nil {
			t.Fatal(err)
		}
		if err := old.mark(insertLeaf, leaves, "c", "", int64(seq+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.close(); err != nil {
		t.Fatal(err)
	}
	l := open(t, path, Options{})
	c := plain(t, path)
	want := resolved(t, l, "c")
	if diff := cmp.Diff(want, embeddedValues(t, c, "c"), cmp.AllowUnexported(row{})); diff != "" || len(want) != 602 {
		t.Errorf("%d values (-resolver +view):\n%s", len(want), diff)
	}
	if _, err := l.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Messages: []store.Message{patch, written("†s.a.new", 1), beside, beside}}); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string][]int64{
		"†s": {7, 6, 5, 4, 3, 2, 1}, "†s.c": {7, 6, 1}, "†s.a": {5, 4, 2, 1}, "†s.a.n7": {4, 1}, "†s.a.b": {4, 2, 1}, "†s.a.b.c": {4, 2, 1}, "†s.k.n7": {3, 1}, "†s.z": {1}, "†s.a.new": {5, 4, 1},
	} {
		var got []int64
		for op, err := range l.Touching(t.Context(), store.Query{Context: "c", Path: store.MustParsePath(at)}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, op.Seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is touched by %v, not %v", at, got, want)
		}
	}
	for _, r := range embeddedValues(t, c, "c") {
		switch {
		case r.path == "†s.a" && r.value == "NULL", r.path == "†s.a.new" && r.value == "1", strings.HasPrefix(r.path, "†s.k."), strings.HasPrefix(r.path, "†s.c."):
		default:
			t.Errorf("%v", r)
		}
	}
}

// TestMigrateManyLeaves_WithoutForms: the one row that the first obelus gave a merge of many
// leaves, at its root, tells its value.
func TestMigrateManyLeaves_WithoutForms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	many := string(store.EncodeJSON(map[string]any{"a": manyKeys(300, nil)}))
	old := older(t, path, 4, insertOldContext,
		"INSERT INTO messages (context, seq, date, type, kind, data) VALUES ('c', 1, '2026-01-02T03:04:05.678Z', 'data', 's', '"+many+"')",
		"INSERT INTO writes (context, path, instance, seq) VALUES ('c', '†s', '', 1)")
	if err := old.close(); err != nil {
		t.Fatal(err)
	}
	l := open(t, path, Options{})
	c := plain(t, path)
	if diff := cmp.Diff([]row{{"", "†s", many}}, embeddedValues(t, c, "c"), cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("(-want +view):\n%s", diff)
	}
	if _, err := l.Append(t.Context(), store.Batch{Context: "c", ExpectSeq: store.AnySeq, Messages: []store.Message{written("†s.b", 1)}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]row{{"", "†s", "NULL"}, {"", "†s.b", "1"}}, embeddedValues(t, c, "c"), cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("(-want +view):\n%s", diff)
	}
}
