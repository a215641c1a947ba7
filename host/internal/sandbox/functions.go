package sandbox

import (
	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/budget"
	"obelus/host/internal/luac"
)

// Functions are the functions that rewritten code calls. They find their state by the context of
// the thread, so that all states share them together with the compiled code.
var Functions = luac.Functions{
	luac.CallAt:     hostFunction(atCall),
	luac.CallFill:   hostFunction(func(s *State, L *lua.LState) int { return luac.FillTable(L, &s.Budget) }),
	luac.CallConcat: hostFunction(concatCall),
	luac.CallLength: hostFunction(lengthCall),
	luac.CallBound:  hostFunction(boundCall),
	luac.CallMinus:  hostFunction(minusCall),
	luac.CallAdapt:  hostFunction(adaptCall),
	luac.CallGlobal: hostFunction(baseGetfenv),
}

func hostFunction(f Function) *lua.LFunction {
	return &lua.LFunction{IsG: true, GFunction: func(L *lua.LState) int { return f(L.Context().(*budget.Budget).Owner.(*State), L) }}
}

// atCall is the function behind luac.CallAt.
func atCall(s *State, L *lua.LState) int {
	table := L.CheckTable(2)
	if s.Run != nil && s.Run.Lines != nil {
		s.Run.Lines[table] = L.CheckInt(1)
	}
	L.Push(table)
	return 1
}
