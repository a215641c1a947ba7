package sandbox

import (
	"maps"
	"math"
	"slices"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/codec"
	"obelus/host/internal/limits"
	"obelus/host/internal/luac"
	"obelus/luastd"
)

// libraryNames are the global tables of every script.
var libraryNames = []string{
	"Activity", "Delegate", "Message", "Output", "Tool", "_G", "_VERSION", "coroutine", "debug", "io", "json", "math", "os", "package",
	"string", "table",
}

// KnownGlobals returns the globals that scripts have without declaring them: Lua's functions and
// the libraries. The set must not be changed.
var KnownGlobals = sync.OnceValue(func() map[string]bool {
	known := map[string]bool{}
	for _, name := range libraryNames {
		known[name] = true
	}
	for _, f := range baseFuncs {
		known[f.Name] = true
	}
	return known
})

// baseFuncs are the safe ones of Lua 5.1's basic functions. The others read files, or show or
// control garbage collection.
var baseFuncs = []StateEntry{
	{"assert", baseAssert},
	{"error", baseError},
	{"getfenv", baseGetfenv},
	{"getmetatable", baseGetmetatable},
	{"ipairs", baseIpairs},
	{"load", baseLoad},
	{"loadstring", baseLoadstring},
	{"next", baseNext},
	{"pairs", basePairs},
	{"pcall", basePcall},
	{"print", basePrint},
	{"rawequal", baseRawequal},
	{"rawget", baseRawget},
	{"rawset", baseRawset},
	{"require", baseRequire},
	{"select", baseSelect},
	{"setfenv", baseSetfenv},
	{"setmetatable", baseSetmetatable},
	{"tonumber", baseTonumber},
	{"tostring", baseTostring},
	{"type", baseType},
	{"unpack", baseUnpack},
	{"xpcall", baseXpcall},
}

func openBase(s *State) {
	for _, f := range s.Funcs(baseFuncs) {
		s.Globals[f.Name] = f.Value
	}
	s.Globals["_VERSION"] = lua.LString("Lua 5.1")
	s.Globals["\x00ipairs"] = s.Fn(baseIpairsNext)
}

// arithmeticOfStrings returns the metamethods by which strings take part in arithmetic. The
// interpreter's own conversion reads "010" as eight.
func arithmeticOfStrings(s *State) []Field {
	var fields []Field
	for _, name := range slices.Sorted(maps.Keys(luac.Arithmetic)) {
		f := s.Fn(func(s *State, L *lua.LState) int { return mixedArithmetic(s, L, name) })
		fields, s.operators = append(fields, Field{"__" + name, f}), append(s.operators, f)
	}
	return fields
}

// newEnv returns the means of this state's modules.
func newEnv(s *State) *luastd.Env {
	return &luastd.Env{
		Codec:        s.Codec,
		Grants:       s.Project.Grants,
		Clock:        s.Project.Clock,
		Log:          s.Project.Log,
		Effect:       s.Effect,
		Outside:      s.Budget.Outside,
		HTTP:         s.Project.HTTP,
		Context:      s.Budget.WaitContext,
		Charge:       s.Budget.Charge,
		DefaultModel: s.Project.DefaultModel,
		MaxString:    s.Project.Limits.String,
		MaxArray:     limits.MaxArray - 2,
	}
}

// boundArrays sets the interpreter's own bound, which is global to the program.
var boundArrays = sync.OnceFunc(func() { lua.MaxArrayIndex = limits.MaxArray })

// knownNames returns the names of KnownGlobals, sorted.
var knownNames = sync.OnceValue(func() []string { return slices.Sorted(maps.Keys(KnownGlobals())) })

// New returns a state for scripts of a project, with Lua's libraries and the program's objects.
func New(p *Project) *State {
	boundArrays()
	s := &State{Project: p, Output: p.Stderr, knownNames: knownNames(), Globals: map[string]lua.LValue{}, Libs: map[string][]Field{}, Modules: map[string][]Field{}}
	s.L = lua.NewState(lua.Options{
		// For the place at which an object fails.
		SkipOpenLibs: true, CallStackSize: maxFrames, IncludeGoStackTrace: true,
		RegistrySize: 4 << 10, RegistryMaxSize: 1 << 20, RegistryGrowStep: 64 << 10,
	})
	s.Budget.Owner, s.Budget.Limits = s, &p.Limits
	s.Codec = codec.New(s.L, func() *lua.LState { return s.strand.L }, &s.Budget, &p.Limits)
	s.Env = newEnv(s)
	openBase(s)
	s.Libs["string"] = s.Funcs(stringFuncs)
	s.Libs["table"] = s.Funcs(tableFuncs)
	s.Libs["math"] = append(s.Funcs(mathFuncs), Field{"huge", lua.LNumber(math.Inf(1))}, Field{"pi", lua.LNumber(math.Pi)})
	s.Libs["os"] = s.Funcs(slices.Concat(osFuncs, osStubs))
	s.Libs["coroutine"] = s.Funcs(coroutineFuncs)
	s.Libs["debug"] = s.Funcs(debugFuncs)
	s.Libs["io"], s.streams = s.Funcs(ioFuncs), s.Funcs(streamFuncs)
	s.Libs["package"] = nil
	s.Libs["json"] = s.Builtin("json")
	openMetatables(s)
	for _, name := range slices.Sorted(maps.Keys(p.Objects)) {
		s.Globals[name] = newObject(s, p.Objects[name])
	}
	return s
}

func openMetatables(s *State) {
	s.envMeta = s.Table([]Field{{"__index", s.Fn(lookupGlobal)}, {"__metatable", lua.LFalse}})
	s.StringLib = s.Table(s.Libs["string"])
	s.stringMeta = s.Table(append(arithmeticOfStrings(s), Field{"__index", s.StringLib}, Field{"__metatable", lua.LFalse}))
	s.L.SetMetatable(lua.LString(""), s.stringMeta)
}
