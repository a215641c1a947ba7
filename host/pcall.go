package host

import (
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/budget"
	"obelus/host/internal/explain"
)

// Protected calls run on a thread of their own, one for each depth. Where the
// interpreter raises it closes the upvalues of all frames of the thread, those
// outside of the pcall too, whose variables are then no longer those that
// their closures see:
//
//	local n = 0
//	local function inc() n = n + 1 end
//	inc(); pcall(error); inc() -- n would be 1
//
// A thread has no frames outside of its pcall.

// Deep ones get few frames: a metamethod or a callback takes Go stack too, and
// all of them together must not overflow it.
const (
	deepPcalls = 4
	deepFrames = 250
)

func basePcall(s *state, L *lua.LState) int {
	L.CheckAny(1)
	args := make([]lua.LValue, L.GetTop())
	for i := range args {
		args[i] = L.Get(i + 1)
	}
	return s.protect(L, args, nil)
}

func baseXpcall(s *state, L *lua.LState) int {
	L.CheckAny(1)
	return s.protect(L, []lua.LValue{L.Get(1)}, L.CheckFunction(2))
}

// protect calls call[0] with the rest of call and pushes what pcall gives.
func (s *state) protect(L *lua.LState, call []lua.LValue, handler *lua.LFunction) int {
	thread, err := s.apartFrom(L, call)
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

// apartFrom calls call[0] with the rest of call on a thread, on which it leaves the
// results. The deadline is not to be caught.
func (s *state) apartFrom(L *lua.LState, call []lua.LValue) (*lua.LState, error) {
	if most := maxPcallsOf(s); s.pcalls == most {
		L.RaiseError("pcall is nested more than %d deep", most)
	}
	thread := s.thread(L)
	s.pcalls++
	s.L = thread
	for _, v := range call {
		thread.Push(v)
	}
	err := thread.PCall(len(call)-1, lua.MultRet, nil)
	s.L = L
	s.pcalls--
	if s.budget.Err() != nil {
		L.RaiseError("%s", budget.OutOfTime)
	}
	if err != nil {
		thread.SetTop(0)
		s.budget.Charge(L, budget.CheckEvery) // what made the message may have been long work
	}
	return thread, err
}

// handleError is what a handler of xpcall makes of an error, or what went wrong with it.
func handleError(s *state, L *lua.LState, handler *lua.LFunction, message lua.LValue, err error) lua.LValue {
	before := s.unwound
	defer func() { s.unwound = before }()
	var api *lua.ApiError
	if errors.As(err, &api) {
		s.unwound = &unwound{explain.Traceback(api.StackTrace), L}
	}
	thread, err := s.apartFrom(L, []lua.LValue{handler, message})
	if err == nil {
		result := thread.Get(1)
		thread.SetTop(0)
		return result
	}
	raised := s.caught(err)
	text, ok := raised.(lua.LString)
	if !ok {
		text = lua.LString("a " + luaType(raised) + " value was raised")
	}
	return "error in error handling: " + text
}

func (s *state) thread(L *lua.LState) *lua.LState {
	if s.pcalls == len(s.threads) {
		frames := L.Options.CallStackSize
		if s.pcalls >= deepPcalls {
			frames = deepFrames
		}
		s.threads = append(s.threads, s.newThread(L, frames))
	}
	thread := s.threads[s.pcalls]
	if s.callers[thread] != L {
		if s.callers == nil {
			s.callers = map[*lua.LState]*lua.LState{}
		}
		s.callers[thread] = L
	}
	thread.Env = s.run.env
	return thread
}

// newThread makes a thread of at most some frames, under the run's budget.
func (s *state) newThread(L *lua.LState, frames int) *lua.LState {
	options := L.Options
	L.Options.MinimizeStackMemory = true
	L.Options.CallStackSize = frames
	L.Options.RegistrySize, L.Options.RegistryMaxSize, L.Options.RegistryGrowStep = 512, 256<<10, 8<<10
	thread, cancel := L.NewThread()
	if cancel != nil {
		cancel() // its context is not used
	}
	L.Options = options
	thread.SetContext(&s.budget)
	thread.Env = s.run.env
	return thread
}

// apart calls a function on a thread of its own, see pcall.go, for somebody who
// waits: a coroutine that this happens in can't yield meanwhile.
func (s *state) apart(L *lua.LState, fn lua.LValue, args ...lua.LValue) ([]lua.LValue, error) {
	if s.pcalls == maxPcalls {
		return nil, fmt.Errorf("calls are nested more than %d deep", maxPcalls)
	}
	thread, outer, current := s.thread(L), s.L, s.run.current
	s.pcalls++
	s.L, s.run.current = thread, nil
	results, err := s.call(fn, args...)
	thread.SetTop(0)
	s.L, s.run.current = outer, current
	s.pcalls--
	return results, err
}
