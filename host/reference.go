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
	{"literal", referenceLiteral},
	{"ref", referenceRef},
	{"text", referenceText},
}

// literal(value) escapes texts that begin with †, here or within.
func referenceLiteral(s *state, L *lua.LState) int {
	return mapTexts(s, L, func(text string) string { return engine.Literal(text).(string) })
}

// text(value) takes the second † off again.
func referenceText(s *state, L *lua.LState) int {
	return mapTexts(s, L, func(text string) string {
		if strings.HasPrefix(text, store.Dagger+store.Dagger) {
			return strings.TrimPrefix(text, store.Dagger)
		}
		return text
	})
}

// mapTexts pushes the first argument with every text in it mapped.
func mapTexts(s *state, L *lua.LState, of func(string) string) int {
	m := textMapper{s: s, of: of, charge: func() { s.budget.Charge(L, 1) }, made: map[*lua.LTable]*lua.LTable{}}
	L.Push(m.value(L.CheckAny(1), 0))
	return 1
}

// textMapper copies a value with every text in it mapped; keys stay as they are, and tables
// beyond the depth that a value may have.
type textMapper struct {
	s      *state
	of     func(string) string
	charge func() // for each value
	made   map[*lua.LTable]*lua.LTable
}

func (m *textMapper) value(v lua.LValue, depth int) lua.LValue {
	m.charge()
	switch v := v.(type) {
	case lua.LString:
		return lua.LString(m.of(string(v)))
	case *lua.LTable:
		if made, ok := m.made[v]; ok {
			return made
		}
		if depth > m.s.project.limits.Depth {
			return v
		}
		m.s.Fill(v)
		made := m.s.L.CreateTable(v.Len(), 0)
		made.Metatable = v.Metatable // what it is an array by, and what is kept of it
		m.made[v] = made
		for key, e := v.Next(lua.LNil); key != lua.LNil; key, e = v.Next(key) {
			made.RawSet(key, m.value(e, depth+1))
		}
		return made
	}
	return v
}

// ref(text) writes the daggers of references: ref "state.a || input.b".
func referenceRef(s *state, L *lua.LState) int {
	given := L.CheckString(1)
	made, err := engine.WithDaggers(given)
	if err != nil {
		L.ArgError(1, err.Error())
	}
	L.Push(lua.LString(made))
	return 1
}
