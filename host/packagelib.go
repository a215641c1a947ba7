package host

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// standardLibraries are the libraries of Lua that require gives too.
var standardLibraries = []string{"_G", "coroutine", "debug", "io", "math", "os", "package", "string", "table"}

// newPackage makes the run's package. What a script writes into loaded and
// preload, require heeds, in this run alone.
func newPackage(s *state) *lua.LTable {
	lib := s.L.CreateTable(0, 8)
	lib.RawSetString("config", lua.LString("/\n;\n?\n!\n-\n"))
	lib.RawSetString("cpath", lua.LString(""))
	lib.RawSetString("path", lua.LString(strings.Join(moduleFiles("?"), ";")))
	lib.RawSetString("preload", s.L.CreateTable(0, 0))
	lib.RawSetString("loaders", s.L.CreateTable(0, 0))
	s.run.env.RawSetString("package", lib)
	loaded := loadedModules(s)
	lib.RawSetString("loaded", loaded)
	for _, name := range standardLibraries {
		_, own := s.project.module(name)
		if !own && loaded.RawGetString(name) == lua.LNil {
			loaded.RawSetString(name, standardLibrary(s, name))
		}
	}
	s.run.preloaded = lib.RawGetString("preload").(*lua.LTable)
	return lib
}

// loadedModules is package.loaded.
func loadedModules(s *state) *lua.LTable {
	if s.run.loaded == nil {
		s.run.loaded = s.L.CreateTable(0, 8)
	}
	return s.run.loaded
}

// preloadFunction is the function that a script gave for a module, nil if there is
// none.
func preloadFunction(s *state, name string) *lua.LFunction {
	if s.run.preloaded == nil {
		return nil
	}
	loader, _ := s.run.preloaded.RawGetString(name).(*lua.LFunction)
	return loader
}

// standardLibrary is a library as the run's environment has it; nil if there
// is none of that name.
func standardLibrary(s *state, name string) lua.LValue {
	for _, known := range standardLibraries {
		if known != name {
			continue
		}
		v := s.run.env.RawGetString(name)
		if v == lua.LNil {
			v = s.lookup(name)
			s.run.env.RawSetString(name, v)
		}
		return v
	}
	return nil
}
