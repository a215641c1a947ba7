package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine"
	"obelus/host/internal/limits"
	"obelus/host/internal/luac"
	"obelus/host/internal/luaerr"
	"obelus/luastd"
	"obelus/store"
)

// Generation is an immutable set of loaded scripts. Calls that began with one
// end with it. Its methods may be called from several goroutines at once.
type Generation struct {
	Number int       // 1 for the first that its host loaded, 2 for the next
	Digest string    // of what its files hold, in hex
	Loaded time.Time // when

	config   Config
	sources  sources
	code     *store.Code
	settings Settings
	project  stateProject // what its states share: the scripts, limits and grants among it
	withheld bool         // the settings grant more, which a reload does not take over
	registry *engine.Registry
	states   sync.Pool // of *session
	plans    sync.Map  // *script of each plan file that was read, by its path; the newest text of it
	workers  *workers  // nil where activities run in this process
}

// script is one file. Its compiled form is shared by all states.
type script struct {
	file   string // below the project, with slashes
	source []byte
	sha256 string

	// compiled compiles the file when it is first called. Its error is a [*ScriptError].
	compiled func() (*lua.FunctionProto, error)
}

// unusable is the script of a file that can't be read, or that is known not to compile.
func unusable(file string, err error) *script {
	return &script{file: file, compiled: func() (*lua.FunctionProto, error) { return nil, luaerr.From(err) }}
}

// Registry is what plans may name: the tools and activities that the project
// registers. It must not be changed.
func (g *Generation) Registry() *engine.Registry { return g.registry }

// Settings is what obelus.lua says.
func (g *Generation) Settings() Settings { return g.settings }

// Grants are the permissions that the scripts run under.
func (g *Generation) Grants() luastd.Grants { return g.project.grants }

// Types returns annotations of the project's own tools in LuaCATS, as editors read them: a class
// for the call of each tool, and one for its result if the tool describes that.
func (g *Generation) Types() []byte { return writeTypes(g.registry) }

// File is a script of a generation.
type File = store.Script

// Files lists the scripts that are loaded, sorted by path: obelus.lua and all
// below activities and lib.
func (g *Generation) Files() []File {
	var files []File
	for _, name := range slices.Sorted(maps.Keys(g.project.scripts)) {
		if sc := g.project.scripts[name]; sc.sha256 != "" {
			files = append(files, File{Path: sc.file, SHA256: sc.sha256, Source: sc.source})
		}
	}
	return files
}

// codeOf is what calls run, as the log keeps it.
func (g *Generation) codeOf() *store.Code {
	return &store.Code{Digest: g.Digest, Scripts: g.Files()}
}

// codeWith is the same for an activity that a script registers: a plan's file is
// none of the generation's, and goes with it.
func (g *Generation) codeWith(sc *script) *store.Code {
	if g.project.scripts[sc.file] == sc {
		return g.code
	}
	all := maps.Clone(g.sources)
	all[sc.file] = source{sha256: sc.sha256}
	code := &store.Code{Digest: all.digest(), Scripts: slices.Clone(g.code.Scripts)}
	code.Scripts = append(code.Scripts, store.Script{Path: sc.file, SHA256: sc.sha256, Source: sc.source})
	slices.SortFunc(code.Scripts, func(a, b store.Script) int { return strings.Compare(a.Path, b.Path) })
	return code
}

// retire lets a generation go that another has taken the place of: its calls
// end with it, and then it is free.
func (g *Generation) retire() {
	if g.workers != nil {
		g.workers.close()
	}
}

// newScript compiles a file of at most so many bytes.
func newScript(file string, source []byte, most int) (*script, error) {
	sc := newLazyScript(file, source, most)
	if _, err := sc.compiled(); err != nil {
		return nil, err
	}
	return sc, nil
}

// planScript compiles a plan's file, unless its text is the one that was compiled last.
func (g *Generation) planScript(file string, source []byte) (*script, error) {
	if known, ok := g.plans.Load(file); ok && bytes.Equal(known.(*script).source, source) {
		return known.(*script), nil
	}
	sc, err := newScript(file, source, g.project.limits.Source)
	if err == nil {
		g.plans.Store(file, sc)
	}
	return sc, err
}

// newLazyScript is newScript for a file that may never be needed.
func newLazyScript(file string, source []byte, most int) *script {
	sum := sha256.Sum256(source)
	return &script{
		file: file, source: source, sha256: hex.EncodeToString(sum[:]),
		compiled: sync.OnceValues(func() (*lua.FunctionProto, error) { return compileScript(file, source, most) }),
	}
}

func compileScript(file string, source []byte, most int) (*lua.FunctionProto, error) {
	if len(source) > most {
		return nil, &luaerr.ScriptError{File: file, Line: 1, Message: limits.Over(fmt.Sprintf("the script has %d bytes", len(source)), "source", most)}
	}
	proto, err := luac.Compile(file, source, hostFunctions)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(file, "lib/") {
		if err := luac.AccidentalGlobal(file, source, proto, knownGlobals()); err != nil {
			return nil, err
		}
	}
	return proto, nil
}

// newProject is what the states of a project share, before its settings and its scripts are known.
func newProject(c Config, l limits.Limits) stateProject {
	return stateProject{scripts: map[string]*script{}, limits: l, clock: c.Clock, log: c.Log, stderr: c.Stderr, http: c.http, objects: c.Objects}
}

// NewState returns a state in which scripts of the generation run. It is for the packages beside
// this one: programs can't name its type.
func (g *Generation) NewState() *state { return newSession(g).state }
