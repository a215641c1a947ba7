// Package luac compiles Lua for gopher-lua, such that the code does what Lua 5.1 defines. Before
// compiling it rewrites the syntax tree at places that the compiler gets wrong (rewrite.go lists
// them), and hides literals from it that would take time by their square. Afterwards it patches the
// instructions. Rewritten code calls functions that the caller supplies.
package luac

import (
	"errors"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/lazyregexp"
	"obelus/host/internal/luaerr"
)

// maxNesting bounds the depth of a file's syntax tree: the compiler recurses, and a Go stack that
// overflows ends the process. In depths a level counts as perLevel. What associates to the left, as
// a + b + c or a:b():c(), is nested for the compiler alone: each part of it counts as 1.
const (
	maxNesting = 200
	perLevel   = 25
	maxDepth   = maxNesting * perLevel
)

// Compile compiles text for an LState. name is the file as people know it,
// "activities/billing.lua". The compiled code calls functions for some operators and statements.
// The error is a [*luaerr.ScriptError].
func Compile(name string, source []byte, functions Functions) (*lua.FunctionProto, error) {
	proto, err := compileWithPool(name, source, functions, newConstantPool())
	if errors.Is(err, errUnpooled) {
		proto, err = compileWithPool(name, source, functions, nil)
	}
	return proto, err
}

// errUnpooled asks to compile a file again without a constantPool.
var errUnpooled = errors.New("the constants can't be put back")

func compileWithPool(name string, source []byte, functions Functions, pool *constantPool) (proto *lua.FunctionProto, err error) {
	defer func() {
		if r := recover(); r != nil {
			proto, err = nil, &luaerr.ScriptError{File: name, Line: 1, Message: "the compiler can't cope with this file: split it"}
		}
	}()
	chunk, err := ParseChunk(name, source)
	if err != nil {
		return nil, err
	}
	text := trimPreamble(string(source))
	w := newRewriter(name, text)
	w.fields = findGlobalFields(chunk, text)
	w.stmts(chunk, 0)
	if w.err != nil {
		return nil, luaerr.WithSource(w.err, text)
	}
	if pool != nil {
		pool.replaceLiterals(chunk, 0)
	}
	proto, err = lua.Compile(chunk, name)
	if err != nil {
		return nil, compileError(name, text, err)
	}
	if pool != nil {
		switch ok, err := pool.restore(proto, maxConstants-len(functions)); {
		case err != nil:
			return nil, &luaerr.ScriptError{File: name, Line: 1, Message: err.Error()}
		case !ok:
			return nil, errUnpooled
		}
	}
	restoreNegativeZero(proto)
	// A table for a local arg, which the top level of a file does not have.
	proto.IsVarArg &^= lua.VarArgNeedsArg
	removeTailCalls(proto)
	loadFunctionsAsConstants(proto, functions)
	return proto, nil
}

// The compiler reports these with another line: the end of the function, or the line after the
// label.
var (
	aboutGoto  = lazyregexp.New(`^(no visible label '.*' for <goto>|<goto .*>) at line (\d+)(.*)$`)
	aboutLabel = lazyregexp.New(`^label '.*' already defined on line \d+$`)
)

func compileError(name, text string, err error) *luaerr.ScriptError {
	e := &luaerr.ScriptError{File: name, Line: 1, Message: err.Error()}
	var at *lua.CompileError
	if errors.As(err, &at) {
		e.Line, e.Message = at.Line&lineMask, at.Message
	}
	if m := aboutGoto().FindStringSubmatch(e.Message); m != nil {
		e.Message = m[1] + m[3]
		e.Line, _ = strconv.Atoi(m[2])
	} else if aboutLabel().MatchString(e.Message) {
		e.Line--
	}
	return luaerr.WithSource(e, text)
}

// Functions holds the functions that rewritten code calls, by the names below.
type Functions map[string]*lua.LFunction

// loadFunctionsAsConstants makes constants of the functions that rewritten code calls, so that the
// code finds them in any environment that setfenv gives it.
func loadFunctionsAsConstants(proto *lua.FunctionProto, functions Functions) {
	at := map[string]int{}
	for i, instruction := range proto.Code {
		if int(instruction>>26) != lua.OP_GETGLOBAL {
			continue
		}
		name := proto.Constants[operandBx(instruction)].String()
		f := functions[name]
		if f == nil {
			continue
		}
		if at[name] == 0 {
			at[name] = len(proto.Constants)
			proto.Constants = append(proto.Constants, f)
		}
		proto.Code[i] = instruction&(0xff<<18) | uint32(lua.OP_LOADK)<<26 | uint32(at[name])
	}
	for _, inner := range proto.FunctionPrototypes {
		loadFunctionsAsConstants(inner, functions)
	}
}

// operandBx returns the number of the constant that an instruction refers to.
func operandBx(instruction uint32) int { return int(instruction & (1<<18 - 1)) }

// removeTailCalls makes every tail call an ordinary one: the traceback has all frames, and endless
// recursion meets the limit of the stack instead of filling the memory with its traceback.
func removeTailCalls(proto *lua.FunctionProto) {
	for i, instruction := range proto.Code {
		if int(instruction>>26) == lua.OP_TAILCALL {
			proto.Code[i] = instruction&(1<<26-1) | uint32(lua.OP_CALL)<<26
		}
	}
	for _, inner := range proto.FunctionPrototypes {
		removeTailCalls(inner)
	}
}
