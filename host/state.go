package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/budget"
	"obelus/host/internal/codec"
	"obelus/host/internal/limits"
	"obelus/luastd"
)

// Bounds of a state.
const (
	maxPcalls  = 100
	callFrames = 2000
)

// prepare sets the interpreter's own bound of arrays, which is global to the program, and
// globalNames.
var prepare = sync.OnceFunc(func() {
	lua.MaxArrayIndex = limits.MaxArray
	globalNames = slices.Sorted(maps.Keys(knownGlobals()))
})

// state is an LState with the safe part of Lua's library and what the host
// adds to it, ready for one run after another. Everything that scripts share
// is in Go, out of their reach: each run has an environment of its own, into
// which functions, and copies of library tables, come at first touch.
//
// A state belongs to one goroutine at a time. One in which something was
// raised is thrown away.
type state struct {
	strand // that runs now
	*codec.Codec
	project *stateProject
	env     *luastd.Env
	budget  budget.Budget

	globals map[string]lua.LValue // functions and values
	libs    map[string][]field    // library tables, by their global name
	modules map[string][]field    // what require gives, opened at first need
	streams []field               // methods of io's files

	envMeta    *lua.LTable  // of environments: fills them
	stringMeta *lua.LTable  // of strings: holds this run's library
	stringLib  *lua.LTable  // what it holds between runs
	operators  []lua.LValue // functions that carry out operators on strings, and on numbers with other values

	run     *run
	raised  *raised
	unwound *unwound // nil but in a handler of xpcall
}

// stateProject is what the states of one generation share.
type stateProject struct {
	scripts map[string]*script // by file
	limits  limits.Limits
	grants  luastd.Grants
	clock   luastd.Clock
	log     *slog.Logger
	stderr  io.Writer                                                                    // receives what scripts print
	http    func(ctx context.Context, r luastd.HTTPRequest) (luastd.HTTPResponse, error) // in place of the network; nil for that
	objects map[string]any                                                               // of the embedding program, by the names of globals
}

// run is what one run of a script has to itself.
type run struct {
	script    *script
	env       *lua.LTable
	top       int                            // how many files' top levels are being run
	loaded    *lua.LTable                    // by require, as package.loaded shows it; nil before the first
	loading   []string                       // modules whose top level is being run
	preloaded *lua.LTable                    // package.preload; nil before package is touched
	io        *lua.LTable                    // nil before it is touched
	lines     map[*lua.LTable]int            // of calls in a plan; nil if nobody asks
	printed   lines                          // what it prints
	turn      atomic.Int64                   // how many calls have ended
	random    *rand.Rand                     // of math.random; nil where nothing was seeded
	adapters  map[*lua.LTable]*lua.LFunction // that call objects which are metamethods; nil without any
	visited   visited
	coroutines
	test bool // it is that of a file of tests
}

func newState(p *stateProject) *state {
	prepare()
	s := &state{project: p, globals: map[string]lua.LValue{}, libs: map[string][]field{}, modules: map[string][]field{}}
	s.L = lua.NewState(lua.Options{
		SkipOpenLibs: true, CallStackSize: callFrames, IncludeGoStackTrace: true, // for where an object breaks down
		RegistrySize: 4 << 10, RegistryMaxSize: 1 << 20, RegistryGrowStep: 64 << 10,
	})
	s.budget.Owner, s.budget.Limits = s, &p.limits
	s.Codec = codec.New(s.L, func() *lua.LState { return s.strand.L }, &s.budget, &p.limits)
	s.env = capabilities(s)
	openBase(s)
	s.libs["string"] = s.funcs(stringFuncs)
	s.libs["table"] = s.funcs(tableFuncs)
	s.libs["math"] = append(s.funcs(mathFuncs), field{"huge", lua.LNumber(math.Inf(1))}, field{"pi", lua.LNumber(math.Pi)})
	s.libs["os"] = s.funcs(slices.Concat(osFuncs, osStubs))
	s.libs["coroutine"] = s.funcs(coroutineFuncs)
	s.libs["debug"] = s.funcs(debugFuncs)
	s.libs["io"], s.streams = s.funcs(ioFuncs), s.funcs(streamFuncs)
	s.libs["package"] = nil
	s.libs["json"] = s.module("json")
	openMetatables(s)
	for _, name := range slices.Sorted(maps.Keys(p.objects)) {
		s.globals[name] = newObject(s, p.objects[name])
	}
	return s
}

// field is one entry of a library table. Libraries are kept as lists, sorted
// by name, from which each run makes tables of its own.
type field struct {
	name  string
	value lua.LValue
}

// fieldList is a library table that a run has not looked into yet.
type fieldList []field

func (l fieldList) FillTable(t *lua.LTable) {
	for _, f := range l {
		t.RawSetString(f.name, f.value)
	}
}

func (l fieldList) LookupField(key lua.LValue) lua.LValue {
	for _, f := range l {
		if key == lua.LString(f.name) {
			return f.value
		}
	}
	return lua.LNil
}

// luaFunc is a library function of a state.
type luaFunc = func(s *state, L *lua.LState) int

// entryOf is a library function under its name, over what it is for: a state, or what has one.
type entryOf[T any] struct {
	name string
	fn   func(of T, L *lua.LState) int
}

// entry is a library function of a state. Tables of them are sorted by name.
type entry = entryOf[*state]

// bindEntries makes functions of entries, for the state of L.
func bindEntries[T any](L *lua.LState, of T, entries []entryOf[T]) []field {
	fields := make([]field, len(entries))
	for i, e := range entries {
		fields[i] = field{e.name, L.NewFunction(func(L *lua.LState) int { return e.fn(of, L) })}
	}
	return fields
}

func (s *state) fn(f luaFunc) *lua.LFunction {
	return s.L.NewFunction(func(L *lua.LState) int { return f(s, L) })
}

func (s *state) funcs(entries []entry) []field { return bindEntries(s.L, s, entries) }

// addLibrary gives scripts a global table with fields, which are sorted by name.
func (s *state) addLibrary(name string, fields []field) { s.libs[name] = fields }

// addGlobals gives scripts globals, unless an object of the program has the name.
func (s *state) addGlobals(fields []field) {
	for _, f := range fields {
		if s.globals[f.name] == nil {
			s.globals[f.name] = f.value
		}
	}
}

func (s *state) table(fields []field) *lua.LTable {
	t := s.L.CreateTable(0, len(fields))
	for _, f := range fields {
		t.RawSetString(f.name, f.value)
	}
	return t
}

func openMetatables(s *state) {
	s.envMeta = s.table([]field{{"__index", s.fn(lookupGlobal)}, {"__metatable", lua.LFalse}})
	s.stringLib = s.table(s.libs["string"])
	s.stringMeta = s.table(append(arithmeticOfStrings(s), field{"__index", s.stringLib}, field{"__metatable", lua.LFalse}))
	s.L.SetMetatable(lua.LString(""), s.stringMeta)
}

// lookupGlobal is the __index of an environment: what is touched comes into it.
func lookupGlobal(s *state, L *lua.LState) int {
	name, ok := L.Get(2).(lua.LString)
	if !ok {
		L.Push(lua.LNil)
		return 1
	}
	v := s.lookup(string(name))
	if env, ok := L.Get(1).(*lua.LTable); ok && v != lua.LNil {
		env.RawSetString(string(name), v)
	}
	L.Push(v)
	return 1
}

func (s *state) lookup(name string) lua.LValue {
	if v, ok := s.globals[name]; ok {
		return v
	}
	switch name {
	case "io":
		return newIO(s)
	case "package":
		return newPackage(s)
	}
	fields, ok := s.libs[name]
	if !ok {
		return lua.LNil
	}
	lib := s.Lazy(fieldList(fields))
	if name == "string" {
		s.stringMeta.RawSetString("__index", lib)
	}
	return lib
}

// fillEnv brings in all that has not been touched, for pairs(_G).
func (s *state) fillEnv(env *lua.LTable) {
	for _, names := range [][]string{slices.Sorted(maps.Keys(s.globals)), slices.Sorted(maps.Keys(s.libs))} {
		for _, name := range names {
			if !strings.HasPrefix(name, "\x00") && env.RawGetString(name) == lua.LNil {
				env.RawSetString(name, s.lookup(name))
			}
		}
	}
}

// begin readies the state for one run, of at most timeout.
func (s *state) begin(ctx context.Context, timeout time.Duration, sc *script) {
	env := s.L.CreateTable(0, 8)
	env.Metatable = s.envMeta
	env.RawSetString("_G", env)
	s.run = &run{script: sc, env: env, printed: lines{w: s.project.stderr}}
	s.raised, s.unwound, s.pcalls = nil, nil, 0
	s.budget.Reset(ctx, timeout)
	s.L.Env = env
	s.L.SetContext(&s.budget)
}

// rest lets a state be that is to go on with the same script.
func (s *state) rest() {
	s.L.SetTop(0)
	s.L.RemoveContext()
	s.budget.Release()
}

// again goes on with a state that rests.
func (s *state) again(ctx context.Context, timeout time.Duration) {
	s.raised, s.unwound, s.pcalls = nil, nil, 0
	s.budget.Reset(ctx, timeout)
	s.L.SetContext(&s.budget)
}

// end makes the state fit for the next run. It is not called if something was raised.
func (s *state) end() {
	s.run.stop()
	s.L.SetTop(0)
	s.L.RemoveContext()
	s.stringMeta.RawSetString("__index", s.stringLib)
	s.run, s.L.Env = nil, nil
	s.budget.Release()
}

// beginInput readies the state for one more input of a session, which gets a thread of its own:
// where something is raised the interpreter leaves the thread and its open variables in disorder.
// Values that outlive an input lie in tables, out of its reach. The caller must call end.
func (s *state) beginInput(ctx context.Context, timeout time.Duration) (end func()) {
	main := s.L
	s.strand = strand{L: s.newThread(main, callFrames)}
	s.raised, s.unwound = nil, nil
	s.budget.Reset(ctx, timeout)
	return func() {
		s.strand = strand{L: main}
		s.raised = nil
		s.run.top, s.run.loading = 0, nil
		s.run.current, s.run.resumes = nil, 0
		s.budget.Context = context.Background()
	}
}

// runFile runs the top level of a script and gives what it returns first.
func (s *state) runFile(sc *script) (lua.LValue, error) {
	proto, err := sc.compiled()
	if err != nil {
		return nil, err
	}
	f := s.L.NewFunctionFromProto(proto)
	s.run.top++
	results, err := s.call(f)
	s.run.top--
	if err != nil {
		return nil, err
	}
	if len(results) == 0 {
		return lua.LNil, nil
	}
	return results[0], nil
}

// call calls a Lua function with the budget's protection and gives its
// results. Its error is a [*fault].
func (s *state) call(f lua.LValue, args ...lua.LValue) ([]lua.LValue, error) {
	L := s.L
	top := L.GetTop()
	err := s.protected(f, args)
	s.budget.Ended()
	if s.budget.Exhausted() { // while a native function ran, it may be
		err = cmp.Or(err, errors.New(budget.OutOfTime))
	}
	if err != nil {
		return nil, s.fault(err)
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
func (s *state) protected(f lua.LValue, args []lua.LValue) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return s.L.CallByParam(lua.P{Fn: f, NRet: lua.MultRet, Protect: true}, args...)
}

// where is the place in Lua at a level of the stack: 1 is whoever called the
// library function that asks. Line is 0 if that is not Lua.
func (s *state) where(L *lua.LState, level int) (file string, line int) {
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
