package cmd

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/term"
	"obelus/engine/plan"
	"obelus/engine/visible"
	"obelus/host"
	"obelus/luastd"
	"obelus/store"
)

// findProject returns the project's folder: the nearest one with obelus.lua, going up from the
// folder that -C names, else from the plan's, else from the working directory. Without such a file
// it returns the folder that -C names as found; else found is false, and dir is the working
// directory, or the plan's folder if that lies elsewhere.
func (a *app) findProject(plan string) (dir string, found bool, err error) {
	start := "."
	switch {
	case a.projectFlag != "":
		start = a.projectFlag
		if info, err := os.Stat(start); err != nil || !info.IsDir() {
			return "", false, exit.Usagef("-C %s: there is no such folder", start)
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

// commandPrefix returns the words by which obelus is called from here so that it finds the same
// project and log.
func (a *app) commandPrefix() string {
	dir, db := a.projectFlag, a.dbFlag
	if here, _, err := a.findProject(""); dir == "" && a.dir != "" && (err != nil || here != a.dir) {
		dir = a.dir
		// Without a project the log is below the working directory.
		if path, err := a.dbPath(); err == nil && !a.found {
			db = path
		}
	}
	words := []string{"obelus"}
	if dir != "" {
		words = append(words, "-C", visible.Word(dir))
	}
	if db != "" {
		words = append(words, "--db", visible.Word(db))
	}
	return strings.Join(words, " ")
}

// openProject loads the project's scripts. plan is the plan file that the command is about, or
// empty.
func (a *app) openProject(plan string) error {
	config, err := a.projectConfig(plan)
	if err != nil {
		return err
	}
	return a.openHost(config, false)
}

// openHost loads a project, whose scripts are shown on stderr, in text or JSON.
func (a *app) openHost(config host.Config, json bool) (err error) {
	a.shown = term.NewLog(a.term, json, func(context, call string) string {
		if run := a.current.Load(); run != nil {
			return term.CallName(run.context, context, call)
		}
		return context + "/" + call
	})
	a.setLogLevel(store.LevelInfo) // for the time until the settings are known
	config.Log, config.Show = a.shown.Logger, a.showLine
	if a.host, err = host.Open(config); err == nil {
		a.setLogLevel(a.host.Generation().Settings().Log)
	}
	return err
}

// showLine shows a line that a script prints or logs. Lines typed at a prompt print as they are.
func (a *app) showLine(line store.LogLine) {
	if a.prompting && line.Printed && line.Call == "" {
		a.term.Print(line.Text)
		return
	}
	a.shown.Show(line)
}

// setLogLevel sets the least level that is shown, by the flags or else by the setting.
func (a *app) setLogLevel(setting store.LogLevel) {
	level := cmp.Or(setting, store.LevelInfo)
	switch {
	case a.level != 0:
		level = store.LogLevel(a.level)
	case a.quiet:
		level = store.LevelError
	case a.verbose:
		level = store.LevelDebug
	}
	if a.shown != nil {
		a.shown.SetLevel(level)
	}
}

// registerLogLevel adds the flag --log-level.
func registerLogLevel(a *app, c *cobra.Command) {
	c.Flags().Var(&a.level, "log-level", "show what is logged from this `LEVEL` on: debug, info, warn or error (default: setting log, or info; -q error, -v debug)")
}

// openFolder opens the project's folder, from which scripts and plans are read. Links that lead out
// of it are refused by every command alike, since the author of a plan may be another person than
// the one that runs the server.
func (a *app) openFolder() (fs.ReadLinkFS, error) {
	root, err := os.OpenRoot(a.dir)
	if err != nil {
		return nil, err
	}
	return root.FS().(fs.ReadLinkFS), nil
}

// projectConfig finds the project, and returns how its scripts are to be loaded.
func (a *app) projectConfig(plan string) (config host.Config, err error) {
	if a.dir, a.found, err = a.findProject(plan); err != nil {
		return config, err
	}
	folder, err := a.openFolder()
	if err != nil {
		return config, err
	}
	config = a.config.Host
	config.FS, config.Dir, config.DB, config.Stderr = folder, a.dir, a.dbFlag, a.term
	if !a.found {
		config.FS = lonePlan{folder}
		config.DB = cmp.Or(config.DB, filepath.FromSlash(host.DefaultLog)) // below the working directory
	}
	if err := a.models.Apply(&config); err != nil {
		return config, err
	}
	config.Grants, err = a.allow.Grants(func() (luastd.Grants, error) {
		settings, err := host.Open(host.Config{FS: onlySettings{folder}, Dir: a.dir})
		if err != nil {
			return luastd.Grants{}, err
		}
		return settings.Generation().Grants(), nil
	})
	return config, err
}

// openSettings is openProject for commands that run nothing: it reads the settings alone, so that a
// broken activity does not keep a log from being read.
func (a *app) openSettings() error {
	var err error
	if a.dir, a.found, err = a.findProject(""); err != nil {
		return err
	}
	folder, err := a.openFolder()
	if err != nil {
		return err
	}
	a.host, err = host.Open(host.Config{FS: onlySettings{folder}, Dir: a.dir, Stderr: a.term})
	return err
}

// lonePlan is the folder of a plan without a project: it shows no activities.
type lonePlan struct{ fs.ReadLinkFS }

func (l lonePlan) Open(name string) (fs.File, error) {
	if name == "activities" || strings.HasPrefix(name, "activities/") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return l.ReadLinkFS.Open(name)
}

// hintUnreadActivities prints why the tools of a plan without a project may be unknown.
func (a *app) hintUnreadActivities(problems []plan.Problem) {
	unknown := slices.ContainsFunc(problems, func(p plan.Problem) bool { return p.Code == plan.CodeUnknownTool })
	if unknown && !a.found {
		a.term.Infof("no activities/ are read: there is no %s in %s or above (an empty one makes it a project)", host.SettingsFile, a.dir)
	}
}

// nameInProject returns a file's name relative to the project's folder, with slashes.
func (a *app) nameInProject(file string) (string, error) {
	absolute, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	name, inside := a.nameBelow(absolute)
	if a.projectFlag != "" && !filepath.IsAbs(file) {
		// With -C, plans are often named relative to the project.
		if _, err := os.Stat(absolute); err != nil || !inside {
			name, inside = a.nameBelow(filepath.Join(a.dir, file))
		}
	}
	if !inside {
		return "", exit.Usagef("%s lies outside the project %s", file, a.dir)
	}
	return name, nil
}

// nameBelow returns a file's name relative to the project's folder, if it lies there.
func (a *app) nameBelow(absolute string) (name string, inside bool) {
	name, err := filepath.Rel(a.dir, absolute)
	return filepath.ToSlash(name), err == nil && filepath.IsLocal(name)
}

// onlySettings is a project's folder that shows no file but its settings.
type onlySettings struct{ fs.ReadLinkFS }

func (o onlySettings) Open(name string) (fs.File, error) {
	if name != host.SettingsFile && name != "." {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return o.ReadLinkFS.Open(name)
}
