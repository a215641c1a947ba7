package sandbox

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"

	"obelus/engine/spell"
	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
	"obelus/luastd"
)

// Project has everything that the states of one generation share.
type Project struct {
	Scripts map[string]*Script // by file
	Limits  limits.Limits
	Grants  luastd.Grants
	Clock   luastd.Clock
	Log     *slog.Logger
	// Receives the output of scripts.
	Stderr io.Writer
	// Answers requests in place of the network; nil for the network.
	HTTP func(ctx context.Context, r luastd.HTTPRequest) (luastd.HTTPResponse, error)
	// The name of the model that scripts ask where they name none; empty if it has none.
	DefaultModel string
	// Objects of the embedding program, by the names of their globals.
	Objects map[string]any
}

// standardLibraries are the libraries of Lua that require gives too.
var standardLibraries = []string{"_G", "coroutine", "debug", "io", "math", "os", "package", "string", "table"}

// moduleFiles returns the possible files of a module of the project.
func moduleFiles(name string) []string {
	path := strings.ReplaceAll(name, ".", "/")
	return []string{"lib/" + path + ".lua", "lib/" + path + "/init.lua", "activities/" + path + ".lua", "activities/" + path + "/init.lua"}
}

// findModule finds the file of a module.
func (p *Project) findModule(name string) (*Script, bool) {
	for _, file := range moduleFiles(name) {
		if sc, ok := p.Scripts[file]; ok {
			return sc, true
		}
	}
	return nil, false
}

// brokenModule returns the error of the module that a message of require is about, if that module
// can't be compiled.
func (p *Project) brokenModule(message string) *luaerr.ScriptError {
	for file, sc := range p.Scripts {
		if !strings.HasPrefix(message, file+":") {
			continue
		}
		if _, err := sc.Compile(); err != nil && message == err.Error() {
			return luaerr.From(err)
		}
	}
	return nil
}

func (p *Project) nearModule(name string) string {
	var names []string
	for _, m := range luastd.Modules {
		names = append(names, m.Name)
	}
	for file := range p.Scripts {
		path, ok := strings.CutPrefix(file, "lib/")
		if !ok {
			continue
		}
		path = strings.TrimSuffix(strings.TrimSuffix(path, ".lua"), "/init")
		names = append(names, strings.ReplaceAll(path, "/", "."))
	}
	slices.Sort(names)
	if near := spell.Nearest(name, names); near != "" {
		return ` (did you mean "` + near + `"?)`
	}
	return ""
}

// ModuleNames returns the names of all modules.
func (p *Project) ModuleNames() []string {
	names := slices.Clone(standardLibraries)
	for _, m := range luastd.Modules {
		names = append(names, m.Name)
	}
	for file := range p.Scripts {
		_, below, _ := strings.Cut(file, "/")
		name := strings.TrimSuffix(strings.TrimSuffix(below, ".lua"), "/init")
		if name != "" && !strings.HasPrefix(file, "plans/") {
			names = append(names, strings.ReplaceAll(name, "/", "."))
		}
	}
	return names
}
