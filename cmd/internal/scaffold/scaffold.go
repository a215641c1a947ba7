// Package scaffold writes files that the command provides into a project: the files of a new
// project, and annotations for editors.
package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"obelus/cmd/internal/cli"
	"obelus/host"
	"obelus/scripts"
)

// Written is a file of a new project. Status says how it was treated, and Text is a format for the
// status and the file.
type Written struct{ Status, File, Text string }

// Create writes the files of a new project. It returns the files that were written, also with an
// error.
func Create(config host.Config, dir string, files []string) (done []Written, err error) {
	for _, name := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		status, text, err := "wrote", "%s %s", WriteTemplate(dir, name)
		if name == IgnoreFile && errors.Is(err, fs.ErrExist) {
			status, text, err = addIgnored(file)
		}
		if err != nil {
			return done, fmt.Errorf("can't write %s: %w", file, cli.PlainError(err))
		}
		done = append(done, Written{status, file, text})
	}
	types, err := initTypes(config, dir)
	if err != nil {
		return done, err
	}
	return append(done, Written{"wrote", filepath.Join(dir, TypesFolder), fmt.Sprintf("%%s %%s: %d files", types)}), nil
}

// IgnoreFile is the file to which Create adds, if it exists.
const IgnoreFile = ".gitignore"

// addIgnored adds the line that keeps the log out of version control to a .gitignore, unless it is
// there. It returns the status and the text for [Written].
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
	more, err := fs.ReadFile(scripts.Init(), IgnoreFile)
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

// initTypes writes the annotations for editors, and returns the number of files. If the scripts of
// the folder do not load, it writes the annotations that need no scripts.
func initTypes(config host.Config, dir string) (files int, err error) {
	there := config
	there.FS = os.DirFS(dir)
	h, err := host.Open(there)
	if err != nil {
		if h, err = host.Open(config); err != nil {
			return 0, err
		}
	}
	stale, err := StaleTypes(dir, h.Generation())
	if err != nil {
		return 0, err
	}
	for _, f := range stale {
		if err := f.Update(dir); err != nil {
			return 0, err
		}
	}
	return len(stale), nil
}

// Files lists the files of a new project.
func Files() ([]string, error) {
	var files []string
	err := fs.WalkDir(scripts.Init(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, name)
		}
		return err
	})
	return files, err
}

// WriteTemplate writes one file of a new project. It is an error if the file exists.
func WriteTemplate(dir, name string) error {
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
