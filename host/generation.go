package host

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"obelus/engine/plan"
	"obelus/host/internal/luatypes"
	"obelus/host/internal/projectfs"
	"obelus/host/internal/sandbox"
	"obelus/host/internal/worker"
	"obelus/luastd"
	"obelus/store"
)

// Generation is an immutable set of loaded scripts. Calls that began with one end with it. Its
// methods may be called from several goroutines at once.
type Generation struct {
	Number int       // 1 for the first that its host loaded, 2 for the next
	Digest string    // hash of its files, in hex
	Loaded time.Time // time of loading

	config   Config
	sources  projectfs.Set
	code     *store.Code
	settings Settings
	project  sandbox.Project // shared by its states: the scripts, limits and grants among it
	withheld bool            // the settings grant more, which a reload does not take over
	asked    bool            // activities get only the permissions that they ask for
	unasked  *luastd.Grants  // of scripts that no activity runs; nil for the project's
	// Of functions of plans whose solution is only compared or shown.
	rehearsal *luastd.Grants
	registry  *plan.Registry
	states    sync.Pool    // of *session
	plans     sync.Map     // *planFile of the newest text of each plan that was read, by its path
	workers   *worker.Pool // nil if activities run in this process
	// In a worker, puts questions to models by way of the process that started it; else nil.
	askHost func(ctx context.Context, q luastd.ModelQuestion) (any, error)
}

// Registry returns the tools and activities that the project registers, which plans may name. It
// must not be changed.
func (g *Generation) Registry() *plan.Registry { return g.registry }

// Settings returns the settings of obelus.lua.
func (g *Generation) Settings() Settings { return g.settings }

// Grants returns the permissions that the scripts run under.
func (g *Generation) Grants() luastd.Grants { return g.project.Grants }

// Types returns annotations of the project's own tools in LuaCATS, as editors read them: a class
// for the call of each tool, and one for its result if the tool describes that.
func (g *Generation) Types() []byte { return luatypes.Write(g.registry) }

// File is a script of a generation.
type File = store.Script

// Files lists the loaded scripts, sorted by path: obelus.lua and all below activities and lib.
func (g *Generation) Files() []File {
	var files []File
	for _, name := range slices.Sorted(maps.Keys(g.project.Scripts)) {
		if sc := g.project.Scripts[name]; sc.SHA256 != "" {
			files = append(files, File{Path: sc.File, SHA256: sc.SHA256, Source: sc.Source})
		}
	}
	return files
}

// newCode returns the code that calls run, as the log keeps it.
func (g *Generation) newCode() *store.Code {
	return &store.Code{Digest: g.Digest, Scripts: g.Files()}
}

// codeWith returns the code with the script of an activity. A plan's file is not one of the
// generation's, and is added.
func (g *Generation) codeWith(sc *sandbox.Script) *store.Code {
	if g.project.Scripts[sc.File] == sc {
		return g.code
	}
	all := maps.Clone(g.sources)
	all[sc.File] = projectfs.File{SHA256: sc.SHA256}
	code := &store.Code{Digest: all.Digest(), Scripts: slices.Clone(g.code.Scripts)}
	code.Scripts = append(code.Scripts, store.Script{Path: sc.File, SHA256: sc.SHA256, Source: sc.Source})
	slices.SortFunc(code.Scripts, func(a, b store.Script) int { return strings.Compare(a.Path, b.Path) })
	return code
}

// retire frees a generation that another has replaced, at the end of its calls.
func (g *Generation) retire() {
	if g.workers != nil {
		g.workers.Close()
	}
}

// newProject returns the data that states share, before settings and scripts are known.
func newProject(c Config, l Limits) sandbox.Project {
	return sandbox.Project{Scripts: map[string]*sandbox.Script{}, Limits: l, Clock: c.Clock, Log: c.Log, Stderr: c.Stderr, HTTP: c.HTTP, Objects: c.Objects}
}

// NewState returns a state in which scripts of the generation run. It is for the packages beside
// this one: programs can't name its type.
func (g *Generation) NewState() *sandbox.State { return newSession(g).State }
