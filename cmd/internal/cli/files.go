package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"obelus/cmd/internal/exit"
)

// ReadFileOrStdin reads a file, or stdin if its name is "-", until ctx ends: a pipe may never end.
func ReadFileOrStdin(ctx context.Context, stdin io.Reader, file string) ([]byte, error) {
	if file != "-" {
		return readFile(ctx, file)
	}
	return WaitFor(ctx, func() ([]byte, error) { return readAll(stdin) })
}

func readFile(ctx context.Context, file string) ([]byte, error) {
	return WaitFor(ctx, func() ([]byte, error) {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readAll(f)
	})
}

// maxRead is more than SQLite keeps in one row.
const maxRead = 1 << 30

// readAll reads to the end. It is an error if there is too much, since a device may have no end.
func readAll(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxRead+1))
	if err == nil && len(content) > maxRead {
		err = fmt.Errorf("it has more than %d bytes", maxRead)
	}
	return content, err
}

// WaitFor returns the result of read, or the error of ctx if that ends first.
func WaitFor[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type answer struct {
		read T
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		v, err := read()
		answered <- answer{v, err}
	}()
	select {
	case a := <-answered:
		return a.read, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// PlainError returns the part of a file system's error that a person needs.
func PlainError(err error) error {
	var path *os.PathError
	var call *os.SyscallError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &call):
		return call.Err
	}
	return err
}

// Unique removes repeated names, and keeps the order. A file may be named, and lie in a named
// folder.
func Unique(names []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(names, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
}

// ProjectPlans lists the files below the plans folder of a project in dir. It is an error about the
// command line if there are none.
func ProjectPlans(dir string) ([]string, error) {
	var plans []string
	err := fs.WalkDir(os.DirFS(dir), "plans", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ext := filepath.Ext(name); !entry.IsDir() && (ext == ".lua" || ext == ".json") {
			plans = append(plans, filepath.Join(dir, filepath.FromSlash(name)))
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(plans) == 0 {
		return nil, exit.Usagef("%s has no plans: name one", dir)
	}
	return plans, err
}
