package cmd

import (
	"bytes"
	"database/sql"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// edits are what somebody may do to a log by hand, what each command says of it
// (nothing where it does not need to know), and the row that is wrong.
var edits = []struct {
	name, sql, says string
	commands        []string
}{
	{"a message is gone", "DELETE FROM messages WHERE context = 'c' AND seq = 4",
		"log.db is damaged: message 4 of context c is missing", []string{"log", "get", "why", "diff", "sum"}},
	{"a message below is gone", "DELETE FROM messages WHERE context = 'c' AND seq = 5",
		"log.db is damaged: message 5 of context c is missing", []string{"log", "get", "why", "diff", "sum"}},
	{"the last message is gone", "DELETE FROM messages WHERE context = 'c' AND seq = 6",
		"the journal of context c is damaged: entry 22 was written when there were 6 messages, and now there are 5", []string{"resume", "append", "sum"}},
	{"the plan is gone", "DELETE FROM messages WHERE context = 'c' AND seq = 3",
		"message 3 of", []string{"log", "diff", "graph", "resume", "sum"}},
	{"the plan is no list", "UPDATE messages SET data = '{}' WHERE context = 'c' AND seq = 3",
		"message 3 of its log is not the plan", []string{"diff", "graph", "resume", "sum"}},
	{"a message is no JSON", "UPDATE messages SET data = '{oops' WHERE context = 'c' AND seq = 4",
		"message 4 of context c: not JSON", []string{"log", "get", "why", "diff", "sum"}},
	{"a message is no text", "UPDATE messages SET data = x'00ff' WHERE context = 'c' AND seq = 4",
		"message 4 of context c: not JSON", []string{"log", "get", "why", "diff", "sum"}},
	{"a message has another form", "UPDATE messages SET data = '7' WHERE context = 'c' AND seq = 4",
		"message 4 of context c: it writes at a path that its data does not hold", []string{"get", "why", "diff", "sum"}},
	{"a path is none", "UPDATE messages SET path = 'oops..' WHERE context = 'c' AND seq = 4",
		`message 4 of context c: bad path "oops.."`, []string{"log", "get", "why", "diff", "sum"}},
	{"a kind is not the path's", "UPDATE messages SET kind = 'other' WHERE context = 'c' AND seq = 4",
		`is not of its kind "other"`, []string{"log", "get", "why", "diff", "sum"}},
	{"a method is none", "UPDATE messages SET method = 'boo' WHERE context = 'c' AND seq = 4",
		`message 4 of context c: there is no method "boo"`, []string{"log", "get", "why", "diff", "sum"}},
	{"a type is none", "UPDATE messages SET type = 'boo' WHERE context = 'c' AND seq = 4",
		`message 4 of context c: there is no type "boo"`, []string{"log", "why"}},
	{"a date is none", "UPDATE messages SET date = 'once' WHERE context = 'c' AND seq = 4",
		`message 4 of context c: "once" is no date`, []string{"log", "why"}},
	{"an event is no JSON", "UPDATE journal SET data = '{oops' WHERE n = 8",
		"the journal of context c is damaged: entry 8 can't be read", []string{"calls", "graph", "approvals", "why", "diff", "resume", "sum"}},
	{"an event is a list", "UPDATE journal SET data = '[]' WHERE n = 8",
		"the journal of context c is damaged: entry 8 holds an unexpected array", []string{"calls", "graph", "approvals", "why", "diff", "resume", "sum"}},
	{"an event holds nothing", "UPDATE journal SET data = NULL WHERE n = 8",
		"the journal of context c is damaged: entry 8 holds nothing", []string{"calls", "graph", "approvals", "why", "diff", "resume", "sum"}},
	{"an event has no date", "UPDATE journal SET date = 'once' WHERE n = 8",
		`log.db is damaged: event 8: "once" is no date`, []string{"calls", "graph", "approvals", "why", "diff", "resume", "sum"}},
	{"a status is none", "UPDATE journal SET data = replace(data, '\"done\"', '\"boo\"') WHERE n = 8",
		`entry 8 has the status "boo", which no call has`, []string{"calls", "graph", "approvals", "why", "diff", "resume", "sum"}},
	{"an event is unknown", "UPDATE journal SET event = 'boo' WHERE n = 8", "", nil},
	{"a record tells of another call", "UPDATE journal SET data = replace(data, '\"position\":1', '\"position\":-1') WHERE n = 8",
		"entry 8 is about call 1.1, and tells of call 1.1 at place -1 of tick 1", []string{"calls", "graph", "approvals", "why", "diff", "resume", "sum"}},
	{"a record tells of no call", "UPDATE journal SET call = '1.9', data = replace(replace(data, '1.1', '1.9'), '\"position\":1', '\"position\":9') WHERE n = 8",
		"entry 8 is about call 1.9, which no plan of the context has", []string{"calls", "graph", "approvals", "diff", "resume", "sum"}},
	{"a tick is no JSON", "UPDATE journal SET data = '{oops' WHERE n = 4",
		"the journal of context c is damaged: entry 4 can't be read", []string{"calls", "graph", "approvals", "diff", "replay", "resume", "sum"}},
	{"the end of a run is no JSON", "UPDATE journal SET data = '{oops' WHERE n = 22",
		"the journal of context c is damaged: entry 22 can't be read", []string{"graph", "approvals", "replay", "resume", "sum"}},
	{"the status of a run is none", "UPDATE journal SET data = replace(data, '\"waiting\"', '\"boo\"') WHERE n = 22",
		`entry 22 has the status "boo", which no run has`, []string{"graph", "approvals", "replay", "resume", "sum"}},
}

// looks are the commands that look at the log, and one that goes on with it to
// its end. Where a log is whole they end with these statuses.
var looks = []struct {
	name   string
	status int
	args   []string
}{
	{"log", exitDone, []string{"log", "--json"}},
	{"calls", exitDone, []string{"calls"}},
	{"contexts", exitDone, []string{"contexts"}},
	{"get", exitDone, []string{"get", "state"}},
	{"why", exitDone, []string{"why", "state.b"}},
	{"graph", exitDone, []string{"graph"}},
	{"approvals", exitDone, []string{"approvals", "-c", "c"}},
	{"diff", exitDone, []string{"diff", "3", "5"}},
	{"replay", exitUsage, []string{"replay", "c"}}, // it has not ended
	{"resume", exitWaiting, []string{"resume", "-c", "c"}},
	{"append", exitDone, []string{"append", "-c", "c", "-"}}, // what it waits for
	{"sum", exitDone, []string{"resume", "-c", "c"}},
}

// TestEdited_Named: a log that somebody has edited by hand gives the right answer, or
// a clear error that names the row; never a wrong answer, nor a panic.
func TestEdited_Named(t *testing.T) {
	base := project(t, map[string]string{
		"obelus.lua": "return {}",
		"activities/work.lua": `
			Activity.register("double", function(call) print(call.n) return 2 * call.n end) -- so its start is always recorded
			Delegate.register("inner", { calls = { { _tool = "double", n = "†input.n", _outputPath = "†x" } }, output = "†x" })`,
		"plans/p.lua": `return { context = { Message.state { k = 1 } }, calls = {
			{ _tool = "double", n = "†input.n", _outputPath = "†state.a" },
			{ _tool = "double", n = "†state.a", _outputPath = "†state.b" },
			{ _tool = "hand", _delegate = "inner", n = "†state.b", _outputPath = "†state.d" },
			{ _tool = "double", n = "†input.later", _outputPath = "†state.c" },
		}, output = "†state" }`,
	})
	obelusOutput(t, exitWaiting, "-C", base, "run", "-q", "plans/p.lua", "-i", "n:=1", "-c", "c")
	for i, e := range edits {
		t.Run(e.name, func(t *testing.T) {
			dir := edited(t, base, e.sql)
			for _, look := range looks {
				var stdout, stderr bytes.Buffer
				status := run(Config{}, append([]string{"-C", dir}, look.args...), strings.NewReader(`{"type":"input","later":5}`), &stdout, &stderr)
				want, says := look.status, ""
				for _, name := range e.commands {
					if name == look.name {
						want, says = exitUsage, e.says
					}
				}
				if status != want || !strings.Contains(stderr.String(), says) {
					t.Errorf("%s: exit status %d, not %d, or it does not say %q\n%s", look.name, status, want, says, stderr.String())
				}
			}
			if i%4 == 0 { // each takes a process
				serveEdited(t, dir)
			}
		})
	}
}

// TestEdited_BesideOthers: a context whose journal was edited does not hide the
// others: lists do not read journals, and say how a run stood.
func TestEdited_BesideOthers(t *testing.T) {
	dir := project(t, map[string]string{"obelus.lua": "return {}", "p.json": `{"calls": [], "output": 1}`})
	for _, name := range []string{"a", "b", "c"} {
		obelusOutput(t, exitDone, "-C", dir, "run", "-q", "p.json", "-c", name)
	}
	edit(t, filepath.Join(dir, ".obelus/log.db"), "UPDATE journal SET data = '{oops' WHERE context = 'b' AND event = 'run'")
	const says = "the journal of context b is damaged"
	for _, args := range [][]string{{"contexts"}, {"contexts", "--json"}} {
		if got := obelusOutput(t, exitDone, append([]string{"-C", dir}, args...)...); strings.Count(got, "done") != 3 {
			t.Errorf("%v: %s", args, got)
		}
	}
	p, url := serving(t, dir, "-q")
	for path, dones := range map[string]int{"/v1/contexts": 3, "/v1/contexts/b": 0} {
		r, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != http.StatusOK || err != nil || strings.Count(string(body), `"done"`) != dones || dones == 0 && !strings.Contains(string(body), says) {
			t.Errorf("%s: %d %s, %v", path, r.StatusCode, body, err)
		}
	}
	p.ends(syscall.SIGTERM)
}

// TestEdited_IntoCircles: contexts that are made each other's delegates or forks by hand
// end in an error, for whoever goes along them.
func TestEdited_IntoCircles(t *testing.T) {
	base := project(t, map[string]string{
		"obelus.lua": "return {}",
		"activities/work.lua": `
			Activity.register("double", function(call) return 2 * call.n end)
			Delegate.register("inner", { calls = { { _tool = "double", n = "†input.later", _outputPath = "†x" } }, output = "†x" })`,
		"plans/p.lua": `return { calls = { { _tool = "hand", _delegate = "inner", _outputPath = "†state.d" } }, output = "†state.d" }`,
	})
	obelusOutput(t, exitWaiting, "-C", base, "run", "-q", "plans/p.lua", "-c", "c")
	obelusOutput(t, exitDone, "-C", base, "fork", "-q", "-c", "c", "f")
	around := "the journal of context c is damaged: a call in it names as its delegate's a context that is around it"
	forks := "the journal of context f is damaged: what it was forked from is a fork of it"
	for _, e := range []struct {
		name, sql string
		says      map[string]string // by those commands that have to know; others do as they are asked
	}{
		{"its own delegate", `UPDATE contexts SET parent = 'c', parent_call = '1.1' WHERE context = 'c';
			UPDATE journal SET data = replace(data, '"c.1.1"', '"c"') WHERE context = 'c' AND event = 'waiting'`,
			map[string]string{"approvals c": around, "resume c": around}},
		{"each other's delegates", `UPDATE contexts SET parent = 'c.1.1', parent_call = '1.1' WHERE context = 'c';
			UPDATE journal SET data = replace(data, '"c.1.1"', '"c"') WHERE context = 'c' AND event = 'waiting'`,
			map[string]string{"cancel c": "cancel the run of c.1.1, which it is part of"}},
		{"its own fork", "UPDATE contexts SET fork = 'f' WHERE context = 'f'",
			map[string]string{"graph f": forks, "resume f": forks}},
	} {
		t.Run(e.name, func(t *testing.T) {
			dir := edited(t, base, e.sql)
			for _, name := range []string{"c", "f"} {
				for _, look := range [][]string{{"calls"}, {"approvals"}, {"graph"}, {"why", "state.d"}, {"resume"}, {"append", "-"}, {"cancel"}} {
					var stdout, stderr bytes.Buffer
					status := run(Config{}, append(append([]string{"-C", dir}, look...), "-c", name), strings.NewReader(`{"type":"input","later":5}`), &stdout, &stderr)
					says := e.says[look[0]+" "+name]
					if (status == exitUsage) != (says != "") || !strings.Contains(stderr.String(), says) {
						t.Errorf("%s %s: exit status %d, or it does not say %q\n%s", look[0], name, status, says, stderr.String())
					}
				}
			}
		})
	}
}

// serveEdited asks a server for the same: it answers, and stays.
func serveEdited(t *testing.T, dir string) {
	p, url := serving(t, dir, "-q")
	for _, path := range []string{"", "/c", "/c/log", "/c/calls", "/c/get?ref=state", "/c/why?ref=state.b", "/c/approvals"} {
		r, err := http.Get(url + "/v1/contexts" + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != http.StatusOK && !strings.Contains(string(body), `"error"`) {
			t.Errorf("GET %s: %d %s, %v", path, r.StatusCode, body, err)
		}
	}
	if status := p.ends(syscall.SIGTERM); status != exitDone || strings.Contains(p.said.String(), "panic") {
		t.Errorf("exit status %d\n%s", status, p.said.String())
	}
}

// edited is a copy of a project whose log has been changed.
func edited(t *testing.T, base, statement string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(dir, ".obelus/log.db"), statement)
	return dir
}

// edit changes a log without those who refuse it.
func edit(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, trigger := range []string{"messages_update", "messages_delete", "journal_update", "journal_delete", "contexts_update"} {
		if _, err := db.Exec("DROP TRIGGER " + trigger); err != nil {
			t.Fatal(err)
		}
	}
	result, err := db.Exec(statement)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("%d rows, %v", n, err)
	}
}

// TestLog_OlderBroughtUpToDate: also by who would only read it, and it says so.
func TestLog_OlderBroughtUpToDate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log.db")
	const said = "the log is of an older obelus: bringing it up to date\n"
	run := func(args ...string) (stdout, stderr string) {
		var out, told strings.Builder
		if status := run(Config{}, append([]string{"--db", file}, args...), strings.NewReader(`{"type": "state", "a": 1}`), &out, &told); status != exitDone {
			t.Fatalf("%v: exit status %d\n%s", args, status, told.String())
		}
		return out.String(), told.String()
	}
	older := func() {
		db, err := sql.Open("sqlite3", file)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		withoutStandings(t, db)
		// What else makes it the newest version can be done again.
		if _, err := db.Exec("PRAGMA user_version = 13; DROP VIEW spending"); err != nil {
			t.Fatal(err)
		}
	}
	run("append", "-c", "c", "-")
	for _, quiet := range []bool{false, true} {
		older()
		args, want := []string{"get", "state.a", "-c", "c"}, said
		if quiet {
			args, want = append(args, "-q"), ""
		}
		if out, told := run(args...); out != "1\n" || told != want {
			t.Errorf("it gives %q and says %q", out, told)
		}
		if out, told := run(args...); out != "1\n" || told != "" {
			t.Errorf("once more it gives %q and says %q", out, told)
		}
	}
}
