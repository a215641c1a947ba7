package host

import (
	"maps"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/plan"
	"obelus/host/internal/luac"
	"obelus/host/internal/luacall"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
)

// Lint warns of probable mistakes: globals that activities read, that have no value and whose name
// is similar to a known one; permissions to write that name scripts; and problems in the schemas of
// tools ([plan.Tool.Problems]).
func (g *Generation) Lint() []plan.Problem {
	known := maps.Clone(sandbox.KnownGlobals())
	// A function that assigns one of these has forgotten a local.
	for _, f := range luacall.ReferenceFuncs {
		known[f.Name] = true
	}
	for name := range g.config.Objects {
		known[name] = true
	}
	for file, sc := range g.project.Scripts {
		if !strings.HasPrefix(file, "lib/") {
			continue
		}
		if proto, err := sc.Compile(); err == nil {
			luac.AddAssignedGlobals(proto, known)
		}
	}
	all := g.writableScripts()
	for _, file := range slices.Sorted(maps.Keys(g.project.Scripts)) {
		if !strings.HasPrefix(file, "activities/") {
			continue
		}
		if proto, err := g.project.Scripts[file].Compile(); err == nil {
			own := maps.Clone(known)
			luac.AddAssignedGlobals(proto, own)
			all = append(all, lintGlobals(file, proto, own, slices.Sorted(maps.Keys(own)))...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.registry.Tools)) {
		all = append(all, g.registry.Tools[name].Problems()...)
	}
	return all
}

func lintGlobals(file string, proto *lua.FunctionProto, known map[string]bool, names []string) (all []plan.Problem) {
	for _, local := range proto.DbgLocals {
		names = slices.Insert(names, 0, local.Name) // before the names that all scripts have
	}
	luac.EachGlobal(proto, lua.OP_GETGLOBAL, func(name string, line int) {
		if hint := luaerr.DidYouMean(name, names); !known[name] && hint != "" {
			all = append(all, plan.Problem{File: file, Line: line, Severity: plan.SeverityWarning, Code: plan.CodeUnresolved,
				Message: "nothing gives the global " + name + " a value" + hint})
		}
	})
	for _, inner := range proto.FunctionPrototypes {
		all = append(all, lintGlobals(file, inner, known, slices.Clone(names))...)
	}
	return all
}
