package luatest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/inspect"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
)

// spyEntry holds the arguments of the calls of a spy, a value that is called in place of a
// function. Each test has a state of its own, so that nothing needs to be put back.
type spyEntry struct {
	calls [][]lua.LValue
}

// spyGlobals are the functions of the global spy.
var spyGlobals = []sandbox.Entry[*testFile]{
	{Name: "new", Fn: spyNew},
	{Name: "on", Fn: spyOn},
}

// spy.new(fn) → spy, which calls fn
func spyNew(r *testFile, L *lua.LState) int {
	return sandbox.Push(L, newSpy(r, L.CheckFunction(1)))
}

// spy.on(table, name) → spy, which takes the place of the function
func spyOn(r *testFile, L *lua.LState) int {
	table, name := L.CheckTable(1), L.CheckString(2)
	fn, ok := L.GetField(table, name).(*lua.LFunction)
	if !ok {
		L.ArgError(2, fmt.Sprintf("there is no function %s to spy on", strconv.Quote(name)))
	}
	s := newSpy(r, fn)
	L.SetField(table, name, s)
	return sandbox.Push(L, s)
}

// stub(table, name, [result]) → spy, which takes the place of a function, and returns the result,
// and the arguments behind that
func testStub(r *testFile, L *lua.LState) int {
	table, name := L.CheckTable(1), L.CheckString(2)
	var results []lua.LValue
	for i := 3; i <= L.GetTop(); i++ {
		results = append(results, L.Get(i))
	}
	s := newSpy(r, r.s.L.NewFunction(func(L *lua.LState) int { return sandbox.Push(L, results...) }))
	L.SetField(table, name, s)
	return sandbox.Push(L, s)
}

func newSpy(r *testFile, target lua.LValue) *lua.LTable {
	entry, t := &spyEntry{}, r.s.L.CreateTable(0, 0)
	t.Metatable = r.s.Table([]sandbox.Field{{Name: "__call", Value: r.s.L.NewFunction(func(L *lua.LState) int {
		L.Remove(1)
		n := L.GetTop()
		args := make([]lua.LValue, n)
		for i := range args {
			args[i] = L.Get(i + 1)
		}
		entry.calls = append(entry.calls, args)
		L.Insert(target, 1)
		L.Call(n, lua.MultRet)
		return L.GetTop()
	})}})
	if r.spies == nil {
		r.spies = map[*lua.LTable]*spyEntry{}
	}
	r.spies[t] = entry
	return t
}

// spyChecks are the assertions about a spy, behind assert.spy(s): each returns whether it holds,
// and the expectation in words.
var spyChecks = map[string]func(r *testFile, L *lua.LState, s *spyEntry) (ok bool, wanted string){
	"called": func(_ *testFile, L *lua.LState, s *spyEntry) (bool, string) {
		if L.Get(1) == lua.LNil {
			return len(s.calls) > 0, "a call"
		}
		n := L.CheckInt(1)
		return len(s.calls) == n, fmt.Sprintf("%d calls", n)
	},
	"called_at_least": func(_ *testFile, L *lua.LState, s *spyEntry) (bool, string) {
		n := L.CheckInt(1)
		return len(s.calls) >= n, fmt.Sprintf("at least %d calls", n)
	},
	"called_at_most": func(_ *testFile, L *lua.LState, s *spyEntry) (bool, string) {
		n := L.CheckInt(1)
		return len(s.calls) <= n, fmt.Sprintf("at most %d calls", n)
	},
	"called_with": func(r *testFile, L *lua.LState, s *spyEntry) (bool, string) {
		var args []lua.LValue
		for i := 1; i <= L.GetTop(); i++ {
			args = append(args, L.Get(i))
		}
		same := func(call []lua.LValue) bool {
			return slices.EqualFunc(call, args, func(a, b lua.LValue) bool { return sameValues(r, a, b, 0) })
		}
		return slices.ContainsFunc(s.calls, same), "a call with " + argumentsLine(r, args)
	},
}

// argumentsLine shows the arguments of a call: (1, "a").
func argumentsLine(r *testFile, args []lua.LValue) string {
	texts := make([]string, len(args))
	for i, v := range args {
		texts[i] = inspect.Line(r.s, v)
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

// assertSpy is assert.spy(s): a table for the words of an assertion about s.
func assertSpy(r *testFile, L *lua.LState) int {
	t, _ := L.Get(1).(*lua.LTable)
	s := r.spies[t]
	if s == nil {
		L.ArgError(1, "a spy was expected, as spy.on, spy.new and stub return it")
	}
	return sandbox.Push(L, spyWords(r, s, nil))
}

// spyWords returns a table in which each word leads on, or to an assertion.
func spyWords(r *testFile, s *spyEntry, before []string) *lua.LTable {
	t := r.s.L.CreateTable(0, 0)
	t.Metatable = r.s.Table([]sandbox.Field{{Name: "__index", Value: r.s.L.NewFunction(func(L *lua.LState) int {
		words := assertWords(L.CheckString(2), before)
		name, negated := assertName(words)
		if check, ok := spyChecks[name]; ok {
			return sandbox.Push(L, r.s.L.NewFunction(func(L *lua.LState) int { return runSpyCheck(r, L, s, check, negated) }))
		}
		if name != "" {
			L.RaiseError("there is no assertion %s about a spy%s", strconv.Quote(name), luaerr.DidYouMean(name, slices.Sorted(maps.Keys(spyChecks))))
		}
		return sandbox.Push(L, spyWords(r, s, words))
	})}})
	return t
}

func runSpyCheck(r *testFile, L *lua.LState, s *spyEntry, check func(*testFile, *lua.LState, *spyEntry) (bool, string), negated bool) int {
	ok, wanted := check(r, L, s)
	if ok != negated {
		return 0
	}
	if negated {
		wanted = "not " + wanted
	}
	var calls []string
	for _, args := range s.calls {
		calls = append(calls, argumentsLine(r, args))
	}
	a := &assertion{message: fmt.Sprintf("expected %s, got %d: %s", wanted, len(calls), strings.Join(calls, ", "))}
	if len(calls) == 0 {
		a.message = fmt.Sprintf("expected %s, got none", wanted)
	}
	r.failed = a
	L.RaiseError("%s", a.message)
	return 0
}
