package host

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"obelus/engine"
	"obelus/luastd"
	"obelus/store"
)

// workerEnv in the environment makes a process a worker.
const workerEnv = "OBELUS_WORKER"

// workerReady tells that this program calls [Worker].
var workerReady bool

// Worker lets this program run activities in processes of their own, for
// projects that set isolate = "process". A program that embeds Obelus calls it
// first in its main: in a process that was started as a worker it does not
// return.
func Worker() {
	workerReady = true
	if os.Getenv(workerEnv) == "" {
		return
	}
	if err := work(os.Stdin, os.Stdout); !errors.Is(err, io.EOF) {
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
	Limits  Limits
	Scripts map[string]string // what may be required, by file
}

// job is one call for a worker.
type job struct {
	File, SHA256 string
	Source       *string // of the file, if the worker has not seen it yet
	Name         string
	Timeout      time.Duration
	Call         any
	Context      any
	Tool         any
	Key          string
	Attempt      int
}

// done is what has become of a job, or, before that, what it prints.
type done struct {
	Printed []byte `json:",omitempty"`
	Value   any
	To      string
	Message map[string]any
	Failure map[string]any `json:",omitempty"`
	Fault   *ScriptError   `json:",omitempty"`
}

// work does jobs until there are no more, which is io.EOF.
func work(in io.Reader, out io.Writer) error {
	r := bufio.NewReader(in)
	var s setUp
	if err := receive(r, &s); err != nil {
		return err
	}
	bound(s.Limits.Memory)
	w := newWorker(s, printer{out})
	for {
		var j job
		if err := receive(r, &j); err != nil {
			return err
		}
		if err := send(out, w.do(&j)); err != nil {
			return err
		}
	}
}

// printer sends what scripts print, which must not be taken for what the runtime
// writes to stderr in its last need.
type printer struct{ out io.Writer }

func (p printer) Write(text []byte) (int, error) {
	return len(text), send(p.out, done{Printed: text})
}

type worker struct {
	gen     *Generation
	scripts map[string]*script // that hold activities, by their hashes
}

func newWorker(s setUp, stderr io.Writer) *worker {
	g := &Generation{
		config: Config{Dir: s.Dir, Stderr: stderr}.withDefaults(), limits: s.Limits, grants: s.Grants,
		scripts: map[string]*script{}, registry: engine.NewRegistry(),
	}
	for file, source := range s.Scripts {
		sc, err := newScript(file, []byte(source), s.Limits.Source)
		if err != nil {
			sc = &script{file: file, broken: err}
		}
		g.scripts[file] = sc
	}
	return &worker{g, map[string]*script{}}
}

func (w *worker) do(j *job) done {
	sc := w.scripts[j.SHA256]
	if sc == nil {
		var err error
		if sc, err = newScript(j.File, []byte(*j.Source), w.gen.limits.Source); err != nil {
			return done{Fault: scriptError(err)}
		}
		w.scripts[j.SHA256] = sc
	}
	a := &activity{gen: w.gen, script: sc, name: j.Name, timeout: j.Timeout}
	call, _ := j.Call.(map[string]any)
	kinds, _ := j.Context.(map[string]any)
	result, err := a.Run(context.Background(), engine.Invocation{Call: call, Context: kinds, Tool: j.Tool, Key: j.Key, Attempt: j.Attempt})
	var failure *engine.Failure
	switch {
	case errors.As(err, &failure):
		return done{Failure: failure.Fields}
	case err != nil:
		return done{Fault: scriptError(err)}
	}
	return done{Value: result.Value, To: result.To, Message: result.Message}
}

// maxFrame bounds what goes to a worker and back at once.
const maxFrame = 1 << 30

// send writes a value as JSON, its length before it.
func send(w io.Writer, v any) error {
	text := store.EncodeJSON(v)
	if len(text) > maxFrame {
		return fmt.Errorf("%d bytes are too many for a worker", len(text))
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, len(text)+4), uint32(len(text)))
	_, err := w.Write(append(frame, text...))
	return err
}

// receive reads a value. Numbers keep their text.
func receive(r *bufio.Reader, v any) error {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxFrame {
		return errors.New("a message is too long")
	}
	decoder := json.NewDecoder(io.LimitReader(r, int64(n)))
	decoder.UseNumber()
	return decoder.Decode(v)
}
