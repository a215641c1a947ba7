package cmd

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// isolated has a call that runs in a worker until there is a file called enough.
var isolated = map[string]string{
	"obelus.lua": `return { isolate = "process", drain = "30s", allow = { read = { "." } } }`,
	"activities/a.lua": `Activity.register("slow", function()
		io.stderr:write("it has begun\n")
		while not require("fs").exists("enough") do require("time").sleep(0.01) end
	end)`,
	"plans/p.lua": `return { { _tool = "slow", _outputPath = "†state.x" } }`,
}

// TestIsolate_Interrupted holds that what a terminal's Ctrl-C lets come to its end
// does so in a worker too.
func TestIsolate_Interrupted(t *testing.T) {
	dir := project(t, isolated)
	said, _ := atTerminal(t, dir, []reply{{"it has begun", "\x03"}, {"interrupted: what runs may come to its end", "touch enough"}}, "run", "plans/p.lua", "-c", "c")
	says(t, said, "interrupted: what runs may come to its end", "1.1 slow done")
}

// underWay begins a run whose only call is in a worker, and gives the program, what it
// says from then on, and its workers.
func underWay(t *testing.T) (c *exec.Cmd, said io.Reader, workers []int) {
	t.Helper()
	c = program(t, project(t, isolated), "run", "plans/p.lua", "-c", "c")
	pipe, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(pipe)
	for line := ""; !strings.HasSuffix(line, " it has begun\n"); {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", c.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, _ := os.ReadFile(file) // a thread may have ended
		for _, pid := range strings.Fields(string(content)) {
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			workers = append(workers, n)
		}
	}
	if len(workers) == 0 {
		c.Process.Kill()
		c.Wait()
		t.Skip("it can't be told here which processes are a program's")
	}
	return c, lines, workers
}

// TestIsolate_Stopped holds the same where somebody stops all processes of a service.
func TestIsolate_Stopped(t *testing.T) {
	c, said, workers := underWay(t)
	for _, pid := range append(workers, c.Process.Pid) {
		if err := unix.Kill(pid, unix.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	write(t, filepath.Join(c.Dir, "enough"), "")
	text, err := io.ReadAll(said)
	if err != nil {
		t.Error(err)
	}
	c.Wait()
	says(t, string(text), "1.1 slow done")
}

// TestIsolate_WorkersEndWithTheProgram holds that a worker whose program has been killed does
// not go on with its call: somebody else may begin it anew.
func TestIsolate_WorkersEndWithTheProgram(t *testing.T) {
	c, said, workers := underWay(t)
	var ends []int
	for _, pid := range workers {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		ends = append(ends, fd)
	}
	c.Process.Kill()
	io.Copy(io.Discard, said)
	c.Wait()
	for i, fd := range ends {
		if !readable(fd, 20*time.Second) {
			t.Errorf("process %d goes on", workers[i])
			unix.Kill(workers[i], unix.SIGKILL)
		}
	}
}

func readable(fd int, within time.Duration) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(within.Milliseconds()))
		if err != unix.EINTR {
			return n == 1
		}
	}
}
