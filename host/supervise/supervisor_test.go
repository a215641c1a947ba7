package supervise

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
	"obelus/store/memory"
)

// worker is a supervisor of a test, for a project with activities in Go and a log in memory.
type worker struct {
	*Supervisor
	t       *testing.T
	host    *host.Host
	log     store.Log     // of Config, below the supervisor's
	reached chan string   // context of each call of stop that has begun
	resume  chan struct{} // lets one go on; closed, all of them
}

// newWorker returns a worker with the activities double, which returns twice its n, stop, which
// waits for the test or until its run is over, hold, which waits for the test alone, and flaky, whose
// first two attempts fail.
func newWorker(t *testing.T, configure func(*Config)) *worker {
	t.Helper()
	return newWorkerOf(t, fstest.MapFS{"obelus.lua": {Data: []byte(`return { drain = "1s" }`)}}, memory.New(), configure)
}

// newWorkerOf is newWorker for a project with files, and a log that other workers may have too.
func newWorkerOf(t *testing.T, files fs.FS, log store.Log, configure func(*Config)) *worker {
	t.Helper()
	w := &worker{t: t, log: log, reached: make(chan string, 1000), resume: make(chan struct{})}
	stop := func(ctx context.Context, in plan.Invocation) (plan.Result, error) {
		name, _, _ := strings.Cut(in.Key, "/")
		w.reached <- name
		select {
		case <-w.resume:
			return plan.Result{Value: "went on"}, nil
		case <-ctx.Done():
			return plan.Result{}, context.Cause(ctx)
		}
	}
	hold := func(_ context.Context, in plan.Invocation) (plan.Result, error) {
		return stop(context.Background(), in)
	}
	double := func(_ context.Context, in struct {
		N float64 `json:"n"`
	}) (float64, error) {
		return 2 * in.N, nil
	}
	flaky := func(_ context.Context, in plan.Invocation) (plan.Result, error) {
		if in.Attempt < 3 {
			return plan.Result{}, plan.NewFailure("down")
		}
		return plan.Result{Value: fmt.Sprint("attempt ", in.Attempt)}, nil
	}
	var err error
	w.host, err = host.Open(host.Config{
		FS: files,
		Activities: []plan.Registered{
			{Name: "double", Activity: engine.Typed(double)},
			{Name: "stop", Activity: plan.ActivityFunc(stop)},
			{Name: "hold", Activity: plan.ActivityFunc(hold)},
			{Name: "flaky", Activity: plan.ActivityFunc(flaky), Retries: 2, Backoff: 20 * time.Second},
		},
		Tools: map[string]any{"stop": map[string]any{}, "hold": map[string]any{}, "flaky": map[string]any{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.open(configure)
	return w
}

// open begins to supervise the log, a second time as a first.
func (w *worker) open(configure func(*Config)) {
	w.t.Helper()
	config := Config{Host: w.host, Log: w.log}
	if configure != nil {
		configure(&config)
	}
	s := New(config)
	w.Supervisor = s
	w.t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
}

// request is a plan of one call, whose result is the output.
func request(tool string, n any) *plan.Request {
	call := map[string]any{"_tool": tool, "_outputPath": "†state.x"}
	if n != nil {
		call["n"] = n
	}
	return &plan.Request{Calls: []plan.Source{{Call: call}}, Output: store.Some("†state.x")}
}

// start begins a run of such a plan.
func (w *worker) start(name, tool string, n any) *Run {
	w.t.Helper()
	run, err := w.Start(w.t.Context(), Start{Start: engine.Start{Context: name, Request: request(tool, n)}})
	if err != nil {
		w.t.Fatal(err)
	}
	return run
}

// expect waits until a run has ended or halted, and checks its status and output.
func (w *worker) expect(run *Run, status journal.RunStatus, output string) {
	w.t.Helper()
	outcome, err := run.Wait(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if text := string(store.EncodeJSON(outcome.Output)); outcome.Status != status || text != output {
		w.t.Errorf("the run of %s is %s with %s, not %s with %s", run.Context(), outcome.Status, text, status, output)
	}
}

// TestConfig_Settings: the settings of the project count unless the program says otherwise.
func TestConfig_Settings(t *testing.T) {
	h, err := host.Open(host.Config{FS: fstest.MapFS{
		"obelus.lua": {Data: []byte(`return { serve = { runs = 1, queue = 2, timeout = "4s", resume = false } }`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := Config{Host: h, Log: memory.New(), Queue: 5}.withDefaults()
	if got.Runs != 1 || got.Queue != 5 || got.Timeout != 4*time.Second || !got.NoResume || got.Poll != DefaultPoll {
		t.Errorf("%+v", got)
	}
}
