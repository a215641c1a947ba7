package host

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/host/internal/limits"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/projectfs"
	"obelus/host/internal/sandbox"
	"obelus/host/internal/setting"
	"obelus/host/internal/worker"
	"obelus/luastd"
)

// load builds a generation from files. It takes unchanged compiled scripts from the generation
// before, which may be nil. bound, if not nil, limits the permissions.
func load(config Config, from projectfs.Set, before *Generation, bound *luastd.Grants) (*Generation, error) {
	g := &Generation{
		config: config, project: newProject(config, limits.Defaults), registry: plan.NewRegistry(),
		sources: from, Digest: from.Digest(), Loaded: time.Now(),
	}
	l := &loader{g: g, before: before, bound: bound}
	l.loadSettings()
	l.loadModels()
	g.registry.CheckAllow = func(allow any) error {
		_, err := g.readToolAllow(allow)
		return err
	}
	if config.Grants != nil {
		if err := g.settings.checkNames(luastd.Grants{Env: config.Grants.Env}, "allow"); err != nil {
			l.fail(err)
		}
	}
	if g.settings.IgnoreFormats {
		g.registry.Schemas = []schema.Option{schema.IgnoreFormats}
	}
	l.registerProgram()
	if g.settings.Isolate && config.HTTP == nil { // a worker would not know the answers
		var err error
		if g.workers, err = worker.NewPool(&g.project, g.config.Dir); err != nil {
			l.fail(&ScriptError{File: SettingsFile, Line: 1, Message: err.Error()})
		}
	}
	l.loadFolder("lib", l.loadLibFile)
	activities := l.loadFolder("activities", l.loadFile)
	g.code = g.newCode()
	found := newRegistrations()
	for _, sc := range activities {
		if err := g.runTop(sc, found); err != nil && !slices.ContainsFunc(l.errors, func(e *ScriptError) bool { return e.Error() == err.Error() }) {
			l.errors = append(l.errors, err)
		}
	}
	l.register(found, g.registry)
	g.registry.File = g.delegateFiles()
	if len(l.errors) == 0 {
		l.delegates(found, g.registry)
	}
	if len(l.errors) > 0 {
		return nil, luaerr.Sort(l.errors)
	}
	return g, nil
}

// loader collects the errors of building a generation.
type loader struct {
	g      *Generation
	before *Generation    // nil for the first
	bound  *luastd.Grants // nil for none
	errors Errors
}

// registerProgram registers the tools and activities of the embedding program.
func (l *loader) registerProgram() {
	for i, a := range l.g.config.Activities {
		if err := l.g.config.checkActivity(i); err != nil {
			l.fail(err)
			continue
		}
		a.Timeout = cmp.Or(a.Timeout, l.g.settings.Timeout)
		l.g.registry.Activities[a.Name] = &a
	}
	tools := l.g.config.tools()
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		tool, err := plan.NewTool(name, tools[name], l.g.registry.Schemas...)
		if err == nil {
			err = l.g.registry.CheckTool(tool)
		}
		if err != nil {
			l.fail(err)
			continue
		}
		l.g.registry.Tools[name] = tool
	}
}

func (l *loader) fail(err error) {
	var one *ScriptError
	if !errors.As(err, &one) {
		one = luaerr.WithCause(&ScriptError{Message: err.Error()}, err)
	}
	l.errors = append(l.errors, one)
}

// loadLibFile is file for lib, whose libraries may have parts that no script requires: a file is
// compiled when it is first required, and one that does not compile is an error for the script that
// requires it. But a file that was saved while its host runs is a mistake that the reload reports,
// and a refused link may be to a folder of scripts.
func (l *loader) loadLibFile(name string) (*sandbox.Script, bool) {
	from := l.g.sources[name]
	_, linked := errors.AsType[*projectfs.LinkError](from.Err)
	if linked || l.before != nil && l.before.sources[name].SHA256 != from.SHA256 {
		return l.loadFile(name)
	}
	sc := l.unchanged(name, from)
	switch {
	case from.Err != nil:
		sc = sandbox.NewBrokenScript(name, projectfs.Unreadable(name, from.Err))
	case sc == nil:
		sc = sandbox.NewLazyScript(name, from.Bytes, l.g.project.Limits.Source)
	}
	l.g.project.Scripts[name] = sc
	return sc, true
}

// loadFile reads and compiles one file.
func (l *loader) loadFile(name string) (*sandbox.Script, bool) {
	from := l.g.sources[name]
	var err error
	sc := l.unchanged(name, from)
	switch {
	case from.Err != nil:
		err = projectfs.Unreadable(name, from.Err)
	case sc == nil:
		sc, err = sandbox.NewScript(name, from.Bytes, l.g.project.Limits.Source)
	}
	if err != nil {
		sc = sandbox.NewBrokenScript(name, err)
		l.errors = append(l.errors, luaerr.From(err))
	}
	l.g.project.Scripts[name] = sc
	return sc, err == nil
}

// unchanged returns the script of the generation before, if the file is still the same.
func (l *loader) unchanged(name string, from projectfs.File) *sandbox.Script {
	if l.before == nil || l.before.project.Limits.Source != l.g.project.Limits.Source {
		return nil
	}
	if sc := l.before.project.Scripts[name]; sc != nil && sc.SHA256 != "" && sc.SHA256 == from.SHA256 {
		return sc
	}
	return nil
}

// loadSettings runs obelus.lua, under no permissions.
func (l *loader) loadSettings() {
	g := l.g
	defer func() {
		g.project.Grants, g.project.DefaultModel = g.effectiveGrants(), g.defaultModel()
		if l.bound != nil && g.project.Grants.Widens(*l.bound) {
			g.project.Grants, g.withheld = g.project.Grants.Within(*l.bound), true
		}
		g.asked = g.settings.Asked
		if l.bound != nil && l.before.asked && !g.asked {
			g.asked, g.withheld = true, true
		}
		g.rehearsal = g.narrowed(luastd.Bound{Rehearsal: true})
		if g.asked {
			g.unasked = g.narrowed(luastd.Bound{Silent: true})
		}
		g.states = sync.Pool{} // earlier states have other settings
	}()
	if _, ok := g.sources[SettingsFile]; !ok {
		if err := g.settings.checkModels(g.config.UseModel, g.config.Budget); err != nil {
			l.fail(err)
		}
		return
	}
	sc, ok := l.loadFile(SettingsFile)
	if !ok {
		return
	}
	s := g.session()
	s.begin(context.Background(), g.config.LoadTimeout, sc, nil)
	defer s.Run.Stop()
	v, err := s.RunFile(sc)
	if err != nil {
		l.fail(err)
		return
	}
	var value any
	err = sandbox.Guard(SettingsFile, func() (err error) {
		value, err = s.FromLua(v, "settings")
		return err
	})
	if err != nil {
		l.fail(&ScriptError{File: SettingsFile, Line: 1, Message: err.Error()})
		return
	}
	given, ok := value.(map[string]any)
	if !ok && value != nil { // an empty file marks a project too
		l.fail(&ScriptError{File: SettingsFile, Line: keyLine(sc, nil), Message: "obelus.lua must return a table of settings by name, not " + setting.TypeName(value)})
		return
	}
	settings, wrong := readSettings(given)
	if len(wrong) == 0 {
		switch err := settings.checkModels(g.config.UseModel, g.config.Budget).(type) {
		case nil:
		case setting.Errors:
			wrong = append(wrong, err...)
		default:
			l.fail(err)
		}
	}
	for _, e := range wrong {
		l.fail(&ScriptError{File: SettingsFile, Line: keyLine(sc, e.Keys), Message: e.Error()})
	}
	g.settings, g.project.Limits = settings, limits.WithDefaults(settings.Limits)
}

// loadFolder loads all scripts below a folder, in sorted order.
func (l *loader) loadFolder(folder string, load func(name string) (*sandbox.Script, bool)) []*sandbox.Script {
	var scripts []*sandbox.Script
	for _, name := range slices.Sorted(maps.Keys(l.g.sources)) {
		if !strings.HasPrefix(name+"/", folder+"/") {
			continue
		}
		if sc, ok := load(name); ok {
			scripts = append(scripts, sc)
		}
	}
	return scripts
}

// latestRegistry returns the function by which calls of a project's activity find the newest
// version, or nil for an activity of a plan's file, which goes with its plan.
func (l *loader) latestRegistry(sc *sandbox.Script) func() *plan.Registry {
	if l.g.project.Scripts[sc.File] != sc || l.g.config.latest == nil {
		return nil
	}
	return l.g.config.latest
}

// runTop runs the top level of a script for its registrations.
func (g *Generation) runTop(sc *sandbox.Script, found *registrations) *ScriptError {
	s := g.session()
	s.begin(context.Background(), g.config.LoadTimeout, sc, found)
	defer s.Run.Stop()
	if _, err := s.RunFile(sc); err != nil {
		return luaerr.From(err)
	}
	s.end()
	return nil
}

// register makes the registry's entries of the registrations.
func (l *loader) register(found *registrations, registry *plan.Registry) {
	for _, name := range slices.Sorted(maps.Keys(found.tools)) {
		t := found.tools[name]
		tool, err := plan.NewTool(name, t.schema, registry.Schemas...)
		if err == nil {
			err = registry.CheckTool(tool)
		}
		if err != nil {
			l.fail(&ScriptError{File: t.file, Line: t.line, Message: err.Error()})
			continue
		}
		if l.g.config.describes(name) {
			l.fail(&ScriptError{File: t.file, Line: t.line, Message: t.what + " is registered twice: the program that embeds obelus registers it too"})
		}
		tool.File, tool.Line = t.file, t.line
		registry.Tools[name] = tool
	}
	for name, a := range found.activities {
		if _, ok := l.g.config.activity(name); ok {
			l.fail(&ScriptError{File: a.file, Line: a.line, Message: a.what + " is registered twice: the program that embeds obelus registers it too"})
		}
		if a.options.Reuse && l.g.workers != nil {
			l.fail(&ScriptError{File: a.file, Line: a.line, Message: a.what + `: reuse and isolate "process" don't go together`})
		}
		if a.options.Allow != nil {
			if err := l.g.settings.checkNames(*a.options.Allow, "allow"); err != nil {
				l.fail(&ScriptError{File: a.file, Line: a.line, Message: a.what + ": " + err.Error()})
			}
		}
		timeout := cmp.Or(a.options.Timeout, l.g.settings.Timeout)
		registry.Activities[name] = &plan.Registered{
			Name:           name,
			Activity:       newActivity(l.g, name, a, timeout),
			Timeout:        timeout,
			Retries:        a.options.Retries,
			Backoff:        a.options.Backoff,
			NotIdempotent:  a.options.NotIdempotent,
			Concurrency:    a.options.Concurrency,
			ReturnsNothing: a.returnsNothing,
			Script:         a.script.File,
			SHA256:         a.script.SHA256,
			Code:           l.g.codeWith(a.script),
			Latest:         l.latestRegistry(a.script),
		}
	}
}

// loadModels makes the models of the settings. A model that the embedding program brings is the
// default one.
func (l *loader) loadModels() {
	s, registry := l.g.settings, l.g.registry
	for _, c := range s.Models {
		m, err := l.g.config.models.get(c, &l.g.config)
		if err != nil {
			l.fail(&ScriptError{File: SettingsFile, Message: err.Error()})
			continue
		}
		if registry.Models == nil {
			registry.Models = map[string]plan.Model{}
		}
		registry.Models[c.Name] = m
	}
	if registry.Model = l.g.config.Model; registry.Model == nil && s.Model != "" {
		registry.Model = registry.Models[s.Model]
	}
}
