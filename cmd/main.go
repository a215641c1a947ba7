// Package cmd is the command obelus: it runs plans of Lua activities over a log in SQLite, and
// answers questions about the log. Its contract with users is SURFACE.md beside this file.
//
// A program that embeds Obelus has the whole command, with its own activities in Go:
//
//	func main() {
//		os.Exit(cmd.Main(cmd.Config{Host: host.Config{Activities: activities, Tools: tools}}))
//	}
//
// Each command is a file: a function that returns it, with its help and flags, and the functions
// that carry it out. They share an app, which finds the project and opens the log and the terminal.
// The packages below cmd/internal do the rest: term writes and reads the terminal, view and human
// make text of results, cli reads the words of a command line, exit holds the statuses.
package cmd

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/term"
	"obelus/engine"
	"obelus/host"
)

// Main runs the command that the arguments of the process name, and returns its exit status, for
// os.Exit. It must be the first call of main: the program starts itself again for the worker
// processes of projects with isolate = "process", and in a worker Main does not return. A second
// interrupt ends the process within Main.
func Main(c Config) (status int) {
	host.Worker()
	host.KeepHeap(host.HeapFloor)
	var stdout io.Writer = os.Stdout
	if stdoutClosed() {
		stdout = closedOutput{}
	}
	return run(c, os.Args[1:], os.Stdin, stdout, os.Stderr)
}

// closedOutput stands for a standard output that is closed: each write fails.
type closedOutput struct{}

func (closedOutput) Write([]byte) (int, error) {
	return 0, errors.New("the standard output is closed: what the command prints has nowhere to go")
}

// run runs one command and returns its exit status.
func run(c Config, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	a := &app{config: c, stdin: stdin, term: term.New(stdout, stderr)}
	ctx, stop := a.withSignals()
	defer stop()
	defer a.close()
	defer func() {
		if broken := recover(); broken != nil {
			a.reportPanic(broken)
			status = int(exit.Failed)
		}
	}()
	help := &checkedWriter{Writer: stdout}
	a.help = help
	root := rootCommand(a)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completer{a}.register(root)
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetErr(stderr)
	err := cmp.Or(root.ExecuteContext(ctx), help.err)
	if err != nil {
		a.fail(err)
	}
	status = int(exitStatus(err))
	if status == int(exit.Interrupted) && errors.Is(context.Cause(ctx), engine.ErrStopped) {
		status = int(exit.Terminated)
	}
	return status
}

// checkedWriter keeps the first error of a writer, for callers that ignore errors, as cobra does
// when it prints help.
type checkedWriter struct {
	io.Writer
	err error
}

func (w *checkedWriter) Write(text []byte) (int, error) {
	n, err := w.Writer.Write(text)
	w.err = cmp.Or(w.err, err)
	return n, err
}
