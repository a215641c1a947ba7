package cmd

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// running is a process of the program that a test talks to.
type running struct {
	t      testing.TB
	cmd    *exec.Cmd
	lines  chan string // of its stderr
	stdout locked
	said   strings.Builder
}

// locked is a buffer that a process writes while a test reads.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start starts the program in a folder. It is killed when the test ends, if it
// has not ended by then.
func start(t testing.TB, dir string, args ...string) *running {
	t.Helper()
	p := &running{t: t, cmd: program(t, dir, args...), lines: make(chan string, 10_000)}
	p.cmd.Stdout = &p.stdout
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(stderr); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	return p
}

// says waits for a line of stderr with the text, and gives it.
func (p *running) says(text string) string {
	p.t.Helper()
	limit := time.After(60 * time.Second)
	for {
		select {
		case line, ok := <-p.lines:
			p.said.WriteString(line + "\n")
			if strings.Contains(line, text) {
				return line
			}
			if !ok {
				p.t.Fatalf("it ended without saying %q:\n%s", text, p.said.String())
			}
		case <-limit:
			p.t.Fatalf("it does not say %q:\n%s", text, p.said.String())
		}
	}
}

// gone tells whether the process has ended, or does so soon, by itself.
func (p *running) gone() bool {
	limit := time.After(10 * time.Second)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.cmd.Wait()
				return true
			}
			p.said.WriteString(line + "\n")
		case <-limit:
			return false
		}
	}
}

// ends sends a signal and gives the exit status.
func (p *running) ends(signal os.Signal) int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
	for line := range p.lines {
		p.said.WriteString(line + "\n")
	}
	p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// wasKilled reports whether a process that has ended was killed by SIGKILL. One that
// does not handle another signal has the exit status -1 too.
func (p *running) wasKilled() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
