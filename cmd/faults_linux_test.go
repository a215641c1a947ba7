package cmd

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestDisk_Fails: where the disk does not do what it is asked, once or from then
// on, the command says so and ends; what goes on afterwards comes to what it comes
// to if nothing happens.
func TestDisk_Fails(t *testing.T) {
	failing(t)
	c := scenarios[0]
	whole := newSite(t)
	whole.drive(c, whole.undisturbed)
	want := whole.account()
	for calls, most := range map[string]int{"fsync,fdatasync": 30, "pwrite64": 60, "pread64": 30, "ftruncate": 2} {
		t.Run(calls, func(t *testing.T) {
			random, failed := rand.New(rand.NewPCG(9, 10)), 0
			for failed < *crashes {
				s, here := newSite(t), 0
				s.drive(c, func(args []string) ended {
					if here == 5 || failed == *crashes {
						return s.undisturbed(args)
					}
					when := fmt.Sprint(1 + random.IntN(most)) // of each thread
					if random.IntN(3) == 0 {
						when += "+"
					}
					e := s.injected(calls, when, args)
					if here++; e.status < 0 {
						failed++
					}
					return e
				})
				if s.same(want); t.Failed() {
					t.FailNow()
				}
			}
		})
	}
}

// failing skips the test where system calls can't be made to fail.
func failing(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("skipped, for system calls can't be made to fail:", err)
	}
}

// fail is how strace makes system calls on the log fail.
func (s *site) fail(calls, when string) []string {
	db := filepath.Join(s.dir, ".obelus/log.db")
	args := []string{"-f", "-o", filepath.Join(s.dir, "trace"), "-e", "trace=" + calls, "-e", "inject=" + calls + ":error=EIO:when=" + when}
	for _, path := range []string{filepath.Dir(db), db, db + "-wal", db + "-shm"} {
		args = append(args, "-P", path)
	}
	return args
}

// injected runs one command whose system calls on the log fail. One that ends for
// that has the status of one that was killed.
func (s *site) injected(calls, when string, args []string) ended {
	s.t.Helper()
	c := program(s.t, s.dir, args...)
	c.Args = append(append([]string{"strace", "-qqq"}, s.fail(calls, when)...), append([]string{c.Path}, args...)...)
	c.Path, _ = exec.LookPath("strace")
	e, _ := ran(c, args)
	if strings.Contains(e.stderr, "PTRACE_TRACEME") {
		s.t.Skip("skipped, for system calls can't be made to fail:", e.stderr)
	}
	if e.status < 0 || strings.Contains(e.stderr, "panic") {
		s.t.Fatalf("with %s failing at %s, %s broke down\n%s", calls, when, args, e.stderr)
	}
	if strings.Contains(e.stderr, "log.db") {
		if e.status != exitFailed && e.status != exitUsage || !strings.Contains(e.stderr, "disk") {
			s.t.Errorf("with %s failing at %s, %s has exit status %d\n%s", calls, when, args, e.status, e.stderr)
		}
		e.status = -1
	}
	return e
}

// TestServe_OnFailingDisk: a run whose outcome can't be written goes on by itself
// when the disk does what it is asked again.
func TestServe_OnFailingDisk(t *testing.T) {
	failing(t)
	s := &site{t: t, dir: project(t, map[string]string{
		"obelus.lua": `return { allow = { read = { "go" } } }`,
		"activities/work.lua": `Activity.register("work", function()
			local fs, time = require("fs"), require("time")
			while not fs.exists("go") do time.sleep(0.005) end
			return "worked"
		end)`,
		"plans/p.lua": `return { calls = { { _tool = "work", _outputPath = "†state" } }, output = "†state" }`,
	})}
	p, url := serving(t, s.dir)
	if status, v := post(url+"/v1/runs", `{"plan":"plans/p.lua","context":"c"}`); status != http.StatusAccepted {
		t.Fatal(status, v)
	}
	fault := exec.Command("strace", append(s.fail("fsync,fdatasync", "1+"), "-p", strconv.Itoa(p.cmd.Process.Pid))...)
	stderr, err := fault.StderrPipe()
	if err == nil {
		err = fault.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer fault.Wait()
	defer fault.Process.Kill()
	lines := bufio.NewScanner(stderr)
	if lines.Scan(); !strings.Contains(lines.Text(), "attached") {
		t.Skip("skipped, for system calls can't be made to fail:", lines.Text())
	}
	write(t, filepath.Join(s.dir, "go"), "")
	if line := p.says("run stuck"); !strings.Contains(line, "see to its disk") {
		t.Error(line)
	}
	if status, v := post(url+"/v1/contexts/d/messages", `{"type":"state","x":1}`); status != http.StatusServiceUnavailable {
		t.Error(status, v)
	}
	if err := fault.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r, err := http.Get(url + "/v1/contexts/c/events")
	if err != nil {
		t.Fatal(err)
	}
	if !tells(r.Body, `"status":"done","tick":1,"output":"worked"`) {
		t.Error("the run does not go on")
	}
	if status := p.ends(syscall.SIGTERM); status != exitDone {
		t.Errorf("exit status %d\n%s", status, p.said.String())
	}
	s.look()
	s.check(ended{status: -1})
	s.leave()
}

// TestLease_InAnotherTimeNamespace holds that a process in another namespace of time, where all
// others seem to have started at other times, takes no living one for dead.
func TestLease_InAnotherTimeNamespace(t *testing.T) {
	apart := []string{"-T", "--boottime", "100000", "--fork"}
	if out, err := exec.Command("unshare", append(apart, "true")...).CombinedOutput(); err != nil {
		t.Skipf("skipped, for there can be no namespace of time: %v %s", err, out)
	}
	dir := project(t, map[string]string{
		"obelus.lua":          "return {}",
		"activities/work.lua": `Activity.register("work", { timeout = 300 }, function() print("begun") require("time").sleep(200) end)`,
		"plans/p.lua":         `return { calls = { { _tool = "work", _outputPath = "†b" } } }`,
	})
	p := start(t, dir, "run", "plans/p.lua", "-c", "c")
	p.says("begun")
	resume := program(t, dir, "resume", "-c", "c")
	c := exec.Command("unshare", append(apart, resume.Args...)...)
	c.Dir, c.Env = resume.Dir, resume.Env
	if out, _ := c.CombinedOutput(); c.ProcessState.ExitCode() != exitBusy || !strings.Contains(string(out), "of another namespace of host") {
		t.Errorf("%v\n%s", c.ProcessState, out)
	}
}

// TestSynchronous_EachCommitWaitsForTheDisk: in a project that says nothing each of a run's commits
// is flushed, and in one that says normal few are.
func TestSynchronous_EachCommitWaitsForTheDisk(t *testing.T) {
	failing(t)
	for settings, fails := range map[string]bool{"return {}": true, "return { synchronous = 'normal' }": false} {
		s := &site{t: t, dir: project(t, map[string]string{
			"obelus.lua":       settings,
			"activities/a.lua": `Activity.register("a", function(call) print("seen") return 1 end)`,
			"plans/p.lua": `local calls = {}
				for i = 1, 200 do calls[i] = { _tool = "a", n = i > 1 and "†s" .. i - 1 or 0, _outputPath = "†s" .. i } end
				return calls`,
		})}
		e := s.injected("fsync,fdatasync", "20+", []string{"run", "-q", "plans/p.lua", "-c", "c"}) // of each thread
		if (e.status < 0) != fails {
			t.Errorf("%s: exit status %d where no more than 19 flushes of a thread succeed\n%s", settings, e.status, e.stderr)
		}
	}
}
