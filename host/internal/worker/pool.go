// Package worker runs activities in processes of their own, which are the same program started
// again. A [Pool] belongs to the parent process; [Main] makes a process a worker. wire.go has the
// messages between them.
package worker

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"obelus/engine/plan"
	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
	"obelus/luastd"
	"obelus/store"
)

// Pool starts worker processes and runs calls of activities in them, each worker one call at a
// time. A worker's memory is limited: a script that takes more ends its worker, and only its own
// call fails.
type Pool struct {
	project *sandbox.Project
	// The project's folder, as an absolute path on disk; empty for none.
	Dir     string
	Program func() (path string, err error) // returns the path of this program, to start it again

	waiting atomic.Int32 // number of calls that wait for a busy worker

	mu   sync.Mutex
	Idle []*Process // kept for later calls
	busy int        // number of workers that run calls or are being started
	// Closed when the number of busy workers falls; nil while no call may have to wait for that.
	freed  chan struct{}
	closed bool // workers end after their calls
}

// maxIdle is the number of workers that are kept for later calls.
const maxIdle = 16

// workerGrace is how much longer than the timeout of its call a worker may take to answer, before
// it is killed.
const workerGrace = time.Second

// errNotWorker is the error for programs that do not call [Main].
var errNotWorker = errors.New(`isolate "process" starts this program again as a worker: its main must call host.Worker() first`)

// NewPool returns a pool for a project. Its error is the reason why activities of the project can't
// run in processes of their own.
func NewPool(p *sandbox.Project, dir string) (*Pool, error) {
	if OwnProgram == nil {
		return nil, errNotWorker
	}
	if len(p.Objects) > 0 {
		return nil, errors.New(`isolate "process" and objects of the host don't go together: a worker can't reach them`)
	}
	if _, ok := p.Clock.(luastd.SystemClock); !ok {
		return nil, errors.New(`isolate "process" and a clock of the host don't go together: a worker goes by the machine's`)
	}
	return &Pool{project: p, Dir: dir, Program: OwnProgram.Now}, nil
}

// Call is a call of an activity that is to run in a worker.
type Call struct {
	Script  *sandbox.Script
	Name    string
	Timeout time.Duration // 0 for the engine's default
	Ask     AskFunc       // answers its questions to models; may be nil
	Output  io.Writer     // receives its output
	Log     *slog.Logger  // receives its log records
	// Bounds narrow the project's permissions for it; nil for none.
	Bounds []luastd.Bound
}

// errorf returns an error about the call, at its script.
func (c *Call) errorf(format string, args ...any) *luaerr.ScriptError {
	return &luaerr.ScriptError{File: c.Script.File, Message: fmt.Sprintf("activity %s: ", c.Name) + fmt.Sprintf(format, args...)}
}

// Run runs one call in a worker. If ctx is cancelled, or the worker does not answer in time, it
// kills the worker. The errors are those of a call in this process, and one for a worker that has
// died.
func (w *Pool) Run(ctx context.Context, call Call, in plan.Invocation) (plan.Result, error) {
	timeout := cmp.Or(call.Timeout, plan.DefaultTimeout)
	if deadline, ok := ctx.Deadline(); ok { // the worker can't see it
		timeout = max(time.Millisecond, min(timeout, time.Until(deadline).Round(time.Millisecond)))
	}
	p, left, err := w.worker(ctx, &call, timeout)
	if err != nil {
		return plan.Result{}, err
	}
	alarm := time.AfterFunc(left+workerGrace, p.kill)
	release := context.AfterFunc(ctx, func() {
		if isCanceled(ctx) {
			p.kill()
		}
	})
	asking, stop := context.WithTimeout(ctx, left)
	defer stop()
	a, err := p.run(call.job(p, left, in), &call, func(q luastd.ModelQuestion) (any, error) { return call.Ask.put(asking, q) })
	late := !alarm.Stop()
	canceled := !release() && isCanceled(ctx)
	if err == nil && !late && !canceled {
		w.release(p)
		return a.outcome()
	}
	w.discard(p)
	switch {
	case canceled:
		return plan.Result{}, ctx.Err()
	case late:
		return plan.Result{}, newTimeout(timeout)
	}
	return plan.Result{}, w.deathError(&call, p)
}

// worker returns a worker for a call, and the time that is left for the call: waiting for a busy
// worker counts against it, starting a worker does not.
func (w *Pool) worker(ctx context.Context, call *Call, timeout time.Duration) (p *Process, left time.Duration, err error) {
	began := time.Now()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout+workerGrace)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if isCanceled(ctx) {
			cancel()
		}
	})()
	p, err = w.acquire(within)
	switch waited := time.Since(began); {
	case err != nil && isCanceled(ctx):
		return nil, 0, ctx.Err()
	case err != nil && within.Err() != nil:
		return nil, 0, newTimeout(timeout)
	case err != nil:
		return nil, 0, call.errorf("no worker can be started: %s", err)
	case waited > workerGrace:
		return p, max(time.Millisecond, timeout-waited), nil
	}
	return p, timeout, nil
}

func newTimeout(after time.Duration) error {
	return &plan.Failure{Fields: map[string]any{"message": fmt.Sprintf("timed out after %s", after), "code": "timeout"}}
}

// isCanceled reports whether a call was cancelled. It is false for a call whose deadline has
// passed: the worker knows the deadline, and answers with a timeout.
func isCanceled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// job returns the message for a worker that runs the call. It has the script's source only the
// first time.
func (c *Call) job(p *Process, timeout time.Duration, in plan.Invocation) *job {
	j := &job{file: c.Script.File, sha256: c.Script.SHA256, name: c.Name, timeout: timeout, in: in}
	if c.Bounds != nil {
		j.bounds = string(store.EncodeJSON(c.Bounds))
	}
	if !p.sent[j.scriptID()] {
		j.source, p.sent[j.scriptID()] = string(c.Script.Source), true
	}
	return j
}

// deathError returns the error for a worker that gave no answer.
func (w *Pool) deathError(call *Call, p *Process) error {
	if p.stderr.threads {
		return call.errorf("the worker that ran it has died: the machine admits no more threads and processes")
	}
	return call.errorf("the worker that ran it has died, probably of its memory: limits.memory in %s allows %s",
		limits.SettingsFile, limits.FormatSize("memory", w.project.Limits.Memory))
}

// WorkerTries is the number of attempts to start a worker, if no other worker is busy.
const WorkerTries = 3

// acquire takes an idle worker, or starts one. While the machine allows no more of them, it waits
// for a busy one.
func (w *Pool) acquire(ctx context.Context) (*Process, error) {
	for tries := 1; ; tries++ {
		p, freed := w.takeIdle()
		if p != nil {
			return p, nil
		}
		p, err := w.start(ctx)
		if err == nil {
			return p, nil
		}
		switch others := w.recordFailedStart(freed); {
		case others:
			w.waiting.Add(1)
			select {
			case <-freed:
				w.waiting.Add(-1)
			case <-ctx.Done():
				w.waiting.Add(-1)
				return nil, err
			}
		case tries >= WorkerTries || ctx.Err() != nil:
			return nil, err
		}
	}
}

// Waiting returns the number of calls that wait for a busy worker, since no more can be started.
func (w *Pool) Waiting() int { return int(w.waiting.Load()) }

// takeIdle returns an idle worker, and drops idle workers whose process has ended. Without one it
// returns nil: then the caller must start a worker, and freed is closed when the number of busy
// workers falls. In both cases the worker counts as busy.
func (w *Pool) takeIdle() (p *Process, freed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy++
	for n := len(w.Idle); n > 0; n-- {
		p := w.Idle[n-1]
		w.Idle = w.Idle[:n-1]
		select {
		case <-p.Ended:
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

// recordFailedStart records that a worker was not started, and reports whether there may be one
// when freed is closed.
func (w *Pool) recordFailedStart(freed <-chan struct{}) bool {
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
	w.wakeWaiting() // for calls that wait for this worker
	return false
}

// wakeWaiting lets calls that wait for a busy worker try again. The caller holds mu.
func (w *Pool) wakeWaiting() {
	if w.freed != nil {
		close(w.freed)
		w.freed = nil
	}
}

// release takes back a worker whose call has ended, and ends it if there are enough idle ones.
func (w *Pool) release(p *Process) {
	if !w.keepIdle(p) {
		w.discard(p)
	}
}

// keepIdle makes a busy worker an idle one, and returns false if it must end instead.
func (w *Pool) keepIdle(p *Process) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.Idle) == maxIdle || w.closed {
		return false
	}
	w.Idle = append(w.Idle, p)
	w.busy--
	w.wakeWaiting()
	return true
}

// discard ends a worker, and lets a waiting call start another one.
func (w *Pool) discard(p *Process) {
	p.kill()
	<-p.Ended
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	w.wakeWaiting()
}

// Close ends the idle workers, and each other worker at the end of its call.
func (w *Pool) Close() {
	w.mu.Lock()
	idle := w.Idle
	w.Idle, w.closed = nil, true
	w.mu.Unlock()
	for _, p := range idle {
		p.kill()
	}
	for _, p := range idle {
		<-p.Ended
	}
}

// start starts a process, and waits until it reports that it is a worker. The worker ends when this
// process ends, since that closes its input.
func (w *Pool) start(ctx context.Context) (*Process, error) {
	path, err := w.Program()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path)
	cmd.Env = append(w.project.Grants.Environ(os.Environ()), workerEnv+"=1")
	stderr := &stderrFilter{w: w.project.Stderr}
	cmd.Stderr = stderr
	// Ctrl-C in a terminal is for this process, which may wait for its calls.
	cmd.SysProcAttr = ownProcessGroup
	// A pipe of cmd's own would be closed at the end of the process, with output still unread.
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = childOut
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start() // closes in if it fails
	}
	childOut.Close() // else the end of the worker's output would go unnoticed
	if err != nil {
		out.Close()
		return nil, err
	}
	p := &Process{Cmd: cmd, in: in, out: bufio.NewReader(out), pipe: out, stderr: stderr, Ended: make(chan struct{}), setup: w.setupMessage(), sent: map[string]bool{}}
	go func() {
		_ = cmd.Wait()
		close(p.Ended)
	}()
	return p, p.awaitReady(ctx)
}

// setupMessage returns the first message to a worker.
func (w *Pool) setupMessage() *setupMessage {
	scripts, broken := map[string]string{}, map[string]*luaerr.ScriptError{}
	for file, sc := range w.project.Scripts {
		if sc.SHA256 != "" {
			scripts[file] = string(sc.Source)
		} else if _, err := sc.Compile(); err != nil {
			broken[file] = luaerr.From(err)
		}
	}
	return &setupMessage{
		Dir: w.Dir, Grants: w.project.Grants, Limits: w.project.Limits, Scripts: scripts, Broken: broken, DefaultModel: w.project.DefaultModel,
	}
}

// Process is one worker. It belongs to the call that runs in it.
type Process struct {
	Cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	pipe   io.Closer       // source of out
	stderr *stderrFilter   // passes on the output of the process on stderr
	Ended  chan struct{}   // closed when the process has ended
	setup  *setupMessage   // the first message, until it has been sent
	sent   map[string]bool // scripts whose source it has, by job.scriptID
}

// run sends a job and waits for its outcome. Meanwhile it passes on output and log records, and
// answers questions to models. It also sends the first message, since a worker that has just
// started may be slow to read and only a call has a deadline.
func (p *Process) run(j *job, call *Call, ask func(q luastd.ModelQuestion) (any, error)) (answer, error) {
	if p.setup != nil {
		if err := send(p.in, string(store.EncodeJSON(p.setup))); err != nil {
			return answer{}, err
		}
		p.setup = nil
	}
	if err := send(p.in, j.value()); err != nil {
		return answer{}, err
	}
	for {
		v, err := receive(p.out)
		if err != nil {
			return answer{}, err
		}
		switch v := v.(type) {
		case string:
			_, _ = io.WriteString(call.Output, v) // as print itself ignores errors
		case []any:
			logReceived(call.Log, v)
		case map[string]any:
			if v["ask"] == nil {
				return readAnswer(v)
			}
			if err := send(p.in, answerQuestion(v, ask)); err != nil {
				return answer{}, err
			}
		default:
			return answer{}, errWire
		}
	}
}

// kill ends the process, and lets a read of its output fail.
func (p *Process) kill() {
	_ = p.Cmd.Process.Kill()
	_ = p.pipe.Close()
}

// awaitReady waits until a process reports that it is a worker. Until then a signal to all
// processes of a service may end it.
func (p *Process) awaitReady(ctx context.Context) error {
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

// stderrFilter passes on the output of a worker on stderr, until the Go runtime reports a fatal
// error: the stacks of all goroutines that follow are of no use to people.
type stderrFilter struct {
	w       io.Writer
	fatal   bool // the runtime has reported a fatal error
	threads bool // the machine allowed no more threads
}

func (u *stderrFilter) Write(text []byte) (int, error) {
	if u.fatal = u.fatal || strings.HasPrefix(string(text), "fatal error:") || strings.HasPrefix(string(text), "runtime:"); u.fatal {
		u.threads = u.threads || strings.Contains(string(text), "failed to create new OS thread")
		return len(text), nil
	}
	return u.w.Write(text)
}
