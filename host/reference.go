package host

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine"
	"obelus/store"
)

// Data that a plan's function sees must not act: a text that begins with † would be an
// expression in the plan that it returns. So the context that the function gets has such
// texts escaped, with a second †; a text that is copied whole into a call comes out as it
// was. These globals lead from one form to the other.
var referenceFuncs = []entry{
	{"literal", (*state).literalOf},
	{"ref", (*state).reference},
	{"text", (*state).textOf},
}

// literal(value) escapes texts that begin with †, here or within.
func (s *state) literalOf(L *lua.LState) int {
	return s.mapTexts(L, "literal", func(text string) string {
		if strings.HasPrefix(text, store.Dagger) {
			return store.Dagger + text
		}
		return text
	})
}

// text(value) takes the second † off again.
func (s *state) textOf(L *lua.LState) int {
	return s.mapTexts(L, "text", func(text string) string {
		if strings.HasPrefix(text, store.Dagger+store.Dagger) {
			return strings.TrimPrefix(text, store.Dagger)
		}
		return text
	})
}

// mapTexts pushes the first argument with every text in it mapped: a copy, if it is a table.
func (s *state) mapTexts(L *lua.LState, name string, of func(string) string) int {
	L.CheckAny(1)
	L.Push(s.mappedTexts(L, name, L.Get(1), of, 0))
	return 1
}

func (s *state) mappedTexts(L *lua.LState, name string, v lua.LValue, of func(string) string, depth int) lua.LValue {
	switch v := v.(type) {
	case lua.LString:
		return lua.LString(of(string(v)))
	case *lua.LTable:
		if depth > s.gen.limits.Depth {
			L.RaiseError("%s: the table is nested deeper than %d", name, s.gen.limits.Depth)
		}
		s.fill(v)
		s.budget.charge(L, 1)
		made := L.CreateTable(v.Len(), 0)
		made.Metatable = v.Metatable // what it is an array by, and what is kept of it
		for key, e := v.Next(lua.LNil); key != lua.LNil; key, e = v.Next(key) {
			s.budget.charge(L, 1)
			made.RawSet(key, s.mappedTexts(L, name, e, of, depth+1))
		}
		return made
	}
	return v
}

// ref(text) writes the daggers of references: ref "state.a || input.b".
func (s *state) reference(L *lua.LState) int {
	given := L.CheckString(1)
	made, err := engine.WithDaggers(given)
	if err != nil {
		L.ArgError(1, err.Error())
	}
	L.Push(lua.LString(made))
	return 1
}
