package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"obelus/cmd/internal/cli"
	"obelus/host"
	"obelus/scripts"
)

// TypesFolder is the folder of the annotations, relative to the project's folder.
var TypesFolder = filepath.Join(".obelus", "types")

// projectTypes is the file for the project's own tools.
const projectTypes = "project.lua"

// typesMark is on the third line of every file of annotations.
const typesMark = "-- Written by obelus types"

// TypesFile is a file of annotations that is to be written or removed.
type TypesFile struct {
	Name    string
	content []byte // nil for a file that is to be removed
	there   bool
}

// State says for people in which way the file is out of date.
func (f TypesFile) State() string {
	switch {
	case f.content == nil:
		return "no longer needed"
	case !f.there:
		return "missing"
	}
	return "out of date"
}

// Update writes or removes the file.
func (f TypesFile) Update(dir string) error {
	file := filepath.Join(dir, TypesFolder, f.Name)
	err := os.Remove(file)
	if f.content != nil {
		if err = os.MkdirAll(filepath.Dir(file), 0o777); err == nil {
			err = os.WriteFile(file, f.content, 0o666)
		}
	}
	if err != nil {
		return fmt.Errorf("can't write %s: %w", file, cli.PlainError(err))
	}
	return nil
}

// Done says for people how Update changed the file.
func (f TypesFile) Done() string {
	if f.content == nil {
		return "removed"
	}
	return "wrote"
}

// StaleTypes returns the files that are to be written or removed in a project's folder.
func StaleTypes(dir string, g *host.Generation) (stale []TypesFile, err error) {
	wanted, err := wantedTypes(g)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, f := range wanted {
		known[f.Name] = true
		content, err := os.ReadFile(filepath.Join(dir, TypesFolder, f.Name))
		if f.there = err == nil; !f.there && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("can't read %s: %w", filepath.Join(dir, TypesFolder, f.Name), cli.PlainError(err))
		}
		if !f.there || !bytes.Equal(content, f.content) {
			stale = append(stale, f)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, TypesFolder, "*.lua")) // the pattern is valid
	for _, file := range files {
		name := filepath.Base(file)
		content, err := os.ReadFile(file)
		// Files without the mark belong to the user.
		if !known[name] && err == nil && bytes.Contains(content, []byte("\n"+typesMark)) {
			stale = append(stale, TypesFile{Name: name, there: true})
		}
	}
	return stale, nil
}

// wantedTypes returns all files of annotations.
func wantedTypes(g *host.Generation) (files []TypesFile, err error) {
	entries, err := fs.ReadDir(scripts.Types(), ".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		content, err := fs.ReadFile(scripts.Types(), entry.Name())
		if err != nil {
			return nil, err
		}
		if entry.Name() == "globals.lua" {
			content = append(content, host.TableTypes()...)
		}
		files = append(files, TypesFile{Name: entry.Name(), content: content})
	}
	return append(files, TypesFile{Name: projectTypes, content: g.Types()}), nil
}
