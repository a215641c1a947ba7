package host

import (
	lua "github.com/yuin/gopher-lua"
	luar "layeh.com/gopher-luar"
)

// hostObject is a Go value of the embedding program as scripts see it, by way of
// gopher-luar. That reads tables behind Lua's back, and would find one empty that
// fills itself when a script looks at it: such are filled before they cross.
func (s *state) hostObject(v any) lua.LValue { return s.crossing(luar.New(s.L, v)) }

// crossed marks the metatables of gopher-luar whose functions fill what they are given.
const crossed = "obelus"

// crossing has what gopher-luar made fill the tables that it is given.
func (s *state) crossing(v lua.LValue) lua.LValue {
	switch v := v.(type) {
	case *lua.LFunction:
		if n := len(v.Upvalues); v.IsG && (n == 0 || v.Upvalues[n-1].Value() != fills) {
			return s.filling(v)
		}
	case *lua.LUserData:
		meta, ok := v.Metatable.(*lua.LTable)
		if !ok || meta.RawGetString(crossed) != lua.LNil {
			return v
		}
		meta.RawSetString(crossed, lua.LTrue)
		s.fillingAll(meta)
		if methods, ok := meta.RawGetString("methods").(*lua.LTable); ok {
			s.fillingAll(methods)
		}
	}
	return v
}

// fills is what a function that fills carries behind what gopher-luar has it carry.
var fills lua.LValue = &lua.LUserData{}

func (s *state) fillingAll(functions *lua.LTable) {
	for key, v := functions.Next(lua.LNil); key != lua.LNil; key, v = functions.Next(key) {
		if fn, ok := v.(*lua.LFunction); ok {
			functions.RawSet(key, s.filling(fn))
		}
	}
}

// filling is a function of gopher-luar that fills what it is given, in the same frame,
// so that its errors have the same place.
func (s *state) filling(fn *lua.LFunction) *lua.LFunction {
	var carried []lua.LValue
	for _, up := range fn.Upvalues {
		carried = append(carried, up.Value())
	}
	return s.L.NewClosure(func(L *lua.LState) int {
		for i := 1; i <= L.GetTop(); i++ {
			L.Replace(i, s.whole(L, L.Get(i)))
		}
		n := fn.GFunction(L)
		for i := L.GetTop() - n + 1; i <= L.GetTop(); i++ {
			L.Replace(i, s.crossing(L.Get(i)))
		}
		return n
	}, append(carried, fills)...)
}

// whole fills a table with all that is in it, and has a function of Lua give such.
func (s *state) whole(L *lua.LState, v lua.LValue) lua.LValue {
	switch v := v.(type) {
	case *lua.LTable:
		s.fillWithin(v, map[*lua.LTable]bool{})
	case *lua.LFunction:
		if !v.IsG {
			r, turn := s.run, s.run.turn.Load()
			return L.NewFunction(func(L *lua.LState) int {
				if r.turn.Load() != turn {
					L.RaiseError("the call that gave this function to an object has ended")
				}
				return s.giveWhole(L, v)
			})
		}
	}
	return v
}

func (s *state) fillWithin(t *lua.LTable, seen map[*lua.LTable]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	s.fill(t)
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		if inner, ok := v.(*lua.LTable); ok {
			s.fillWithin(inner, seen)
		}
	}
}

// mostWithin is how deep calls of objects may be nested that call functions which scripts
// gave them: each takes of Go's stack what the interpreter does not count.
const mostWithin = 200

// giveWhole calls a function that a script gave to an object. gopher-luar calls it on a
// thread of its own, which would be bound by nothing.
func (s *state) giveWhole(L *lua.LState, fn *lua.LFunction) int {
	if s.within >= mostWithin {
		L.RaiseError("stack overflow")
	}
	s.within++
	defer func() { s.within-- }()
	L.SetContext(&s.budget)
	n := L.GetTop()
	L.Insert(fn, 1)
	for i := 2; i <= n+1; i++ {
		L.Replace(i, s.crossing(L.Get(i)))
	}
	L.Call(n, lua.MultRet)
	for i := 1; i <= L.GetTop(); i++ {
		L.Replace(i, s.whole(L, L.Get(i)))
	}
	return L.GetTop()
}
