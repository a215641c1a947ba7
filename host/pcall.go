package host

import (
	"errors"

	lua "github.com/yuin/gopher-lua"
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

func (s *state) pcall(L *lua.LState) int {
	L.CheckAny(1)
	args := make([]lua.LValue, L.GetTop())
	for i := range args {
		args[i] = L.Get(i + 1)
	}
	return s.protect(L, args, nil)
}

func (s *state) xpcall(L *lua.LState) int {
	L.CheckAny(1)
	return s.protect(L, []lua.LValue{L.Get(1)}, L.CheckFunction(2))
}

// protect calls call[0] with the rest of call and pushes what pcall gives. The
// deadline is not to be caught.
func (s *state) protect(L *lua.LState, call []lua.LValue, handler *lua.LFunction) int {
	if most := s.mostPcalls(); s.pcalls == most {
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
	if s.budget.err != nil {
		L.RaiseError("%s", outOfTime)
	}
	if err == nil {
		n := thread.GetTop()
		L.Push(lua.LTrue)
		for i := 1; i <= n; i++ {
			L.Push(thread.Get(i))
		}
		thread.SetTop(0)
		return n + 1
	}
	thread.SetTop(0)
	s.budget.charge(L, checkEvery) // what made the message may have been long work
	message := s.caught(err)
	L.Push(lua.LFalse)
	if handler != nil {
		var api *lua.ApiError
		if errors.As(err, &api) {
			s.unwound = traceback(api.StackTrace)
		}
		L.Push(handler)
		L.Push(message)
		L.Call(1, 1)
		s.unwound = nil
		return 2
	}
	L.Push(message)
	return 2
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
