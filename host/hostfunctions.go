package host

import lua "github.com/yuin/gopher-lua"

// hostFunctions are what rewritten code calls. They find their state by the
// context of the thread, so that all states share them, as they do protos.
var hostFunctions = hostFunctionTable{
	nameAt:     hostFunction(atCall),
	nameFill:   hostFunction(func(s *state, L *lua.LState) int { return fillTable(L, &s.budget) }),
	nameConcat: hostFunction(concatCall),
	nameLength: hostFunction(lengthCall),
	nameBound:  hostFunction(boundCall),
	nameMinus:  hostFunction(minusCall),
	nameAdapt:  hostFunction(adaptCall),
	nameGlobal: hostFunction(baseGetfenv),
}

func hostFunction(f luaFunc) *lua.LFunction {
	return &lua.LFunction{IsG: true, GFunction: func(L *lua.LState) int { return f(L.Context().(*budget).state, L) }}
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
