package host

import (
	"errors"

	lua "github.com/yuin/gopher-lua"
)

var coroutineFuncs = []entry{
	{"create", coroutineCreate},
	{"resume", coroutineResume},
	{"running", coroutineRunning},
	{"status", coroutineStatus},
	{"wrap", coroutineWrap},
	{"yield", coroutineYield},
}

func coroutineCreate(s *state, L *lua.LState) int {
	L.Push(newCoroutine(s, L.CheckFunction(1)).handle)
	return 1
}

func checkCoroutine(L *lua.LState) *coroutine {
	if u, ok := L.Get(1).(*lua.LUserData); ok {
		if co, ok := u.Value.(*coroutine); ok {
			return co
		}
	}
	L.ArgError(1, "coroutine expected")
	return nil
}

// arguments are those from the n-th on.
func arguments(L *lua.LState, n int) []lua.LValue {
	var args []lua.LValue
	for ; n <= L.GetTop(); n++ {
		args = append(args, L.Get(n))
	}
	return args
}

func pushAll(L *lua.LState, values []lua.LValue) int {
	for _, v := range values {
		L.Push(v)
	}
	return len(values)
}

func coroutineResume(s *state, L *lua.LState) int {
	co := checkCoroutine(L)
	values, err := resumeCoroutine(s, L, co, arguments(L, 2))
	if err == nil {
		L.Push(lua.LTrue)
		return 1 + pushAll(L, values)
	}
	L.Push(lua.LFalse)
	var refused errNotResumed
	if errors.As(err, &refused) {
		L.Push(lua.LString(refused))
		return 2
	}
	L.Push(s.caught(err))
	return 2
}

func coroutineRunning(s *state, L *lua.LState) int {
	if s.run.current == nil {
		L.Push(lua.LNil)
	} else {
		L.Push(s.run.current.handle)
	}
	return 1
}

func coroutineStatus(s *state, L *lua.LState) int {
	L.Push(lua.LString(checkCoroutine(L).status))
	return 1
}

// coroutineWrap is coroutine.wrap(f). What the coroutine raises goes up as it
// is.
func coroutineWrap(s *state, L *lua.LState) int {
	co := newCoroutine(s, L.CheckFunction(1))
	L.Push(s.fn(func(s *state, L *lua.LState) int {
		values, err := resumeCoroutine(s, L, co, arguments(L, 1))
		var refused errNotResumed
		switch {
		case errors.As(err, &refused):
			L.RaiseError("%s", string(refused))
		case err != nil:
			value, _ := raisedValue(err)
			L.Error(value, 0)
		}
		return pushAll(L, values)
	}))
	return 1
}

func coroutineYield(s *state, L *lua.LState) int {
	co := s.run.current
	if co == nil {
		L.RaiseError("attempt to yield from outside a coroutine")
	}
	return pushAll(L, yieldCoroutine(s, L, co, arguments(L, 1)))
}
