package host

import (
	"strings"

	"github.com/yuin/gopher-lua"

	"obelus/engine/expr"
	"obelus/engine/plan"
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
	return s.mapTexts(L, func(text string) string { return plan.Literal(text).(string) })
}

// text(value) takes the second † off again.
func (s *state) textOf(L *lua.LState) int {
	return s.mapTexts(L, func(text string) string {
		if strings.HasPrefix(text, store.Dagger+store.Dagger) {
			return strings.TrimPrefix(text, store.Dagger)
		}
		return text
	})
}

// mapTexts pushes the first argument with every text in it mapped.
func (s *state) mapTexts(L *lua.LState, of func(string) string) int {
	m := textMapper{s: s, of: of, charge: func() { s.budget.charge(L, 1) }, made: map[*lua.LTable]*lua.LTable{}}
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
		if depth > m.s.gen.limits.Depth {
			return v
		}
		m.s.fill(v)
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
func (s *state) reference(L *lua.LState) int {
	given := L.CheckString(1)
	made, err := expr.WithDaggers(given)
	if err != nil {
		L.ArgError(1, err.Error())
	}
	L.Push(lua.LString(made))
	return 1
}
