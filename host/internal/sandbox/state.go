// Package sandbox runs Lua scripts so that they can do no harm. A [State] is an interpreter with
// the safe part of Lua 5.1's library, one run after another. Each run has an environment and a
// budget of its own.
//
// Each library is a file with a table of functions, which take the state: string.go, table.go,
// math.go and so on. Below them, thread.go has protected calls and coroutines, value.go the
// arguments of functions, and library.go the tables of functions. open.go puts everything together.
// The package knows nothing of activities and plans.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/budget"
	"obelus/host/internal/codec"
	"obelus/host/internal/limits"
	"obelus/luastd"
)

// State is an LState with the safe part of Lua's library and the additions of the host, ready for
// one run after another. Everything that scripts share is in Go, out of their reach: each run has
// its own environment, into which functions, and copies of library tables, enter when they are
// first read.
//
// A state belongs to one goroutine at a time. It must not be used again once an error was raised in
// it.
type State struct {
	strand // that runs now
	*codec.Codec
	Project *Project
	Env     *luastd.Env   // of the modules of package luastd
	Budget  budget.Budget // of the run
	Output  io.Writer     // receives what scripts print

	Globals    map[string]lua.LValue // functions and values
	Libs       map[string][]Field    // library tables, by their global names
	Modules    map[string][]Field    // built-in modules, opened on first use
	streams    []Field               // methods of io's files
	knownNames []string              // of globals that a misspelt one may mean, sorted

	envMeta    *lua.LTable // of environments: enters globals
	stringMeta *lua.LTable // of strings: has this run's library
	StringLib  *lua.LTable // the library between runs
	// Functions that carry out operators on strings, and on numbers with other values.
	operators []lua.LValue

	Run     *Run     // nil between runs
	Raised  *raised  // value that the author raised, until it is caught; nil without one
	unwound *unwound // nil outside of a handler of xpcall
}

// Begin readies the state for one run, of at most timeout.
func (s *State) Begin(ctx context.Context, timeout time.Duration, sc *Script) {
	s.Run = &Run{Script: sc, Printed: lines{w: s.Output}}
	s.newEnvironment()
	s.Raised, s.unwound, s.pcalls = nil, nil, 0
	s.Budget.Reset(ctx, timeout)
	s.L.SetContext(&s.Budget)
}

// newEnvironment gives the run an environment in which nothing has run yet.
func (s *State) newEnvironment() {
	env := s.L.CreateTable(0, 8)
	env.Metatable = s.envMeta
	s.Run.Env, s.Run.loaded, s.L.Env = env, nil, env
	s.stringMeta.RawSetString("__index", s.StringLib)
}

// Rest suspends a state that is to continue with the same script.
func (s *State) Rest() {
	s.L.SetTop(0)
	s.L.RemoveContext()
	s.Budget.Release()
}

// Resume continues with a state that rests.
func (s *State) Resume(ctx context.Context, timeout time.Duration) {
	s.Raised, s.unwound, s.pcalls = nil, nil, 0
	s.Budget.Reset(ctx, timeout)
	s.L.SetContext(&s.Budget)
}

// End readies the state for the next run. It must not be called if something was raised.
func (s *State) End() {
	s.Run.Stop()
	s.L.SetTop(0)
	s.L.RemoveContext()
	s.Run, s.L.Env = nil, nil
	s.Budget.Release()
}

// BeginInput readies the state for one more input of a session, on a new thread: after an error the
// interpreter leaves a thread and its open variables in disorder. Values that outlive an input are
// in tables. The caller must call end.
func (s *State) BeginInput(ctx context.Context, timeout time.Duration) (end func()) {
	main := s.L
	s.strand = strand{L: s.newThread(main, maxFrames)}
	s.Raised, s.unwound = nil, nil
	s.Budget.Reset(ctx, timeout)
	return func() {
		s.strand = strand{L: main}
		s.Raised = nil
		s.Run.Depth, s.Run.loading = 0, nil
		s.Run.current, s.Run.resumes = nil, 0
		s.Budget.Context = context.Background()
	}
}

// RunFile runs the top level of a script and returns its first result.
func (s *State) RunFile(sc *Script) (lua.LValue, error) {
	proto, err := sc.Compile()
	if err != nil {
		return nil, err
	}
	f := s.L.NewFunctionFromProto(proto)
	s.Run.Depth++
	results, err := s.Call(f)
	s.Run.Depth--
	if err != nil {
		return nil, err
	}
	if len(results) == 0 {
		return lua.LNil, nil
	}
	return results[0], nil
}

// Call calls a Lua function under the budget and returns its results. Its error is a [*Fault].
func (s *State) Call(f lua.LValue, args ...lua.LValue) ([]lua.LValue, error) {
	L := s.L
	top := L.GetTop()
	err := s.protected(f, args)
	s.Budget.Finish()
	if s.Budget.Exhausted() { // perhaps during a native function
		err = cmp.Or(err, errors.New(limits.OutOfTime))
	}
	if err != nil {
		return nil, s.Fault(err)
	}
	results := make([]lua.LValue, 0, 2)
	for i := top + 1; i <= L.GetTop(); i++ {
		results = append(results, L.Get(i))
	}
	L.SetTop(top)
	return results, nil
}

// protected recovers from a panic that the interpreter does not recover from: one while it unwinds
// from another.
func (s *State) protected(f lua.LValue, args []lua.LValue) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return s.L.CallByParam(lua.P{Fn: f, NRet: lua.MultRet, Protect: true}, args...)
}

// Place returns the place in Lua at a level of the stack: 1 is the caller of the library function
// that asks. Line is 0 if that is not Lua.
func (s *State) Place(L *lua.LState, level int) (file string, line int) {
	dbg, ok := L.GetStack(level)
	for !ok && s.callers[L] != nil { // the level counts on below the pcall
		frames := 0
		for {
			if _, more := L.GetStack(frames); !more {
				break
			}
			frames++
		}
		L, level = s.callers[L], level-frames
		dbg, ok = L.GetStack(level)
	}
	if !ok {
		return "", 0
	}
	if _, err := L.GetInfo("Sl", dbg, lua.LNil); err != nil || dbg.CurrentLine <= 0 {
		return "", 0
	}
	return dbg.Source, dbg.CurrentLine
}
