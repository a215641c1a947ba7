package sandbox

import (
	"maps"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// lookupGlobal is the __index of an environment: a global enters it when it is first read.
func lookupGlobal(s *State, L *lua.LState) int {
	name, ok := L.Get(2).(lua.LString)
	if !ok {
		return Push(L, lua.LNil)
	}
	v := s.Lookup(string(name))
	if env, ok := L.Get(1).(*lua.LTable); ok && v != lua.LNil {
		env.RawSetString(string(name), v)
	}
	return Push(L, v)
}

// Lookup returns a global that an environment does not have yet, a library as a table that fills
// itself.
func (s *State) Lookup(name string) lua.LValue {
	if v, ok := s.Globals[name]; ok {
		if s.Project.Objects[name] != nil {
			s.vary()
		}
		return v
	}
	switch name {
	case "_G":
		return s.Run.Env
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

// FillEnv enters all globals that have not been read yet, for pairs(_G).
func (s *State) FillEnv(env *lua.LTable) {
	for _, names := range [][]string{{"_G"}, slices.Sorted(maps.Keys(s.Globals)), slices.Sorted(maps.Keys(s.Libs))} {
		for _, name := range names {
			if !strings.HasPrefix(name, "\x00") && env.RawGetString(name) == lua.LNil {
				env.RawSetString(name, s.Lookup(name))
			}
		}
	}
}

// vary records that the top level of a script does something that may come out otherwise the next
// time.
func (s *State) vary() {
	if s.Run != nil && s.Run.Depth > 0 {
		s.Run.varied = true
	}
}
