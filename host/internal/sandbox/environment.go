package sandbox

import (
	"maps"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// lookupGlobal is the __index of an environment: what is touched comes into it.
func lookupGlobal(s *State, L *lua.LState) int {
	name, ok := L.Get(2).(lua.LString)
	if !ok {
		L.Push(lua.LNil)
		return 1
	}
	v := s.Lookup(string(name))
	if env, ok := L.Get(1).(*lua.LTable); ok && v != lua.LNil {
		env.RawSetString(string(name), v)
	}
	L.Push(v)
	return 1
}

func (s *State) Lookup(name string) lua.LValue {
	if v, ok := s.Globals[name]; ok {
		return v
	}
	switch name {
	case "io":
		return newIO(s)
	case "package":
		return newPackage(s)
	}
	fields, ok := s.Libs[name]
	if !ok {
		return lua.LNil
	}
	lib := s.Lazy(fieldList(fields))
	if name == "string" {
		s.stringMeta.RawSetString("__index", lib)
	}
	return lib
}

// FillEnv brings in all that has not been touched, for pairs(_G).
func (s *State) FillEnv(env *lua.LTable) {
	for _, names := range [][]string{slices.Sorted(maps.Keys(s.Globals)), slices.Sorted(maps.Keys(s.Libs))} {
		for _, name := range names {
			if !strings.HasPrefix(name, "\x00") && env.RawGetString(name) == lua.LNil {
				env.RawSetString(name, s.Lookup(name))
			}
		}
	}
}
