package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"obelus/engine/plan"
	"obelus/host/internal/sandbox"
	"obelus/host/internal/worker"
	"obelus/luastd"
	"obelus/store"
)

// TestMain lets this test binary be a worker.
func TestMain(m *testing.M) {
	Worker()
	os.Exit(m.Run())
}

// TestWorker holds that activities do in a worker what they do in this
// process.
func TestWorker(t *testing.T) {
	files := map[string]string{
		"lib/u.lua":      `return { inc = function(n) return n + 1 end }`,
		"lib/broken.lua": "\nlocal x = = 1",
		"activities/a.lua": `
			local u = require("u")
			local n = 0
			Activity.register("value", function(call, context, tool)
				n = n + 1
				return { n = u.inc(call.n), ran = n, big = call.big, list = call.list, seen = context.state, tool = tool.description }
			end)
			Activity.register("to", function() return Output.to("†a.b", { 1, 2 }) end)
			Activity.register("message", function() return Message.state { x = 1 } end)
			Activity.register("null", function() end)
			Activity.register("failure", function() return nil, { message = "no", code = 7, big = "12345678901234567890" } end)
			Activity.register("raises", function() error("out of luck") end)
			Activity.register("fault", function() local x; return x.y end)
			Activity.register("broken", function() return require("broken") end)
			Activity.register("catches", function() return select(2, pcall(require, "broken")) end)
			Activity.register("slow", { timeout = 0.2 }, function() while true do end end)
			Activity.register("bad", function() return 0/0 end)`,
	}
	here := open(t, files).Registry()
	files["obelus.lua"] = `return { isolate = "process" }`
	g := open(t, files)
	t.Cleanup(g.workers.Close)
	there := g.Registry()
	call, _ := store.DecodeJSON([]byte(`{"_tool": "value", "n": 1, "big": 12345678901234567890, "list": []}`))
	in := plan.Invocation{Call: call.(map[string]any), Context: map[string]any{"state": map[string]any{"x": "ä\u0000"}}, Tool: map[string]any{"description": "d"}, Attempt: 1}
	tell := func(r plan.Result, err error) string {
		var failure *plan.Failure
		var script *ScriptError
		switch {
		case errors.As(err, &failure):
			return "failure " + string(store.EncodeJSON(failure.Fields))
		case errors.As(err, &script):
			return "fault " + script.Error() + "\n" + script.Trace()
		case err != nil:
			return "error " + err.Error()
		}
		return string(store.EncodeJSON([]any{r.Value, r.To, r.Message}))
	}
	for name := range here.Activities {
		for range 2 { // in a worker that has run before, too
			want := tell(here.Activities[name].Activity.Run(context.Background(), in))
			if got := tell(there.Activities[name].Activity.Run(context.Background(), in)); got != want {
				t.Errorf("%s gives in a worker\n%s\nand here\n%s", name, got, want)
			}
		}
	}
}

// TestWorker_Prints holds that all of it arrives, before the call ends, and
// whatever it looks like.
func TestWorker_Prints(t *testing.T) {
	var out strings.Builder
	h, err := Open(Config{Stderr: &out, FS: project(map[string]string{
		"obelus.lua":       `return { isolate = "process" }`,
		"activities/a.lua": `Activity.register("a", function(call) print("runtime: 5 ms") io.write(call.n, "\255") end)`,
	})})
	if err != nil {
		t.Fatal(err)
	}
	g := h.Generation()
	t.Cleanup(g.workers.Close)
	for n := range 2 {
		if _, err := g.Registry().Activities["a"].Activity.Run(t.Context(), plan.Invocation{Call: map[string]any{"n": n}, Attempt: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if want := "runtime: 5 ms\n0\xffruntime: 5 ms\n1\xff"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestWorker_Logs: the program's log gets it as from a script beside it.
func TestWorker_Logs(t *testing.T) {
	logged := map[string]string{}
	for _, isolate := range []string{`"process"`, "false"} {
		var out strings.Builder
		handler := slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})
		h, err := Open(Config{Log: slog.New(handler), FS: project(map[string]string{
			"obelus.lua": `return { isolate = ` + isolate + ` }`,
			"activities/a.lua": `Activity.register("a", function(call)
				local log = require("log")
				log.debug("unheard")
				log.warn("a \"b\"", { n = 1.5, text = "x", big = "90071992547409931", list = { 1, { deep = true } }, no = json.null, yes = true })
				log.error("bare")
			end)`,
		})})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		if _, err := h.Generation().Registry().Activities["a"].Activity.Run(t.Context(), plan.Invocation{Attempt: 1}); err != nil {
			t.Fatal(err)
		}
		logged[isolate] = out.String()
	}
	if logged["false"] != logged[`"process"`] || strings.Count(logged["false"], "\n") != 2 {
		t.Errorf("got %s\nwant %s", logged[`"process"`], logged["false"])
	}
}

// TestWorker_DeadlineOfCaller holds that one that is nearer than the
// activity's own ends a call in time, with its worker alive.
func TestWorker_DeadlineOfCaller(t *testing.T) {
	g := open(t, map[string]string{
		"obelus.lua":       `return { isolate = "process" }`,
		"activities/a.lua": `Activity.register("a", function() while true do end end)`,
	})
	t.Cleanup(g.workers.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := g.Registry().Activities["a"].Activity.Run(ctx, plan.Invocation{Attempt: 1})
	if err == nil || !strings.HasPrefix(err.Error(), "timed out after ") || err.Error() == "timed out after 30s" || len(g.workers.Idle) != 1 {
		t.Error(err, len(g.workers.Idle))
	}
}

// TestWorker_DoesNotRead starts one that is never told whom it
// works for.
func TestWorker_DoesNotRead(t *testing.T) {
	g := open(t, map[string]string{
		"obelus.lua":       `return { isolate = "process" }`,
		"lib/long.lua":     "--" + strings.Repeat("x", 200_000),
		"activities/a.lua": `Activity.register("a", function() return 1 end)`,
	})
	t.Cleanup(g.workers.Close)
	deaf := filepath.Join(t.TempDir(), "deaf")
	g.workers.Program = func() (string, error) { return deaf, nil }
	if err := os.WriteFile(deaf, []byte("#!/bin/sh\nexec sleep 10\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	began := time.Now()
	_, err := g.Registry().Activities["a"].Activity.Run(ctx, plan.Invocation{Attempt: 1})
	if took := time.Since(began); !errors.Is(err, context.Canceled) || took > 5*time.Second {
		t.Error(err, took)
	}
}

// TestWorker_DiesIdle ends a worker that waits.
func TestWorker_DiesIdle(t *testing.T) {
	g := open(t, map[string]string{"obelus.lua": `return { isolate = "process" }`, "activities/a.lua": `Activity.register("a", function() return 1 end)`})
	t.Cleanup(g.workers.Close)
	for range 2 {
		if _, err := g.Registry().Activities["a"].Activity.Run(t.Context(), plan.Invocation{Attempt: 1}); err != nil {
			t.Fatal(err)
		}
		p := g.workers.Idle[0]
		_ = p.Cmd.Process.Kill()
		<-p.Ended
	}
}

// TestWorker_EndedAtStart has workers ended by the signal that ends
// all processes of a service, before they can know that it is not for them.
func TestWorker_EndedAtStart(t *testing.T) {
	g := open(t, map[string]string{"obelus.lua": `return { isolate = "process" }`, "activities/a.lua": `Activity.register("a", function() return 1 end)`})
	t.Cleanup(g.workers.Close)
	run := func(deaths int) error {
		script := fmt.Sprintf("#!/bin/sh\necho >> \"$0.starts\"\nif [ $(wc -l < \"$0.starts\") -le %d ]; then kill -TERM $$; fi\nexec %q\n", deaths, os.Args[0])
		path := filepath.Join(t.TempDir(), "worker")
		g.workers.Program = func() (string, error) { return path, nil }
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := g.Registry().Activities["a"].Activity.Run(t.Context(), plan.Invocation{Attempt: 1})
		return err
	}
	if err := run(worker.WorkerTries); err == nil || !strings.Contains(err.Error(), "no worker can be started: it ended as it started (signal: terminated)") {
		t.Error(err)
	}
	if err := run(2); err != nil {
		t.Error(err)
	}
}

// TestWorker_NoneCanBeStarted holds that a machine that admits no more
// processes fails no call for which there will be a worker in time.
func TestWorker_NoneCanBeStarted(t *testing.T) {
	g := open(t, map[string]string{
		"obelus.lua": `return { isolate = "process", allow = { read = { "." } } }`,
		"activities/a.lua": `
			Activity.register("a", function() return 1 end)
			Activity.register("busy", function()
				print("busy")
				while not require("fs").exists("enough") do require("time").sleep(0.01) end
			end)`,
	})
	t.Cleanup(g.workers.Close)
	begun := make(chan struct{})
	g.workers.Dir = t.TempDir()
	g.project.Grants.Root = g.workers.Dir
	g.config.Stderr = writerFunc(func([]byte) { close(begun) })
	run := func(ctx context.Context, name string) error {
		_, err := g.Registry().Activities[name].Activity.Run(ctx, plan.Invocation{Attempt: 1})
		return err
	}
	first, second := make(chan error), make(chan error)
	go func() { first <- run(t.Context(), "busy") }()
	<-begun
	for _, path := range []string{"/bin/false", filepath.Join(t.TempDir(), "none")} {
		g.workers.Program = func() (string, error) { return path, nil }
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		if err := run(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled while it waits: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := run(ctx, "a"); err == nil || !strings.HasPrefix(err.Error(), "timed out after ") {
			t.Errorf("no time left while it waits: %v", err)
		}
	}
	go func() { second <- run(t.Context(), "a") }()
	for g.workers.Waiting() == 0 {
		runtime.Gosched()
	}
	if err := os.WriteFile(filepath.Join(g.workers.Dir, "enough"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if a, b := <-first, <-second; a != nil || b != nil {
		t.Error(a, b)
	}
	g.workers.Close()
	if err := run(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "no worker can be started") {
		t.Error(err)
	}
}

// writerFunc is called with what is written.
type writerFunc func([]byte)

func (f writerFunc) Write(text []byte) (int, error) {
	f(text)
	return len(text), nil
}

// TestWorker_DiesInCall kills a worker in the middle of a call, and
// ends another by a string that it has no memory for, while others go on.
func TestWorker_DiesInCall(t *testing.T) {
	g := open(t, map[string]string{
		"obelus.lua": `return { isolate = "process", limits = { memory = "64MB", string = "2GB" } }`,
		"activities/a.lua": `
			Activity.register("bomb", function() return #("x"):rep(1500000000) end)
			Activity.register("add", function(call) return call.n end)
			Activity.register("wait", function() require("time").sleep(100) end)`,
	})
	t.Cleanup(g.workers.Close)
	run := func(ctx context.Context, name string, n any) (any, error) {
		r, err := g.Registry().Activities[name].Activity.Run(ctx, plan.Invocation{Call: map[string]any{"n": n}, Attempt: 1})
		return r.Value, err
	}
	var others sync.WaitGroup
	for i := range 4 {
		others.Go(func() {
			for range 25 {
				if v, err := run(t.Context(), "add", string(rune('a'+i))); err != nil || v != string(rune('a'+i)) {
					t.Error(v, err)
				}
			}
		})
	}
	if raceEnabled {
		t.Log("under the race detector a worker has no limit of its own: the bomb is left out")
	} else if _, err := run(t.Context(), "bomb", "x"); err == nil || !strings.Contains(err.Error(), "the worker that ran it has died, probably of its memory: limits.memory in obelus.lua allows 64 MB") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(ctx, "wait", "x"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	others.Wait()
}

// TestWorker_Late ends calls early: one that nobody waits for any
// more at once, one whose deadline is nearer than its timeout then, by the
// worker's own word, and one whose worker is stuck a little later.
func TestWorker_Late(t *testing.T) {
	g := open(t, map[string]string{
		"obelus.lua":       `return { isolate = "process", timeout = 20 }`,
		"activities/a.lua": `Activity.register("a", function(call) require("time").sleep(call.seconds) return "slept" end)`,
	})
	t.Cleanup(g.workers.Close)
	run := func(ctx context.Context, seconds string) (any, error) {
		r, err := g.Registry().Activities["a"].Activity.Run(ctx, plan.Invocation{Call: object(t, `{"seconds":`+seconds+`}`), Attempt: 1})
		return r.Value, err
	}
	start := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := run(ctx, "15"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	near := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(t.Context(), 100*time.Millisecond)
	}
	ctx, cancel = near()
	defer cancel()
	if _, err := run(ctx, "15"); err == nil || !strings.HasPrefix(err.Error(), "timed out after ") || len(g.workers.Idle) != 1 {
		t.Errorf("too late: %v, and %d workers", err, len(g.workers.Idle))
	}
	stuck := g.workers.Idle[0]
	if err := stuck.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for { // until it has stopped, which takes a moment on a busy machine
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", stuck.Cmd.Process.Pid))
		if err != nil || strings.Contains(string(stat), ") T ") {
			break
		}
	}
	ctx, cancel = near()
	defer cancel()
	if _, err := run(ctx, "0"); err == nil || !strings.HasPrefix(err.Error(), "timed out after ") || len(g.workers.Idle) != 0 {
		t.Errorf("stuck: %v, and %d workers", err, len(g.workers.Idle))
	}
	if v, err := run(t.Context(), "0"); v != "slept" {
		t.Errorf("afterwards: %v %v", v, err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestWorker_Refused(t *testing.T) {
	for _, test := range []struct {
		name, want string
		config     Config
		ready      bool
	}{
		{"without Worker", `obelus.lua:1: isolate "process" starts this program again as a worker: its main must call host.Worker() first`, Config{}, false},
		{"with objects", `obelus.lua:1: isolate "process" and objects of the host don't go together: a worker can't reach them`, Config{Objects: map[string]any{"o": 1}}, true},
		{"with a clock", `obelus.lua:1: isolate "process" and a clock of the host don't go together: a worker goes by the machine's`, Config{Clock: struct{ luastd.SystemClock }{}}, true},
		{"with reuse", `activities/a.lua:1: activity "a": reuse and isolate "process" don't go together`, Config{}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if own := worker.OwnProgram; !test.ready {
				worker.OwnProgram = nil
				defer func() { worker.OwnProgram = own }()
			}
			test.config.FS = project(map[string]string{
				"obelus.lua":       `return { isolate = "process" }`,
				"activities/a.lua": `Activity.register("a", { reuse = true }, function() end)`,
			})
			_, err := Open(test.config)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestWorker_EndsWithHost holds that no worker outlives the process that
// started it.
func TestWorker_EndsWithHost(t *testing.T) {
	if os.Getenv("OBELUS_TEST_HOST") != "" { // the process that dies
		g := open(t, map[string]string{"obelus.lua": `return { isolate = "process" }`, "activities/a.lua": `Activity.register("a", function() return 1 end)`})
		if _, err := g.Registry().Activities["a"].Activity.Run(context.Background(), plan.Invocation{Attempt: 1}); err != nil {
			t.Fatal(err)
		}
		name := os.Getenv("OBELUS_TEST_HOST")
		if err := os.WriteFile(name, []byte(strings.TrimSpace(string(rune('0'+len(g.workers.Idle))))), 0o600); err != nil {
			t.Fatal(err)
		}
		os.Exit(0) // without a word to its worker
	}
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	note := filepath.Join(t.TempDir(), "idle")
	c := exec.Command(self, "-test.run", "TestWorker_EndsWithHost$")
	c.Env = append(os.Environ(), "OBELUS_TEST_HOST="+note)
	out, err := c.CombinedOutput() // which also waits until the worker, who has its stderr, has ended
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if idle, err := os.ReadFile(note); string(idle) != "1" {
		t.Errorf("%s workers, %v", idle, err)
	}
}

// TestWorker_ScriptsWithSameText: two files of the same text are two scripts, also in a worker.
func TestWorker_ScriptsWithSameText(t *testing.T) {
	text := `Activity.register("NAME", function() error("no") end)`
	g := open(t, map[string]string{
		"obelus.lua":       `return { isolate = "process" }`,
		"activities/a.lua": strings.Replace(text, "NAME", "a", 1),
		"activities/b.lua": strings.Replace(text, "NAME", "b", 1),
	})
	t.Cleanup(g.workers.Close)
	a, b := g.Registry().Activities["a"].Activity.(isolated), g.Registry().Activities["b"].Activity.(isolated)
	copied := *b.activity
	same := isolated{&copied, b.workers}
	same.script = &sandbox.Script{}
	*same.script = *b.script
	same.script.Source, same.script.SHA256, same.name = a.script.Source, a.script.SHA256, "a"
	for activity, want := range map[isolated]string{a: "activities/a.lua:1", same: "activities/b.lua:1"} {
		var failure *plan.Failure
		_, err := activity.Run(t.Context(), plan.Invocation{Attempt: 1})
		if !errors.As(err, &failure) || failure.Fields["script"] != want {
			t.Errorf("%v, not at %s", failure, want)
		}
	}
}

// TestWorker_ProgramReplaced: where the program's file has gone, or another one has
// come, as an upgrade has it, workers are still what started them.
func TestWorker_ProgramReplaced(t *testing.T) {
	g := open(t, map[string]string{"obelus.lua": `return { isolate = "process" }`, "activities/a.lua": `Activity.register("a", function() return 1 end)`})
	t.Cleanup(g.workers.Close)
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{other, other + "-gone"} {
		e := *worker.OwnProgram
		e.Path = path
		g.workers.Program = e.Now
		_, err := g.Registry().Activities["a"].Activity.Run(t.Context(), plan.Invocation{Attempt: 1})
		if runtime.GOOS == "linux" && err != nil {
			t.Error(err)
		}
		if runtime.GOOS != "linux" && (err == nil || !strings.Contains(err.Error(), "start that anew")) {
			t.Error(err)
		}
	}
}

// TestWorker_Environment: what makes it a worker is nothing that a script
// could be shown.
func TestWorker_Environment(t *testing.T) {
	t.Setenv("GOMAXPROCS", "3")
	g := open(t, map[string]string{
		"obelus.lua":       `return { isolate = "process", allow = { env = true } }`,
		"activities/a.lua": `Activity.register("a", function() local env = require "env"; return { env.get("OBELUS_WORKER", "none"), env.get("GOMEMLIMIT", "none"), env.get("GOMAXPROCS", "none") } end)`,
	})
	t.Cleanup(g.workers.Close)
	if got, err := runA(g, plan.Invocation{Attempt: 1}); err != nil || got != `["none","none","3"]` {
		t.Errorf("%s, %v", got, err)
	}
}
