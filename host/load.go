package host

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"obelus/engine"
)

// load builds a generation.
func load(config Config) (*Generation, error) {
	g := &Generation{config: config, limits: defaultLimits, scripts: map[string]*script{}, registry: engine.NewRegistry()}
	if config.FS == nil {
		return g, nil
	}
	l := &loader{g: g}
	l.settings()
	if g.settings.Isolate && config.http == nil { // in tests a worker would know neither the clock nor what is stubbed
		var err error
		if g.workers, err = newWorkers(g); err != nil {
			l.fail(&ScriptError{File: SettingsFile, Line: 1, Message: err.Error()})
		}
	}
	l.read("lib", l.libFile)
	activities := l.read("activities", l.file)
	found := newRegistrations()
	for _, sc := range activities {
		if err := g.runTop(sc, found); err != nil {
			l.errors = append(l.errors, err)
		}
	}
	l.register(found, g.registry)
	g.registry.File = g.delegateFiles()
	if len(l.errors) == 0 {
		l.delegates(found, g.registry)
	}
	if len(l.errors) > 0 {
		return nil, l.errors.sorted()
	}
	return g, nil
}

// loader gathers what is wrong while a generation is built.
type loader struct {
	g      *Generation
	errors Errors
}

func (l *loader) fail(err error) {
	var one *ScriptError
	if !errors.As(err, &one) {
		one = &ScriptError{Message: err.Error(), cause: err}
	}
	l.errors = append(l.errors, one)
}

// libFile is file for lib, where libraries from elsewhere may bring what nobody
// requires: one that does not compile is an error for who requires it.
func (l *loader) libFile(name string) (*script, bool) {
	before := len(l.errors)
	sc, ok := l.file(name)
	if !ok {
		err := l.errors[before]
		l.errors = l.errors[:before]
		l.g.scripts[name] = &script{file: name, broken: err}
	}
	return sc, ok
}

// file reads and compiles one file.
func (l *loader) file(name string) (*script, bool) {
	source, err := fs.ReadFile(l.g.config.FS, name)
	if err != nil {
		l.fail(unreadable(name, err))
		return nil, false
	}
	sc, err := newScript(name, source, l.g.limits.Source)
	if err != nil {
		l.fail(err)
		return nil, false
	}
	l.g.scripts[name] = sc
	return sc, true
}

func unreadable(name string, err error) *ScriptError {
	message := "it can't be read"
	var inner *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		message = "there is no such file"
	case errors.As(err, &inner):
		message += ": " + inner.Err.Error()
	}
	return &ScriptError{File: name, Message: message, cause: err}
}

// settings runs obelus.lua, under no permissions.
func (l *loader) settings() {
	g := l.g
	defer func() {
		g.grants = g.settings.Allow
		if g.config.Grants != nil {
			g.grants = *g.config.Grants
		}
		if g.grants.Root == "" {
			g.grants.Root = g.config.Dir
		}
		g.states = sync.Pool{} // states made so far know other settings
	}()
	if _, err := fs.Stat(g.config.FS, SettingsFile); errors.Is(err, fs.ErrNotExist) {
		return
	}
	sc, ok := l.file(SettingsFile)
	if !ok {
		return
	}
	s := g.state()
	s.begin(context.Background(), g.config.LoadTimeout, sc, nil)
	defer s.run.stop()
	v, err := s.runFile(sc)
	if err != nil {
		l.fail(err)
		return
	}
	var value any
	err = guard(SettingsFile, func() (err error) {
		value, err = s.fromLua(v, nil, "settings")
		return err
	})
	if err != nil {
		l.fail(&ScriptError{File: SettingsFile, Line: 1, Message: err.Error()})
		return
	}
	settings, wrong := readSettings(value)
	for _, e := range wrong {
		l.fail(&ScriptError{File: SettingsFile, Line: keyLine(sc, e.key), Message: e.message})
	}
	g.settings, g.limits = settings, settings.Limits.withDefaults()
}

// read loads all scripts below a folder, in sorted order.
func (l *loader) read(folder string, load func(name string) (*script, bool)) []*script {
	var scripts []*script
	err := fs.WalkDir(l.g.config.FS, folder, func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case name == folder && errors.Is(err, fs.ErrNotExist):
			return fs.SkipAll
		case err != nil:
			l.fail(unreadable(name, err))
		case strings.HasPrefix(base, "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case !entry.IsDir() && strings.HasSuffix(base, ".lua"): // an editor's copy ends with ~
			if sc, ok := load(name); ok {
				scripts = append(scripts, sc)
			}
		}
		return nil
	})
	if err != nil {
		l.fail(err)
	}
	return scripts
}

// runTop runs the top level of a script to see what it registers.
func (g *Generation) runTop(sc *script, found *registrations) *ScriptError {
	s := g.state()
	s.begin(context.Background(), g.config.LoadTimeout, sc, found)
	defer s.run.stop()
	if _, err := s.runFile(sc); err != nil {
		return scriptError(err)
	}
	s.end()
	return nil
}

// scriptError is the error of a run where nobody tells an outcome from a
// fault.
func scriptError(err error) *ScriptError {
	var one *ScriptError
	if !errors.As(err, &one) {
		one = &ScriptError{Message: err.Error()}
	}
	return one
}

// register makes the registry's entries of what was found.
func (l *loader) register(found *registrations, registry *engine.Registry) {
	for _, name := range slices.Sorted(maps.Keys(found.tools)) {
		t := found.tools[name]
		tool, err := engine.NewTool(name, t.schema)
		if err != nil {
			l.fail(&ScriptError{File: t.file, Line: t.line, Message: err.Error()})
			continue
		}
		registry.Tools[name] = tool
	}
	for name, a := range found.activities {
		if a.options.reuse && l.g.workers != nil {
			l.fail(&ScriptError{File: a.file, Line: a.line, Message: a.what + `: reuse and isolate "process" don't go together`})
		}
		timeout := a.options.timeout
		if timeout == 0 {
			timeout = l.g.settings.Timeout
		}
		registry.Activities[name] = &engine.Registered{
			Name:          name,
			Activity:      newActivity(l.g, name, a, timeout),
			Timeout:       timeout,
			Retries:       a.options.retries,
			Backoff:       a.options.backoff,
			NotIdempotent: a.options.notIdempotent,
			Concurrency:   a.options.concurrency,
			Script:        a.script.file,
			SHA256:        a.script.sha256,
		}
	}
}
