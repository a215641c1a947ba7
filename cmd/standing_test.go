package cmd

import (
	"database/sql"
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withoutStandings makes a log of version 14 of one of version 15: its contexts have no standings.
func withoutStandings(t *testing.T, db *sql.DB) {
	t.Helper()
	statements := []string{"DROP INDEX contexts_updated", "DROP INDEX contexts_due", "DROP INDEX contexts_held", "DROP INDEX contexts_parent", "DROP INDEX contexts_fork", "DROP TABLE tombstones",
		"DROP TRIGGER contexts_pruned_logs", "DROP TABLE logs", "PRAGMA user_version = 14"}
	for _, column := range strings.Fields("status plan tick calls done failed waiting held error due wakes labels bytes once") {
		statements = append(statements, "ALTER TABLE contexts DROP COLUMN "+column)
	}
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStandings_OfOlderLogs holds that the lists of a log that is brought up to date say what they
// said before, but for the labels, which are newer.
func TestStandings_OfOlderLogs(t *testing.T) {
	files := maps.Clone(interrupting)
	files["activities/more.lua"] = `
		Activity.register("echo", function(call) return call.n end)
		Activity.register("fail", function() return nil, "no" end)
		Activity.register("left", { retries = 0 }, function(call) return call.n end)`
	files["plans/mixed.lua"] = `return {
		{ _tool = "echo", n = 1, _outputPath = "†state.a" }, { _tool = "fail", _outputPath = "†state.b" },
		{ _tool = "echo", n = "†input.n", _outputPath = "†state.c" }, { _tool = "left", n = 2, _outputPath = "†state.d" } }`
	files["plans/lazy.lua"] = `return { mode = "lazy", calls = { { _tool = "echo", n = 1, _outputPath = "†state.a" } } }`
	files["plans/hand.lua"] = `return { { _tool = "hand", _delegate = "inner", _outputPath = "†state.a" } }`
	files["activities/hand.lua"] = `Tool.register("hand", {})
		Delegate.register("inner", { { _tool = "echo", n = "†input.more", _outputPath = "†state.x" } })`
	files["plans/fails.lua"] = `return { { _tool = "fail", _outputPath = "†state.b" } }`
	files["plans/planner.lua"] = `return function(context)
		if context.state == nil then return { calls = { { _tool = "echo", n = 1, _outputPath = "†state.a" } } } end
		return { calls = {}, output = "†state.a" } end`
	dir := project(t, files)
	at := func(status int, args ...string) string {
		return obelusOutput(t, status, append([]string{"-C", dir}, args...)...)
	}
	plans := filepath.Join(dir, "plans")
	at(exitWaiting, "run", "-q", plans+"/mixed.lua", "-c", "mixed", "--approve", "left")
	at(exitWaiting, "run", "-q", plans+"/lazy.lua", "-c", "lazy")
	at(exitWaiting, "run", "-q", plans+"/hand.lua", "-c", "hand")
	at(exitFailed, "run", "-q", plans+"/fails.lua", "-c", "fails")
	at(exitDone, "run", "-q", plans+"/planner.lua", "-c", "planner")
	at(exitWaiting, "run", "-q", plans+"/mixed.lua", "-c", "given-up")
	at(exitDone, "cancel", "-q", "-c", "given-up")
	at(exitDone, "fork", "-q", "-c", "mixed", "fork")
	at(exitDone, "append", "-q", "-c", "notes", "-i", "n:=1")
	runUntil(t, dir, "slow", "stopped", syscall.SIGTERM)
	runUntil(t, dir, "slow", "interrupted", syscall.SIGINT)
	list := func() (all []map[string]any) {
		for line := range strings.Lines(at(exitDone, "contexts", "--all", "--json")) {
			var context map[string]any
			if err := json.Unmarshal([]byte(line), &context); err != nil {
				t.Fatal(err)
			}
			all = append(all, context)
		}
		return all
	}
	want, inbox := list(), at(exitDone, "approvals", "--json")
	if len(want) != 11 || strings.Count(inbox, "\n") != 3 {
		t.Fatalf("there are %d contexts, and there wait\n%s", len(want), inbox)
	}
	withoutStandings(t, openPlain(t, filepath.Join(dir, ".obelus/log.db")))
	got := list()
	for i := range got { // it was due when it was brought up to date, and waits for no time
		delete(got[i], "due")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := at(exitDone, "approvals", "--json"); got != inbox {
		t.Errorf("there wait\n%s", got)
	}
}
