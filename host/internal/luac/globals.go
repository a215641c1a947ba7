package luac

import (
	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luaerr"
)

// AccidentalGlobal returns an error for the first assignment, inside a function, to a global that
// neither the file's top level assigns nor known has: most probably a forgotten local.
func AccidentalGlobal(file string, source []byte, proto *lua.FunctionProto, known map[string]bool) error {
	declared := map[string]bool{}
	eachGlobalSet(proto, func(name string, _ int) { declared[name] = true })
	e := &luaerr.ScriptError{File: file}
	for _, inner := range proto.FunctionPrototypes {
		findAccident(inner, declared, known, e)
	}
	if e.Line == 0 {
		return nil
	}
	return luaerr.WithSource(e, plainSource(string(source)))
}

func findAccident(proto *lua.FunctionProto, declared, known map[string]bool, e *luaerr.ScriptError) {
	eachGlobalSet(proto, func(name string, line int) {
		if declared[name] || known[name] || e.Line > 0 && e.Line <= line {
			return
		}
		e.Line = line
		e.Message = "a function assigns the global " + name + ", which this file does not declare: make it local, or give it a value at the top level"
	})
	for _, inner := range proto.FunctionPrototypes {
		findAccident(inner, declared, known, e)
	}
}

// eachGlobalSet calls see for the globals that a function itself assigns.
func eachGlobalSet(proto *lua.FunctionProto, see func(name string, line int)) {
	EachGlobal(proto, lua.OP_SETGLOBAL, see)
}

// EachGlobal calls see for each global on which a function itself does an operation,
// lua.OP_GETGLOBAL or lua.OP_SETGLOBAL.
func EachGlobal(proto *lua.FunctionProto, operation int, see func(name string, line int)) {
	for i, instruction := range proto.Code {
		if int(instruction>>26) == operation {
			see(proto.Constants[operandBx(instruction)].String(), proto.DbgSourcePositions[i])
		}
	}
}

// SetWithin adds the globals that a function and the functions in it assign to names.
func SetWithin(proto *lua.FunctionProto, names map[string]bool) {
	eachGlobalSet(proto, func(name string, _ int) { names[name] = true })
	for _, inner := range proto.FunctionPrototypes {
		SetWithin(inner, names)
	}
}
