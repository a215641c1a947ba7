//go:build unix

package cmd

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDisk_NoRoom: a run whose log can't grow says so and ends; once there is room it
// goes on to what it comes to if nothing happens.
func TestDisk_NoRoom(t *testing.T) {
	c := scenarios[0]
	whole := newSite(t)
	whole.drive(c, whole.undisturbed)
	want := whole.account()
	full := 0
	for kilobytes := 16; kilobytes < 560; kilobytes += 60 {
		s, limited := newSite(t), true
		s.drive(c, func(args []string) ended {
			if !limited {
				return s.undisturbed(args)
			}
			e := s.confined(kilobytes, args)
			if limited = e.status >= 0; !limited {
				full++
				t.Logf("%d KB: %s", kilobytes, e.stderr)
			}
			return e
		})
		if s.same(want); t.Failed() {
			t.Fatalf("with %d KB", kilobytes)
		}
	}
	if full < 3 {
		t.Errorf("the limit was reached %d times", full)
	}
}

// confined runs one command that can't make a file longer than so much. One that
// ends since it can't has the status of one that was killed.
func (s *site) confined(kilobytes int, args []string) ended {
	s.t.Helper()
	c := program(s.t, s.dir, args...)
	script := fmt.Sprintf(`ulimit -f %d; exec "$0" "$@"`, 2*kilobytes) // of 512 bytes
	c.Args = append([]string{"sh", "-c", script, c.Path}, c.Args[1:]...)
	var err error
	if c.Path, err = exec.LookPath("sh"); err != nil {
		s.t.Skip(err)
	}
	e, _ := ran(c, args)
	if e.status < 0 || strings.Contains(e.stderr, "panic") {
		s.t.Fatalf("with %d KB %s broke down\n%s", kilobytes, args, e.stderr)
	}
	if strings.Contains(e.stderr, "log.db") {
		if e.status != exitFailed || !strings.Contains(e.stderr, "can't grow: no room") {
			s.t.Errorf("exit status %d\n%s", e.status, e.stderr)
		}
		e.status = -1
	}
	return e
}

// TestDisk_ReadOnlyLog: where nobody may write, what there is can be read, and whoever
// writes is told why it can't be; with permission the run goes on.
func TestDisk_ReadOnlyLog(t *testing.T) {
	s := newSite(t)
	obelusOutput(t, exitWaiting, "-C", s.dir, "run", "-q", "plans/all.lua", "-c", "c", "-i", "n:=2", "--approve", "pay")
	db := filepath.Join(s.dir, ".obelus/log.db")
	nobody := s.nobody(t)
	for what, modes := range map[string][2]os.FileMode{"file": {0o444, 0o777}, "folder": {0o666, 0o555}, "both": {0o444, 0o555}} {
		t.Run(what, func(t *testing.T) {
			s.t = t
			if err := errors.Join(os.Chmod(db, modes[0]), os.Chmod(filepath.Dir(db), modes[1])); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"log"}, {"get", "state.a"}, {"calls"}, {"contexts"}} {
				if e := nobody(args); e.status != exitDone {
					t.Errorf("%s: exit status %d\n%s", args, e.status, e.stderr)
				}
			}
			for _, args := range [][]string{{"resume", "-c", "c"}, {"append", "note.json"}, {"approve", "1.9", "-c", "c"}, {"fork", "f"}} {
				e := nobody(args)
				if e.status != exitUsage && e.status != exitFailed || !strings.Contains(e.stderr, "log.db") || !strings.Contains(e.stderr, "permission") {
					t.Errorf("%s: exit status %d\n%s", args, e.status, e.stderr)
				}
			}
		})
	}
	s.t = t
	if err := errors.Join(os.Chmod(filepath.Dir(db), 0o777), os.Chmod(db, 0o666)); err != nil {
		t.Fatal(err)
	}
	s.drive(scenarios[0], s.undisturbed)
}

// TestFollow_UnwritableLog: who may read a log and not write its folder follows what
// its owner appends, and is told what it can't read.
func TestFollow_UnwritableLog(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("skipped, for it takes root: there is no other user who reads what this one writes")
	}
	s := newSite(t)
	obelusOutput(t, exitWaiting, "-C", s.dir, "run", "-q", "plans/all.lua", "-c", "c", "-i", "n:=2", "--approve", "pay")
	folder := filepath.Join(s.dir, ".obelus")
	unprivileged := s.unprivileged(t)
	p := &running{t: t, cmd: unprivileged([]string{"log", "--follow", "--json", "-c", "c"})}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stdout
	if err := p.cmd.Start(); err != nil {
		t.Skip("no other user's process can be started:", err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill(); p.cmd.Wait() })
	p.prints(`"seq":1,`)
	for _, note := range []string{"first", "second"} { // by one process each, with nothing beside the log between them
		write(t, filepath.Join(s.dir, "note.json"), `{"type":"data","kind":"note","data":"`+note+`"}`)
		obelusOutput(t, exitDone, "-C", s.dir, "append", "-q", "-c", "c", filepath.Join(s.dir, "note.json"))
		p.prints(`"` + note + `"`)
	}
	for _, name := range []string{"log.db-shm", "log.db-wal"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.prints("log.db can't be read as it is")
	if p.cmd.Wait(); p.cmd.ProcessState.ExitCode() != exitUsage {
		t.Error(p.cmd.ProcessState)
	}
}

// nobody gives what runs a command without the rights of root, for whom
// permissions are void.
func (s *site) nobody(t *testing.T) func(args []string) ended {
	unprivileged := s.unprivileged(t)
	return func(args []string) ended {
		e, err := ran(unprivileged(args), args)
		if err != nil && !errors.As(err, new(*exec.ExitError)) {
			s.t.Skip(err)
		}
		return e
	}
}

// ran runs a command to its end.
func ran(c *exec.Cmd, args []string) (ended, error) {
	var stdout, stderr strings.Builder
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	return ended{args: args, status: c.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}, err
}

// unprivileged gives what makes such a command.
func (s *site) unprivileged(t *testing.T) func(args []string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 { // the test binary is in a folder of root's
		content, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		self = filepath.Join(s.dir, "obelus")
		if err := os.WriteFile(self, content, 0o755); err != nil {
			t.Fatal(err)
		}
		for dir := s.dir; dir != filepath.Clean(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return func(args []string) *exec.Cmd {
		c := program(s.t, s.dir, args...)
		c.Path = self
		if os.Getuid() == 0 {
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		return c
	}
}

// TestDisk_TornLog: of a write-ahead log that was cut off or changed somewhere, what
// was committed before that place is there, and nothing else; the run goes on to
// what it comes to if nothing happens.
func TestDisk_TornLog(t *testing.T) {
	whole := newSite(t)
	whole.drive(scenarios[0], whole.undisturbed)
	want := whole.account()

	s := newSite(t)
	e := s.command(scenarios[0].next(s), point(8, true, filepath.Join(s.dir, "commits")), 0)
	if e.status >= 0 {
		t.Fatalf("it ended by itself\n%s", e.stderr)
	}
	wal := filepath.Join(s.dir, ".obelus/log.db-wal")
	log, err := os.ReadFile(wal)
	if err != nil {
		t.Fatal(err)
	}
	all := s.messages()
	random := rand.New(rand.NewPCG(7, 8))
	const header, frame = 32, 24 + 4096
	longest := 0
	tries := 40 * *crashes / fewCrashes
	for i := range tries {
		torn, at := append([]byte{}, log...), random.IntN(len(log))
		switch i % 4 {
		case 0: // between two pages
			torn = torn[:header+(at-header)/frame*frame]
		case 1:
			torn = torn[:at]
		case 2:
			torn[at] ^= 1 << random.IntN(8)
		case 3: // the disk has given back nothing where it had not written
			clear(torn[at:])
		}
		if err := os.WriteFile(wal, torn, 0o666); err != nil {
			t.Fatal(err)
		}
		s.look()
		s.check(ended{status: -1})
		if got := s.messages(); !strings.HasPrefix(all, got) {
			t.Fatalf("torn at %d of %d it holds\n%snot the beginning of\n%s", at, len(log), got, all)
		} else {
			longest = max(longest, len(got))
		}
		if i%10 == 0 {
			goneOn := &site{t: t, dir: t.TempDir()}
			if err := os.CopyFS(goneOn.dir, os.DirFS(s.dir)); err != nil {
				t.Fatal(err)
			}
			goneOn.drive(scenarios[0], goneOn.undisturbed)
			goneOn.same(want)
		}
	}
	if longest == 0 {
		t.Error("nothing was left of any")
	}
}

// messages are those of the log as it is, and its events, one a line in their
// order.
func (s *site) messages() string {
	s.t.Helper()
	s.look()
	defer s.leave()
	if s.log == nil {
		return ""
	}
	db := s.db()
	defer db.Close()
	text, err := rowsOf(db, `SELECT n, e.context, e.seq, e.call, event, e.data, (
		SELECT json_group_array(json_array(seq, date, type, kind, path, method, data, call, producer)) FROM messages AS m WHERE m.context = e.context AND m.seq <= e.seq
	) FROM journal AS e ORDER BY n`)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// TestServe_LogMoved holds that a server whose log was moved or replaced says so instead of
// writing what nobody will find, and goes on when it is back.
func TestServe_LogMoved(t *testing.T) {
	dir := project(t, servedProject)
	p, url := serving(t, dir)
	ask := func(want int) {
		t.Helper()
		for _, path := range []string{"/healthz", "/v1/contexts"} {
			r, err := http.Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			if r.StatusCode != want {
				t.Errorf("GET %s: %d, not %d", path, r.StatusCode, want)
			}
		}
		if status, v := post(url+"/v1/runs", `{"plan":"plans/both.lua","wait":true}`); status != want {
			t.Errorf("%d %v, not %d", status, v, want)
		}
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	ask(http.StatusOK)
	move(".obelus", "moved")
	ask(http.StatusServiceUnavailable)
	p.says("log.db was moved, removed or replaced while it was open: put it back, or start again what has it open")
	obelusOutput(t, exitDone, "-C", dir, "run", "plans/both.lua") // makes a log where none is
	ask(http.StatusServiceUnavailable)
	move(".obelus", "another")
	move("moved", ".obelus")
	ask(http.StatusOK)
	if status := p.ends(syscall.SIGTERM); status != exitDone {
		t.Errorf("exit status %d\n%s", status, p.said.String())
	}
	if contexts := obelusOutput(t, exitDone, "-C", dir, "contexts", "--json"); strings.Count(contexts, "\n") != 2 {
		t.Errorf("there are other contexts than those of runs that were accepted:\n%s", contexts)
	}
}

// TestProject_PipeForAScript holds that what is called a script and is a pipe is told of: reading
// it would never end.
func TestProject_PipeForAScript(t *testing.T) {
	dir := project(t, map[string]string{
		"obelus.lua":  "return {}",
		"plans/p.lua": `return { calls = {}, output = 1 }`,
	})
	const told = "it is a pipe, a socket or a device, not a file"
	for _, name := range []string{"plans/pipe.lua", "plans/pipe.json", "activities/pipe.lua", "tests/pipe_test.lua"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(file, 0o666); err != nil {
			t.Fatal(err)
		}
		asked, status := [][]string{{"run", file}, {"check"}}, exitUsage
		if strings.HasPrefix(name, "tests/") {
			asked, status = [][]string{{"test"}, {"test", name}}, exitFailed
		}
		for _, args := range asked {
			c := program(t, dir, args...)
			said, err := c.CombinedOutput()
			if c.ProcessState.ExitCode() != status || !strings.Contains(string(said), name+": ") || !strings.Contains(string(said), told) {
				t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, said)
			}
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// fullDevice takes nothing, as a disk that is full.
type fullDevice struct{}

func (fullDevice) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestStdout_Full: what can't be written is told, be it help.
func TestStdout_Full(t *testing.T) {
	dir := project(t, map[string]string{"obelus.lua": "return {}", "tests/a_test.lua": `it("holds", function() end)`})
	for _, args := range [][]string{{"version"}, {"help"}, {"help", "run"}, {"get", "--help"}, {"test", "--json", "-C", dir}} {
		var stderr strings.Builder
		if status := run(Config{}, args, strings.NewReader(""), fullDevice{}, &stderr); status != exitFailed || !strings.Contains(stderr.String(), "no space left on device") {
			t.Errorf("%s: status %d: %s", args, status, &stderr)
		}
	}
}

// TestStdout_Closed: what has nowhere to go is told, be it a run's result, and no failure
// where nothing is printed. /dev/null is somewhere.
func TestStdout_Closed(t *testing.T) {
	dir := project(t, map[string]string{"obelus.lua": "return {}", "plans/p.lua": `return { calls = {}, output = 1 }`})
	for _, args := range [][]string{{"version"}, {"help"}, {"help", "run"}, {"completion", "bash"}, {"run", "plans/p.lua"}, {"log"}, {"contexts", "--json"}, {"sql", "SELECT 1"}, {"check"}} {
		for redirect, want := range map[string]int{">&-": exitFailed, "<>/dev/null >&0": exitDone} {
			c := program(t, dir)
			c.Args, c.Path = append([]string{"sh", "-c", `exec "$0" "$@" ` + redirect, c.Path}, args...), "/bin/sh"
			var stderr strings.Builder
			c.Stderr = &stderr
			if err := c.Run(); err != nil && c.ProcessState == nil {
				t.Fatal(err)
			}
			if args[0] == "check" {
				want = exitDone // says what it finds to stderr
			}
			told := strings.Contains(stderr.String(), "the standard output is closed: what the command prints has nowhere to go")
			if status := c.ProcessState.ExitCode(); status != want || told != (want == exitFailed) {
				t.Errorf("%s %s: status %d: %s", args, redirect, status, &stderr)
			}
		}
	}
}
