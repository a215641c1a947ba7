package worker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"obelus/host/internal/sandbox"
	"obelus/store"
)

// Process is one worker. It belongs to who runs a call in it.
type Process struct {
	Cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	pipe  io.Closer       // that out reads
	said  *untilFatal     // what it wrote for people
	Ended chan struct{}   // closed when the process has
	setUp *setUp          // that it has not been sent yet
	seen  map[string]bool // scripts that it has, see [job.script]
}

// do has a job done, and passes on what it prints and logs meanwhile. A worker that has
// just been started may be slow to read: it is told here whom it works for, where
// a call waits no longer than it may.
func (p *Process) do(j *job, project *sandbox.Project) (done, error) {
	if p.setUp != nil {
		if err := send(p.in, string(store.EncodeJSON(p.setUp))); err != nil {
			return done{}, err
		}
		p.setUp = nil
	}
	if err := send(p.in, j.value()); err != nil {
		return done{}, err
	}
	for {
		v, err := receive(p.out)
		if err != nil {
			return done{}, err
		}
		switch v := v.(type) {
		case string:
			_, _ = io.WriteString(project.Stderr, v) // as print itself heeds no error
		case []any:
			logRecorded(project.Log, v)
		default:
			return readDone(v)
		}
	}
}

func (p *Process) kill() {
	_ = p.Cmd.Process.Kill()
	_ = p.pipe.Close()
}

// begin waits until a process says that it is a worker. Until then whoever ends all of
// a service's processes ends it too.
func (p *Process) begin(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.kill)
	_, err := receive(p.out)
	if stop() && err == nil {
		return nil
	}
	p.kill()
	<-p.Ended
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("it ended as it started (%s)", p.Cmd.ProcessState)
}

// untilFatal passes on what a worker writes for people, but not the goroutines
// that the runtime prints when it has no memory left.
type untilFatal struct {
	w       io.Writer
	fatal   bool
	threads bool // that it can't have
}

func (u *untilFatal) Write(text []byte) (int, error) {
	if u.fatal = u.fatal || strings.HasPrefix(string(text), "fatal error:") || strings.HasPrefix(string(text), "runtime:"); u.fatal {
		u.threads = u.threads || strings.Contains(string(text), "failed to create new OS thread")
		return len(text), nil
	}
	return u.w.Write(text)
}
