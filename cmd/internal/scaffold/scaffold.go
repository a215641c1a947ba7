package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"obelus/host"
	"obelus/scripts"

	"obelus/cmd/internal/cli"
)

// Written is a file of a new project, and what was done to it.
type Written struct{ Status, File, Text string }

// Create writes the files of a new project, and gives those with which it is done.
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

const IgnoreFile = ".gitignore"

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

// initTypes writes the annotations for editors, and tells how many files. A folder that
// had scripts before may hold some that do not load: it gets what is known without them.
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
		if err := f.Settle(dir); err != nil {
			return 0, err
		}
	}
	return len(stale), nil
}

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
