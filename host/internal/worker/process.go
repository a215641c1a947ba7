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

// Process is one worker. It belongs to the call that runs in it.
type Process struct {
	Cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	pipe  io.Closer       // source of out
	said  *untilFatal     // its messages for people
	Ended chan struct{}   // closed when the process has ended
	setUp *setUp          // message that it has not been sent yet
	seen  map[string]bool // scripts that it has, see [job.script]
}

// do sends a job and waits for its outcome, and passes on output and log records meanwhile. It also
// sends the first message, since a worker that has just started may be slow to read and only a call
// has a deadline.
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
			_, _ = io.WriteString(project.Stderr, v) // as print itself ignores errors
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

// begin waits until a process reports that it is a worker. Until then a signal to all processes of
// a service may end it.
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

// untilFatal passes on the messages of a worker for people, but not the goroutines that the runtime
// prints when it has no memory left.
type untilFatal struct {
	w       io.Writer
	fatal   bool
	threads bool // the machine allowed no more threads
}

func (u *untilFatal) Write(text []byte) (int, error) {
	if u.fatal = u.fatal || strings.HasPrefix(string(text), "fatal error:") || strings.HasPrefix(string(text), "runtime:"); u.fatal {
		u.threads = u.threads || strings.Contains(string(text), "failed to create new OS thread")
		return len(text), nil
	}
	return u.w.Write(text)
}
