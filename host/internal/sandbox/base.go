package sandbox

import (
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luac"
	"obelus/host/internal/luatext"
)

func baseAssert(s *State, L *lua.LState) int {
	if L.ToBool(1) {
		return L.GetTop()
	}
	message := L.Get(2)
	if message == lua.LNil {
		message = lua.LString("assertion failed!")
	}
	s.Raised = &raised{Value: message}
	s.Raised.file, s.Raised.line = s.Place(L, 1)
	L.Error(s.Raised.withPlace(), 0)
	return 0
}

func baseError(s *State, L *lua.LState) int {
	value, level := L.Get(1), optional(L, 2, 1)
	s.Raised = &raised{Value: value}
	if level > 0 {
		s.Raised.file, s.Raised.line = s.Place(L, pastOperators(s, L, level))
	}
	L.Error(s.Raised.withPlace(), 0)
	return 0
}

func baseTonumber(s *State, L *lua.LState) int {
	v, base := L.CheckAny(1), optional(L, 2, 10)
	if n, ok := v.(lua.LNumber); ok && base == 10 {
		return Push(L, n)
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
		return Push(L, lua.LNil)
	}
	if n, ok := luatext.ParseNumber(string(text), base); ok {
		L.Push(n)
	} else {
		L.Push(lua.LNil)
	}
	return 1
}

// pastOperators returns a level of the stack that does not count the functions which carry out
// operators: scripts do not know them.
func pastOperators(s *State, L *lua.LState, level int) int {
	for i := 1; i <= level; i++ {
		dbg, ok := L.GetStack(i)
		if !ok {
			break
		}
		if f, err := L.GetInfo("f", dbg, lua.LNil); err == nil && isOperator(s, f) {
			level++
		}
	}
	return level
}

// isOperator reports whether a function carries out an operator.
func isOperator(s *State, f lua.LValue) bool {
	if f == Functions[luac.CallConcat] || f == Functions[luac.CallLength] {
		return true
	}
	for _, adapter := range s.Run.adapters {
		if f == adapter {
			return true
		}
	}
	return slices.ContainsFunc(s.operators, func(operator lua.LValue) bool { return f == operator })
}

func baseGetmetatable(s *State, L *lua.LState) int {
	meta := lua.LNil
	switch v := L.CheckAny(1).(type) {
	case *lua.LTable:
		if !isPrivate(s, v.Metatable) {
			meta = L.GetMetatable(v)
		}
	case *lua.LUserData:
		if _, ok := v.Value.(*stream); ok { // this run's own
			meta = v.Metatable
		}
	}
	return Push(L, meta)
}

func baseSetmetatable(s *State, L *lua.LState) int {
	t := L.CheckTable(1)
	if L.GetTop() < 2 {
		L.ArgError(2, "nil or table expected")
	}
	L.CheckTypes(2, lua.LTNil, lua.LTTable)
	s.Fill(t)
	if t == s.Run.Env { // the new metatable does not fill the environment
		s.FillEnv(t)
	}
	if old, ok := t.Metatable.(*lua.LTable); ok && old != s.envMeta && old.RawGetString("__metatable") != lua.LNil {
		L.RaiseError("cannot change a protected metatable")
	}
	t.Metatable = L.Get(2)
	if meta, ok := t.Metatable.(*lua.LTable); ok {
		adaptMetatable(s, meta)
	}
	L.SetTop(1)
	return 1
}

func baseIpairs(s *State, L *lua.LState) int {
	t := L.CheckTable(1)
	s.Fill(t)
	return Push(L, s.Globals["\x00ipairs"], t, lua.LNumber(0))
}

func baseIpairsNext(s *State, L *lua.LState) int {
	i := integer(L, 2) + 1
	v := L.CheckTable(1).RawGetInt(i)
	if v == lua.LNil {
		return 0
	}
	return Push(L, lua.LNumber(i), v)
}

func baseNext(s *State, L *lua.LState) int {
	t := L.CheckTable(1)
	s.Fill(t)
	if t == s.Run.Env && L.Get(2) == lua.LNil {
		s.FillEnv(t)
	}
	if !s.Run.visited.has(t, L.Get(2)) && absentKey(t, L.Get(2)) {
		L.RaiseError("invalid key to next")
	}
	key, value := t.Next(L.Get(2))
	for t == s.Run.Env && IsHidden(key) {
		key, value = t.Next(key)
	}
	s.Run.visited = visited{t, key}
	L.Push(key)
	if key == lua.LNil {
		return 1
	}
	L.Push(value)
	return 2
}

// absentKey reports whether a table never had a key, or has it no longer. A removed entry keeps its
// place in the order of next, before an entry that is made now. Indices of arrays are never
// reported.
func absentKey(t *lua.LTable, key lua.LValue) bool {
	if _, ok := key.(lua.LNumber); ok || t.RawGet(key) != lua.LNil {
		return false
	}
	mark := &lua.LUserData{}
	t.RawSet(mark, lua.LTrue)
	t.RawSet(key, lua.LTrue)
	next, _ := t.Next(mark)
	t.RawSet(mark, lua.LNil)
	t.RawSet(key, lua.LNil)
	return next == key
}

func basePairs(s *State, L *lua.LState) int {
	t := L.CheckTable(1)
	return Push(L, s.Globals["next"], t, lua.LNil)
}

func basePrint(s *State, L *lua.LState) int {
	s.vary()
	var b strings.Builder
	for i := 1; i <= L.GetTop(); i++ {
		if i > 1 {
			b.WriteByte('\t')
		}
		b.WriteString(s.toText(L, L.Get(i)))
		s.checkLength(L, b.Len())
	}
	b.WriteByte('\n')
	s.Budget.Charge(L, 50)
	s.Budget.Outside(L)
	s.Run.Printed.write(b.String())
	return 0
}

func baseRawequal(s *State, L *lua.LState) int {
	return Push(L, lua.LBool(L.RawEqual(L.CheckAny(1), L.CheckAny(2))))
}

func baseRawget(s *State, L *lua.LState) int {
	t := L.CheckTable(1)
	s.Fill(t)
	key := L.CheckAny(2)
	if v := t.RawGet(key); v == lua.LNil && t == s.Run.Env && t.Metatable == s.envMeta {
		L.Push(L.GetTable(t, key))
	} else {
		L.Push(v)
	}
	return 1
}

func baseRawset(s *State, L *lua.LState) int {
	t := L.CheckTable(1)
	s.Fill(t)
	L.RawSet(t, L.CheckAny(2), L.CheckAny(3))
	L.SetTop(1)
	return 1
}

func baseSelect(s *State, L *lua.LState) int {
	count := L.GetTop() - 1
	if L.Get(1) == lua.LString("#") {
		return Push(L, lua.LNumber(count))
	}
	n := integer(L, 1)
	if n < 0 {
		n = count + n + 1
	}
	if n < 1 {
		L.ArgError(1, "index out of range")
	}
	return max(count-n+1, 0)
}

func baseTostring(s *State, L *lua.LState) int {
	return Push(L, lua.LString(s.toText(L, L.CheckAny(1))))
}

func baseType(s *State, L *lua.LState) int {
	return Push(L, lua.LString(TypeName(L.CheckAny(1))))
}

func baseUnpack(s *State, L *lua.LState) int {
	t := L.CheckTable(1)
	s.Fill(t)
	from := optional(L, 2, 1)
	to := optional(L, 3, t.Len())
	if from > to {
		return 0
	}
	if to-from >= 8000 || to-from < 0 {
		L.RaiseError("too many results to unpack")
	}
	for i := from; i <= to; i++ {
		L.Push(t.RawGet(lua.LNumber(i)))
	}
	return to - from + 1
}
