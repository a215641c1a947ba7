package cmd

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"obelus/store/sqlite"
)

// crashes is how many processes are killed at random instants in each test of
// that; with more than the default, one is also killed at every commit.
var crashes = flag.Int("crashes", fewCrashes, "how many processes each test of crashes kills at random; with more than the default, also one at every commit")

const fewCrashes = 4

// site is a project in which a scenario is carried out, and the log as it is
// between two commands.
type site struct {
	t   *testing.T
	dir string
	log *sqlite.Log // a copy, so that looking mends nothing; nil while there is none

	accepted [2]atomic.Bool // the contexts that a server has said it runs
}

// newSite makes the project of the scenarios.
func newSite(t *testing.T) *site {
	return &site{t: t, dir: project(t, crashProject)}
}

// copied is where look puts the copy.
func (s *site) copied() string { return filepath.Join(s.dir, "seen", "log.db") }

// look copies the log as it is.
func (s *site) look() {
	s.t.Helper()
	s.leave()
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(filepath.Join(s.dir, ".obelus/log.db"+suffix))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			s.t.Fatal(err)
		}
		write(s.t, s.copied()+suffix, string(content))
	}
	log, err := sqlite.Open(s.copied(), sqlite.Options{ReadOnly: true})
	if err == nil {
		s.log = log
	} else if !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
}

func (s *site) leave() {
	if s.log != nil {
		s.log.Close()
	}
	s.log = nil
	if err := os.RemoveAll(filepath.Dir(s.copied())); err != nil {
		s.t.Fatal(err)
	}
}

// ended is how a command came to its end.
type ended struct {
	args           []string
	status         int // -1 if it was killed
	stdout, stderr string
	took           time.Duration
}

// command runs one command in a process of its own, with a variable in its
// environment, if there is one. It is killed after a while; 0 is never.
func (s *site) command(args []string, env string, kill time.Duration) ended {
	s.t.Helper()
	c := program(s.t, s.dir, args...)
	if env != "" {
		c.Env = append(c.Env, env)
	}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	began := time.Now()
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	if kill > 0 {
		timer := time.AfterFunc(kill, func() { _ = c.Process.Kill() })
		defer timer.Stop()
	}
	var exit *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return ended{args, c.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(began)}
}

// undisturbed runs one command within the test.
func (s *site) undisturbed(args []string) ended {
	var stdout, stderr bytes.Buffer
	status := run(Config{}, append([]string{"-C", s.dir}, args...), strings.NewReader(""), &stdout, &stderr)
	return ended{args: args, status: status, stdout: stdout.String(), stderr: stderr.String()}
}

// drive carries a scenario to its end. do runs one command.
func (s *site) drive(c scenario, do func(args []string) ended) {
	s.t.Helper()
	var last ended
	for range 200 {
		s.look()
		s.check(last)
		args := c.next(s)
		if last.status >= 0 && slices.Equal(args, last.args) {
			s.t.Fatalf("%s ended with status %d, and is to be done again\n%s", args, last.status, last.stderr)
		}
		if args == nil {
			s.leave()
			return
		}
		if last = do(args); last.status > 3 || last.status == exitUsage {
			s.t.Fatalf("%s ended with status %d\n%s", args, last.status, last.stderr)
		}
	}
	s.t.Fatal("it comes to no end")
}

// TestRun_KilledAtAnyTime kills the program at random instants, again and again,
// and goes on with what the log holds: whatever was acknowledged is there,
// nothing is there twice, and in the end all is as if nothing had happened.
func TestRun_KilledAtAnyTime(t *testing.T) {
	for _, c := range scenarios {
		t.Run(c.name, func(t *testing.T) {
			if c.long && *crashes <= fewCrashes {
				t.Skip("it takes long: give more -crashes")
			}
			took := map[string]time.Duration{} // by command
			whole := newSite(t)
			whole.drive(c, func(args []string) ended {
				e := whole.command(args, "", 0)
				took[args[0]] = max(took[args[0]], e.took)
				return e
			})
			want := whole.account()
			random := rand.New(rand.NewPCG(1, 2))
			killed, sites := 0, 0
			for killed < *crashes {
				sites++
				s, here := newSite(t), 0
				s.drive(c, func(args []string) ended {
					if here == 5 || killed == *crashes {
						return s.undisturbed(args)
					}
					e := s.command(args, "", time.Duration(1+random.Int64N(int64(took[args[0]]))))
					if e.status < 0 {
						here++
						killed++
					}
					return e
				})
				s.same(want)
			}
			t.Logf("%d killed in %d runs", killed, sites)
		})
	}
}

// TestRun_KilledAtEveryCommit kills the program just before and just after each of
// its commits. In short it takes some of them.
func TestRun_KilledAtEveryCommit(t *testing.T) {
	for _, c := range scenarios {
		t.Run(c.name, func(t *testing.T) {
			whole := newSite(t)
			whole.drive(c, whole.undisturbed)
			want := whole.account()
			atEveryCommit(t, c.stride, func(n int64, after bool) bool { return killedAt(t, c, n, after, want) })
		})
	}
}

// atEveryCommit kills just before and just after one commit after the other, until
// there is none of that number any more. In short it takes one of stride.
func atEveryCommit(t *testing.T, stride int64, kill func(n int64, after bool) (killed bool)) {
	t.Helper()
	if *crashes > fewCrashes {
		stride = 1
	}
	killed := 0
	for n, reached := int64(1), true; reached; n += stride {
		for _, after := range []bool{false, true} {
			if stride > 1 && after != (n/stride%2 == 1) {
				continue
			}
			if reached = kill(n, after); reached {
				killed++
			}
		}
	}
	t.Logf("%d killed", killed)
}

// killedAt carries a scenario out with one commit at which its process ends. It
// tells whether there was such a commit.
func killedAt(t *testing.T, c scenario, n int64, after bool, want string) bool {
	t.Helper()
	s, killed := newSite(t), false
	env := point(n, after, filepath.Join(s.dir, "commits"))
	s.drive(c, func(args []string) ended {
		if killed {
			return s.undisturbed(args)
		}
		e := s.command(args, env, 0)
		killed = e.status < 0
		return e
	})
	if s.same(want); t.Failed() {
		t.Fatalf("killed at commit %d, after it: %t", n, after)
	}
	return killed
}
