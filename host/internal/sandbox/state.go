package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/budget"
	"obelus/host/internal/codec"
	"obelus/host/internal/limits"
	"obelus/luastd"
)

// State is an LState with the safe part of Lua's library and what the host
// adds to it, ready for one run after another. Everything that scripts share
// is in Go, out of their reach: each run has an environment of its own, into
// which functions, and copies of library tables, come at first touch.
//
// A state belongs to one goroutine at a time. One in which something was
// raised is thrown away.
type State struct {
	strand // that runs now
	*codec.Codec
	Project *Project
	Env     *luastd.Env
	Budget  budget.Budget

	Globals    map[string]lua.LValue // functions and values
	Libs       map[string][]Field    // library tables, by their global name
	Modules    map[string][]Field    // what require gives, opened at first need
	streams    []Field               // methods of io's files
	knownNames []string              // of globals that a misspelt one may mean, sorted

	envMeta    *lua.LTable  // of environments: fills them
	stringMeta *lua.LTable  // of strings: holds this run's library
	StringLib  *lua.LTable  // what it holds between runs
	operators  []lua.LValue // functions that carry out operators on strings, and on numbers with other values

	Run     *Run
	Raised  *raised
	unwound *unwound // nil but in a handler of xpcall
}

// Begin readies the state for one run, of at most timeout.
func (s *State) Begin(ctx context.Context, timeout time.Duration, sc *Script) {
	env := s.L.CreateTable(0, 8)
	env.Metatable = s.envMeta
	env.RawSetString("_G", env)
	s.Run = &Run{Script: sc, Env: env, Printed: lines{w: s.Project.Stderr}}
	s.Raised, s.unwound, s.pcalls = nil, nil, 0
	s.Budget.Reset(ctx, timeout)
	s.L.Env = env
	s.L.SetContext(&s.Budget)
}

// Rest lets a state be that is to go on with the same script.
func (s *State) Rest() {
	s.L.SetTop(0)
	s.L.RemoveContext()
	s.Budget.Release()
}

// Resume goes on with a state that rests.
func (s *State) Resume(ctx context.Context, timeout time.Duration) {
	s.Raised, s.unwound, s.pcalls = nil, nil, 0
	s.Budget.Reset(ctx, timeout)
	s.L.SetContext(&s.Budget)
}

// End makes the state fit for the next run. It is not called if something was raised.
func (s *State) End() {
	s.Run.Stop()
	s.L.SetTop(0)
	s.L.RemoveContext()
	s.stringMeta.RawSetString("__index", s.StringLib)
	s.Run, s.L.Env = nil, nil
	s.Budget.Release()
}

// BeginInput readies the state for one more input of a session, which gets a thread of its own:
// where something is raised the interpreter leaves the thread and its open variables in disorder.
// Values that outlive an input lie in tables, out of its reach. The caller must call end.
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

// RunFile runs the top level of a script and gives what it returns first.
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

// Call calls a Lua function with the budget's protection and gives its
// results. Its error is a [*fault].
func (s *State) Call(f lua.LValue, args ...lua.LValue) ([]lua.LValue, error) {
	L := s.L
	top := L.GetTop()
	err := s.protected(f, args)
	s.Budget.Ended()
	if s.Budget.Exhausted() { // while a native function ran, it may be
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

// protected recovers from what the interpreter itself does not: a panic
// while it unwinds from another.
func (s *State) protected(f lua.LValue, args []lua.LValue) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return s.L.CallByParam(lua.P{Fn: f, NRet: lua.MultRet, Protect: true}, args...)
}

// Place is the place in Lua at a level of the stack: 1 is whoever called the
// library function that asks. Line is 0 if that is not Lua.
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
