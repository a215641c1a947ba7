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
	statements := []string{"DROP INDEX contexts_updated", "DROP INDEX contexts_due", "DROP INDEX contexts_held", "DROP INDEX contexts_parent", "DROP INDEX contexts_fork", "DROP INDEX contexts_retrying", "DROP INDEX contexts_waiting",
		"DROP TABLE tombstones", "DROP TRIGGER contexts_pruned_exchanges", "DROP TABLE exchanges",
		"DROP TRIGGER contexts_pruned_logs", "DROP TABLE logs", "PRAGMA user_version = 14"}
	for _, column := range strings.Fields("status plan tick calls done failed waiting held error due wakes labels bytes once retrying waiting_on background started worked_ms") {
		statements = append(statements, "ALTER TABLE contexts DROP COLUMN "+column)
	}
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStandings_OfOlderLogs holds that the lists of a log that is brought up to date say what they
// said before, but for the labels, the times of runs and the failures of their calls, which are newer.
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
	files["plans/down.lua"] = `return { { _tool = "fail", _retries = 2, _backoff = "300s", _outputPath = "†state.b" } }`
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
	p, address := serving(t, dir, "-q", "--no-resume")
	if status, answer := post(address+"/v1/runs", `{"plan":"plans/down.lua","context":"down","wait":true}`); status != 200 || answer["status"] != "waiting" {
		t.Fatalf("status %d, %v", status, answer)
	}
	p.ends(syscall.SIGTERM)
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
	waits := map[any]any{}
	for _, context := range want {
		waits[context["context"]] = []any{context["retrying"], context["waiting_on"]}
	}
	for name, want := range map[string][]any{"down": {1.0, nil}, "mixed": {nil, []any{"†input.n"}}, "hand": {nil, []any{"†input.more"}}, "lazy": {nil, nil}, "given-up": {nil, nil}} {
		if diff := cmp.Diff(any(want), waits[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if len(want) != 12 || strings.Count(inbox, "\n") != 3 {
		t.Fatalf("there are %d contexts, and there wait\n%s", len(want), inbox)
	}
	withoutStandings(t, openPlain(t, filepath.Join(dir, ".obelus/log.db")))
	got := list()
	for i := range got { // all that wait were due when they were brought up to date
		for _, newer := range []string{"due", "started", "duration_ms", "error"} {
			delete(got[i], newer)
			delete(want[i], newer)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := at(exitDone, "approvals", "--json"); got != inbox {
		t.Errorf("there wait\n%s", got)
	}
}
