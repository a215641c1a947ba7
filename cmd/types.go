package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/scaffold"
)

func typesCommand(a *app) *cobra.Command {
	check := false
	c := &cobra.Command{
		Use:   "types",
		Short: "write types of globals, modules and the project's tools, for editors",
		Long: `Write annotations for editors to .obelus/types in the project, in LuaCATS, which
lua-language-server reads: of all globals and modules that scripts have, and of
the project's own tools, from their JSON Schemas. Run it again when a tool has
changed, and after an update of obelus.

Each tool has a class tool.NAME with the fields of its call, and if it says so
tool.NAME.result. In Activity.register("NAME", function(call) … end) and in
test.activity("NAME", { … }) the editor finds them itself; elsewhere say
  ---@param call tool.NAME

Exit status: 0, or with --check 1 if files are out of date.`,
		Example: `  obelus types
  obelus types --check`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return updateTypes(a, check) },
	}
	c.Flags().BoolVar(&check, "check", false, "write nothing; exit with 1 if files are out of date")
	return c
}

func updateTypes(a *app, check bool) error {
	if err := a.openProject(""); err != nil {
		return err
	}
	if !a.found {
		return exit.Usagef("there is no project above %s: obelus init makes one", a.dir)
	}
	stale, err := scaffold.StaleTypes(a.dir, a.host.Generation())
	if err != nil {
		return err
	}
	if check {
		for _, f := range stale {
			file := filepath.Join(scaffold.TypesFolder, f.Name)
			if !a.json {
				a.term.Noticef("%s is %s", file, f.State())
			} else if err := reportFile(a, f.State(), file, ""); err != nil {
				return err
			}
		}
		if len(stale) > 0 {
			a.term.Infof("obelus types brings them up to date")
			return exit.Failed
		}
	}
	for _, f := range stale {
		if err := f.Update(a.dir); err != nil {
			return err
		}
		if err := reportFile(a, f.Done(), filepath.Join(scaffold.TypesFolder, f.Name), "%s %s"); err != nil {
			return err
		}
	}
	if len(stale) == 0 {
		a.term.Infof("%s is up to date", scaffold.TypesFolder)
	}
	if check {
		return nil
	}
	return ensureEditorSettings(a)
}

const editorFile = ".luarc.json"

// ensureEditorSettings writes settings with which the editor finds the annotations. It leaves an
// existing file alone, and says what to add.
func ensureEditorSettings(a *app) error {
	content, err := os.ReadFile(filepath.Join(a.dir, editorFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := scaffold.WriteTemplate(a.dir, editorFile); err != nil {
			return fmt.Errorf("can't write %s: %w", editorFile, cli.PlainError(err))
		}
		return reportFile(a, "wrote", editorFile, "%s %s")
	case err == nil && !strings.Contains(string(content), filepath.ToSlash(scaffold.TypesFolder)):
		a.term.Noticef(`%s does not name %s: add it, "workspace.library": ["%[2]s"]`, editorFile, filepath.ToSlash(scaffold.TypesFolder))
	}
	return nil
}
