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
	"time"

	"obelus/engine/plan"
	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
	"obelus/luastd"
)

// workerProcessors is enough for one call and the collector.
const workerProcessors = 2

// workerEnv in the environment makes a process a worker.
const workerEnv = "OBELUS_WORKER"

// Setup is what the activities of a worker run with.
type Setup struct {
	Dir     string // of the project, as an absolute path on disk; empty for none
	Grants  luastd.Grants
	Limits  limits.Limits
	Scripts map[string]*sandbox.Script // by file
	Stderr  io.Writer                  // receives what scripts print
	Log     *slog.Logger               // receives what they log
}

// Executor runs one call of an activity in this process.
type Executor func(script *sandbox.Script, name string, timeout time.Duration, in plan.Invocation) (plan.Result, error)

// Main lets this program start workers. In a process that was started as one it does not
// return: it runs calls by the executor that open gives.
func Main(open func(Setup) Executor) {
	OwnProgram = ownExecutable()
	if os.Getenv(workerEnv) == "" {
		return
	}
	_ = os.Unsetenv(workerEnv) // which is no part of what a script may be shown
	runtime.GOMAXPROCS(workerProcessors)
	// Whoever ends all of a service's processes lets the first one say what becomes of its calls.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := send(os.Stdout, true) // that it is a worker now
	if err == nil {
		err = work(os.Stdin, os.Stdout, open)
	}
	if !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, "obelus: worker:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// work does jobs until there are no more, which is io.EOF: whom it works for has gone,
// or wants no more, also of the job that it is at.
func work(in io.Reader, out io.Writer, open func(Setup) Executor) error {
	r := bufio.NewReader(in)
	first, err := receive(r)
	if err != nil {
		return err
	}
	var s setUp
	if err := json.Unmarshal([]byte(first.(string)), &s); err != nil {
		return err
	}
	debug.SetMemoryLimit(int64(s.Limits.Memory))
	bound(s.Limits.Memory)
	out = sandbox.LockWriter(out)
	w := newWorker(s, out, open)
	jobs := make(chan *job)
	go func() {
		for j := range jobs {
			d := w.do(j)
			_ = send(out, d.value()) // who can't be told has gone
		}
	}()
	for {
		v, err := receive(r)
		if err != nil {
			return err
		}
		jobs <- readJob(v)
	}
}

type worker struct {
	execute Executor
	source  int                        // bytes of a script at most
	scripts map[string]*sandbox.Script // that hold activities, see [job.script]
}

func newWorker(s setUp, out io.Writer, open func(Setup) Executor) *worker {
	scripts := map[string]*sandbox.Script{}
	for file, source := range s.Scripts {
		scripts[file] = sandbox.NewLazyScript(file, []byte(source), s.Limits.Source)
	}
	for file, err := range s.Broken {
		scripts[file] = sandbox.NewBrokenScript(file, err)
	}
	execute := open(Setup{Dir: s.Dir, Grants: s.Grants, Limits: s.Limits, Scripts: scripts, Stderr: printer{out}, Log: slog.New(recorder{out})})
	return &worker{execute, s.Limits.Source, map[string]*sandbox.Script{}}
}

func (w *worker) do(j *job) done {
	sc := w.scripts[j.script()]
	if sc == nil {
		var err error
		if sc, err = sandbox.NewScript(j.file, []byte(j.source.(string)), w.source); err != nil {
			return done{fault: luaerr.From(err)}
		}
		w.scripts[j.script()] = sc
	}
	result, err := w.execute(sc, j.name, j.timeout, j.in)
	var failure *plan.Failure
	switch {
	case errors.As(err, &failure):
		return done{failure: failure.Fields}
	case err != nil:
		return done{fault: luaerr.From(err)}
	}
	return done{result: result}
}
