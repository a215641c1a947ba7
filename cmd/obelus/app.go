package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"obelus/engine"
	"obelus/host"
	"obelus/luastd"
	"obelus/store"
	"obelus/store/sqlite"
)

// app is one run of the program: its flags, and what a command opens.
type app struct {
	stdin io.Reader
	term  *terminal

	projectFlag string
	dbFlag      string
	context     string
	json        bool
	quiet       bool
	verbose     bool
	allow       allowFlags

	dir   string // the project's folder, absolute; without a project, see findProject
	found bool   // there is a project
	host  *host.Host
	log   store.Log
}

// close lets go of what the command opened.
func (a *app) close() {
	if a.log != nil {
		if err := a.log.Close(); err != nil {
			a.term.fail(err)
		}
	}
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "obelus",
		Short: "run plans of Lua activities over a log in SQLite",
		Long: `obelus runs plans: lists of calls wired by paths. A call writes
"†state.user.status", another reads it, and from that obelus knows what must
wait, what runs side by side, and where every value came from. Activities are
Lua; everything that happens is kept in a log in SQLite.`,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		Args:                       unknownCommand,
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			a.term.quiet = a.quiet
			if c.Flags().Changed("context") && a.context == "" {
				return &usageError{"-c is empty: name a context, or leave the flag out"}
			}
			return nil
		},
	}
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.StringVarP(&a.projectFlag, "project", "C", "", "the project's `DIR` (default: the folder above with obelus.lua)")
	flags.StringVar(&a.dbFlag, "db", "", "the log's `FILE` (default: .obelus/log.db in the project)")
	flags.StringVarP(&a.context, "context", "c", "", "the context's `ID` or the start of it (default for reading: the latest)")
	flags.BoolVar(&a.json, "json", false, "print JSON, one object a line")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "no progress, only errors")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "say more")
	for _, command := range a.commands() {
		wrapArgs(command)
		root.AddCommand(command)
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		c.Short = strings.ToLower(c.Short[:1]) + c.Short[1:]
	}
	return root
}

// commands lists the commands, sorted.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.appendCommand(),
		a.callCommand(),
		a.callsCommand(),
		a.checkCommand(),
		a.contextsCommand(),
		a.getCommand(),
		a.graphCommand(),
		a.initCommand(),
		a.logCommand(),
		a.resumeCommand(),
		a.runCommand(),
		a.versionCommand(),
	}
}

// wrapArgs makes of cobra's complaint about arguments one that shows how the
// command is called.
func wrapArgs(c *cobra.Command) {
	check := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if check(c, args) != nil {
			given := "no arguments were given"
			if len(args) > 0 {
				given = fmt.Sprintf("these are the wrong arguments: %s", strings.Join(args, " "))
			}
			return &usageError{fmt.Sprintf("%s: %s\n  usage: %s", c.Name(), given, c.UseLine())}
		}
		return nil
	}
}

func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "obelus help lists them"
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	return &usageError{fmt.Sprintf("unknown command %q: %s", args[0], hint)}
}

// flagError makes of the flag library's complaint one for people.
func flagError(c *cobra.Command, err error) error {
	where := ""
	if c.HasParent() {
		where = c.Name() + ": "
	}
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) {
		name := bad.GetFlag().Name
		return &usageError{fmt.Sprintf("%s--%s %s: expected %s", where, name, bad.GetValue(), article(bad.GetFlag().Value.Type()))}
	}
	return &usageError{where + err.Error()}
}

func article(flagType string) string {
	if strings.HasPrefix(flagType, "int") {
		return "a whole number"
	}
	return "a " + flagType
}

// findProject finds the project: the nearest folder with obelus.lua, going up
// from the one that -C names, else from a plan's, else from the working
// directory. Without one it is the folder that -C names; else found is false,
// and it is the working directory, or the plan's folder if that lies elsewhere.
func (a *app) findProject(plan string) (dir string, found bool, err error) {
	start := "."
	switch {
	case a.projectFlag != "":
		start = a.projectFlag
		if info, err := os.Stat(start); err != nil || !info.IsDir() {
			return "", false, &usageError{fmt.Sprintf("-C %s: there is no such folder", start)}
		}
	case plan != "":
		start = filepath.Dir(plan)
	}
	if start, err = filepath.Abs(start); err != nil {
		return "", false, err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, host.SettingsFile)); err == nil {
			return dir, true, nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if a.projectFlag != "" {
		return start, true, nil
	}
	here, err := filepath.Abs(".")
	if err != nil {
		return "", false, err
	}
	if below, err := filepath.Rel(here, start); err == nil && filepath.IsLocal(below) {
		return here, false, nil
	}
	return start, false, nil
}

// openProject loads the project's scripts; plan is the plan file that the
// command is about, or empty.
func (a *app) openProject(plan string) error {
	var err error
	if a.dir, a.found, err = a.findProject(plan); err != nil {
		return err
	}
	config := host.Config{FS: os.DirFS(a.dir), Dir: a.dir, Stderr: a.term}
	if !a.found {
		config.FS = lonePlan{config.FS}
	}
	if config.Grants, err = a.allow.grants(a.dir, config.FS); err != nil {
		return err
	}
	a.host, err = host.Open(config)
	return err
}

// openSettings is openProject for commands that run nothing: a broken activity
// must not keep anybody from reading the log.
func (a *app) openSettings() error {
	var err error
	if a.dir, a.found, err = a.findProject(""); err != nil {
		return err
	}
	a.host, err = host.Open(host.Config{FS: onlySettings{os.DirFS(a.dir)}, Dir: a.dir, Stderr: a.term})
	return err
}

// lonePlan is the folder of a plan without a project: what lies beside it is
// none of the plan's activities.
type lonePlan struct{ fs.FS }

func (l lonePlan) Open(name string) (fs.File, error) {
	if name == "activities" || strings.HasPrefix(name, "activities/") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return l.FS.Open(name)
}

// inProject is a file's name below the project's folder.
func (a *app) inProject(file string) (string, error) {
	absolute, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if a.projectFlag != "" && !filepath.IsAbs(file) {
		if _, err := os.Stat(absolute); err != nil { // plans are often named from the project's folder
			absolute = filepath.Join(a.dir, file)
		}
	}
	name, err := filepath.Rel(a.dir, absolute)
	if err != nil || strings.HasPrefix(name, "..") {
		return "", &usageError{fmt.Sprintf("%s lies outside the project %s", file, a.dir)}
	}
	return filepath.ToSlash(name), nil
}

// dbPath is where the log is: --db, else the setting, else below the project,
// else below the working directory.
func (a *app) dbPath() (string, error) {
	if a.dbFlag != "" {
		return a.dbFlag, nil
	}
	if a.host == nil {
		if err := a.openSettings(); err != nil {
			return "", err
		}
	}
	db := ".obelus/log.db"
	if setting := a.host.Generation().Settings().DB; setting != "" {
		db = setting
	}
	if a.found {
		return filepath.Join(a.dir, filepath.FromSlash(db)), nil
	}
	return filepath.FromSlash(db), nil
}

// onlySettings is a project of which nothing but its settings is of interest.
type onlySettings struct{ fs.FS }

func (o onlySettings) Open(name string) (fs.File, error) {
	if name != host.SettingsFile && name != "." {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return o.FS.Open(name)
}

// openLog opens the log for writing, and makes it if it is absent.
func (a *app) openLog() error {
	path, err := a.dbPath()
	if err != nil {
		return err
	}
	log, err := sqlite.Open(path, a.logOptions())
	if err != nil {
		return err
	}
	a.log = log
	return nil
}

// logOptions is how the project wants its log written.
func (a *app) logOptions() sqlite.Options {
	if a.host == nil {
		return sqlite.Options{}
	}
	return sqlite.Options{Synchronous: a.host.Generation().Settings().Synchronous}
}

// openExisting opens a log that is there. It makes none.
func (a *app) openExisting(options sqlite.Options) error {
	path, err := a.dbPath()
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return &usageError{fmt.Sprintf("there is no log at %s: run a plan first, or name the log by --db or the project by -C", path)}
	}
	log, err := sqlite.Open(path, options)
	if err != nil {
		return err
	}
	a.log = log
	return nil
}

// openForReading opens the log and finds the context that a reading command is
// about.
func (a *app) openForReading(ctx context.Context) (name string, err error) {
	if err := a.openExisting(sqlite.Options{ReadOnly: true}); err != nil {
		return "", err
	}
	return a.readContext(ctx)
}

// readContext finds the context that a reading command is about: the one that
// -c begins, else the root context that was appended to last.
func (a *app) readContext(ctx context.Context) (string, error) {
	var matches []string
	for info, err := range a.log.Contexts(ctx, a.context) {
		switch {
		case err != nil:
			return "", err
		case a.context == "" && info.Origin.Parent == "", info.Context == a.context:
			return info.Context, nil
		case a.context != "":
			matches = append(matches, info.Context)
		}
	}
	switch {
	case a.context == "":
		return "", &usageError{"the log holds no contexts yet: run a plan first"}
	case len(matches) == 0:
		return "", fmt.Errorf("%w: %s (obelus contexts lists them)", store.ErrNoContext, a.context)
	case len(matches) > 1:
		return "", &usageError{fmt.Sprintf("-c %s is the start of %d contexts, %s among them: give more of it", a.context, len(matches), strings.Join(matches[:2], " and "))}
	}
	return matches[0], nil
}

// writeContext is the context that a run or an append goes to: the one that -c
// names, else a new one.
func (a *app) writeContext() (string, error) {
	if a.context == "" {
		return ulid.MustNew(ulid.Timestamp(time.Now()), rand.Reader).String(), nil
	}
	for _, r := range a.context {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", r) || len(a.context) > 64 {
			return "", &usageError{fmt.Sprintf("-c %q is no name for a context: up to 64 letters, digits, . _ and -", a.context)}
		}
	}
	return a.context, nil
}

// runner is an engine over the open log, with the project's settings.
func (a *app) runner(registry *engine.Registry, p *progress) *engine.Runner {
	settings := a.host.Generation().Settings()
	return &engine.Runner{Log: a.log, Registry: registry, Parallel: settings.Parallel, Drain: settings.Drain, Observe: p.observe}
}

// allowFlags are the permissions that flags grant. Each may be given alone,
// for everything, or with a list.
type allowFlags struct{ read, write []string }

func (f *allowFlags) register(c *cobra.Command) {
	for _, flag := range []struct {
		list *[]string
		name string
		what string
	}{
		{&f.read, "allow-read", "let scripts read files, or only those below `DIR,…`"},
		{&f.write, "allow-write", "let scripts write files, or only those below `DIR,…`"},
	} {
		c.Flags().StringSliceVar(flag.list, flag.name, nil, flag.what)
		c.Flags().Lookup(flag.name).NoOptDefVal = everything
	}
}

const everything = "*"

// grants adds what the flags grant to what the settings do; nil leaves it to
// the settings.
func (f *allowFlags) grants(dir string, project fs.FS) (*luastd.Grants, error) {
	if len(f.read)+len(f.write) == 0 {
		return nil, nil
	}
	settings, err := host.Open(host.Config{FS: onlySettings{project}, Dir: dir})
	if err != nil {
		return nil, err
	}
	grants := settings.Generation().Grants()
	for _, g := range []struct {
		grant *luastd.Grant
		list  []string
	}{{&grants.Read, f.read}, {&grants.Write, f.write}} {
		for _, entry := range g.list {
			if entry == everything {
				g.grant.All = true
				continue
			}
			g.grant.List = append(g.grant.List, entry)
		}
	}
	return &grants, nil
}
