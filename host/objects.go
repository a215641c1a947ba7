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
		if v.IsG && !ofObject(v) {
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

// whole fills a table with all that is in it, and has functions give such. A table that
// holds functions is another one for the object, with those that are bound.
func (s *state) whole(L *lua.LState, v lua.LValue) lua.LValue {
	switch v := v.(type) {
	case *lua.LTable:
		if s.fillWithin(v, map[*lua.LTable]bool{}) {
			return s.bindWithin(L, v, map[*lua.LTable]*lua.LTable{})
		}
	case *lua.LFunction:
		if !ofObject(v) {
			return s.bind(L, v)
		}
	}
	return v
}

// ofObject tells of a function that gopher-luar made.
func ofObject(fn *lua.LFunction) bool {
	n := len(fn.Upvalues)
	return fn.IsG && n > 0 && fn.Upvalues[n-1].Value() == fills
}

// bind has a function end with the call that gives it to an object.
func (s *state) bind(L *lua.LState, fn *lua.LFunction) *lua.LFunction {
	r, turn := s.run, s.run.turn.Load()
	return L.NewFunction(func(L *lua.LState) int {
		if r.turn.Load() != turn {
			L.RaiseError("the call that gave this function to an object has ended")
		}
		return s.giveWhole(L, fn)
	})
}

// fillWithin fills a table, and those in it. It tells whether they hold functions.
func (s *state) fillWithin(t *lua.LTable, seen map[*lua.LTable]bool) (functions bool) {
	if seen[t] {
		return false
	}
	seen[t] = true
	s.fill(t)
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		switch v := v.(type) {
		case *lua.LTable:
			functions = s.fillWithin(v, seen) || functions
		case *lua.LFunction:
			functions = true
		}
	}
	return functions
}

// bindWithin copies a table and those in it, with their functions bound.
func (s *state) bindWithin(L *lua.LState, t *lua.LTable, made map[*lua.LTable]*lua.LTable) *lua.LTable {
	if c := made[t]; c != nil {
		return c
	}
	c := L.CreateTable(t.Len(), 0)
	c.Metatable, made[t] = t.Metatable, c
	for key, v := t.Next(lua.LNil); key != lua.LNil; key, v = t.Next(key) {
		if inner, ok := v.(*lua.LTable); ok {
			v = s.bindWithin(L, inner, made)
		} else if fn, ok := v.(*lua.LFunction); ok && !ofObject(fn) {
			v = s.bind(L, fn)
		}
		c.RawSet(key, v)
	}
	return c
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
