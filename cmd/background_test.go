package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// inBackground is a project whose plan starts a call of a minute, and does not wait for it.
var inBackground = map[string]string{
	"obelus.lua": `return { drain = DRAIN, allow = { read = { "." } } }`,
	"activities/work.lua": `
		local function slow() -- until there is a file "go"
			while not require("fs").exists("go") do require("time").sleep(0.01) end
			return 1
		end
		Activity.register("slow", { timeout = 60 }, slow)
		Activity.register("pay", { timeout = 60, idempotent = false }, slow)
		Activity.register("one", function() return 1 end)`,
	"plans/slow.json":   `{"calls": [{"_tool": "slow"}, {"_tool": "one", "_outputPath": "†a"}], "output": "†a"}`,
	"plans/pay.json":    `{"calls": [{"_tool": "pay"}, {"_tool": "one", "_outputPath": "†a"}], "output": "†a"}`,
	"plans/failed.json": `{"calls": [{"_tool": "slow"}], "output": "†a"}`,
}

// TestBackground_Signals interrupts and kills runs that wait for a call in the background alone: the
// output has been printed, the status is that of the output, and the call is interrupted, or in doubt
// if it must not run twice.
func TestBackground_Signals(t *testing.T) {
	for _, test := range []struct {
		name, plan, drain string
		signals           []os.Signal
		status            int
		call              string
	}{
		{"interrupted", "slow", "0", []os.Signal{syscall.SIGINT}, exitDone, "interrupted"},
		{"terminated", "slow", "0", []os.Signal{syscall.SIGTERM}, exitDone, "interrupted"},
		{"interrupted twice", "slow", "60", []os.Signal{syscall.SIGINT, syscall.SIGINT}, exitDone, "interrupted"},
		{"killed", "slow", "60", []os.Signal{syscall.SIGKILL}, -1, "interrupted"},
		{"must not run twice", "pay", "0", []os.Signal{syscall.SIGINT}, exitDone, "in-doubt"},
		{"failed", "failed", "0", []os.Signal{syscall.SIGINT}, exitFailed, "interrupted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := map[string]string{}
			for name, text := range inBackground {
				files[name] = strings.ReplaceAll(text, "DRAIN", test.drain)
			}
			dir := project(t, files)
			p := start(t, dir, "run", "plans/"+test.plan+".json", "-c", "a")
			p.says("waiting for calls in the background")
			for i, s := range test.signals {
				if i > 0 {
					p.says("once more stops it now")
				}
				if err := p.cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			p.gone()
			_ = p.cmd.Wait()
			if got := p.cmd.ProcessState.ExitCode(); got != test.status {
				t.Errorf("status %d, want %d", got, test.status)
			}
			want := "done"
			if test.status == exitFailed {
				want = "failed"
			}
			calls := obelusOutput(t, exitDone, "-C", dir, "calls", "--json", "-c", "a")
			contexts := obelusOutput(t, exitDone, "-C", dir, "contexts", "--json", "-c", "a")
			if !strings.Contains(contexts, `"background":1,`) || !strings.Contains(contexts, `"status":"`+want+`"`) || !strings.Contains(calls, `"status":"`+test.call+`"`) {
				t.Errorf("%s%s", contexts, calls)
			}
			// A server goes on with what died or was told to end, and not with what a person interrupted.
			wantDue := "0\n"
			if test.signals[0] != syscall.SIGINT {
				wantDue = "1\n"
			}
			if due := obelusOutput(t, exitDone, "-C", dir, "sql", "SELECT count(due) FROM contexts", "--csv"); !strings.HasSuffix(due, wantDue) {
				t.Errorf("a server looks at it: %s", due)
			}
			for _, refused := range [][]string{{"prune", "a"}, {"run", filepath.Join(dir, "plans/slow.json"), "-c", "a"}} {
				obelusOutput(t, exitUsage, append([]string{"-C", dir}, refused...)...)
			}
			if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o666); err != nil {
				t.Fatal(err)
			}
			resume := []string{"-C", dir, "resume", "-c", "a"}
			if test.call == "in-doubt" {
				resume = append(resume, "--retry", "1.1")
			}
			obelusOutput(t, max(test.status, exitDone), resume...)
			if calls := obelusOutput(t, exitDone, "-C", dir, "calls", "--json", "-c", "a"); strings.Contains(calls, test.call) || !strings.Contains(calls, `"call":"1.1"`) {
				t.Errorf("resumed: %s", calls)
			}
			obelusOutput(t, exitDone, "-C", dir, "prune", "a")
		})
	}
}
