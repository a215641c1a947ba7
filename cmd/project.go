package cmd

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/luastd"
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
		words = append(words, "-C", cli.Quote(dir))
	}
	if db != "" {
		words = append(words, "--db", cli.Quote(db))
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
	a.host, err = host.Open(config)
	return err
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
	if err := a.models.apply(&config); err != nil {
		return config, err
	}
	if a.wrapAsker != nil {
		config.Asker = a.wrapAsker
	}
	config.Grants, err = a.allow.grants(a.dir, folder)
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

// allowFlags holds the permissions that flags grant. Each flag may be given alone, for everything,
// or with a list.
type allowFlags struct{ env, model, net, read, write []string }

func (f *allowFlags) register(c *cobra.Command) {
	for _, flag := range []struct {
		list *[]string
		name string
		what string
	}{
		{&f.env, "allow-env", "let scripts read variables of the environment, or only `NAME,...`"},
		{&f.model, "allow-model", "let scripts ask models, or only `NAME,...`"},
		{&f.net, "allow-net", "let scripts use the network, or only `HOST[:PORT],...`"},
		{&f.read, "allow-read", "let scripts read files, or only those below `DIR,...`"},
		{&f.write, "allow-write", "let scripts write files, or only those below `DIR,...`"},
	} {
		c.Flags().StringSliceVar(flag.list, flag.name, nil, flag.what)
		c.Flags().Lookup(flag.name).NoOptDefVal = everything
	}
}

// everything is the value of a permission flag that was given alone.
const everything = "*"

// grants returns the grants of the settings, with those kinds replaced that flags name. Nil leaves
// all to the settings.
func (f *allowFlags) grants(dir string, project fs.ReadLinkFS) (*luastd.Grants, error) {
	if len(f.env)+len(f.model)+len(f.net)+len(f.read)+len(f.write) == 0 {
		return nil, nil
	}
	for _, flag := range []struct {
		name string
		list []string
	}{{"env", f.env}, {"model", f.model}, {"net", f.net}, {"read", f.read}, {"write", f.write}} {
		for _, entry := range flag.list {
			if err := luastd.CheckGrant(flag.name, entry); err != nil && entry != everything {
				return nil, exit.Usage("--allow-" + flag.name + ": " + err.Error())
			}
		}
	}
	settings, err := host.Open(host.Config{FS: onlySettings{project}, Dir: dir})
	if err != nil {
		return nil, err
	}
	grants := settings.Generation().Grants()
	for _, g := range []struct {
		grant *luastd.Grant
		list  []string
	}{{&grants.Env, f.env}, {&grants.Model, f.model}, {&grants.Net, f.net}, {&grants.Read, f.read}, {&grants.Write, f.write}} {
		switch {
		case slices.Contains(g.list, everything):
			*g.grant = luastd.Grant{All: true}
		case len(g.list) > 0:
			*g.grant = luastd.Grant{List: g.list}
		}
	}
	return &grants, nil
}
