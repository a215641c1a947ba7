package cmd

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/scaffold"
	"obelus/engine/visible"
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
	files, err := scaffold.Files()
	if err != nil {
		return err
	}
	for _, name := range files {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))); err == nil && name != scaffold.IgnoreFile {
			return exit.Usagef("%s exists already: init writes over nothing", filepath.Join(dir, filepath.FromSlash(name)))
		}
	}
	config := a.config.Host
	config.Stderr = a.term
	done, err := scaffold.Create(config, dir, files)
	if err != nil {
		for _, d := range done {
			if d.Status == "wrote" {
				_ = os.Remove(d.File) // then init can be run again
			}
		}
		return exit.Usage(err.Error())
	}
	for _, d := range done {
		if err := reportFile(a, d.Status, d.File, d.Text); err != nil {
			return err
		}
	}
	if a.json {
		return nil
	}
	plan := filepath.Join(dir, "plans", "hello.lua")
	a.term.Infof("\nnow try:\n  obelus run %s", visible.Word(plan))
	return nil
}

// reportFile prints the status of a file. text is a format for the status and the file.
func reportFile(a *app, status, file, text string) error {
	if a.json {
		return a.term.NDJSON(map[string]string{"file": file, "status": status})
	}
	a.term.Infof(text, status, file)
	return nil
}
