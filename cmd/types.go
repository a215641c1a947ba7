package cmd

import (
	"bytes"
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

func typesCommand(a *app) *cobra.Command {
	check := false
	c := &cobra.Command{
		Use:   "types",
		Short: "write what editors know of globals, modules and the project's tools",
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

// typesFolder is where the annotations are, below the project.
var typesFolder = filepath.Join(".obelus", "types")

// projectTypes is the file with the project's own tools.
const projectTypes = "project.lua"

// typesMark is on the third line of all that types writes.
const typesMark = "-- Written by obelus types"

func updateTypes(a *app, check bool) error {
	if err := a.openProject(""); err != nil {
		return err
	}
	if !a.found {
		return exit.Usagef("there is no project above %s: obelus init makes one", a.dir)
	}
	stale, err := staleTypes(a.dir, a.host.Generation())
	if err != nil {
		return err
	}
	if check {
		for _, f := range stale {
			file := filepath.Join(typesFolder, f.name)
			if !a.json {
				a.term.tell("%s is %s", file, f.state())
			} else if err := reportFile(a, f.state(), file, ""); err != nil {
				return err
			}
		}
		if len(stale) > 0 {
			a.term.say("obelus types brings them up to date")
			return exit.Failed
		}
	}
	for _, f := range stale {
		if err := f.settle(a.dir); err != nil {
			return err
		}
		if err := reportFile(a, f.done(), filepath.Join(typesFolder, f.name), "%s %s"); err != nil {
			return err
		}
	}
	if len(stale) == 0 {
		a.term.say("%s is up to date", typesFolder)
	}
	if check {
		return nil
	}
	return ensureEditorSettings(a)
}

// typesFile is a file of annotations that is not as it should be.
type typesFile struct {
	name    string
	content []byte // nil for one that should not be there
	there   bool
}

func (f typesFile) state() string {
	switch {
	case f.content == nil:
		return "no longer needed"
	case !f.there:
		return "missing"
	}
	return "out of date"
}

// settle makes the file as it should be.
func (f typesFile) settle(dir string) error {
	file := filepath.Join(dir, typesFolder, f.name)
	err := os.Remove(file)
	if f.content != nil {
		if err = os.MkdirAll(filepath.Dir(file), 0o777); err == nil {
			err = os.WriteFile(file, f.content, 0o666)
		}
	}
	if err != nil {
		return fmt.Errorf("can't write %s: %w", file, plainError(err))
	}
	return nil
}

func (f typesFile) done() string {
	if f.content == nil {
		return "removed"
	}
	return "wrote"
}

// staleTypes finds what is to be written or removed below a project's folder.
func staleTypes(dir string, g *host.Generation) (stale []typesFile, err error) {
	wanted, err := wantedTypes(g)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, f := range wanted {
		known[f.name] = true
		content, err := os.ReadFile(filepath.Join(dir, typesFolder, f.name))
		if f.there = err == nil; !f.there && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("can't read %s: %w", filepath.Join(dir, typesFolder, f.name), plainError(err))
		}
		if !f.there || !bytes.Equal(content, f.content) {
			stale = append(stale, f)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, typesFolder, "*.lua")) // its pattern is good
	for _, file := range files {
		name := filepath.Base(file)
		content, err := os.ReadFile(file)
		if !known[name] && err == nil && bytes.Contains(content, []byte("\n"+typesMark)) { // others are somebody's own
			stale = append(stale, typesFile{name: name, there: true})
		}
	}
	return stale, nil
}

// wantedTypes are all files of annotations.
func wantedTypes(g *host.Generation) (files []typesFile, err error) {
	entries, err := fs.ReadDir(scripts.Types(), ".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		content, err := fs.ReadFile(scripts.Types(), entry.Name())
		if err != nil {
			return nil, err
		}
		files = append(files, typesFile{name: entry.Name(), content: content})
	}
	return append(files, typesFile{name: projectTypes, content: g.Types()}), nil
}

const editorFile = ".luarc.json"

// ensureEditorSettings sees to it that the editor finds the annotations. A file that
// is there is left to its owner.
func ensureEditorSettings(a *app) error {
	content, err := os.ReadFile(filepath.Join(a.dir, editorFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := writeTemplate(a.dir, editorFile); err != nil {
			return fmt.Errorf("can't write %s: %w", editorFile, plainError(err))
		}
		return reportFile(a, "wrote", editorFile, "%s %s")
	case err == nil && !strings.Contains(string(content), filepath.ToSlash(typesFolder)):
		a.term.tell(`%s does not name %s: add it, "workspace.library": ["%[2]s"]`, editorFile, filepath.ToSlash(typesFolder))
	}
	return nil
}
