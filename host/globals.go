package host

import (
	"maps"
	"slices"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine"
	"obelus/host/internal/luaerr"
)

// libraryNames are the global tables that every script has.
var libraryNames = []string{
	"Activity", "Delegate", "Message", "Output", "Tool", "_G", "_VERSION", "coroutine", "debug", "io", "json", "math", "os", "package",
	"string", "table",
}

// globalNames are those of libraries and of functions, in sorted order. The functions refer to
// it themselves.
var globalNames []string

func init() { globalNames = slices.Sorted(maps.Keys(knownGlobals())) }

// knownGlobals are the names that a function may give another value.
var knownGlobals = sync.OnceValue(func() map[string]bool {
	known := map[string]bool{}
	for _, name := range libraryNames {
		known[name] = true
	}
	for _, f := range baseFuncs {
		known[f.name] = true
	}
	return known
})

// accidentalGlobal finds the first assignment, inside of a function, to a
// global that the file's top level does not assign: in all likelihood a local
// that was forgotten.
func accidentalGlobal(file string, source []byte, proto *lua.FunctionProto) error {
	declared := map[string]bool{}
	eachGlobalSet(proto, func(name string, _ int) { declared[name] = true })
	e := &luaerr.ScriptError{File: file}
	for _, inner := range proto.FunctionPrototypes {
		findAccident(inner, declared, e)
	}
	if e.Line == 0 {
		return nil
	}
	return luaerr.WithSource(e, plainSource(string(source)))
}

func findAccident(proto *lua.FunctionProto, declared map[string]bool, e *luaerr.ScriptError) {
	eachGlobalSet(proto, func(name string, line int) {
		if declared[name] || knownGlobals()[name] || e.Line > 0 && e.Line <= line {
			return
		}
		e.Line = line
		e.Message = "a function assigns the global " + name + ", which this file does not declare: make it local, or give it a value at the top level"
	})
	for _, inner := range proto.FunctionPrototypes {
		findAccident(inner, declared, e)
	}
}

// eachGlobalSet shows see the globals that a function assigns itself.
func eachGlobalSet(proto *lua.FunctionProto, see func(name string, line int)) {
	eachGlobal(proto, lua.OP_SETGLOBAL, see)
}

func eachGlobal(proto *lua.FunctionProto, operation int, see func(name string, line int)) {
	for i, instruction := range proto.Code {
		if int(instruction>>26) == operation {
			see(proto.Constants[operandBx(instruction)].String(), proto.DbgSourcePositions[i])
		}
	}
}

// Slips warns of what can only be meant otherwise: globals that activities read and nothing
// gives a value, where a name that the script does know is hardly another (such a one is
// nil); permissions to write that name scripts; and what is wrong with the schemas of tools
// ([engine.Tool.Problems]).
func (g *Generation) Slips() []engine.Problem {
	known := maps.Clone(knownGlobals())
	for _, f := range referenceFuncs { // a function that assigns one of these has forgotten a local
		known[f.name] = true
	}
	for name := range g.config.Objects {
		known[name] = true
	}
	for file, sc := range g.scripts {
		if !strings.HasPrefix(file, "lib/") {
			continue
		}
		if proto, err := sc.compiled(); err == nil {
			setWithin(proto, known)
		}
	}
	all := g.writableScripts()
	for _, file := range slices.Sorted(maps.Keys(g.scripts)) {
		if !strings.HasPrefix(file, "activities/") {
			continue
		}
		if proto, err := g.scripts[file].compiled(); err == nil {
			own := maps.Clone(known)
			setWithin(proto, own)
			all = append(all, slipsWithin(file, proto, own, slices.Sorted(maps.Keys(own)))...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.registry.Tools)) {
		all = append(all, g.registry.Tools[name].Problems()...)
	}
	return all
}

// setWithin notes the globals that a function and those in it assign.
func setWithin(proto *lua.FunctionProto, names map[string]bool) {
	eachGlobalSet(proto, func(name string, _ int) { names[name] = true })
	for _, inner := range proto.FunctionPrototypes {
		setWithin(inner, names)
	}
}

func slipsWithin(file string, proto *lua.FunctionProto, known map[string]bool, names []string) (all []engine.Problem) {
	for _, local := range proto.DbgLocals {
		names = slices.Insert(names, 0, local.Name) // before what all scripts have
	}
	eachGlobal(proto, lua.OP_GETGLOBAL, func(name string, line int) {
		if hint := luaerr.DidYouMean(name, names); !known[name] && hint != "" {
			all = append(all, engine.Problem{File: file, Line: line, Severity: engine.SeverityWarning, Code: engine.CodeUnresolved,
				Message: "nothing gives the global " + name + " a value" + hint})
		}
	})
	for _, inner := range proto.FunctionPrototypes {
		all = append(all, slipsWithin(file, inner, known, slices.Clone(names))...)
	}
	return all
}
