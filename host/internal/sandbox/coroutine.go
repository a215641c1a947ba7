package sandbox

import (
	"errors"
	"fmt"
	"runtime"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/limits"
)

// newCoroutine makes a coroutine. It takes only memory before it is resumed.
func newCoroutine(s *State, fn *lua.LFunction) *coroutine {
	co := &coroutine{fn: fn, status: "suspended"}
	co.handle = s.L.NewUserData()
	co.handle.Value, co.handle.Env = co, s.Run.Env
	return co
}

// resumeCoroutine runs a coroutine until it yields or ends. The error is the one that the coroutine
// raised, or errNotResumed.
func resumeCoroutine(s *State, L *lua.LState, co *coroutine, args []lua.LValue) ([]lua.LValue, error) {
	all := &s.Run.coroutines
	switch {
	case co.status != "suspended":
		return nil, errNotResumed("cannot resume " + co.status + " coroutine")
	case all.resumes == maxResumes:
		return nil, errNotResumed(fmt.Sprintf("coroutines are nested more than %d deep", maxResumes))
	case co.resume == nil && len(all.begun) == maxCoroutines:
		return nil, errNotResumed(fmt.Sprintf("more than %d coroutines have begun and not ended", maxCoroutines))
	}
	s.Budget.Charge(L, coroutineCharged)
	out := switchToCoroutine(s, L, co, args)
	if s.Budget.Err() != nil {
		L.RaiseError("%s", limits.OutOfTime)
	}
	return out.values, out.err
}

// errNotResumed is the reason why a coroutine can't be resumed.
type errNotResumed string

func (e errNotResumed) Error() string { return string(e) }

// switchToCoroutine runs a coroutine until it yields or ends, and swaps everything in the state
// that depends on the place of execution meanwhile.
func switchToCoroutine(s *State, L *lua.LState, co *coroutine, args []lua.LValue) yielded {
	r := s.Run
	outer, resumer, top, loading := s.strand, r.current, r.Depth, r.loading
	if resumer != nil {
		resumer.status = "normal"
	}
	r.current, co.status = co, "running"
	r.resumes++
	if r.Depth += co.top; co.loading != nil {
		r.loading = co.loading
	}
	if co.resume == nil {
		startCoroutine(s, L, co, args)
	} else {
		s.strand = co.strand
		co.resume <- args
	}
	out := <-co.result
	co.strand, co.top, co.loading = s.strand, r.Depth-top, r.loading
	s.strand, r.current, r.Depth, r.loading = outer, resumer, top, loading
	r.resumes--
	if resumer != nil {
		resumer.status = "running"
	}
	co.status = "suspended"
	if out.ended {
		co.status, co.strand = "dead", strand{}
		delete(r.begun, co)
	}
	return out
}

func startCoroutine(s *State, L *lua.LState, co *coroutine, args []lua.LValue) {
	if s.Run.begun == nil {
		s.Run.begun = map[*coroutine]bool{}
	}
	s.Run.begun[co] = true
	co.resume, co.result = make(chan []lua.LValue), make(chan yielded)
	s.strand = strand{L: s.newThread(L, coroutineFrames)}
	go runCoroutine(s, co, s.L, args)
}

// runCoroutine runs on the goroutine of a coroutine.
func runCoroutine(s *State, co *coroutine, thread *lua.LState, args []lua.LValue) {
	defer close(co.result)
	err := s.protected(co.fn, args)
	out := yielded{ended: true, err: err}
	if err == nil {
		for i := 1; i <= thread.GetTop(); i++ {
			out.values = append(out.values, thread.Get(i))
		}
	}
	co.result <- out
}

// yieldCoroutine hands values to the resumer of the coroutine, and waits to be resumed.
func yieldCoroutine(s *State, L *lua.LState, co *coroutine, values []lua.LValue) []lua.LValue {
	co.result <- yielded{values: values}
	args, ok := <-co.resume
	if !ok {
		runtime.Goexit() // unlike an error it can't be caught
	}
	if s.Budget.Err() != nil {
		L.RaiseError("%s", limits.OutOfTime)
	}
	return args
}

var coroutineFuncs = []StateEntry{
	{"create", coroutineCreate},
	{"resume", coroutineResume},
	{"running", coroutineRunning},
	{"status", coroutineStatus},
	{"wrap", coroutineWrap},
	{"yield", coroutineYield},
}

func coroutineCreate(s *State, L *lua.LState) int {
	return Push(L, newCoroutine(s, L.CheckFunction(1)).handle)
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

// arguments returns the arguments from the n-th on.
func arguments(L *lua.LState, n int) []lua.LValue {
	var args []lua.LValue
	for ; n <= L.GetTop(); n++ {
		args = append(args, L.Get(n))
	}
	return args
}

func coroutineResume(s *State, L *lua.LState) int {
	co := checkCoroutine(L)
	values, err := resumeCoroutine(s, L, co, arguments(L, 2))
	if err == nil {
		L.Push(lua.LTrue)
		return 1 + Push(L, values...)
	}
	L.Push(lua.LFalse)
	var refused errNotResumed
	if errors.As(err, &refused) {
		L.Push(lua.LString(refused))
		return 2
	}
	L.Push(s.catch(err))
	return 2
}

func coroutineRunning(s *State, L *lua.LState) int {
	if s.Run.current == nil {
		L.Push(lua.LNil)
	} else {
		L.Push(s.Run.current.handle)
	}
	return 1
}

func coroutineStatus(s *State, L *lua.LState) int {
	return Push(L, lua.LString(checkCoroutine(L).status))
}

// coroutineWrap is coroutine.wrap(f). Errors of the coroutine are raised unchanged.
func coroutineWrap(s *State, L *lua.LState) int {
	co := newCoroutine(s, L.CheckFunction(1))
	L.Push(s.Fn(func(s *State, L *lua.LState) int {
		values, err := resumeCoroutine(s, L, co, arguments(L, 1))
		var refused errNotResumed
		switch {
		case errors.As(err, &refused):
			L.RaiseError("%s", string(refused))
		case err != nil:
			value, _ := raisedValue(err)
			L.Error(value, 0)
		}
		return Push(L, values...)
	}))
	return 1
}

func coroutineYield(s *State, L *lua.LState) int {
	co := s.Run.current
	if co == nil {
		L.RaiseError("attempt to yield from outside a coroutine")
	}
	return Push(L, yieldCoroutine(s, L, co, arguments(L, 1))...)
}
