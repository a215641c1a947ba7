package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// prints waits until a process has printed something on stdout.
func (p *running) prints(text string) {
	p.t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	limit := time.After(30 * time.Second)
	for !strings.Contains(p.stdout.String(), text) {
		select {
		case <-ticker.C:
		case <-limit:
			p.t.Fatalf("it does not print %q:\n%s", text, p.stdout.String())
		}
	}
}

// TestFollow_Interrupted: what is appended is shown as it comes, once, until an interrupt.
func TestFollow_Interrupted(t *testing.T) {
	dir := project(t, servedProject)
	obelusOutput(t, exitDone, "-C", dir, "run", "-q", "plans/both.lua", "-c", "c")
	log := start(t, dir, "log", "--follow", "--json", "-c", "c", "--tool", "both")
	calls := start(t, dir, "calls", "--follow", "--json", "-c", "c", "--status", "done")
	log.prints(`"seq":2`)
	calls.prints(`"call":"1.1"`)
	obelusOutput(t, exitDone, "-C", dir, "run", "-q", "plans/both.lua", "-c", "c")
	log.prints(`"seq":4`)
	calls.prints(`"call":"2.1"`)
	for _, p := range []*running{log, calls} {
		if status := p.ends(os.Interrupt); status != exitInterrupted {
			t.Errorf("exit status %d", status)
		}
		if n := strings.Count(p.stdout.String(), "\n"); n != 2 {
			t.Errorf("%d lines:\n%s", n, p.stdout.String())
		}
	}
}

// TestFollow_ContextMadeAnew: one that is pruned and made anew is followed from its
// beginning.
func TestFollow_ContextMadeAnew(t *testing.T) {
	dir := project(t, servedProject)
	obelusOutput(t, exitDone, "-C", dir, "run", "-q", "plans/both.lua", "-c", "c")
	log := start(t, dir, "log", "--follow", "--json", "-c", "c")
	log.prints(`"seq":2`)
	obelusOutput(t, exitDone, "-C", dir, "prune", "c")
	write(t, filepath.Join(dir, "anew.json"), `{"type":"state","anew":true}`)
	obelusOutput(t, exitDone, "-C", dir, "append", "-c", "c", filepath.Join(dir, "anew.json"))
	log.prints(`"data":{"anew":true}`)
	if status := log.ends(os.Interrupt); status != exitInterrupted {
		t.Errorf("exit status %d", status)
	}
}

// TestFollow_Logs: lines of scripts are followed as they come, also in a context that is pruned and
// made anew.
func TestFollow_Logs(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":         "return {}",
		"activities/say.lua": `Activity.register("say", function(call) print("n = " .. call.n) return 1 end)`,
		"plans/p.lua":        `return { { _tool = "say", n = "†input.n", _outputPath = "†state.a" } }`,
	})
	run := func(n string) {
		obelusOutput(t, exitDone, "-C", dir, "run", "-q", "plans/p.lua", "-c", "c", "-i", "n:="+n)
	}
	run("1")
	logs := start(t, dir, "logs", "-f", "-c", "c")
	logs.prints("1.1    #1  say  | n = 1")
	run("2")
	logs.prints("2.1    #1  say  | n = 2")
	obelusOutput(t, exitDone, "-C", dir, "prune", "c")
	run("3")
	logs.prints("1.1    #1  say  | n = 3")
	if status := logs.ends(os.Interrupt); status != exitInterrupted {
		t.Errorf("exit status %d", status)
	}
}
