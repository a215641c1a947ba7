package sandbox

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// newPackage makes the run's package. require respects the entries that a script puts into loaded
// and preload, in this run alone.
func newPackage(s *State) *lua.LTable {
	lib := s.L.CreateTable(0, 8)
	lib.RawSetString("config", lua.LString("/\n;\n?\n!\n-\n"))
	lib.RawSetString("cpath", lua.LString(""))
	lib.RawSetString("path", lua.LString(strings.Join(moduleFiles("?"), ";")))
	lib.RawSetString("preload", s.L.CreateTable(0, 0))
	lib.RawSetString("loaders", s.L.CreateTable(0, 0))
	s.Run.Env.RawSetString("package", lib)
	loaded := loadedModules(s)
	lib.RawSetString("loaded", loaded)
	for _, name := range standardLibraries {
		_, own := s.Project.findModule(name)
		if !own && loaded.RawGetString(name) == lua.LNil {
			loaded.RawSetString(name, standardLibrary(s, name))
		}
	}
	s.Run.preloaded = lib.RawGetString("preload").(*lua.LTable)
	return lib
}

// loadedModules returns package.loaded.
func loadedModules(s *State) *lua.LTable {
	if s.Run.loaded == nil {
		s.Run.loaded = s.L.CreateTable(0, 8)
	}
	return s.Run.loaded
}

// preloadFunction returns the function that a script set for a module, or nil.
func preloadFunction(s *State, name string) *lua.LFunction {
	if s.Run.preloaded == nil {
		return nil
	}
	loader, _ := s.Run.preloaded.RawGetString(name).(*lua.LFunction)
	return loader
}

// standardLibrary returns a library as the run's environment has it, or nil if there is none of the
// name.
func standardLibrary(s *State, name string) lua.LValue {
	for _, known := range standardLibraries {
		if known != name {
			continue
		}
		v := s.Run.Env.RawGetString(name)
		if v == lua.LNil {
			v = s.Lookup(name)
			s.Run.Env.RawSetString(name, v)
		}
		return v
	}
	return nil
}
