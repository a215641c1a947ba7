package sandbox

import (
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/limits"
)

// tableFuncs is Lua 5.1's table. It counts its work, and fills tables that are not filled yet.
var tableFuncs = []StateEntry{
	{"concat", tableConcat},
	{"getn", lengthCall},
	{"insert", tableInsert},
	{"maxn", tableMaxn},
	{"remove", tableRemove},
	{"sort", tableSort},
}

func tableConcat(s *State, L *lua.LState) int {
	t, separator := s.CheckTable(L, 1), ""
	if L.Get(2) != lua.LNil {
		separator = s.checkText(L, 2)
	}
	i, j := optional(L, 3, 1), optional(L, 4, t.Len())
	var b strings.Builder
	for ; i <= j; i++ {
		v := t.RawGetInt(i)
		if !lua.LVCanConvToString(v) {
			L.RaiseError("invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
		}
		text := s.toText(L, v)
		s.checkGrowth(L, b.Len()+len(text)+len(separator), len(text))
		b.WriteString(text)
		if i < j {
			b.WriteString(separator)
		}
	}
	return Push(L, lua.LString(b.String()))
}

func tableInsert(s *State, L *lua.LState) int {
	t := s.CheckTable(L, 1)
	n := t.Len()
	if n >= limits.MaxArray-2 {
		L.RaiseError("a table has too many elements (at most %d)", limits.MaxArray-2)
	}
	switch L.GetTop() {
	case 2:
		t.Append(L.Get(2))
	case 3:
		position := integer(L, 2)
		if position < 1 {
			L.ArgError(2, "position out of bounds")
		}
		if position > n+1 { // as Lua 5.1 does
			s.L.RawSet(t, lua.LNumber(position), L.Get(3))
			return 0
		}
		s.Budget.Charge(L, (n-position)/16+1)
		t.Insert(position, L.Get(3))
	default:
		L.RaiseError("wrong number of arguments to 'insert'")
	}
	return 0
}

func tableMaxn(s *State, L *lua.LState) int {
	t := s.CheckTable(L, 1)
	best := lua.LNumber(t.MaxN())
	for key, _ := t.Next(lua.LNil); key != lua.LNil; key, _ = t.Next(key) {
		if n, ok := key.(lua.LNumber); ok {
			best = max(best, n)
		}
	}
	return Push(L, best)
}

func tableRemove(s *State, L *lua.LState) int {
	t := s.CheckTable(L, 1)
	n := t.Len()
	position := optional(L, 2, n)
	if n == 0 || position < 1 || position > n {
		return 0
	}
	s.Budget.Charge(L, (n-position)/16+1)
	return Push(L, t.Remove(position))
}

func tableSort(s *State, L *lua.LState) int {
	t := s.CheckTable(L, 1)
	values := make([]lua.LValue, t.Len())
	for i := range values {
		values[i] = t.RawGetInt(i + 1)
	}
	sort.Sort(&sorter{s, L, values, L.OptFunction(2, nil)})
	for i, v := range values {
		t.RawSetInt(i+1, v)
	}
	return 0
}

type sorter struct {
	s      *State
	L      *lua.LState
	values []lua.LValue
	less   *lua.LFunction
}

func (r *sorter) Len() int { return len(r.values) }

func (r *sorter) Swap(i, j int) { r.values[i], r.values[j] = r.values[j], r.values[i] }

func (r *sorter) Less(i, j int) bool {
	a, b := r.values[i], r.values[j]
	if r.less == nil {
		units := 1
		if text, ok := a.(lua.LString); ok {
			units += len(text) / 64
		}
		r.s.Budget.Charge(r.L, units)
		return r.L.LessThan(a, b)
	}
	return lua.LVAsBool(callFunction(r.L, r.less, a, b))
}
