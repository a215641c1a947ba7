package host

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"obelus/engine"
	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
	"obelus/luastd"
	"obelus/store"
)

// workers are processes of this program that run activities, each one call at a
// time, under a limit on its memory: what brings one down costs one call.
type workers struct {
	project *sandbox.Project
	dir     string                          // of the project, as an absolute path on disk; empty for none
	program func() (path string, err error) // this one, to be started once more

	mu     sync.Mutex
	idle   []*process
	busy   int           // how many others there are
	freed  chan struct{} // closed when one of those is busy no more; made for who starts one
	closed bool          // none is kept any more
}

// maxIdle is how many workers wait for calls.
const maxIdle = 16

// workerGrace is how much longer than its call may take a worker is waited for.
const workerGrace = time.Second

// process is one worker. It belongs to who runs a call in it.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	pipe  io.Closer       // that out reads
	said  *untilFatal     // what it wrote for people
	ended chan struct{}   // closed when the process has
	setUp *setUp          // that it has not been sent yet
	seen  map[string]bool // scripts that it has, see [job.script]
}

// errNotWorker is for programs that embed Obelus.
var errNotWorker = errors.New(`isolate "process" starts this program again as a worker: its main must call host.Worker() first`)

// newWorkers returns workers for a project. Its error says why activities of the project can't run
// in processes of their own.
func newWorkers(p *sandbox.Project, dir string) (*workers, error) {
	if ownProgram == nil {
		return nil, errNotWorker
	}
	if len(p.Objects) > 0 {
		return nil, errors.New(`isolate "process" and objects of the host don't go together: a worker can't reach them`)
	}
	if _, ok := p.Clock.(luastd.SystemClock); !ok {
		return nil, errors.New(`isolate "process" and a clock of the host don't go together: a worker goes by the machine's`)
	}
	return &workers{project: p, dir: dir, program: ownProgram.now}, nil
}

// workerCall is a call of an activity that is to run in a worker.
type workerCall struct {
	script  *sandbox.Script
	name    string
	timeout time.Duration // 0 for the engine's default
}

func (c *workerCall) fail(format string, args ...any) *luaerr.ScriptError {
	return &luaerr.ScriptError{File: c.script.File, Message: fmt.Sprintf("activity %s: ", c.name) + fmt.Sprintf(format, args...)}
}

// Run does one call in a worker. Where ctx ends the call early it kills the worker. Its errors are
// those of a call in this process, and that the worker has died.
func (w *workers) Run(ctx context.Context, call workerCall, in engine.Invocation) (engine.Result, error) {
	timeout := cmp.Or(call.timeout, engine.DefaultTimeout)
	if deadline, ok := ctx.Deadline(); ok { // which the worker can't see
		timeout = max(time.Millisecond, min(timeout, time.Until(deadline).Round(time.Millisecond)))
	}
	p, left, err := w.worker(ctx, &call, timeout)
	if err != nil {
		return engine.Result{}, err
	}
	alarm := time.AfterFunc(left+workerGrace, p.kill)
	release := context.AfterFunc(ctx, func() {
		if isCanceled(ctx) {
			p.kill()
		}
	})
	d, err := p.do(call.job(p, left, in), w.project)
	late := !alarm.Stop()
	canceled := !release() && isCanceled(ctx)
	if err == nil && !late && !canceled {
		w.put(p)
		return d.outcome()
	}
	w.end(p)
	switch {
	case canceled:
		return engine.Result{}, ctx.Err()
	case late:
		return engine.Result{}, timedOut(timeout)
	}
	return engine.Result{}, w.died(&call, p)
}

// worker gives a worker for a call, and how much of its time is left: what starting one
// takes is not the call's, but to wait for one that is busy is.
func (w *workers) worker(ctx context.Context, call *workerCall, timeout time.Duration) (p *process, left time.Duration, err error) {
	began := time.Now()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout+workerGrace)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if isCanceled(ctx) {
			cancel()
		}
	})()
	p, err = w.get(within)
	switch waited := time.Since(began); {
	case err != nil && isCanceled(ctx):
		return nil, 0, ctx.Err()
	case err != nil && within.Err() != nil:
		return nil, 0, timedOut(timeout)
	case err != nil:
		return nil, 0, call.fail("no worker can be started: %s", err)
	case waited > workerGrace:
		return p, max(time.Millisecond, timeout-waited), nil
	}
	return p, timeout, nil
}

func timedOut(after time.Duration) error {
	return &engine.Failure{Fields: map[string]any{"message": fmt.Sprintf("timed out after %s", after), "code": "timeout"}}
}

// isCanceled tells a call that nobody waits for from one whose time is over:
// its worker is on the way to say so itself.
func isCanceled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

func (c *workerCall) job(p *process, timeout time.Duration, in engine.Invocation) *job {
	j := &job{file: c.script.File, sha256: c.script.SHA256, name: c.name, timeout: timeout, in: in}
	if !p.seen[j.script()] {
		j.source, p.seen[j.script()] = string(c.script.Source), true
	}
	return j
}

// died says why there is no answer.
func (w *workers) died(call *workerCall, p *process) error {
	if p.said.threads {
		return call.fail("the worker that ran it has died: the machine admits no more threads and processes")
	}
	return call.fail("the worker that ran it has died, probably of its memory: limits.memory in %s allows %s",
		limits.SettingsFile, limits.FormatSize("memory", w.project.Limits.Memory))
}

// do has a job done, and passes on what it prints and logs meanwhile. A worker that has
// just been started may be slow to read: it is told here whom it works for, where
// a call waits no longer than it may.
func (p *process) do(j *job, project *sandbox.Project) (done, error) {
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

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.pipe.Close()
}

// workerTries is how often a worker is started in vain before nothing is hoped for.
const workerTries = 3

// get takes a worker that waits, or starts one. While the machine admits no more of
// them, it waits for one that is busy.
func (w *workers) get(ctx context.Context) (*process, error) {
	for tries := 1; ; tries++ {
		p, freed := w.waiting()
		if p != nil {
			return p, nil
		}
		p, err := w.start(ctx)
		if err == nil {
			return p, nil
		}
		switch others := w.unstarted(freed); {
		case others:
			select {
			case <-freed:
			case <-ctx.Done():
				return nil, err
			}
		case tries >= workerTries || ctx.Err() != nil:
			return nil, err
		}
	}
}

// waiting takes a worker that waits. If there is none, one is to be started, and freed
// is closed when one is busy no more. Those that have ended meanwhile cost no call.
func (w *workers) waiting() (p *process, freed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy++
	for n := len(w.idle); n > 0; n-- {
		p := w.idle[n-1]
		w.idle = w.idle[:n-1]
		select {
		case <-p.ended:
			p.kill()
		default:
			return p, nil
		}
	}
	if w.freed == nil {
		w.freed = make(chan struct{})
	}
	return nil, w.freed
}

// unstarted takes note that a worker was not started, and tells whether there may be
// one when freed is closed.
func (w *workers) unstarted(freed <-chan struct{}) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	select {
	case <-freed:
		return true
	default:
	}
	if w.busy > 0 {
		return true
	}
	w.wake() // who waited for this one
	return false
}

func (w *workers) wake() {
	if w.freed != nil {
		close(w.freed)
		w.freed = nil
	}
}

// put takes back a worker that has done its call.
func (w *workers) put(p *process) {
	if !w.keep(p) {
		w.end(p)
	}
}

func (w *workers) keep(p *process) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.idle) == maxIdle || w.closed {
		return false
	}
	w.idle = append(w.idle, p)
	w.busy--
	w.wake()
	return true
}

// end ends a worker, and lets others have its place.
func (w *workers) end(p *process) {
	p.kill()
	<-p.ended
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	w.wake()
}

// close ends the workers that wait, and each of the others when its call ends.
func (w *workers) close() {
	w.mu.Lock()
	idle := w.idle
	w.idle, w.closed = nil, true
	w.mu.Unlock()
	for _, p := range idle {
		p.kill()
	}
	for _, p := range idle {
		<-p.ended
	}
}

// start starts a worker, and waits until it is one. It ends when this process does,
// however that ends, for its input ends then.
func (w *workers) start(ctx context.Context) (*process, error) {
	path, err := w.program()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path)
	cmd.Env = append(w.project.Grants.Environ(os.Environ()), workerEnv+"=1")
	said := &untilFatal{w: w.project.Stderr}
	cmd.Stderr = said
	cmd.SysProcAttr = apart       // a terminal's Ctrl-C is this process's, which may wait for its calls
	out, theirs, err := os.Pipe() // one of cmd's own would close with the process, whatever is left to read
	if err != nil {
		return nil, err
	}
	cmd.Stdout = theirs
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start() // if that fails it closes in
	}
	theirs.Close() // or it would not be seen that the worker has closed it
	if err != nil {
		out.Close()
		return nil, err
	}
	p := &process{cmd: cmd, in: in, out: bufio.NewReader(out), pipe: out, said: said, ended: make(chan struct{}), setUp: w.setUp(), seen: map[string]bool{}}
	go func() {
		_ = cmd.Wait()
		close(p.ended)
	}()
	return p, p.begin(ctx)
}

// setUp is what a worker is told first.
func (w *workers) setUp() *setUp {
	scripts, broken := map[string]string{}, map[string]*luaerr.ScriptError{}
	for file, sc := range w.project.Scripts {
		if sc.SHA256 != "" {
			scripts[file] = string(sc.Source)
		} else if _, err := sc.Compile(); err != nil {
			broken[file] = luaerr.From(err)
		}
	}
	return &setUp{Dir: w.dir, Grants: w.project.Grants, Limits: w.project.Limits, Scripts: scripts, Broken: broken}
}

// begin waits until a process says that it is a worker. Until then whoever ends all of
// a service's processes ends it too.
func (p *process) begin(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.kill)
	_, err := receive(p.out)
	if stop() && err == nil {
		return nil
	}
	p.kill()
	<-p.ended
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("it ended as it started (%s)", p.cmd.ProcessState)
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
