package luacall

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/expr"
	"obelus/engine/plan"
	"obelus/host/internal/sandbox"
	"obelus/store"
)

// Data that a plan's function sees must not act: a text that begins with † would be an expression
// in the plan that it returns. So such texts are escaped in the context that the function gets,
// with a second †; copied whole into a call a text becomes the original again. These globals
// convert one form into the other.
var ReferenceFuncs = []sandbox.StateEntry{
	{Name: "literal", Fn: referenceLiteral},
	{Name: "ref", Fn: referenceRef},
	{Name: "text", Fn: referenceText},
}

// literal(value) escapes texts that begin with †, here or within.
func referenceLiteral(s *sandbox.State, L *lua.LState) int {
	return sandbox.MapTexts(s, L, func(text string) string { return plan.Literal(text).(string) })
}

// text(value) takes the second † off again.
func referenceText(s *sandbox.State, L *lua.LState) int {
	return sandbox.MapTexts(s, L, func(text string) string {
		if strings.HasPrefix(text, store.Dagger+store.Dagger) {
			return strings.TrimPrefix(text, store.Dagger)
		}
		return text
	})
}

// ref(text) writes the daggers of references: ref "state.a || input.b".
func referenceRef(s *sandbox.State, L *lua.LState) int {
	given := L.CheckString(1)
	made, err := expr.WithDaggers(given)
	if err != nil {
		L.ArgError(1, err.Error())
	}
	L.Push(lua.LString(made))
	return 1
}
