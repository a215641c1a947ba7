package cmd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/term"
)

// asObelus in the environment makes the test binary the program.
const asObelus = "OBELUS_TEST_AS_PROGRAM"

func program(t testing.TB, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), asObelus+"=1")
	return c
}

// project writes files, given by name, below a new folder.
func project(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		write(t, filepath.Join(dir, name), content)
	}
	return dir
}

func write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// stopped runs a plan whose second call takes long, and sends the signal once
// that call has begun. It gives the project and how the process ended.
func stopped(t *testing.T, signal os.Signal) (dir string, status int) {
	t.Helper()
	return stoppedWith(t, signal, "return { drain = 0 }", `require("time").sleep(200)`)
}

func stoppedWith(t *testing.T, signal os.Signal, settings, slow string) (dir string, status int) {
	t.Helper()
	dir = project(t, map[string]string{
		"obelus.lua": settings,
		"activities/work.lua": `
			Activity.register("quick", function() return "quick" end)
			Activity.register("slow", { timeout = 300 }, function() print("slow has begun") ` + slow + ` end)`,
		"plans/p.lua": `return {
			calls = {
				{ _tool = "quick", _outputPath = "†state.a" },
				{ _tool = "slow", x = "†state.a", _outputPath = "†state.b" },
				{ _tool = "quick", x = "†state.b", _outputPath = "†state.c" },
			},
			output = "†state",
		}`,
	})
	_, said, status := signalled(t, dir, signal, "run", "plans/p.lua", "-c", "c")
	if signal == os.Interrupt && !strings.Contains(said, "obelus resume -c c") {
		t.Errorf("it does not say how to go on:\n%s", said)
	}
	return dir, status
}

// signalled runs a command in a project, and sends the signal once the call slow has begun. It
// gives the output and how the process ended.
func signalled(t *testing.T, dir string, signal os.Signal, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	c := program(t, dir, args...)
	var out, said bytes.Buffer
	c.Stdout = &out
	pipe, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	sent := false
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if strings.Contains(lines.Text(), "slow has begun") {
			if err := c.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			sent = true
		}
	}
	c.Wait()
	if !sent {
		t.Fatalf("the call slow never began:\n%s", said.String())
	}
	return out.String(), said.String(), c.ProcessState.ExitCode()
}

// resumed goes on with what was stopped, with an activity that has an end.
func resumed(t *testing.T, dir string) {
	t.Helper()
	write(t, filepath.Join(dir, "activities/work.lua"), `
		Activity.register("quick", function(call) return call.x and "quick" or error("it must not run again") end)
		Activity.register("slow", function() return "at last" end)`)
	got := obelusOutput(t, exitDone, "-C", dir, "resume", "-c", "c", "-q")
	if want := `{"a":"quick","b":"at last","c":"quick"}` + "\n"; got != want {
		t.Errorf("resumed, it gives %s, not %s", got, want)
	}
}

// TestInterrupt_Resumed holds that Ctrl-C ends a run cleanly, with what was done
// recorded, and that the run goes on from there.
func TestInterrupt_Resumed(t *testing.T) {
	dir, status := stopped(t, os.Interrupt)
	if status != exitInterrupted {
		t.Errorf("exit status %d, not %d", status, exitInterrupted)
	}
	calls := obelusOutput(t, exitDone, "-C", dir, "calls", "--json")
	if !strings.Contains(calls, `"status":"interrupted"`) {
		t.Errorf("no call is interrupted:\n%s", calls)
	}
	resumed(t, dir)
}

// TestInterrupt_IsReported holds that all is said of a run that is interrupted, also where the log
// is read for it, as for what models used.
func TestInterrupt_IsReported(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":          `return { drain = 0, model = "m", models = { m = { url = "http://127.0.0.1:1/v1", model = "m" } } }`,
		"activities/work.lua": `Activity.register("slow", { timeout = 300 }, function() print("slow has begun") require("time").sleep(200) end)`,
		"plans/p.lua":         `return { calls = { { _tool = "slow", _outputPath = "†state.a" } } }`,
	})
	stdout, stderr, status := signalled(t, dir, os.Interrupt, "run", "plans/p.lua", "-c", "a", "--json")
	if !strings.HasSuffix(stdout, `{"context":"a","output":null,"status":"interrupted"}`+"\n") || !strings.Contains(stderr, "interrupted: it goes on only by: obelus resume -c a") || status != exitInterrupted {
		t.Errorf("the status is %d, and the output\n%s\n%s", status, stdout, stderr)
	}
	if _, stderr, status = signalled(t, dir, syscall.SIGTERM, "run", "plans/p.lua", "-c", "b"); !strings.Contains(stderr, "stopped: a server of this log goes on with it") || status != int(exit.Terminated) {
		t.Errorf("the status is %d, and it says\n%s", status, stderr)
	}
}

// TestInterrupt_AtOnce holds what is said of a command that an interrupt ends before
// it has come to anything.
func TestInterrupt_AtOnce(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":  "return {}",
		"plans/p.lua": `return { calls = {}, output = 1 }`,
	})
	plan := filepath.Join(dir, "plans/p.lua")
	obelusOutput(t, exitDone, "run", "-q", plan)
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"run", plan}, {"contexts"}, {"get", "†state"}, {"replay"}, {"backup", filepath.Join(dir, "b.db")}} {
		var said strings.Builder
		a := &app{term: term.New(io.Discard, &said)}
		root := rootCommand(a)
		root.SetArgs(append([]string{"-C", dir}, args...))
		err := root.ExecuteContext(interrupted)
		a.fail(err)
		a.close()
		if got := said.String(); !strings.HasSuffix(got, "obelus: interrupted\n") || strings.Count(got, "obelus:") != 1 || exitStatus(err) != exit.Interrupted {
			t.Errorf("%s ends with %d:\n%s", args[0], exitStatus(err), got)
		}
	}
}

// endless is a pipe that has nothing for its reader, and keeps it.
type endless struct{ read chan struct{} }

func (e endless) Read([]byte) (int, error) {
	e.read <- struct{}{}
	select {}
}

// TestInterrupt_WhileReading holds that an interrupt ends a command that waits for
// what stdin may never have.
func TestInterrupt_WhileReading(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":  "return {}",
		"plans/p.lua": `return { calls = {}, output = 1 }`,
	})
	for _, args := range [][]string{{"append", "-c", "c"}, {"run", filepath.Join(dir, "plans/p.lua"), "-i", "-"}, {"sql", "-"}, {"repl"}} {
		ctx, interrupt := context.WithCancel(t.Context())
		stdin := endless{make(chan struct{})}
		go func() {
			<-stdin.read
			interrupt()
		}()
		a := &app{stdin: stdin, term: term.New(io.Discard, io.Discard)}
		root := rootCommand(a)
		root.SetArgs(append([]string{"-C", dir}, args...))
		if err := root.ExecuteContext(ctx); exitStatus(err) != exit.Interrupted {
			t.Errorf("%s ends with %d: %v", args[0], exitStatus(err), err)
		}
		a.close()
	}
}

// TestKill_Resumed holds what [TestInterrupt_Resumed] does, of a process that had no chance to say
// goodbye.
func TestKill_Resumed(t *testing.T) {
	dir, _ := stopped(t, syscall.SIGKILL)
	resumed(t, dir)
}

// TestInDoubt_WaitsForAPerson holds that what must not run twice waits for a person after it
// was cut off.
func TestInDoubt_WaitsForAPerson(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGKILL, os.Interrupt} {
		t.Run(signal.String(), func(t *testing.T) { inDoubt(t, signal) })
	}
}

func inDoubt(t *testing.T, signal os.Signal) {
	dir, _ := stopped(t, signal)
	once := `
		Activity.register("quick", function() return "quick" end)
		Activity.register("slow", { idempotent = false }, function() return "again" end)`
	write(t, filepath.Join(dir, "activities/work.lua"), once)
	obelusOutput(t, exitWaiting, "-C", dir, "resume", "-c", "c")
	if calls := obelusOutput(t, exitDone, "-C", dir, "calls", "--json"); !strings.Contains(calls, `"status":"in-doubt"`) {
		t.Errorf("no call is in doubt:\n%s", calls)
	}
	if got := obelusOutput(t, exitDone, "-C", dir, "resume", "-c", "c", "--retry", "1.2"); got != `{"a":"quick","b":"again","c":"quick"}`+"\n" {
		t.Errorf("retried, it gives %s", got)
	}
}

// TestInterrupt_Drains holds that an interrupt lets what runs come to its end,
// within the time that draining has, and starts nothing more.
func TestInterrupt_Drains(t *testing.T) {
	dir, status := stoppedWith(t, os.Interrupt, `return { drain = 60 }`, `require("time").sleep(0.3); return "in time"`)
	if status != exitInterrupted {
		t.Errorf("exit status %d, not %d", status, exitInterrupted)
	}
	calls := obelusOutput(t, exitDone, "-C", dir, "calls", "--json")
	if !strings.Contains(calls, `"call":"1.2","context":"c","tick":1,"position":2,"tool":"slow","status":"done"`) ||
		!strings.Contains(calls, `"call":"1.3","context":"c","tick":1,"position":3,"tool":"quick","status":"blocked"`) {
		t.Errorf("the call that ran is not done, or another began:\n%s", calls)
	}
}

// TestInterrupt_AtRest: of a call that was to be tried again is told why it was.
func TestInterrupt_AtRest(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":       "return {}",
		"activities/a.lua": `Activity.register("flaky", { retries = 1, backoff = "60s" }, function() return nil, "down" end)`,
		"plans/p.lua":      `return { { _tool = "flaky", _outputPath = "†state.a" } }`,
	})
	p := start(t, dir, "run", "plans/p.lua", "-c", "c")
	p.says("attempt 1 of 2 failed")
	if status := p.ends(os.Interrupt); status != exitInterrupted {
		t.Errorf("exit status %d", status)
	}
	if calls := obelusOutput(t, exitDone, "-C", dir, "calls"); !strings.Contains(calls, "the try before failed: down") {
		t.Error(calls)
	}
}

// TestAppend_ManyProcesses holds that processes that append to one context at once lose
// nothing, and never see a lock.
func TestAppend_ManyProcesses(t *testing.T) {
	const processes, each = 10, 6
	dir := project(t, map[string]string{"obelus.lua": "return {}"})
	var wait sync.WaitGroup
	for p := range processes {
		wait.Go(func() {
			for i := range each {
				c := program(t, dir, "append", "-q", "-c", "c")
				c.Stdin = strings.NewReader(fmt.Sprintf(`{"type":"state","p%d":{"i%d":true}}`, p, i))
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("append %d of process %d: %v\n%s", i, p, err, out)
				}
			}
		})
	}
	wait.Wait()
	log := obelusOutput(t, exitDone, "-C", dir, "log", "-c", "c", "--json")
	if got := strings.Count(log, "\n"); got != processes*each {
		t.Errorf("%d messages, not %d", got, processes*each)
	}
	state := obelusOutput(t, exitDone, "-C", dir, "get", "state", "-c", "c")
	if got := strings.Count(state, "true"); got != processes*each {
		t.Errorf("%d values, not %d", got, processes*each)
	}
}

// TestLease_OneProcessAtATime holds that two processes never run one context at once, and that
// the second takes over at once when the first is dead.
func TestLease_OneProcessAtATime(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":           "return {}",
		"activities/work.lua":  `Activity.register("work", { timeout = 300 }, function() require("time").sleep(200) end)`,
		"activities/quick.lua": `Activity.register("quick", function() return "quick" end)`,
		"plans/p.lua":          `return { calls = { { _tool = "quick", _outputPath = "†a" }, { _tool = "work", a = "†a", _outputPath = "†b" } }, output = "†b" }`,
	})
	c := program(t, dir, "run", "plans/p.lua", "-c", "c")
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stderr); lines.Scan() && !strings.Contains(lines.Text(), "1.2 work running"); {
	}
	for _, args := range [][]string{{"resume", "-c", "c"}, {"run", "plans/p.lua", "-c", "c"}} {
		second := program(t, dir, args...)
		out, _ := second.CombinedOutput()
		want := fmt.Sprintf("obelus: context c is in use by process %d", c.Process.Pid)
		if second.ProcessState.ExitCode() != exitBusy || !strings.HasPrefix(string(out), want) {
			t.Errorf("%s: exit status %d, not %d\n%s", args, second.ProcessState.ExitCode(), exitBusy, out)
		}
	}
	// On another host, or while it stands still, it would have that long.
	left := obelusOutput(t, exitDone, "-C", dir, "sql", "SELECT (until - unixepoch('subsec') * 1000) / 1000.0 AS s FROM leases WHERE context = 'c'", "--json")
	var lease struct{ S float64 }
	if err := json.Unmarshal([]byte(left), &lease); err != nil || lease.S <= 0 || lease.S > 30 {
		t.Errorf("its lease has %s s left, %v", left, err)
	}
	c.Process.Kill()
	c.Wait()
	write(t, filepath.Join(dir, "activities/work.lua"), `Activity.register("work", function() return "done" end)`)
	if got := obelusOutput(t, exitDone, "-C", dir, "resume", "-c", "c", "-q"); got != "\"done\"\n" {
		t.Errorf("taken over, it gives %s", got)
	}
}

// TestApproval_KilledWhileHeld holds that a hold survives the process, and that an
// approved call that was cut off runs with what was approved.
func TestApproval_KilledWhileHeld(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua": "return {}",
		"activities/work.lua": `
			Activity.register("pay", { timeout = 300 }, function() require("time").sleep(200) end)
			Activity.register("slow", { timeout = 300 }, function() require("time").sleep(200) end)`,
		"plans/p.lua": `return { context = { Message.state { n = 1 } }, calls = {
			{ _tool = "pay", n = "†state.n", _outputPath = "†paid" },
			{ _tool = "slow", _outputPath = "†slow" },
		}, output = "†paid" }`,
	})
	killAt := func(text string, args ...string) {
		t.Helper()
		c := program(t, dir, args...)
		stderr, err := c.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stderr)
		for lines.Scan() && !strings.Contains(lines.Text(), text) {
		}
		c.Process.Kill()
		c.Wait()
	}
	killAt("1.2 slow running", "run", "plans/p.lua", "-c", "c", "--approve", "pay")
	if got := obelusOutput(t, exitDone, "-C", dir, "approvals", "--json"); !strings.Contains(got, `"arguments":{"n":1}`) {
		t.Fatalf("nothing is held: %s", got)
	}
	obelusOutput(t, exitDone, "-C", dir, "approve", "-q", "1.1", "--set", "n:=2")
	killAt("1.1 pay running", "resume", "-c", "c")
	write(t, filepath.Join(dir, "activities/work.lua"), `
		Activity.register("pay", function(call) return call.n end)
		Activity.register("slow", function() return "slow" end)`)
	if got := obelusOutput(t, exitDone, "-C", dir, "resume", "-c", "c", "-q"); got != "2\n" {
		t.Errorf("resumed, it gives %s", got)
	}
}

// TestSynchronous_OfAProject: the log is written as the project's setting says, and
// each commit is waited for if it says nothing.
func TestSynchronous_OfAProject(t *testing.T) {
	for settings, want := range map[string]string{"return {}": "", "return { synchronous = 'normal' }": "normal", "return { synchronous = 'full' }": "full"} {
		a := &app{projectFlag: project(t, map[string]string{"obelus.lua": settings})}
		if err := a.openSettings(); err != nil {
			t.Fatal(err)
		}
		if got := a.logOptions().Synchronous; got != want {
			t.Errorf("%s: %q", settings, got)
		}
	}
}
