package host

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"obelus/engine/plan"
	"obelus/host/internal/sandbox"
	"obelus/luastd"
)

// DefaultLog is where a project's log is whose settings do not say, below its folder.
const DefaultLog = ".obelus/log.db"

// Config is what a program that embeds Obelus decides. The zero value is an
// empty project whose scripts may do nothing.
type Config struct {
	// FS is the project's folder, as os.DirFS gives it. Nil is an empty one, whatever
	// Dir says. A folder without obelus.lua is a project too, with no settings.
	FS fs.FS

	// Dir is the same folder as an absolute path on disk, to which the paths
	// of grants are relative. Without it scripts reach files by absolute paths
	// alone.
	Dir string

	// Grants are the permissions, in place of what obelus.lua says under
	// "allow". Nil leaves that to obelus.lua.
	Grants *luastd.Grants

	// DB is the path of the file that holds the context log, which scripts may
	// write only where a permission names its place. Empty means the setting db
	// below Dir, else [DefaultLog] there.
	DB string

	// Stderr receives what scripts print, a Write for each line, and the log
	// if Log is nil. Nil discards it.
	Stderr io.Writer

	// Log receives what scripts log. Nil writes text to Stderr.
	Log *slog.Logger

	// Clock is what scripts know of time. Nil is the machine's. Deadlines
	// always go by the machine's, as do activities in processes of their own,
	// with which a Clock is refused.
	Clock luastd.Clock

	// Objects are Go values that scripts see as globals of these names, by
	// way of gopher-luar: methods can be called, exported fields and the elements
	// of lists and maps read and written. Nothing else is reachable: no operator
	// copies or replaces a whole object, channels neither send nor receive, and
	// the methods of a lock (Lock, Unlock and the like) raise. Objects are shared
	// by all scripts and calls, so their methods must be safe for concurrent use.
	// Fields and elements are read and written by one script at a time; the
	// program itself must leave exported ones alone while calls run. A table
	// nested deeper than 200 is refused. A method gives all its results, an error among them, which
	// is nil or says as text what is wrong: "local v, err = o:Find(7)". Numbers
	// are made what its parameters are as Go converts float64, so that int8 cuts off
	// what it has no room for; results become float64, so give large integers as text. A table reaches a method
	// as its parameter's type wants it, and an any as map[any]any. A method is not
	// interrupted when its call's time is over. A function of Lua that a method is given
	// may be called until the method returns, on the goroutine that it runs on: it
	// panics if what it does fails.
	Objects map[string]any

	// Activities are activities in Go, which calls may name as they do those
	// that scripts register, each under a name of its own. Script, SHA256, Code
	// and Latest are left empty. What they may give back, and get, is told at
	// [plan.Result] and [plan.Invocation].
	Activities []plan.Registered

	// Tools are the JSON Schemas of tools by their names, for Activities that
	// scripts register no tool for and that do not know theirs ([plan.Described]).
	// A schema may be anything that [store.FromGo] takes.
	Tools map[string]any

	// Model answers latent calls, which no activity runs; nil for none.
	Model plan.Model

	// HTTP answers what scripts ask of the network. Nil is the network itself. With it activities
	// run in this process even with isolate = "process".
	HTTP func(ctx context.Context, r luastd.HTTPRequest) (luastd.HTTPResponse, error)
	// LoadTimeout bounds the top level of each script while a project is
	// loaded. 0 is five seconds.
	LoadTimeout time.Duration

	latest func() *plan.Registry // of the host; nil where nothing is loaded anew
}

func (c Config) withDefaults() Config {
	if c.FS == nil {
		c.FS = emptyFolder{}
	}
	if c.Stderr == nil {
		c.Stderr = io.Discard
	}
	c.Stderr = sandbox.LockWriter(c.Stderr)
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

// activity finds an activity in Go.
func (c *Config) activity(name string) (a plan.Registered, ok bool) {
	i := slices.IndexFunc(c.Activities, func(a plan.Registered) bool { return a.Name == name })
	if i >= 0 {
		a = c.Activities[i]
	}
	return a, i >= 0
}

// tools returns the tools of the embedding program: those that it gives, and those that its
// activities know.
func (c *Config) tools() map[string]any {
	tools := map[string]any{}
	for _, a := range c.Activities {
		if d, ok := a.Activity.(plan.Described); ok {
			if tool, err := d.Tool(); err == nil { // else the activity is refused
				tools[a.Name] = tool
			}
		}
	}
	maps.Copy(tools, c.Tools)
	return tools
}

// checkActivity tells what is wrong with the activity in Go at a place.
func (c *Config) checkActivity(i int) error {
	a := c.Activities[i]
	switch first := slices.IndexFunc(c.Activities, func(b plan.Registered) bool { return b.Name == a.Name }); {
	case a.Name == "":
		return fmt.Errorf("activity %d of the program that embeds obelus has no name", i+1)
	case first < i:
		return fmt.Errorf("activity %s is registered twice by the program that embeds obelus", strconv.Quote(a.Name))
	}
	if err := a.Check(); err != nil {
		return fmt.Errorf("activity %s of the program that embeds obelus: %w", strconv.Quote(a.Name), err)
	}
	return nil
}

// emptyFolder is a folder with nothing in it.
type emptyFolder struct{}

func (emptyFolder) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
