package host

import (
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
)

// libraryNames are the global tables that every script has.
var libraryNames = []string{
	"Activity", "Delegate", "Message", "Output", "Tool", "_G", "_VERSION", "coroutine", "debug", "io", "json", "math", "os", "package",
	"string", "table",
}

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
	e := &ScriptError{File: file}
	for _, inner := range proto.FunctionPrototypes {
		findAccident(inner, declared, e)
	}
	if e.Line == 0 {
		return nil
	}
	if lines := strings.Split(plainSource(string(source)), "\n"); e.Line <= len(lines) {
		e.Source = strings.TrimRight(lines[e.Line-1], "\r")
	}
	return e
}

func findAccident(proto *lua.FunctionProto, declared map[string]bool, e *ScriptError) {
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
	for i, instruction := range proto.Code {
		if int(instruction>>26) == lua.OP_SETGLOBAL {
			see(proto.Constants[operandBx(instruction)].String(), proto.DbgSourcePositions[i])
		}
	}
}
