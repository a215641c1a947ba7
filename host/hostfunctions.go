package host

import (
	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/budget"
	"obelus/host/internal/luac"
)

// hostFunctions are what rewritten code calls. They find their state by the
// context of the thread, so that all states share them, as they do protos.
var hostFunctions = luac.Functions{
	luac.CallAt:     hostFunction(atCall),
	luac.CallFill:   hostFunction(func(s *state, L *lua.LState) int { return luac.FillTable(L, &s.budget) }),
	luac.CallConcat: hostFunction(concatCall),
	luac.CallLength: hostFunction(lengthCall),
	luac.CallBound:  hostFunction(boundCall),
	luac.CallMinus:  hostFunction(minusCall),
	luac.CallAdapt:  hostFunction(adaptCall),
	luac.CallGlobal: hostFunction(baseGetfenv),
}

func hostFunction(f luaFunc) *lua.LFunction {
	return &lua.LFunction{IsG: true, GFunction: func(L *lua.LState) int { return f(L.Context().(*budget.Budget).Owner.(*state), L) }}
}

// atCall is the function behind nameAt.
func atCall(s *state, L *lua.LState) int {
	table := L.CheckTable(2)
	if s.run != nil && s.run.lines != nil {
		s.run.lines[table] = L.CheckInt(1)
	}
	L.Push(table)
	return 1
}
