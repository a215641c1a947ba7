// Package cmd is the command obelus: it runs plans of Lua activities over a log in SQLite, and
// shows what the log holds. What a user types and reads is the contract in SURFACE.md beside this
// file.
//
// A program that embeds Obelus has the whole command, with its own activities in Go:
//
//	func main() {
//		os.Exit(cmd.Main(cmd.Config{Host: host.Config{Activities: activities, Tools: tools}}))
//	}
package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
)

// Config is what a program adds to the command. The zero Config is the command obelus itself.
type Config struct {
	// Host brings what a program has of its own: Activities, Tools, Objects, Model, Clock and
	// LoadTimeout. The command sets all other fields itself, by the project and the flags.
	Host host.Config
}

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

// closedOutput is a standard output that there is none of.
type closedOutput struct{}

func (closedOutput) Write([]byte) (int, error) {
	return 0, errors.New("the standard output is closed: what the command prints has nowhere to go")
}

// run runs one command and returns its exit status.
func run(c Config, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	a := &app{config: c, stdin: stdin, term: newTerminal(stdout, stderr)}
	ctx, stop := a.interruptible()
	defer stop()
	defer a.close()
	defer func() {
		if broken := recover(); broken != nil {
			a.brokeDown(broken)
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
	status = int(exit.Of(err))
	if status == int(exit.Interrupted) && errors.Is(context.Cause(ctx), engine.ErrStopped) {
		status = int(exit.Terminated)
	}
	return status
}

// brokeDown tells of a fault of the program itself, and whoever says -v where it is.
func (a *app) brokeDown(broken any) {
	a.term.fail(fmt.Errorf("this is a fault of obelus: %v (what was recorded stands; with -v there is more for a report)", broken))
	if a.verbose {
		a.term.say("%s", debug.Stack())
	}
}

// checkedWriter keeps the first error for those who do not look at it, as cobra when it
// writes help.
type checkedWriter struct {
	io.Writer
	err error
}

func (w *checkedWriter) Write(text []byte) (int, error) {
	n, err := w.Writer.Write(text)
	w.err = cmp.Or(w.err, err)
	return n, err
}

// fail tells why a command, or an input of the prompt, came to nothing.
func (a *app) fail(err error) {
	if exit.Of(err) == exit.Interrupted && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	a.term.fail(a.fromHere(withSource(err)))
	var refused *plan.PlanError
	if errors.As(err, &refused) {
		a.tellUnread(refused.Problems)
	}
}

// interruptible gives a context that the first interrupt or SIGTERM ends. The second one
// ends the process: it does not wait for draining. What a person interrupts goes on only
// when somebody resumes it, what SIGTERM ends also by itself.
func (a *app) interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first, ok := <-signals
		if !ok {
			return
		}
		a.term.interrupted(first)
		if first == syscall.SIGTERM {
			cancel(engine.ErrStopped)
		} else {
			cancel(context.Canceled)
		}
		if second, ok := <-signals; ok {
			a.term.interrupted(second)
			a.stopNow()
			if first == syscall.SIGTERM { // by which it goes on
				os.Exit(int(exit.Terminated))
			}
			os.Exit(int(exit.Interrupted))
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}

// onInterrupt tells something once ctx is done, until the function that it gives is
// called: what is told stands before what is told then.
func onInterrupt(ctx context.Context, tell func()) (end func()) {
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		tell()
	})
	return func() {
		if !stop() {
			<-told
		}
	}
}

// withSource shows, below each error of a script, the line that it is about.
func withSource(err error) error {
	scripts, ok := err.(host.Errors)
	if one, isOne := err.(*host.ScriptError); isOne {
		scripts, ok = host.Errors{one}, true
	}
	if !ok {
		return err
	}
	var lines []string
	for _, e := range scripts {
		lines = append(lines, e.Error())
		if snippet := e.Snippet(); snippet != "" {
			lines = append(lines, snippet)
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}

// fromHere lets what the engine says to do next find the same project and log.
func (a *app) fromHere(err error) error {
	var unfinished *engine.UnfinishedError
	var call *journal.NoSuchCallError
	if !errors.As(err, &unfinished) && !errors.As(err, &call) {
		return err
	}
	return errors.New(strings.NewReplacer("obelus resume -c", a.again()+" resume -c", "obelus fork -c", a.again()+" fork -c").Replace(err.Error()))
}
