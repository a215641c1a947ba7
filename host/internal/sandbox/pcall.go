package sandbox

import (
	"errors"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/explain"
)

func basePcall(s *State, L *lua.LState) int {
	L.CheckAny(1)
	args := make([]lua.LValue, L.GetTop())
	for i := range args {
		args[i] = L.Get(i + 1)
	}
	return s.protect(L, args, nil)
}

func baseXpcall(s *State, L *lua.LState) int {
	L.CheckAny(1)
	return s.protect(L, []lua.LValue{L.Get(1)}, L.CheckFunction(2))
}

// protect calls call[0] with the rest of call and pushes the results of pcall.
func (s *State) protect(L *lua.LState, call []lua.LValue, handler *lua.LFunction) int {
	thread, err := s.callOnThread(L, call)
	if err == nil {
		n := thread.GetTop()
		L.Push(lua.LTrue)
		for i := 1; i <= n; i++ {
			L.Push(thread.Get(i))
		}
		thread.SetTop(0)
		return n + 1
	}
	message := s.caught(nameCalled(s, err, call[0]))
	if handler != nil {
		message = handleError(s, L, handler, message, err)
	}
	L.Push(lua.LFalse)
	L.Push(message)
	return 2
}

// handleError returns the result of a handler of xpcall for an error, or the error of the handler.
func handleError(s *State, L *lua.LState, handler *lua.LFunction, message lua.LValue, err error) lua.LValue {
	before := s.unwound
	defer func() { s.unwound = before }()
	var api *lua.ApiError
	if errors.As(err, &api) {
		s.unwound = &unwound{explain.Traceback(api.StackTrace), L}
	}
	thread, err := s.callOnThread(L, []lua.LValue{handler, message})
	if err == nil {
		result := thread.Get(1)
		thread.SetTop(0)
		return result
	}
	raised := s.caught(err)
	text, ok := raised.(lua.LString)
	if !ok {
		text = lua.LString("a " + TypeName(raised) + " value was raised")
	}
	return "error in error handling: " + text
}
