package luatest

import (
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
)

// testFile has the definitions of a file of tests, and the state of the test that runs.
type testFile struct {
	tests  *Tests
	s      *sandbox.State
	within []*suite // open describes, outermost first
	cases  []testCase
	failed *assertion // the last failed one

	// The first failure of a function of the test that others call, which may hide it as a failure
	// of their own.
	inside *Failure

	finals []lua.LValue              // functions that the test gave to finally, the newest first
	spies  map[*lua.LTable]*spyEntry // by the values that stand for them
}

type suite struct {
	name            string
	setup, teardown []lua.LValue
	before, after   []lua.LValue
}

type testCase struct {
	name          string
	line          int
	fn            lua.LValue   // nil for a pending one
	before, after []lua.LValue // hooks before and after it, in this order
}

// assertion is a failed one.
type assertion struct{ message, expected, actual string }

// testGlobals are the globals of a file of tests, besides the globals of scripts.
var testGlobals = []sandbox.Entry[*testFile]{
	{Name: "after_each", Fn: testAfterEach},
	{Name: "before_each", Fn: testBeforeEach},
	{Name: "describe", Fn: testDescribe},
	{Name: "finally", Fn: testFinally},
	{Name: "it", Fn: testIt},
	{Name: "pending", Fn: testPending},
	{Name: "setup", Fn: testSetup},
	{Name: "stub", Fn: testStub},
	{Name: "teardown", Fn: testTeardown},
}

func openTests(r *testFile) {
	for _, f := range sandbox.Bind(r.s.L, r, testGlobals) {
		r.s.Run.Env.RawSetString(f.Name, f.Value)
	}
	r.s.Run.Env.RawSetString("assert", assertTable(r))
	r.s.Run.Env.RawSetString("spy", r.s.Table(sandbox.Bind(r.s.L, r, spyGlobals)))
	r.s.Modules["test"] = sandbox.Bind(r.s.L, r, testModule)
}

// describe(name, fn)
func testDescribe(r *testFile, L *lua.LState) int {
	checkDefining(r, L)
	name, fn, run := L.CheckString(1), L.CheckFunction(2), r
	run.within = append(run.within, &suite{name: name})
	L.Push(fn)
	L.Call(0, 0)
	run.within = run.within[:len(run.within)-1]
	return 0
}

// it(name, fn)
func testIt(r *testFile, L *lua.LState) int {
	return addCase(r, L, L.CheckFunction(2))
}

// pending(name, [fn]): a test without a function yet
func testPending(r *testFile, L *lua.LState) int { return addCase(r, L, nil) }

func addCase(r *testFile, L *lua.LState, fn *lua.LFunction) int {
	checkDefining(r, L)
	run := r
	c := testCase{}
	_, c.line = r.s.Place(L, 1)
	if fn != nil {
		c.fn = fn
	}
	var names []string
	var before, after []lua.LValue
	for _, around := range run.within {
		if around.name != "" {
			names = append(names, around.name)
		}
		c.before, c.after = append(c.before, around.setup...), append(slices.Clone(around.teardown), c.after...)
		before, after = append(before, around.before...), append(slices.Clone(around.after), after...)
	}
	c.before, c.after = append(c.before, before...), append(after, c.after...)
	c.name = strings.Join(append(names, L.CheckString(1)), " ")
	run.cases = append(run.cases, c)
	return 0
}

// checkDefining raises within a test: only its file can define tests.
func checkDefining(r *testFile, L *lua.LState) {
	if r.s.Run.Depth == 0 {
		L.RaiseError("a test can't define tests")
	}
}

// before_each(fn): before each test that follows in this describe
func testBeforeEach(r *testFile, L *lua.LState) int {
	around := r.within[len(r.within)-1]
	around.before = append(around.before, L.CheckFunction(1))
	return 0
}

// after_each(fn): after each test that follows in this describe
func testAfterEach(r *testFile, L *lua.LState) int {
	around := r.within[len(r.within)-1]
	around.after = append([]lua.LValue{L.CheckFunction(1)}, around.after...)
	return 0
}

// setup(fn): before the first before_each of a test, in this describe. Each test has a state of its
// own, so it runs for each.
func testSetup(r *testFile, L *lua.LState) int {
	around := r.within[len(r.within)-1]
	around.setup = append(around.setup, L.CheckFunction(1))
	return 0
}

// teardown(fn): after the last after_each of a test, in this describe
func testTeardown(r *testFile, L *lua.LState) int {
	around := r.within[len(r.within)-1]
	around.teardown = append([]lua.LValue{L.CheckFunction(1)}, around.teardown...)
	return 0
}

// finally(fn): in a test, after it, also if it fails
func testFinally(r *testFile, L *lua.LState) int {
	if r.s.Run.Depth != 0 {
		L.RaiseError("finally belongs into a test: after_each and teardown are for all tests")
	}
	r.finals = append([]lua.LValue{L.CheckFunction(1)}, r.finals...)
	return 0
}

func runHooks(run *testFile, hooks []lua.LValue) *Failure {
	for _, hook := range hooks {
		if failed := runCase(run, hook); failed != nil {
			return failed
		}
	}
	return nil
}

func runCase(run *testFile, fn lua.LValue) *Failure {
	run.failed, run.inside = nil, nil
	_, err := run.s.Call(fn)
	run.s.Raised = nil
	if err != nil {
		run.fail(err)
	}
	return run.inside
}

// fail makes the test fail with an error, unless it has failed already.
func (run *testFile) fail(err error) {
	if run.inside != nil {
		return
	}
	run.inside = &Failure{ScriptError: luaerr.From(err)}
	if run.isAssertion(run.inside.Message) {
		run.inside.Expected, run.inside.Actual = run.failed.expected, run.failed.actual
	}
}

// isAssertion reports whether a message is the one of the last failed assertion.
func (run *testFile) isAssertion(message string) bool {
	return run.failed != nil && strings.HasSuffix(message, run.failed.message)
}
