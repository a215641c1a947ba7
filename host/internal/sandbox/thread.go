package sandbox

import (
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/budget"
	"obelus/host/internal/explain"
	"obelus/host/internal/limits"
)

// Bounds of a state.
const (
	maxPcalls = 100
	maxFrames = 2000
)

// strand is the place of execution of a run, or of a suspended coroutine.
type strand struct {
	L       *lua.LState                 // the running thread
	pcalls  int                         // running pcalls
	within  int                         // nested calls of functions that objects were given
	threads []*lua.LState               // one for each depth of pcall, made on first use
	callers map[*lua.LState]*lua.LState // for each thread, the thread that called pcall
}

// newThread returns a thread of at most some frames, under the run's budget.
func (s *State) newThread(L *lua.LState, frames int) *lua.LState {
	options := L.Options
	L.Options.MinimizeStackMemory = true
	L.Options.CallStackSize = frames
	L.Options.RegistrySize, L.Options.RegistryMaxSize, L.Options.RegistryGrowStep = 512, 256<<10, 8<<10
	thread, cancel := L.NewThread()
	if cancel != nil {
		cancel() // its context is not used
	}
	L.Options = options
	thread.SetContext(&s.Budget)
	thread.Env = s.Run.Env
	return thread
}

// Protected calls run on a thread of their own, one for each depth. To raise an error the
// interpreter closes the upvalues of all frames of the thread, also outside of the pcall, after
// which closures no longer share the variables of those frames:
//
//	local n = 0
//	local function inc() n = n + 1 end
//	inc(); pcall(error); inc() -- n would be 1
//
// A thread has no frames outside of its pcall.

// Deep pcalls get few frames: a metamethod or a callback takes Go stack too, and all of them
// together must not overflow it.
const (
	deepPcalls = 4
	deepFrames = 250
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
	message := s.catch(nameCalled(s, err, call[0]))
	if handler != nil {
		message = handleError(s, L, handler, message, err)
	}
	return Push(L, lua.LFalse, message)
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
	raised := s.catch(err)
	text, ok := raised.(lua.LString)
	if !ok {
		text = lua.LString("a " + TypeName(raised) + " value was raised")
	}
	return "error in error handling: " + text
}

// callOnThread calls call[0] with the rest of call on a thread, on which it leaves the results. The
// end of the budget is not caught.
func (s *State) callOnThread(L *lua.LState, call []lua.LValue) (*lua.LState, error) {
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
	if s.Budget.Err() != nil {
		L.RaiseError("%s", limits.OutOfTime)
	}
	if err != nil {
		thread.SetTop(0)
		s.Budget.Charge(L, budget.CheckEvery) // making the message may have been long work
	}
	return thread, err
}

func (s *State) thread(L *lua.LState) *lua.LState {
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
	thread.Env = s.Run.Env
	return thread
}

// CallApart calls a function on its own thread, for a caller that waits on another goroutine: a
// coroutine around it can't yield meanwhile.
func (s *State) CallApart(L *lua.LState, fn lua.LValue, args ...lua.LValue) ([]lua.LValue, error) {
	if s.pcalls == maxPcalls {
		return nil, fmt.Errorf("calls are nested more than %d deep", maxPcalls)
	}
	thread, outer, current := s.thread(L), s.L, s.Run.current
	s.pcalls++
	s.L, s.Run.current = thread, nil
	results, err := s.Call(fn, args...)
	thread.SetTop(0)
	s.L, s.Run.current = outer, current
	s.pcalls--
	return results, err
}

// Coroutines are not the interpreter's own, whose yield breaks within pcall, metamethods and
// callbacks, and which overflow the stack if two resume each other. Each has a goroutine. One
// goroutine runs at a time, and the others wait for it, so a coroutine can yield from anywhere. It
// has the budget of its run, and ends with it at the latest.

// Bounds of coroutines.
const (
	maxCoroutines    = 1000 // begun and not ended, of a run
	maxResumes       = 100  // nested
	coroutineFrames  = maxFrames / 2
	coroutinePcalls  = maxPcalls / 4
	coroutineCharged = 100 // units of the budget, for a switch
)

// coroutine is a thread of Lua for scripts.
type coroutine struct {
	strand  // while it does not run
	fn      *lua.LFunction
	handle  *lua.LUserData
	status  string
	top     int      // number of files whose top level it runs itself
	loading []string // modules that it loads

	resume chan []lua.LValue // closed when the run ends
	result chan yielded      // closed when the goroutine ends
}

// NotJSON returns the error for a coroutine in a value.
func (*coroutine) NotJSON() string { return "a thread is not a JSON value" }

// yielded is the result of a resume.
type yielded struct {
	values []lua.LValue
	ended  bool
	err    error
}

// maxPcallsOf returns the depth to which pcalls may be nested.
func maxPcallsOf(s *State) int {
	if s.Run.current != nil {
		return coroutinePcalls
	}
	return maxPcalls
}
