package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine"
	"obelus/luastd"
)

// SettingsFile marks a project and returns its settings.
const SettingsFile = "obelus.lua"

// Config is what a program that embeds Obelus decides. The zero value is an
// empty project whose scripts may do nothing.
type Config struct {
	// FS is the project's folder. Nil is an empty one. A folder without
	// obelus.lua is a project too, with no settings.
	FS fs.FS

	// Dir is the same folder as an absolute path on disk, to which the paths
	// of grants are relative. Without it scripts reach files by absolute paths
	// alone.
	Dir string

	// Grants are the permissions, in place of what obelus.lua says under
	// "allow". Nil leaves that to obelus.lua.
	Grants *luastd.Grants

	// Stderr receives what scripts print, a Write for each line, and the log
	// if Log is nil. Nil discards it.
	Stderr io.Writer

	// Log receives what scripts log. Nil writes text to Stderr.
	Log *slog.Logger

	// Clock is what scripts know of time. Nil is the machine's. Deadlines
	// always go by the machine's.
	Clock luastd.Clock

	// Objects are Go values that scripts see as globals of these names, by
	// way of gopher-luar: methods can be called, fields read and written. They
	// are shared by all scripts and calls, so they must be safe for
	// concurrent use.
	Objects map[string]any

	// LoadTimeout bounds the top level of each script while a project is
	// loaded. 0 is five seconds.
	LoadTimeout time.Duration

	http func(ctx context.Context, r luastd.HTTPRequest) (luastd.HTTPResponse, error) // of tests
}

func (c Config) withDefaults() Config {
	if c.Stderr == nil {
		c.Stderr = io.Discard
	}
	c.Stderr = &lockedWriter{w: c.Stderr}
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(c.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if c.Clock == nil {
		c.Clock = luastd.SystemClock{}
	}
	if c.LoadTimeout == 0 {
		c.LoadTimeout = 5 * time.Second
	}
	return c
}

// lockedWriter keeps the lines of scripts that run at once apart.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(text)
}

// Host holds a project's scripts. Its methods may be called from several
// goroutines at once.
type Host struct {
	generation *Generation
}

// Open loads a project: its settings, and every activities/**/*.lua, each of
// which is run once to see what it registers. Its error is [Errors], with
// everything that is wrong.
func Open(config Config) (*Host, error) {
	g, err := load(config.withDefaults())
	if err != nil {
		return nil, err
	}
	return &Host{g}, nil
}

// Generation is the set of scripts that is loaded now.
func (h *Host) Generation() *Generation { return h.generation }

// Plan is [Generation.Plan] of the present generation.
func (h *Host) Plan(file string) (*engine.Request, *engine.Registry, error) {
	return h.generation.Plan(file)
}

// Generation is an immutable set of loaded scripts. Calls that began with one
// end with it. Its methods may be called from several goroutines at once.
type Generation struct {
	config   Config
	settings Settings
	limits   Limits // of the settings, with their defaults
	grants   luastd.Grants
	scripts  map[string]*script
	registry *engine.Registry
	states   sync.Pool // of *state
	workers  *workers  // nil where activities run in this process
}

// script is one file, compiled. The compiled form is shared by all states.
type script struct {
	file   string // below the project, with slashes
	source []byte
	sha256 string
	proto  *lua.FunctionProto
	broken error // why it has no proto; of a file in lib alone
}

// Registry is what plans may name: the tools and activities that the project
// registers. It must not be changed.
func (g *Generation) Registry() *engine.Registry { return g.registry }

// Settings is what obelus.lua says.
func (g *Generation) Settings() Settings { return g.settings }

// Grants are the permissions that the scripts run under.
func (g *Generation) Grants() luastd.Grants { return g.grants }

// File is a script of a generation.
type File struct {
	Path   string // below the project, with slashes
	SHA256 string // of its bytes, in hex
	Source []byte // must not be changed
}

// Files lists the scripts that are loaded, sorted by path: obelus.lua and all
// below activities and lib.
func (g *Generation) Files() []File {
	var files []File
	for _, name := range slices.Sorted(maps.Keys(g.scripts)) {
		if sc := g.scripts[name]; sc.broken == nil {
			files = append(files, File{sc.file, sc.sha256, sc.source})
		}
	}
	return files
}

func (g *Generation) maxString() int { return g.limits.String }

// newScript compiles a file of at most so many bytes.
func newScript(file string, source []byte, most int) (*script, error) {
	if len(source) > most {
		return nil, &ScriptError{File: file, Line: 1, Message: over(fmt.Sprintf("the script has %d bytes", len(source)), "source", most)}
	}
	proto, err := compile(file, source)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(file, "lib/") {
		if err := accidentalGlobal(file, source, proto); err != nil {
			return nil, err
		}
	}
	sum := sha256.Sum256(source)
	return &script{file: file, source: source, sha256: hex.EncodeToString(sum[:]), proto: proto}, nil
}

// state takes a state from the pool, or makes one.
func (g *Generation) state() *state {
	if s, ok := g.states.Get().(*state); ok {
		return s
	}
	return newState(g)
}
