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
	"obelus/host/model"
	"obelus/luastd"
	"obelus/store"
)

// DefaultLog is the path of a project's log below its folder, if its settings have none.
const DefaultLog = ".obelus/log.db"

// Config has the decisions of a program that embeds Obelus. The zero value is an empty project
// whose scripts may do nothing.
type Config struct {
	// FS is the project's folder, as os.DirFS gives it. Nil is an empty folder, even if Dir is set.
	// A folder without obelus.lua is a project too, with no settings.
	FS fs.FS

	// Dir is the same folder as an absolute path on disk, to which the paths of grants are
	// relative. Without it scripts reach files only by absolute paths.
	Dir string

	// Grants are the permissions, in place of the setting "allow" in obelus.lua. Nil leaves them to
	// obelus.lua. Activities in Lua and tools may ask for less, which narrows them call by call.
	Grants *luastd.Grants

	// DB is the path of the file with the context log, which scripts may write only if a permission
	// names its place. Empty means the setting db below Dir, else [DefaultLog] there.
	DB string

	// Stderr receives the output of scripts, a Write for each line, and the log if Log is nil. Nil
	// discards it.
	Stderr io.Writer

	// Log receives the log records of scripts. Nil writes text to Stderr.
	Log *slog.Logger

	// Show receives each line that a script prints or logs, in place of Stderr and Log, with the call
	// that runs, if one does. It is called from several goroutines at once. The text is the script's:
	// it may hold any characters, and look like a line of the program. Nil writes to Stderr and Log.
	Show func(store.LogLine)

	// Clock is the time of scripts. Nil is the machine's. Deadlines always use the machine's, and
	// so do activities in processes of their own, with which a Clock is refused.
	Clock luastd.Clock

	// Objects are Go values that scripts see as globals of these names, by way of gopher-luar:
	// methods can be called, exported fields and the elements of lists and maps read and written.
	// Nothing else is reachable: no operator copies or replaces a whole object, channels neither
	// send nor receive, and the methods of a lock (Lock, Unlock and the like) raise. Objects are
	// shared by all scripts and calls, so their methods must be safe for concurrent use. Fields and
	// elements are read and written by one script at a time; the program itself must leave exported
	// ones alone while calls run. A table nested deeper than 200 is refused. A method gives all its
	// results, an error among them, which is nil or text: "local v, err = o:Find(7)". Numbers are
	// converted to the types of its parameters as Go converts float64, so that int8 loses high
	// bits; results become float64, so give large integers as text. A table reaches a method as its
	// parameter's type wants it, and an any as map[any]any. A method is not interrupted at the end
	// of its call's time. A method may call a Lua function that it is given until it returns, on
	// its own goroutine: the function panics if it fails.
	Objects map[string]any

	// Activities are activities in Go, which calls may name as they name activities of scripts.
	// Each needs a name of its own. Script, SHA256, Code and Latest are left empty. [plan.Result]
	// and [plan.Invocation] describe their results and arguments.
	Activities []plan.Registered

	// Tools are the JSON Schemas of tools by their names, for Activities that do not know theirs
	// ([plan.Described]). A tool of that name in the scripts of activities/ replaces one. For an
	// activity that knows its tool, neither may have one. A schema may be anything that
	// [store.FromGo] takes.
	Tools map[string]any

	// Model answers latent calls, which no activity runs, and plans where it can ([plan.PlanModel]).
	// Nil leaves it to the setting model in obelus.lua.
	Model plan.Model

	// UseModel is the name of the default model, in place of the setting model; empty for that.
	// An error about it names --model, the flag of the command.
	UseModel string

	// Budget replaces the setting budget as far as it is set. An error about it names --budget.
	Budget plan.Budget

	// Asker returns what answers the requests to a model of the settings in place of its client: a
	// cassette, or the client with something before it. Nil is the client alone, which asks the
	// model's provider over the network.
	Asker func(c model.Config, client model.Asker) model.Asker

	// HTTP answers the requests of scripts in place of the network. Nil is the network. With it
	// activities run in this process even with isolate = "process".
	HTTP func(ctx context.Context, r luastd.HTTPRequest) (luastd.HTTPResponse, error)
	// LoadTimeout bounds the top level of each script while a project is loaded. 0 is five seconds.
	LoadTimeout time.Duration

	latest func() *plan.Registry // of the host; nil if nothing is loaded anew
	models *modelSet
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
	if c.models == nil {
		c.models = &modelSet{}
	}
	if c.Clock == nil {
		c.Clock = luastd.SystemClock{}
	}
	if c.LoadTimeout == 0 {
		c.LoadTimeout = 5 * time.Second
	}
	return c
}

// activity returns an activity in Go by its name.
func (c *Config) activity(name string) (a plan.Registered, ok bool) {
	i := slices.IndexFunc(c.Activities, func(a plan.Registered) bool { return a.Name == name })
	if i >= 0 {
		a = c.Activities[i]
	}
	return a, i >= 0
}

// describes reports whether there is an activity in Go of a name that knows its tool.
func (c *Config) describes(name string) bool {
	a, _ := c.activity(name)
	_, ok := a.Activity.(plan.Described)
	return ok
}

// tools returns the tools of the embedding program: those in Config.Tools, and the tools that
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

// checkActivity returns an error for an invalid activity in Go.
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
	if _, given := c.Tools[a.Name]; given && c.describes(a.Name) {
		return fmt.Errorf("tool %s is registered twice by the program that embeds obelus: leave it out of the tools, since the activity of that name brings its own", strconv.Quote(a.Name))
	}
	return nil
}

// emptyFolder is a folder with nothing in it.
type emptyFolder struct{}

func (emptyFolder) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
