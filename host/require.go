package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine"
	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
	"obelus/luastd"
)

// maxModuleName keeps the messages about a module to a sane length.
const maxModuleName = 1000

// baseRequire is require(name): a file of the project below lib/, else below
// activities/, else a module that is built in. Each run loads its own.
func baseRequire(s *state, L *lua.LState) int {
	name := L.CheckString(1)
	if len(name) > maxModuleName {
		L.ArgError(1, fmt.Sprintf("a module's name has at most %d bytes", maxModuleName))
	}
	if v := loadedModules(s).RawGetString(name); lua.LVAsBool(v) {
		L.Push(v)
		return 1
	}
	if i := slices.Index(s.run.loading, name); i >= 0 {
		circle := append(slices.Clone(s.run.loading[i:]), name)
		L.RaiseError("modules require each other in a circle: %s", strings.Join(circle, " → "))
	}
	var v lua.LValue
	if loader := preloadFunction(s, name); loader != nil {
		v = loadWith(s, L, name, loader)
	} else if sc, ok := s.project.module(name); ok {
		proto, err := sc.compiled()
		if err != nil {
			L.RaiseError("%s", err)
		}
		v = loadWith(s, L, name, L.NewFunctionFromProto(proto))
	} else if fields := s.module(name); fields != nil {
		v = s.table(fields)
	} else if v = standardLibrary(s, name); v == nil && name == "test" {
		L.RaiseError("there is no module \"test\" here: tests alone have it, the files below tests/ that end in _test.lua")
	} else if v == nil && s.run.script.file == limits.SettingsFile {
		L.RaiseError("there is no module %s here: "+limits.SettingsFile+" can't require the project's own, only those that are built in%s", strconv.Quote(name), s.project.nearModule(name))
	} else if v == nil {
		L.RaiseError("there is no module %s: no %s, and none is built in%s", strconv.Quote(name), strings.Join(moduleFiles(name), ", "), s.project.nearModule(name))
	}
	loadedModules(s).RawSetString(name, v)
	L.Push(v)
	return 1
}

// loadWith runs a module's top level. What it raises goes up as it is; nothing
// is remembered then, so that a later require tries again.
func loadWith(s *state, L *lua.LState, name string, loader *lua.LFunction) lua.LValue {
	loading, top := s.run.loading, s.run.top
	s.run.loading = append(slices.Clone(loading), name)
	s.run.top++
	defer func() { s.run.loading, s.run.top = loading, top }()
	L.Push(loader)
	L.Push(lua.LString(name))
	L.Call(1, 1)
	v := L.Get(-1)
	L.Pop(1)
	if v != lua.LNil {
		return v
	}
	if v = loadedModules(s).RawGetString(name); v != lua.LNil { // the module put itself there
		return v
	}
	return lua.LTrue
}

// module opens a module that is built in; nil if there is none of that name.
func (s *state) module(name string) []field {
	if fields, ok := s.modules[name]; ok {
		return fields
	}
	module, ok := luastd.Find(name)
	if !ok {
		return nil
	}
	var fields []field
	for _, f := range module.Funcs {
		fn := s.L.NewFunction(func(L *lua.LState) int { return f.Fn(s.env, L) })
		fn.Env = s.L.G.Global // what opens the module ends before the state does
		fields = append(fields, field{f.Name, fn})
	}
	for _, v := range module.Values {
		fields = append(fields, field{v.Name, v.Value})
	}
	s.modules[name] = fields
	return fields
}

// moduleFiles is where a module of the project may stand.
func moduleFiles(name string) []string {
	path := strings.ReplaceAll(name, ".", "/")
	return []string{"lib/" + path + ".lua", "lib/" + path + "/init.lua", "activities/" + path + ".lua", "activities/" + path + "/init.lua"}
}

// module finds the file of a module.
func (p *stateProject) module(name string) (*script, bool) {
	for _, file := range moduleFiles(name) {
		if sc, ok := p.scripts[file]; ok {
			return sc, true
		}
	}
	return nil, false
}

// brokenModule finds the module that a message of require is about, if that can't
// be compiled.
func (p *stateProject) brokenModule(message string) *luaerr.ScriptError {
	for file, sc := range p.scripts {
		if !strings.HasPrefix(message, file+":") {
			continue
		}
		if _, err := sc.compiled(); err != nil && message == err.Error() {
			return luaerr.From(err)
		}
	}
	return nil
}

func (p *stateProject) nearModule(name string) string {
	var names []string
	for _, m := range luastd.Modules {
		names = append(names, m.Name)
	}
	for file := range p.scripts {
		path, ok := strings.CutPrefix(file, "lib/")
		if !ok {
			continue
		}
		path = strings.TrimSuffix(strings.TrimSuffix(path, ".lua"), "/init")
		names = append(names, strings.ReplaceAll(path, "/", "."))
	}
	slices.Sort(names)
	if near := engine.Nearest(name, names); near != "" {
		return ` (did you mean "` + near + `"?)`
	}
	return ""
}

// capabilities are what this state's modules may do.
func capabilities(s *state) *luastd.Env {
	return &luastd.Env{
		Codec:     s.Codec,
		Grants:    s.project.grants,
		Clock:     s.project.clock,
		Log:       s.project.log,
		Effect:    s.effect,
		Outside:   s.budget.Outside,
		HTTP:      s.project.http,
		Context:   s.budget.WaitContext,
		Charge:    s.budget.Charge,
		MaxString: s.project.limits.String,
		MaxArray:  limits.MaxArray - 2,
	}
}

// effect refuses what a script must not do each time that it is loaded.
func (s *state) effect(L *lua.LState, what string) {
	if s.run.top > 0 {
		L.RaiseError("%s is refused at the top level of a script, which runs again for every call: do it in the activity", what)
	}
	s.budget.Outside(L)
}

// moduleNames are all that require gives.
func (p *stateProject) moduleNames() []string {
	names := slices.Clone(standardLibraries)
	for _, m := range luastd.Modules {
		names = append(names, m.Name)
	}
	for file := range p.scripts {
		_, below, _ := strings.Cut(file, "/")
		name := strings.TrimSuffix(strings.TrimSuffix(below, ".lua"), "/init")
		if name != "" && !strings.HasPrefix(file, "plans/") {
			names = append(names, strings.ReplaceAll(name, "/", "."))
		}
	}
	return names
}
