package host

import (
	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luatext"
)

func baseTonumber(s *state, L *lua.LState) int {
	v, base := L.CheckAny(1), optional(L, 2, 10)
	if n, ok := v.(lua.LNumber); ok && base == 10 {
		L.Push(n)
		return 1
	}
	if base < 2 || base > 36 {
		L.ArgError(2, "base out of range")
	}
	text, ok := v.(lua.LString)
	if n, isNumber := v.(lua.LNumber); isNumber { // its digits, in the base
		text, ok = lua.LString(luatext.FormatNumber(n)), true
	}
	if !ok && base != 10 {
		L.TypeError(1, lua.LTString)
	}
	if !ok {
		L.Push(lua.LNil)
		return 1
	}
	if n, ok := luatext.ParseNumber(string(text), base); ok {
		L.Push(n)
	} else {
		L.Push(lua.LNil)
	}
	return 1
}

// number is an argument that must be a number, or text that says one.
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

// optional is an integer that may be left out.
func optional(L *lua.LState, arg, otherwise int) int {
	if L.Get(arg) == lua.LNil {
		return otherwise
	}
	return integer(L, arg)
}
