package cmd

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// interrupting is a project of calls that take long and say so: of an activity that may run
// again, and of one that must not.
var interrupting = map[string]string{
	"obelus.lua": `return { drain = 0, allow = { read = { "." } } }`,
	"activities/work.lua": `
		local function slow() -- until there is a file "go"
			print("slow has begun")
			while not require("fs").exists("go") do require("time").sleep(0.01) end
			return 1
		end
		Activity.register("slow", { timeout = 300 }, slow)
		Activity.register("flaky", { retries = 1, backoff = "300s" }, function() print("slow has begun") return nil, "down" end)
		Activity.register("pay", { timeout = 300, idempotent = false }, slow)`,
	"plans/slow.json":  `{"calls": [{"_tool": "slow", "_outputPath": "†a"}], "output": "†a"}`,
	"plans/flaky.json": `{"calls": [{"_tool": "flaky", "_outputPath": "†a"}], "output": "†a"}`,
	"plans/pay.json":   `{"calls": [{"_tool": "pay", "_outputPath": "†a"}], "output": "†a"}`,
}

// runUntil runs a plan of a project until its call has begun, and sends the process signals,
// each once the process has said something, or a function has returned.
func runUntil(t *testing.T, dir, plan, name string, signals ...any) *running {
	t.Helper()
	p := start(t, dir, "run", "plans/"+plan+".json", "-c", name)
	p.says("slow has begun")
	for _, s := range signals {
		switch s := s.(type) {
		case os.Signal:
			if err := p.cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
		case string:
			p.says(s)
		case func():
			s()
		}
	}
	p.gone()
	p.cmd.Wait()
	return p
}

// standing is how a run and its only call stand for contexts and calls.
func standing(t *testing.T, dir, name string) (run, call string) {
	t.Helper()
	var context, record struct{ Status string }
	for into, command := range map[any]string{&context: "contexts", &record: "calls"} {
		text := obelusOutput(t, exitDone, "-C", dir, command, "--json", "-c", name)
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return context.Status, record.Status
}

func expectStanding(t *testing.T, dir, name, run, call string) {
	t.Helper()
	if gotRun, gotCall := standing(t, dir, name); gotRun != run || gotCall != call {
		t.Errorf("the run of %s is %s and its call %s, want %s and %s", name, gotRun, gotCall, run, call)
	}
}

// TestInterrupted_AsSoonAsNobodyHolds holds that a run whose process ended before it rested
// is interrupted at once, however that ended, its call too, or in doubt if it is not
// idempotent; and that both lists of statuses have the word.
func TestInterrupted_AsSoonAsNobodyHolds(t *testing.T) {
	dir := project(t, interrupting)
	for i, test := range []struct {
		signals []any
		status  int
	}{
		{[]any{syscall.SIGKILL}, -1},
		{[]any{syscall.SIGINT}, 130},
		{[]any{syscall.SIGTERM}, 143},
	} {
		name := fmt.Sprint("r", i)
		for plan, call := range map[string]string{"slow": "interrupted", "pay": "in-doubt"} {
			p := runUntil(t, dir, plan, plan+name, test.signals...)
			if got := p.cmd.ProcessState.ExitCode(); got != test.status {
				t.Errorf("%v: exit status %d, want %d", test.signals, got, test.status)
			}
			expectStanding(t, dir, plan+name, "interrupted", call)
		}
	}
	for _, args := range [][]string{{"calls", "-c", "slowr0", "--status", "interrupted"}, {"contexts"}, {"graph", "-c", "slowr0"}} {
		if got := obelusOutput(t, exitDone, append([]string{"-C", dir}, args...)...); !strings.Contains(got, "interrupted") {
			t.Errorf("%v prints %s", args, got)
		}
	}
	if got := obelusOutput(t, exitDone, "-C", dir, "graph", "-c", "payr0"); !strings.Contains(got, "in-doubt") {
		t.Errorf("graph prints %s", got)
	}
	// prune keeps them, also by their status.
	for _, args := range [][]string{{"--older-than", "0s"}, {"--status", "interrupted"}} {
		if got := obelusOutput(t, exitDone, append([]string{"-C", dir, "prune"}, args...)...); got != "" {
			t.Errorf("prune %v removes %s", args, got)
		}
	}
	obelusOutput(t, exitUsage, "-C", dir, "prune", "slowr0")
}

// TestInterrupted_LogsCountAttempts holds that an attempt counts in which the process was killed, and
// that lines of a call say which of all its attempts printed them, in a worker process too.
func TestInterrupted_LogsCountAttempts(t *testing.T) {
	for _, isolate := range []string{"none", "process"} {
		dir := project(t, interrupting)
		write(t, filepath.Join(dir, "obelus.lua"), `return { drain = 0, allow = { read = { "." } }, isolate = "`+isolate+`" }`)
		runUntil(t, dir, "slow", "c", syscall.SIGKILL)
		counted := func(want string) {
			if got := obelusOutput(t, exitDone, "-C", dir, "calls", "-c", "c", "--json"); !strings.Contains(got, `"attempts":`+want+",") {
				t.Errorf("with isolate = %s calls has not %s attempts: %s", isolate, want, got)
			}
		}
		counted("1")
		write(t, filepath.Join(dir, "go"), "")
		obelusOutput(t, exitDone, "-C", dir, "resume", "-c", "c", "-q")
		counted("2")
		var attempts []string
		for line := range strings.Lines(obelusOutput(t, exitDone, "-C", dir, "logs", "-c", "c", "--json")) {
			var printed struct{ Attempt int }
			if err := json.Unmarshal([]byte(line), &printed); err != nil {
				t.Fatal(err)
			}
			attempts = append(attempts, fmt.Sprint(printed.Attempt))
		}
		// The line of an attempt that was killed may not have reached the log.
		if got := strings.Join(attempts, " "); got != "1 2" && got != "2" {
			t.Errorf("with isolate = %s the attempts of the lines are %s", isolate, got)
		}
	}
}

// TestInterrupted_SQL holds that the views say so once no lease is left.
func TestInterrupted_SQL(t *testing.T) {
	dir := project(t, interrupting)
	runUntil(t, dir, "slow", "c", syscall.SIGKILL)
	runUntil(t, dir, "pay", "d", syscall.SIGKILL)
	const asked = "SELECT r.context, r.status, c.status, c.attempts FROM runs AS r JOIN calls AS c ON c.context = r.context ORDER BY r.context"
	rows := func() string { return obelusOutput(t, exitDone, "-C", dir, "sql", "--json", asked) }
	if got := rows(); strings.Count(got, "running") != 4 {
		t.Errorf("while the leases last: %s", got)
	}
	db := openPlain(t, filepath.Join(dir, ".obelus/log.db"))
	if _, err := db.Exec("UPDATE leases SET until = 1"); err != nil { // 30 seconds later
		t.Fatal(err)
	}
	got := rows()
	for _, want := range []string{`{"context":"c","status":"interrupted","status:1":"interrupted","attempts":1}`, `{"context":"d","status":"interrupted","status:1":"in-doubt","attempts":1}`} {
		if !strings.Contains(got, want) {
			t.Errorf("no row %s: %s", want, got)
		}
	}
}

// callStatuses are those of the calls of a context, with the times at which they are due, as the
// command lists them and as SQL does.
func callStatuses(t *testing.T, dir, name string) (listed, queried string) {
	t.Helper()
	var all [2][]string
	for i, args := range [][]string{
		{"calls", "--json", "-c", name},
		{"sql", "--json", "SELECT status, due FROM calls WHERE context = '" + name + "' ORDER BY tick, position"},
	} {
		for line := range strings.Lines(obelusOutput(t, exitDone, append([]string{"-C", dir}, args...)...)) {
			var record struct{ Status, Due string }
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatal(err)
			}
			all[i] = append(all[i], strings.TrimSpace(record.Status+" "+record.Due))
		}
	}
	return strings.Join(all[0], " "), strings.Join(all[1], " ")
}

// TestInterrupted_LeftBehind holds that a fire-and-forget call whose process died is interrupted, or in
// doubt, as any other, and that resuming the run goes on with the former.
func TestInterrupted_LeftBehind(t *testing.T) {
	dir := project(t, interrupting)
	write(t, filepath.Join(dir, "plans/behind.json"), `{"calls": [{"_tool": "slow"}, {"_tool": "pay"}, {"_tool": "slow", "_outputPath": "†a"}], "output": "†a"}`)
	runUntil(t, dir, "behind", "c", "slow has begun", "slow has begun", syscall.SIGKILL)
	if listed, _ := callStatuses(t, dir, "c"); listed != "interrupted in-doubt interrupted" {
		t.Errorf("after the crash the calls are %s", listed)
	}
	db := openPlain(t, filepath.Join(dir, ".obelus/log.db"))
	if _, err := db.Exec("UPDATE leases SET until = 1"); err != nil { // 30 seconds later
		t.Fatal(err)
	}
	for _, want := range []string{"interrupted in-doubt interrupted", "done in-doubt done"} {
		if listed, queried := callStatuses(t, dir, "c"); listed != want || queried != listed {
			t.Errorf("the calls are %s, and in SQL %s, want %s", listed, queried, want)
		}
		write(t, filepath.Join(dir, "go"), "")
		obelusOutput(t, exitDone, "-C", dir, "resume", "-c", "c", "-q")
	}
}

// TestCancelled_Pausing holds that a call that pauses before another attempt as its run is cancelled
// is cancelled, as one is that is at work: where the run waits for a short pause, and where a long
// one rests in the log.
func TestCancelled_Pausing(t *testing.T) {
	dir := project(t, interrupting)
	write(t, filepath.Join(dir, "activities/short.lua"), `Activity.register("short", { retries = 1, backoff = "6s" }, function() return nil, "down" end)`)
	p, url := serving(t, dir)
	for _, tool := range []string{"short", "flaky"} {
		write(t, filepath.Join(dir, "plans", tool+"-beside.json"), `{"calls": [{"_tool": "`+tool+`", "_outputPath": "†b"}, {"_tool": "slow", "_outputPath": "†a"}]}`)
		if status, body := post(url+"/v1/runs", `{"plan":"plans/`+tool+`-beside.json","context":"`+tool+`"}`); status != 202 {
			t.Fatal(status, body)
		}
		for _, event := range []string{`"rests":true`, `"tool":"slow","status":"running"`} {
			events, err := http.Get(url + "/v1/contexts/" + tool + "/events?after=0")
			if err != nil || !tells(events.Body, event) {
				t.Fatalf("there was no event with %s: %v", event, err)
			}
		}
		request, err := http.NewRequest(http.MethodDelete, url+"/v1/runs/"+tool, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := http.DefaultClient.Do(request); err != nil { // answered when it has ended
			t.Fatal(err)
		}
		if listed, queried := callStatuses(t, dir, tool); listed != "cancelled cancelled" || queried != listed {
			t.Errorf("%s: the calls are %s, and in SQL %s", tool, listed, queried)
		}
		if got := obelusOutput(t, exitDone, "-C", dir, "calls", "-c", tool, "--status", "cancelled"); !strings.Contains(got, "down") {
			t.Errorf("%s: calls does not say why it was to be tried again: %s", tool, got)
		}
	}
	p.ends(syscall.SIGTERM)
}

// TestCancelled_AfterCrash holds that the views say of the calls of a run that was cancelled after its
// process had died what the command says.
func TestCancelled_AfterCrash(t *testing.T) {
	dir := project(t, interrupting)
	write(t, filepath.Join(dir, "plans/mixed.json"), `{"calls": [{"_tool": "flaky", "_outputPath": "†a"}, {"_tool": "slow", "_in": "3d", "_outputPath": "†b"}, {"_tool": "slow", "_outputPath": "†c"}]}`)
	runUntil(t, dir, "mixed", "c", "attempt 1 of 2 failed", func() {
		for listed := ""; !strings.HasSuffix(listed, " running"); listed, _ = callStatuses(t, dir, "c") {
		}
	}, syscall.SIGKILL)
	obelusOutput(t, exitDone, "-C", dir, "cancel", "-c", "c")
	if listed, queried := callStatuses(t, dir, "c"); listed != "cancelled waiting interrupted" || queried != listed {
		t.Errorf("the calls are %s, and in SQL %s", listed, queried)
	}
	if got := obelusOutput(t, exitDone, "-C", dir, "contexts", "--json"); strings.Contains(got, `"waiting":`) {
		t.Errorf("a cancelled run waits: %s", got)
	}
}

// TestInterrupted_WhoGoesOn holds that a server goes on with what a crash or SIGTERM left, and
// neither with what a person interrupted, once or twice, nor with a fork in which nobody has
// gone on; after a restart neither. The last line on the terminal says so.
func TestInterrupted_WhoGoesOn(t *testing.T) {
	dir := project(t, interrupting)
	write(t, filepath.Join(dir, "obelus.lua"), `return { drain = "300s", allow = { read = { "." } } }`)
	runUntil(t, dir, "slow", "killed", syscall.SIGKILL)
	runUntil(t, dir, "slow", "twice", syscall.SIGINT, "once more stops it now", syscall.SIGINT)
	for i := range 5 { // while it waits to try again, nothing has to come to its end
		runUntil(t, dir, "flaky", fmt.Sprint("rests", i), "attempt 1 of 2 failed", syscall.SIGINT, syscall.SIGINT)
	}
	write(t, filepath.Join(dir, "obelus.lua"), `return { drain = 0, allow = { read = { "." } } }`)
	for name, test := range map[string]struct {
		signal os.Signal
		last   string
	}{
		"once":       {syscall.SIGINT, "interrupted: it goes on only by: obelus resume -c once"},
		"terminated": {syscall.SIGTERM, "stopped: a server of this log goes on with it, or: obelus resume -c terminated"},
	} {
		p := runUntil(t, dir, "slow", name, test.signal)
		lines := strings.Split(strings.TrimSpace(p.said.String()), "\n")
		if last := lines[len(lines)-1]; last != test.last {
			t.Errorf("%s: the last line is %q", name, last)
		}
	}
	obelusOutput(t, exitDone, "-C", dir, "fork", "-c", "killed", "fork")
	write(t, filepath.Join(dir, "message.json"), `{"type": "input", "x": 1}`)
	obelusOutput(t, exitDone, "-C", dir, "append", "-c", "fork", filepath.Join(dir, "message.json"))
	stays := []string{"once", "twice", "fork", "rests0", "rests1", "rests2", "rests3", "rests4"}
	for _, name := range append(stays, "killed", "terminated") {
		expectStanding(t, dir, name, "interrupted", "interrupted")
	}
	write(t, filepath.Join(dir, "go"), "")
	before := map[string]string{}
	for _, name := range stays {
		before[name] = obelusOutput(t, exitDone, "-C", dir, "calls", "--json", "-c", name)
	}
	for range 2 {
		p, url := serving(t, dir, "-q")
		for _, name := range []string{"killed", "terminated"} {
			r, err := http.Get(url + "/v1/contexts/" + name + "/events")
			if err != nil {
				t.Fatal(err)
			}
			if !tells(r.Body, `"status":"done","tick":1,"output":1`) {
				t.Errorf("the server does not go on with %s", name)
			}
		}
		p.ends(syscall.SIGTERM)
	}
	for _, name := range stays {
		if now := obelusOutput(t, exitDone, "-C", dir, "calls", "--json", "-c", name); now != before[name] {
			t.Errorf("a server went on with %s: %s", name, now)
		}
	}
	obelusOutput(t, exitDone, "-C", dir, "resume", "-q", "-c", "once")
	expectStanding(t, dir, "once", "done", "done")
}

// TestFork_OfWaitingRunIsWoken holds that a server goes on with a fork of a run that waits once
// somebody has decided there, whether that was before it began or after.
func TestFork_OfWaitingRunIsWoken(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":       `return { approve = "pay" }`,
		"activities/p.lua": `Activity.register("pay", function() return 1 end)`,
		"plans/p.json":     `{"calls": [{"_tool": "pay", "_outputPath": "†a"}], "output": "†a"}`,
	})
	obelusOutput(t, exitWaiting, "-C", dir, "run", "-q", filepath.Join(dir, "plans/p.json"), "-c", "c")
	for _, name := range []string{"before", "after", "untouched"} {
		obelusOutput(t, exitDone, "-C", dir, "fork", "-q", "-c", "c", name)
	}
	obelusOutput(t, exitDone, "-C", dir, "approve", "-q", "1.1", "-c", "before")
	p, url := serving(t, dir, "-q")
	obelusOutput(t, exitDone, "-C", dir, "approve", "-q", "1.1", "-c", "after")
	for _, name := range []string{"before", "after"} {
		r, err := http.Get(url + "/v1/contexts/" + name + "/events")
		if err != nil {
			t.Fatal(err)
		}
		if !tells(r.Body, `"status":"done","tick":1,"output":1`) {
			t.Errorf("the server does not go on with the fork that was decided about %s", name)
		}
	}
	p.ends(syscall.SIGTERM)
	expectStanding(t, dir, "untouched", "waiting", "held")
}

// TestInterrupted_ForkMayBePruned: nothing of its own would be lost.
func TestInterrupted_ForkMayBePruned(t *testing.T) {
	dir := project(t, interrupting)
	runUntil(t, dir, "slow", "c", syscall.SIGKILL)
	obelusOutput(t, exitDone, "-C", dir, "fork", "-c", "c", "fork")
	expectStanding(t, dir, "fork", "interrupted", "interrupted")
	if got := obelusOutput(t, exitDone, "-C", dir, "prune", "--status", "interrupted"); got != "fork\n" {
		t.Errorf("prune removes %q", got)
	}
	expectStanding(t, dir, "c", "interrupted", "interrupted")
}

// TestInterrupted_ServerEnds holds that a POST that waits is answered with interrupted where
// its server ends.
func TestInterrupted_ServerEnds(t *testing.T) {
	dir := project(t, interrupting)
	p, url := serving(t, dir)
	answers := make(chan map[string]any, 1)
	statuses := make(chan int, 1)
	go func() {
		status, body := post(url+"/v1/runs", `{"plan":"plans/slow.json","context":"c","wait":true}`)
		statuses <- status
		answers <- body
	}()
	p.says("slow has begun")
	p.ends(syscall.SIGTERM)
	if status, body := <-statuses, <-answers; status != 200 || body["status"] != "interrupted" {
		t.Errorf("%d: %v", status, body)
	}
	expectStanding(t, dir, "c", "interrupted", "interrupted")
}

// TestInterrupted_OlderLogs holds that what the first logs call cancelled since it was stopped
// reads as interrupted, and what somebody cancelled as cancelled.
func TestInterrupted_OlderLogs(t *testing.T) {
	dir := project(t, interrupting)
	for _, name := range []string{"stopped", "given-up"} {
		runUntil(t, dir, "slow", name, syscall.SIGTERM)
	}
	db := openPlain(t, filepath.Join(dir, ".obelus/log.db"))
	withoutStandings(t, db)
	for _, statement := range []string{
		"DROP TRIGGER journal_update",
		`UPDATE journal SET data = replace(data, '"interrupted"', '"cancelled"'), event = replace(event, 'interrupted', 'cancelled')`,
		`UPDATE journal SET data = json_remove(data, '$.stopped') WHERE context = 'given-up'`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	expectStanding(t, dir, "stopped", "interrupted", "interrupted")
	expectStanding(t, dir, "given-up", "cancelled", "cancelled")
	got := obelusOutput(t, exitDone, "-C", dir, "sql", "--json", "SELECT r.status, c.status FROM runs AS r JOIN calls AS c ON c.context = r.context ORDER BY r.context")
	if strings.Count(got, "cancelled") != 2 || strings.Count(got, "interrupted") != 2 {
		t.Errorf("the views say %s", got)
	}
}

// openPlain opens a log as plain SQLite.
func openPlain(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestInterrupted_HTTP holds that the API looks at who holds a context, as the commands do.
func TestInterrupted_HTTP(t *testing.T) {
	dir := project(t, interrupting)
	runUntil(t, dir, "pay", "c", syscall.SIGKILL)
	p, url := serving(t, dir, "-q", "--no-resume")
	defer p.ends(syscall.SIGTERM)
	for path, want := range map[string]string{
		"/v1/contexts":         `"context":"c","status":"interrupted"`,
		"/v1/contexts/c":       `"status":"interrupted"`,
		"/v1/contexts/c/calls": `"status":"in-doubt"`,
	} {
		r, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("GET %s: %s, %v", path, text, err)
		}
	}
}
