package sandbox

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/codec"
	"obelus/host/internal/limits"
	"obelus/host/internal/luatext"
	"obelus/luastd"
)

// Push pushes the results of a library function, and returns their number.
func Push(L *lua.LState, values ...lua.LValue) int {
	for _, v := range values {
		L.Push(v)
	}
	return len(values)
}

// callFunction calls a function of a script and returns its first result.
func callFunction(L *lua.LState, fn lua.LValue, args ...lua.LValue) lua.LValue {
	L.Push(fn)
	L.Call(Push(L, args...), 1)
	v := L.Get(-1)
	L.Pop(1)
	return v
}

// number returns an argument that must be a number, or text that says one.
func number(L *lua.LState, arg int) lua.LNumber {
	n, ok := luatext.ToNumber(L.Get(arg))
	if !ok {
		L.TypeError(arg, lua.LTNumber)
	}
	return n
}

func integer(L *lua.LState, arg int) int {
	if n, ok := L.Get(arg).(lua.LNumber); ok {
		return int(n)
	}
	return int(number(L, arg))
}

// optional returns an integer argument that may be left out.
func optional(L *lua.LState, arg, otherwise int) int {
	if L.Get(arg) == lua.LNil {
		return otherwise
	}
	return integer(L, arg)
}

// isPrivate reports whether a metatable is hidden from scripts.
func isPrivate(s *State, meta lua.LValue) bool {
	t, ok := meta.(*lua.LTable)
	return ok && (t == s.envMeta || s.Owns(t))
}

// IsHidden reports whether a key of an environment is one of the host's own.
func IsHidden(key lua.LValue) bool {
	name, ok := key.(lua.LString)
	return ok && strings.HasPrefix(string(name), "\x00")
}

// toText returns a value as tostring gives it.
func (s *State) toText(L *lua.LState, v lua.LValue) string {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return luatext.FormatNumber(v)
	}
	if v == luastd.Null {
		return "null"
	}
	if u, ok := v.(*lua.LUserData); ok {
		switch own := u.Value.(type) {
		case *coroutine:
			return fmt.Sprintf("thread: %p", own)
		case *stream:
			return fmt.Sprintf("file (%p)", own)
		}
	}
	if text, ok := codec.ErrorText(v); ok {
		return text
	}
	if t, ok := v.(*lua.LTable); ok && isPrivate(s, t.Metatable) {
		return v.String()
	}
	meta := L.GetMetaField(v, "__tostring")
	if meta == lua.LNil {
		return v.String()
	}
	text, ok := callFunction(L, meta, v).(lua.LString)
	if !ok {
		L.RaiseError("'__tostring' must return a string")
	}
	return string(text)
}

// TypeName returns the result of type for a value.
func TypeName(v lua.LValue) string {
	if u, ok := v.(*lua.LUserData); ok {
		if _, ok := u.Value.(*coroutine); ok {
			return "thread"
		}
	}
	return v.Type().String()
}

// checkLength raises if a string that is about to be made is too long, and counts the work of
// making it.
func (s *State) checkLength(L *lua.LState, size int) { s.checkGrowth(L, size, size) }

// checkGrowth is limit for a string that is made piece by piece; it counts the work of one piece.
func (s *State) checkGrowth(L *lua.LState, size, piece int) {
	if size > s.Project.Limits.String {
		L.RaiseError("%s", limits.Over("the string is too long", "string", s.Project.Limits.String))
	}
	s.Budget.Charge(L, piece/16+1)
}

// checkText returns an argument that must be text; a number counts as its text.
func (s *State) checkText(L *lua.LState, n int) string {
	if number, ok := L.Get(n).(lua.LNumber); ok {
		return luatext.FormatNumber(number)
	}
	return L.CheckString(n)
}

// CheckTable returns an argument that must be a table, filled.
func (s *State) CheckTable(L *lua.LState, n int) *lua.LTable {
	t := L.CheckTable(n)
	s.Fill(t)
	return t
}
