package worker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"obelus/engine/plan"
	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
	"obelus/luastd"
)

// Setup has everything that the activities of a worker need.
type Setup struct {
	Dir     string // the project's folder, as an absolute path on disk; empty for none
	Grants  luastd.Grants
	Limits  limits.Limits
	Scripts map[string]*sandbox.Script // by file
	Stderr  io.Writer                  // receives the output of scripts
	Log     *slog.Logger               // receives their log records
	Ask     AskFunc                    // answers their questions to models

	DefaultModel string // name of the model that they ask where they name none
}

// Executor runs one call of an activity in this process. The call has no Ask: see [Setup].
type Executor func(call Call, in plan.Invocation) (plan.Result, error)

// Main lets this program start workers. In a process that was started as one it does not return: it
// runs calls by the executor that open returns.
func Main(open func(Setup) Executor) {
	OwnProgram = ownExecutable()
	if os.Getenv(workerEnv) == "" {
		return
	}
	_ = os.Unsetenv(workerEnv) // scripts must not see it
	runtime.GOMAXPROCS(workerProcessors)
	// A signal to all processes of a service is for the first process, which decides about its
	// calls.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := send(os.Stdout, true) // it is a worker now
	if err == nil {
		err = runJobs(os.Stdin, os.Stdout, open)
	}
	if !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, "obelus: worker:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// OwnProgram is this program, once it has called [Main].
var OwnProgram *executable

// executable is the file of a running program, as it was when the program began.
type executable struct {
	Path string
	info os.FileInfo
	err  error
}

func ownExecutable() *executable {
	e := &executable{}
	if e.Path, e.err = os.Executable(); e.err == nil {
		e.info, e.err = os.Stat(e.Path)
	}
	return e
}

// Now returns the present path of the file. If another file has taken its place, as after an
// upgrade, the system may still have the one that runs.
func (e *executable) Now() (string, error) {
	if e.err != nil {
		return "", e.err
	}
	if info, err := os.Stat(e.Path); err == nil && os.SameFile(info, e.info) {
		return e.Path, nil
	}
	const running = "/proc/self/exe"
	if info, err := os.Stat(running); err == nil && os.SameFile(info, e.info) {
		return running, nil
	}
	return "", fmt.Errorf("%s has gone, or is another program than the one that runs: start that anew", e.Path)
}

// workerProcessors is enough for one call and the garbage collector.
const workerProcessors = 2

// workerEnv is the environment variable that makes a process a worker.
const workerEnv = "OBELUS_WORKER"

// runJobs runs jobs until its input ends, and returns io.EOF then: the parent process has ended, or
// has closed the pipe. It does not wait for a job that still runs.
func runJobs(in io.Reader, out io.Writer, open func(Setup) Executor) error {
	r := bufio.NewReader(in)
	first, err := receive(r)
	if err != nil {
		return err
	}
	var s setupMessage
	if err := json.Unmarshal([]byte(first.(string)), &s); err != nil {
		return err
	}
	debug.SetMemoryLimit(int64(s.Limits.Memory))
	limitMemory(s.Limits.Memory)
	out = sandbox.LockWriter(out)
	models := &asker{out: out}
	w := newWorker(s, out, models.ask, open)
	jobs := make(chan *job)
	go func() {
		for j := range jobs {
			a := w.do(j)
			_ = send(out, a.value()) // the parent has ended if it can't be sent
		}
	}()
	for {
		v, err := receive(r)
		if err != nil {
			return err
		}
		if answer, ok := v.(map[string]any); ok {
			models.receive(answer)
			continue
		}
		jobs <- readJob(v)
	}
}

type worker struct {
	execute Executor
	source  int                        // longest script in bytes
	scripts map[string]*sandbox.Script // that hold activities, see job.scriptID
}

func newWorker(s setupMessage, out io.Writer, ask AskFunc, open func(Setup) Executor) *worker {
	scripts := map[string]*sandbox.Script{}
	for file, source := range s.Scripts {
		scripts[file] = sandbox.NewLazyScript(file, []byte(source), s.Limits.Source)
	}
	for file, err := range s.Broken {
		scripts[file] = sandbox.NewBrokenScript(file, err)
	}
	execute := open(Setup{
		Dir: s.Dir, Grants: s.Grants, Limits: s.Limits, Scripts: scripts, Stderr: outputSender{out}, Log: slog.New(logSender{out}),
		Ask: ask, DefaultModel: s.DefaultModel,
	})
	return &worker{execute, s.Limits.Source, map[string]*sandbox.Script{}}
}

func (w *worker) do(j *job) answer {
	sc := w.scripts[j.scriptID()]
	if sc == nil {
		var err error
		if sc, err = sandbox.NewScript(j.file, []byte(j.source.(string)), w.source); err != nil {
			return answer{fault: luaerr.From(err)}
		}
		w.scripts[j.scriptID()] = sc
	}
	bounds, err := readBounds(j.bounds)
	if err != nil {
		return answer{fault: luaerr.From(err)}
	}
	result, err := w.execute(Call{Script: sc, Name: j.name, Timeout: j.timeout, Bounds: bounds}, j.in)
	var failure *plan.Failure
	switch {
	case errors.As(err, &failure):
		return answer{failure: failure.Fields}
	case err != nil:
		return answer{fault: luaerr.From(err)}
	}
	return answer{result: result}
}
