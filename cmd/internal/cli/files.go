package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadFileOrStdin reads a file, or stdin where it is called -, until ctx ends: a pipe may hold
// back what it has for ever.
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

// mostRead is more than SQLite keeps in one row.
const mostRead = 1 << 30

// readAll reads to the end, of which a device may have none.
func readAll(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, mostRead+1))
	if err == nil && len(content) > mostRead {
		err = fmt.Errorf("it has more than %d bytes", mostRead)
	}
	return content, err
}

// WaitFor reads something, or gives up when ctx ends.
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

// PlainError takes from an error of the file system what a person needs.
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
