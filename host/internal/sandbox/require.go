package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/limits"
	"obelus/luastd"
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

// maxModuleName is the longest name of a module in bytes, which keeps messages short.
const maxModuleName = 1000

// baseRequire is require(name): a file of the project below lib/, else below activities/, else a
// built-in module. Each run loads its own.
func baseRequire(s *State, L *lua.LState) int {
	name := L.CheckString(1)
	if len(name) > maxModuleName {
		L.ArgError(1, fmt.Sprintf("a module's name has at most %d bytes", maxModuleName))
	}
	if v := loadedModules(s).RawGetString(name); lua.LVAsBool(v) {
		return Push(L, v)
	}
	if i := slices.Index(s.Run.loading, name); i >= 0 {
		circle := append(slices.Clone(s.Run.loading[i:]), name)
		L.RaiseError("modules require each other in a circle: %s", strings.Join(circle, " → "))
	}
	var v lua.LValue
	if loader := preloadFunction(s, name); loader != nil {
		v = loadModule(s, L, name, loader)
	} else if sc, ok := s.Project.findModule(name); ok {
		proto, err := sc.Compile()
		if err != nil {
			L.RaiseError("%s", err)
		}
		v = loadModule(s, L, name, L.NewFunctionFromProto(proto))
	} else if fields := s.Builtin(name); fields != nil {
		v = s.Table(fields)
	} else if v = standardLibrary(s, name); v == nil && name == "test" {
		L.RaiseError("there is no module \"test\" here: tests alone have it, the files below tests/ that end in _test.lua")
	} else if v == nil && s.Run.Script.File == limits.SettingsFile {
		L.RaiseError("there is no module %s here: "+limits.SettingsFile+" can't require the project's own, only those that are built in%s", strconv.Quote(name), s.Project.nearModule(name))
	} else if v == nil {
		L.RaiseError("there is no module %s: no %s, and none is built in%s", strconv.Quote(name), strings.Join(moduleFiles(name), ", "), s.Project.nearModule(name))
	}
	loadedModules(s).RawSetString(name, v)
	return Push(L, v)
}

// loadModule runs a module's top level. Its errors are raised unchanged. The module then counts as
// not loaded, so that a later require tries again.
func loadModule(s *State, L *lua.LState, name string, loader *lua.LFunction) lua.LValue {
	loading, top := s.Run.loading, s.Run.Depth
	s.Run.loading = append(slices.Clone(loading), name)
	s.Run.Depth++
	defer func() { s.Run.loading, s.Run.Depth = loading, top }()
	if v := callFunction(L, loader, lua.LString(name)); v != lua.LNil {
		return v
	}
	if v := loadedModules(s).RawGetString(name); v != lua.LNil { // the module set itself
		return v
	}
	return lua.LTrue
}

// Builtin opens a built-in module; nil if there is none of the name.
func (s *State) Builtin(name string) []Field {
	if fields, ok := s.Modules[name]; ok {
		return fields
	}
	module, ok := luastd.Find(name)
	if !ok {
		return nil
	}
	var fields []Field
	for _, f := range module.Funcs {
		fn := s.L.NewFunction(func(L *lua.LState) int {
			if name != "json" {
				s.vary()
			}
			return f.Fn(s.Env, L)
		})
		fn.Env = s.L.G.Global // the opener's environment ends before the state
		fields = append(fields, Field{f.Name, fn})
	}
	for _, v := range module.Values {
		fields = append(fields, Field{v.Name, v.Value})
	}
	s.Modules[name] = fields
	return fields
}

// Effect raises if a script does something at its top level that it must not do each time it is
// loaded.
func (s *State) Effect(L *lua.LState, what string) {
	if s.Run.Depth > 0 {
		L.RaiseError("%s is refused at the top level of a script, which may run again for every call: do it in the activity", what)
	}
	s.Budget.Outside(L)
}
