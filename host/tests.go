package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/projectfs"
	"obelus/host/internal/sandbox"
	"obelus/luastd"
)

// Tests runs a project's Lua tests, tests/**/*_test.lua, in busted's vocabulary:
// describe, it, before_each, after_each, pending and assert. Each test runs in a
// state of its own, for which its file is run again. It belongs to one
// goroutine.
type Tests struct {
	gen     *Generation
	project fs.FS
	clock   *testClock
	own     chan func() // what the test's own goroutine does for those of activities

	mu   sync.Mutex
	http func(r luastd.HTTPRequest) (luastd.HTTPResponse, error) // what a test has set; runs on its own goroutine
}

// OpenTests loads a project for its tests. The clock of the config counts for
// tests that set none.
func OpenTests(config Config) (*Tests, error) {
	t := &Tests{own: make(chan func()), clock: &testClock{Clock: cmp.Or[luastd.Clock](config.Clock, luastd.SystemClock{})}}
	config.Clock, config.HTTP = t.clock, t.request
	h, err := Open(config)
	if err != nil {
		return nil, err
	}
	t.gen, t.project = h.Generation(), config.FS
	return t, nil
}

// Files lists the project's files of tests, sorted.
func (t *Tests) Files() ([]string, error) { return t.FilesIn("tests") }

// FilesIn lists the files of tests below a folder of the project, sorted.
func (t *Tests) FilesIn(folder string) ([]string, error) { return TestFiles(t.project, folder) }

// TestFiles lists the files of tests below a folder of a project that need not
// load, sorted.
func TestFiles(project fs.FS, folder string) ([]string, error) {
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
	Name    string // with those of the describes around it
	Line    int
	Pending bool

	index int
}

// TestFailure is why a test failed.
type TestFailure struct {
	*ScriptError
	Expected, Actual string // as text to be compared line by line; empty where nothing was compared
}

// List runs a file of tests to see what is in it, until ctx ends. Its error is a
// [*ScriptError].
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

// Run runs one test; a pending one does nothing. Its error is a [*TestFailure].
func (t *Tests) Run(ctx context.Context, test Test) error {
	t.clock.set(nil)
	t.stub(nil)
	sc, err := t.script(test.File)
	if err != nil {
		return &TestFailure{ScriptError: luaerr.From(err)}
	}
	run, err := t.load(ctx, sc)
	if err != nil {
		return &TestFailure{ScriptError: luaerr.From(err)}
	}
	defer run.s.Run.Stop()
	if test.index >= len(run.cases) || run.cases[test.index].name != test.Name {
		return &TestFailure{ScriptError: &luaerr.ScriptError{File: test.File, Line: test.Line, Message: "the file does not define this test every time that it is run"}}
	}
	c := run.cases[test.index]
	if c.fn == nil {
		return nil // it is still to be written
	}
	failed := runHooks(run, c.before)
	if failed == nil {
		failed = runCase(run, c.fn)
	}
	if err := runHooks(run, c.after); failed == nil { // whatever has become of the test
		failed = err
	}
	if failed == nil {
		return nil
	}
	return failed
}

// serve runs something on a goroutine of its own, and does meanwhile what that
// wants of the test's own: a Lua state belongs to one.
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

// there does something on the test's own goroutine; false if ctx ends first.
func (t *Tests) there(ctx context.Context, do func()) bool {
	done := make(chan struct{})
	select {
	case t.own <- func() { defer close(done); do() }:
		<-done
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *Tests) stub(http func(luastd.HTTPRequest) (luastd.HTTPResponse, error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.http = http
}

// request answers what activities ask of the network.
func (t *Tests) request(ctx context.Context, r luastd.HTTPRequest) (answer luastd.HTTPResponse, err error) {
	if !t.there(ctx, func() { answer, err = t.ownRequest(r) }) {
		err = ctx.Err()
	}
	return answer, err
}

// ownRequest is request on the test's own goroutine.
func (t *Tests) ownRequest(r luastd.HTTPRequest) (luastd.HTTPResponse, error) {
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
	return sandbox.NewScript(name, read.Bytes, t.gen.project.Limits.Source)
}

// load runs a file of tests in a new state, which is thrown away afterwards.
func (t *Tests) load(ctx context.Context, sc *sandbox.Script) (*testRun, error) {
	run := &testRun{tests: t, s: t.gen.NewState(), within: []*suite{{}}}
	s := run.s
	s.Env.HTTP = func(_ context.Context, r luastd.HTTPRequest) (luastd.HTTPResponse, error) { return t.ownRequest(r) }
	s.Begin(ctx, cmp.Or(t.gen.Settings().Timeout, engine.DefaultTimeout), sc)
	s.Run.Test = true
	openTests(run)
	if _, err := s.RunFile(sc); err != nil {
		s.Run.Stop()
		return nil, luaerr.From(err)
	}
	return run, nil
}

// testRun is what a file of tests defines while it runs.
type testRun struct {
	tests  *Tests
	s      *sandbox.State
	within []*suite // the describes that are open, outermost first
	cases  []testCase
	failed *assertion // the last one that failed

	// What a function of the test failed of that others call for it, who may take that
	// for a failure of their own; the first time.
	inside *TestFailure
}

type suite struct {
	name          string
	before, after []lua.LValue
}

type testCase struct {
	name          string
	line          int
	fn            lua.LValue // nil for a pending one
	before, after []lua.LValue
}

// assertion is one that failed.
type assertion struct{ message, expected, actual string }

// testGlobals are what a file of tests has beside the globals of scripts.
var testGlobals = []sandbox.Entry[*testRun]{
	{Name: "after_each", Fn: testAfterEach},
	{Name: "before_each", Fn: testBeforeEach},
	{Name: "describe", Fn: testDescribe},
	{Name: "it", Fn: testIt},
	{Name: "pending", Fn: testPending},
}

func openTests(r *testRun) {
	for _, f := range sandbox.Bind(r.s.L, r, testGlobals) {
		r.s.Run.Env.RawSetString(f.Name, f.Value)
	}
	r.s.Run.Env.RawSetString("assert", assertTable(r))
	r.s.Modules["test"] = sandbox.Bind(r.s.L, r, testModule)
}

// describe(name, fn)
func testDescribe(r *testRun, L *lua.LState) int {
	checkDefining(r, L)
	name, fn, run := L.CheckString(1), L.CheckFunction(2), r
	run.within = append(run.within, &suite{name: name})
	L.Push(fn)
	L.Call(0, 0)
	run.within = run.within[:len(run.within)-1]
	return 0
}

// it(name, fn)
func testIt(r *testRun, L *lua.LState) int {
	return addCase(r, L, L.CheckFunction(2))
}

// pending(name, [fn]): a test that is still to be written
func testPending(r *testRun, L *lua.LState) int { return addCase(r, L, nil) }

func addCase(r *testRun, L *lua.LState, fn *lua.LFunction) int {
	checkDefining(r, L)
	run := r
	c := testCase{}
	_, c.line = r.s.Place(L, 1)
	if fn != nil {
		c.fn = fn
	}
	var names []string
	for _, around := range run.within {
		if around.name != "" {
			names = append(names, around.name)
		}
		c.before = append(c.before, around.before...)
		c.after = append(slices.Clone(around.after), c.after...)
	}
	c.name = strings.Join(append(names, L.CheckString(1)), " ")
	run.cases = append(run.cases, c)
	return 0
}

// checkDefining refuses within a test what only its file can define.
func checkDefining(r *testRun, L *lua.LState) {
	if r.s.Run.Depth == 0 {
		L.RaiseError("a test can't define tests")
	}
}

// before_each(fn): before each test that follows in this describe
func testBeforeEach(r *testRun, L *lua.LState) int {
	around := r.within[len(r.within)-1]
	around.before = append(around.before, L.CheckFunction(1))
	return 0
}

// after_each(fn): after each test that follows in this describe
func testAfterEach(r *testRun, L *lua.LState) int {
	around := r.within[len(r.within)-1]
	around.after = append([]lua.LValue{L.CheckFunction(1)}, around.after...)
	return 0
}

func runHooks(run *testRun, hooks []lua.LValue) *TestFailure {
	for _, hook := range hooks {
		if failed := runCase(run, hook); failed != nil {
			return failed
		}
	}
	return nil
}

func runCase(run *testRun, fn lua.LValue) *TestFailure {
	run.failed, run.inside = nil, nil
	_, err := run.s.Call(fn)
	run.s.Raised = nil
	if err != nil {
		run.fails(err)
	}
	return run.inside
}

// fails has the test fail of an error, unless it does so already.
func (run *testRun) fails(err error) {
	if run.inside != nil {
		return
	}
	run.inside = &TestFailure{ScriptError: luaerr.From(err)}
	if run.asserted(run.inside.Message) {
		run.inside.Expected, run.inside.Actual = run.failed.expected, run.failed.actual
	}
}

// asserted tells of a message whether it is that of the last assertion that failed.
func (run *testRun) asserted(message string) bool {
	return run.failed != nil && strings.HasSuffix(message, run.failed.message)
}

// testClock is the clock of tests, which they may set.
type testClock struct {
	luastd.Clock
	mu    sync.Mutex
	fixed *time.Time
}

func (c *testClock) set(t *time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fixed = t
}

// Now is what a test has set, else the time.
func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fixed != nil {
		return *c.fixed
	}
	return c.Clock.Now()
}

// Sleep moves a clock that is set on, and waits otherwise.
func (c *testClock) Sleep(ctx context.Context, d time.Duration) error {
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
