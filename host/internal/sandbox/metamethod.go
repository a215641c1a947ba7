package sandbox

import (
	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luac"
)

// adaptMetatable replaces callable objects that are operators of a metatable by functions.
func adaptMetatable(s *State, meta *lua.LTable) {
	for _, event := range luac.OperatorEvents {
		if v, ok := meta.RawGetString(event).(*lua.LTable); ok {
			meta.RawSetString(event, adaptObject(s, v))
		}
	}
}

// adaptObject returns a function that calls an object, the same one each time: two metatables share
// __eq only if it is the same. A table that can't be called is returned unchanged.
func adaptObject(s *State, object *lua.LTable) lua.LValue {
	if f, ok := s.Run.adapters[object]; ok {
		return f
	}
	if _, ok := s.L.GetMetaField(object, "__call").(*lua.LFunction); !ok {
		return object
	}
	f := s.Fn(func(s *State, L *lua.LState) int {
		n := L.GetTop()
		L.Insert(object, 1)
		L.Call(n, 1)
		return 1
	})
	if s.Run.adapters == nil {
		s.Run.adapters = map[*lua.LTable]*lua.LFunction{}
	}
	s.Run.adapters[object] = f
	return f
}

// adaptCall is the function behind luac.CallAdapt: it adapts the value that is assigned to a field
// such as __add, since the table may be a metatable in use.
func adaptCall(s *State, L *lua.LState) int {
	if object, ok := L.Get(1).(*lua.LTable); ok {
		L.Push(adaptObject(s, object))
		return 1
	}
	L.SetTop(1)
	return 1
}
