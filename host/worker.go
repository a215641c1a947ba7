package host

import (
	"bufio"
	"context"
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

	"obelus/engine"
	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
	"obelus/luastd"
	"obelus/store"
)

// workerProcessors is enough for one call and the collector.
const workerProcessors = 2

// workerEnv in the environment makes a process a worker.
const workerEnv = "OBELUS_WORKER"

// ownProgram is this program, once it has called [Worker].
var ownProgram *executable

// executable is a file that runs, as it was when the program began.
type executable struct {
	path string
	was  os.FileInfo
	err  error
}

func ownExecutable() *executable {
	e := &executable{}
	if e.path, e.err = os.Executable(); e.err == nil {
		e.was, e.err = os.Stat(e.path)
	}
	return e
}

// now is where the file is by now. Where another one has taken its place, as a newer
// version has after an upgrade, the system may still have the one that runs.
func (e *executable) now() (string, error) {
	if e.err != nil {
		return "", e.err
	}
	if info, err := os.Stat(e.path); err == nil && os.SameFile(info, e.was) {
		return e.path, nil
	}
	const running = "/proc/self/exe"
	if info, err := os.Stat(running); err == nil && os.SameFile(info, e.was) {
		return running, nil
	}
	return "", fmt.Errorf("%s has gone, or is another program than the one that runs: start that anew", e.path)
}

// WorkerSetup is what the activities of a worker run with.
type WorkerSetup struct {
	Dir     string // of the project, as an absolute path on disk; empty for none
	Grants  luastd.Grants
	Limits  limits.Limits
	Scripts map[string]*sandbox.Script // by file
	Stderr  io.Writer                  // receives what scripts print
	Log     *slog.Logger               // receives what they log
}

// Executor runs one call of an activity in this process.
type Executor func(script *sandbox.Script, name string, timeout time.Duration, in engine.Invocation) (engine.Result, error)

// mainWorker lets this program start workers. In a process that was started as one it does not
// return: it runs calls by the executor that open gives.
func mainWorker(open func(WorkerSetup) Executor) {
	ownProgram = ownExecutable()
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

// setUp is what a worker is told first: the project, as far as activities need
// it.
type setUp struct {
	Dir     string
	Grants  luastd.Grants
	Limits  limits.Limits
	Scripts map[string]string              // what may be required, by file; compiled when it is
	Broken  map[string]*luaerr.ScriptError // files that can't be read
}

// job is one call for a worker.
type job struct {
	file, sha256 string
	source       any // of the file; nil if the worker has seen it before
	name         string
	timeout      time.Duration
	in           engine.Invocation
}

// script names the script: two files may hold the same.
func (j *job) script() string { return j.file + "\x00" + j.sha256 }

func (j *job) value() any {
	return []any{
		j.file, j.sha256, j.source, j.name, int64(j.timeout),
		j.in.Call, j.in.Context, j.in.Tool, j.in.Key, j.in.Attempt,
	}
}

func readJob(v any) *job {
	list := v.([]any)
	j := &job{file: list[0].(string), sha256: list[1].(string), source: list[2], name: list[3].(string), timeout: time.Duration(whole(list[4]))}
	j.in.Call, _ = list[5].(map[string]any)
	j.in.Context, _ = list[6].(map[string]any)
	j.in.Tool, j.in.Key, j.in.Attempt = list[7], list[8].(string), int(whole(list[9]))
	return j
}

func whole(v any) int64 {
	n, _ := v.(json.Number).Int64()
	return n
}

// done is what has become of a job: one of these.
type done struct {
	result  engine.Result
	failure map[string]any
	fault   *luaerr.ScriptError
}

func (d *done) value() any {
	switch {
	case d.failure != nil:
		return map[string]any{"failure": d.failure}
	case d.fault != nil:
		return map[string]any{"fault": string(store.EncodeJSON(d.fault))}
	case d.result.Message != nil:
		return map[string]any{"message": d.result.Message}
	}
	return map[string]any{"value": d.result.Value, "to": d.result.To}
}

func readDone(v any) (d done, err error) {
	is, ok := v.(map[string]any)
	if !ok {
		return d, errWire
	}
	d.failure, _ = is["failure"].(map[string]any)
	d.result.Message, _ = is["message"].(map[string]any)
	d.result.Value = is["value"]
	d.result.To, _ = is["to"].(string)
	if fault, ok := is["fault"].(string); ok {
		err = json.Unmarshal([]byte(fault), &d.fault)
	}
	return d, err
}

func (d *done) outcome() (engine.Result, error) {
	switch {
	case d.failure != nil:
		return engine.Result{}, &engine.Failure{Fields: d.failure, Loose: true}
	case d.fault != nil:
		return engine.Result{}, d.fault
	}
	d.result.Loose = true
	return d.result, nil
}

// work does jobs until there are no more, which is io.EOF: whom it works for has gone,
// or wants no more, also of the job that it is at.
func work(in io.Reader, out io.Writer, open func(WorkerSetup) Executor) error {
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

// printer sends what scripts print, as a string before what has become of the job:
// it must not be taken for what the runtime writes to stderr in its last need.
type printer struct{ out io.Writer }

func (p printer) Write(text []byte) (int, error) {
	return len(text), send(p.out, string(text))
}

// recorder sends what scripts log, as a list before what has become of the job: the
// level, the message, and names and values by turns.
type recorder struct{ out io.Writer }

func (r recorder) Enabled(context.Context, slog.Level) bool { return true }

func (r recorder) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r recorder) WithGroup(string) slog.Handler { return r }

func (r recorder) Handle(_ context.Context, record slog.Record) error {
	list := []any{int(record.Level), record.Message}
	record.Attrs(func(a slog.Attr) bool {
		list = append(list, a.Key, luastd.Unlogged(a.Value.Any()))
		return true
	})
	return send(r.out, list)
}

// logRecorded logs what a recorder has sent.
func logRecorded(log *slog.Logger, list []any) {
	var attrs []slog.Attr
	for i := 2; i+1 < len(list); i += 2 {
		attrs = append(attrs, slog.Any(list[i].(string), luastd.Logged(list[i+1])))
	}
	log.LogAttrs(context.Background(), slog.Level(whole(list[0])), list[1].(string), attrs...)
}

type worker struct {
	execute Executor
	source  int                        // bytes of a script at most
	scripts map[string]*sandbox.Script // that hold activities, see [job.script]
}

func newWorker(s setUp, out io.Writer, open func(WorkerSetup) Executor) *worker {
	scripts := map[string]*sandbox.Script{}
	for file, source := range s.Scripts {
		scripts[file] = sandbox.NewLazyScript(file, []byte(source), s.Limits.Source)
	}
	for file, err := range s.Broken {
		scripts[file] = sandbox.NewBrokenScript(file, err)
	}
	execute := open(WorkerSetup{Dir: s.Dir, Grants: s.Grants, Limits: s.Limits, Scripts: scripts, Stderr: printer{out}, Log: slog.New(recorder{out})})
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
	var failure *engine.Failure
	switch {
	case errors.As(err, &failure):
		return done{failure: failure.Fields}
	case err != nil:
		return done{fault: luaerr.From(err)}
	}
	return done{result: result}
}
