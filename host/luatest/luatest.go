// Package luatest runs a project's Lua tests, which are written in busted's vocabulary. Each test
// runs in a state of its own. By require "test" it runs an activity or a plan, replaces activities
// by functions, sets the clock and answers requests.
package luatest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"obelus/engine/plan"
	"obelus/host"
	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/projectfs"
	"obelus/host/internal/sandbox"
	"obelus/host/model"
	"obelus/luastd"
)

// Tests runs a project's Lua tests, tests/**/*_test.lua, in busted's vocabulary: describe, it,
// before_each, after_each, setup, teardown, finally, pending, assert, spy and stub. Each test runs
// in a state of its own, for which its file is run again. It belongs to one goroutine.
type Tests struct {
	gen     *host.Generation
	project fs.FS
	clock   *clock
	own     chan func() // work of activities' goroutines that runs on the test's own

	mu sync.Mutex
	// Set by a test; runs on its own goroutine.
	http  func(r luastd.HTTPRequest) (luastd.HTTPResponse, error)
	model *scriptedModel             // answers in place of models; set by a test
	tape  *model.Cassette            // has the answers of models; set by a test
	tapes map[string]*model.Cassette // that tests have used, by name

	missed error // the first request of the test to a model that nothing answered

	dir       string // of the project on disk; empty if there is none
	recording model.Recording
}

// Open loads a project for its tests. The clock of the config counts for tests that set none.
func Open(config host.Config) (*Tests, error) {
	t := &Tests{own: make(chan func()), clock: &clock{Clock: cmp.Or[luastd.Clock](config.Clock, luastd.SystemClock{})}}
	t.dir, t.tapes = config.Dir, map[string]*model.Cassette{}
	config.Clock, config.HTTP = t.clock, t.request
	config.Asker = func(_ model.Config, client model.Asker) model.Asker { return &testAsker{t, client} }
	h, err := host.Open(config)
	if err != nil {
		return nil, err
	}
	t.gen, t.project = h.Generation(), config.FS
	return t, nil
}

// Files lists the project's files of tests, sorted.
func (t *Tests) Files() ([]string, error) { return t.FilesIn("tests") }

// FilesIn lists the files of tests below a folder of the project, sorted.
func (t *Tests) FilesIn(folder string) ([]string, error) { return Files(t.project, folder) }

// List runs a file of tests to find its tests, until ctx ends. Its error is a [*host.ScriptError].
func (t *Tests) List(ctx context.Context, file string) ([]Test, error) {
	sc, err := t.script(file)
	if err != nil {
		return nil, err
	}
	run, err := t.load(ctx, sc)
	if err != nil {
		return nil, err
	}
	run.s.Run.Stop()
	tests := make([]Test, len(run.cases))
	for i, c := range run.cases {
		tests[i] = Test{File: sc.File, Name: c.name, Line: c.line, Pending: c.fn == nil, index: i}
	}
	return tests, nil
}

// Run runs one test; a pending one does nothing. Its error is a [*Failure].
func (t *Tests) Run(ctx context.Context, test Test) error {
	t.clock.set(nil)
	t.setHTTP(nil)
	t.setModels(nil, nil)
	t.takeMissed()
	sc, err := t.script(test.File)
	if err != nil {
		return &Failure{ScriptError: luaerr.From(err)}
	}
	run, err := t.load(ctx, sc)
	if err != nil {
		return &Failure{ScriptError: luaerr.From(err)}
	}
	defer run.s.Run.Stop()
	if test.index >= len(run.cases) || run.cases[test.index].name != test.Name {
		return &Failure{ScriptError: &luaerr.ScriptError{File: test.File, Line: test.Line, Message: "the file does not define this test every time that it is run"}}
	}
	c := run.cases[test.index]
	if c.fn == nil {
		return nil // pending
	}
	failed := runHooks(run, c.before)
	if failed == nil {
		failed = runCase(run, c.fn)
	}
	if err := runHooks(run, append(run.finals, c.after...)); failed == nil { // even after a failure
		failed = err
	}
	if missed := t.takeMissed(); missed != nil {
		return &Failure{ScriptError: &luaerr.ScriptError{File: test.File, Line: test.Line, Message: missed.Error()}}
	}
	if failed == nil {
		return nil
	}
	return failed
}

// serve runs do on its own goroutine, and meanwhile executes the work that do has for the test's
// goroutine: a Lua state belongs to one goroutine.
func (t *Tests) serve(do func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do()
	}()
	for {
		select {
		case f := <-t.own:
			f()
		case <-ended:
			return
		}
	}
}

// runOnTest executes do on the test's own goroutine; false if ctx ends first.
func (t *Tests) runOnTest(ctx context.Context, do func()) bool {
	done := make(chan struct{})
	select {
	case t.own <- func() { defer close(done); do() }:
		<-done
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *Tests) setHTTP(http func(luastd.HTTPRequest) (luastd.HTTPResponse, error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.http = http
}

// request answers a request of an activity.
func (t *Tests) request(ctx context.Context, r luastd.HTTPRequest) (answer luastd.HTTPResponse, err error) {
	if !t.runOnTest(ctx, func() { answer, err = t.answer(r) }) {
		err = ctx.Err()
	}
	return answer, err
}

// answer is request on the test's own goroutine.
func (t *Tests) answer(r luastd.HTTPRequest) (luastd.HTTPResponse, error) {
	t.mu.Lock()
	http := t.http
	t.mu.Unlock()
	if http == nil {
		return luastd.HTTPResponse{}, fmt.Errorf("a test makes no requests: answer %s %s by test.http(fn)", r.Method, r.URL)
	}
	return http(r)
}

func (t *Tests) script(file string) (*sandbox.Script, error) {
	name := path.Clean(strings.ReplaceAll(file, `\`, "/"))
	if !fs.ValidPath(name) {
		return nil, &luaerr.ScriptError{File: file, Message: "a file of tests lies below the project's folder"}
	}
	read, _ := projectfs.Take(t.project, name)
	if read.Err != nil {
		return nil, projectfs.Unreadable(name, read.Err)
	}
	return sandbox.NewScript(name, read.Bytes, limits.WithDefaults(t.gen.Settings().Limits).Source)
}

// load runs a file of tests in a new state, which is thrown away afterwards.
func (t *Tests) load(ctx context.Context, sc *sandbox.Script) (*testFile, error) {
	run := &testFile{tests: t, s: t.gen.NewState(), within: []*suite{{}}}
	s := run.s
	s.Env.HTTP = func(_ context.Context, r luastd.HTTPRequest) (luastd.HTTPResponse, error) { return t.answer(r) }
	s.Begin(ctx, cmp.Or(t.gen.Settings().Timeout, plan.DefaultTimeout), sc)
	s.Run.Test = true
	openTests(run)
	if _, err := s.RunFile(sc); err != nil {
		s.Run.Stop()
		return nil, luaerr.From(err)
	}
	return run, nil
}

// Files lists the files of tests below a folder of a project, which need not load, sorted.
func Files(project fs.FS, folder string) ([]string, error) {
	var files []string
	err := fs.WalkDir(project, folder, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(name, "_test.lua") {
			files = append(files, name)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return files, err
}

// Test is one test of a file.
type Test struct {
	File    string
	Name    string // with the names of its describes before it
	Line    int
	Pending bool

	index int
}

// Failure is the reason for which a test failed.
type Failure struct {
	*host.ScriptError
	Expected, Actual string // texts to be compared line by line; empty if nothing was compared
}

// clock is the clock of tests, which they may set.
type clock struct {
	luastd.Clock
	mu    sync.Mutex
	fixed *time.Time
}

func (c *clock) set(t *time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fixed = t
}

// Now returns the time that a test has set, else the time.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fixed != nil {
		return *c.fixed
	}
	return c.Clock.Now()
}

// Sleep advances a clock that is set, and waits otherwise.
func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	if c.fixed != nil {
		later := c.fixed.Add(d)
		c.fixed = &later
		c.mu.Unlock()
		return ctx.Err()
	}
	c.mu.Unlock()
	return c.Clock.Sleep(ctx, d)
}
