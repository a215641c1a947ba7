package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/host"
	"obelus/scripts"
)

func initCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "make a new project that runs at once",
		Long: `Make a new project in DIR, or here, or where -C says: settings, one activity, one
plan, one test, and settings for editors. Files that are there already are never
written over; a .gitignore gets a line for what obelus keeps, unless it has one.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := cmp.Or(a.projectFlag, ".")
			switch {
			case len(args) == 0:
			case args[0] == "":
				return exit.Usage("the folder's name is empty: name one, or leave it out for this one")
			case filepath.IsAbs(args[0]):
				dir = args[0]
			default:
				dir = filepath.Join(dir, args[0])
			}
			return initProject(a, dir)
		},
	}
}

func initProject(a *app, dir string) error {
	files, err := templateFiles()
	if err != nil {
		return err
	}
	for _, name := range files {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))); err == nil && name != ignoreFile {
			return exit.Usagef("%s exists already: init writes over nothing", filepath.Join(dir, filepath.FromSlash(name)))
		}
	}
	done, err := initFiles(a, dir, files)
	if err != nil {
		for _, d := range done {
			if d.status == "wrote" {
				_ = os.Remove(d.file) // so that init can be tried again
			}
		}
		return exit.Usage(err.Error())
	}
	for _, d := range done {
		if err := reportFile(a, d.status, d.file, d.text); err != nil {
			return err
		}
	}
	if a.json {
		return nil
	}
	plan := filepath.Join(dir, "plans", "hello.lua")
	a.term.say("\nnow try:\n  obelus run %s", quoted(plan))
	return nil
}

// initialised is a file of a new project, and what was done to it.
type initialised struct{ status, file, text string }

// initFiles writes the files of a new project, and gives those with which it is done.
func initFiles(a *app, dir string, files []string) (done []initialised, err error) {
	for _, name := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		status, text, err := "wrote", "%s %s", writeTemplate(dir, name)
		if name == ignoreFile && errors.Is(err, fs.ErrExist) {
			status, text, err = addIgnored(file)
		}
		if err != nil {
			return done, fmt.Errorf("can't write %s: %w", file, plainError(err))
		}
		done = append(done, initialised{status, file, text})
	}
	types, err := initTypes(a, dir)
	if err != nil {
		return done, err
	}
	return append(done, initialised{"wrote", filepath.Join(dir, typesFolder), fmt.Sprintf("%%s %%s: %d files", types)}), nil
}

// reportFile tells what was done to a file; text has a place for that and for its name.
func reportFile(a *app, status, file, text string) error {
	if a.json {
		return a.term.ndjson(map[string]string{"file": file, "status": status})
	}
	a.term.say(text, status, file)
	return nil
}

const ignoreFile = ".gitignore"

// addIgnored adds to a .gitignore what keeps the log out, unless it is there, and
// says which and how.
func addIgnored(file string) (done, text string, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(content)) {
		if strings.Trim(strings.TrimRight(line, " \t\r\n"), "/") == ".obelus" {
			return "kept", "%s %s", nil
		}
	}
	more, err := fs.ReadFile(scripts.Init(), ignoreFile)
	if err != nil {
		return "", "", err
	}
	if len(content) > 0 && !strings.HasSuffix(string(content), "\n") {
		more = append([]byte("\n"), more...)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return "", "", err
	}
	_, err = f.Write(more)
	return "added to", "added /.obelus/ to %[2]s", errors.Join(err, f.Close())
}

// initTypes writes the annotations for editors, and tells how many files. A folder that
// had scripts before may hold some that do not load: it gets what is known without them.
func initTypes(a *app, dir string) (files int, err error) {
	config := a.config.Host
	config.FS, config.Stderr = os.DirFS(dir), a.term
	h, err := host.Open(config)
	if err != nil {
		if h, err = host.Open(a.config.Host); err != nil {
			return 0, err
		}
	}
	stale, err := staleTypes(dir, h.Generation())
	if err != nil {
		return 0, err
	}
	for _, f := range stale {
		if err := f.settle(dir); err != nil {
			return 0, err
		}
	}
	return len(stale), nil
}

func templateFiles() ([]string, error) {
	var files []string
	err := fs.WalkDir(scripts.Init(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, name)
		}
		return err
	})
	return files, err
}

func writeTemplate(dir, name string) error {
	content, err := fs.ReadFile(scripts.Init(), name)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(file)
	}
	return err
}
