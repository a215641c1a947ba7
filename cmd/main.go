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

	"obelus/engine"
	"obelus/engine/expr"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
	"obelus/store/sqlite"
)

// Exit statuses, as SURFACE.md has them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitWaiting     = 3
	exitBusy        = 4
	exitInterrupted = 128 + int(syscall.SIGINT)
	exitTerminated  = 128 + int(syscall.SIGTERM)
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
			status = exitFailed
		}
	}()
	help := &checkedWriter{Writer: stdout}
	a.help = help
	root := a.rootCommand()
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		a.completions(root)
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetErr(stderr)
	err := cmp.Or(root.ExecuteContext(ctx), help.err)
	if err != nil {
		a.fail(err)
	}
	status = exitStatus(err)
	if status == exitInterrupted && errors.Is(context.Cause(ctx), engine.ErrStopped) {
		status = exitTerminated
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
	if exitStatus(err) == exitInterrupted && errors.Is(err, context.Canceled) {
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
				os.Exit(exitTerminated)
			}
			os.Exit(exitInterrupted)
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

// statusError is an end that is no error to tell about: the command has said
// what there was to say.
type statusError int

func (statusError) Error() string { return "" }

// usageError is a command that was called wrongly.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

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

// exitStatus is the one place where errors become exit statuses.
func exitStatus(err error) int {
	var status statusError
	var usage *usageError
	var busy *engine.BusyError
	var refused *plan.PlanError
	var message *plan.MessageError
	var unfinished *engine.UnfinishedError
	var call *journal.NoSuchCallError
	var delegate *engine.DelegateError
	var policy *plan.PolicyError
	var correction *journal.CorrectionError
	var planner *engine.NoPlannerError
	var expression *expr.Error
	var path *store.PathError
	var ref *history.RefError
	var fork *store.ForkError
	var needed *store.NeededError
	var held *store.HeldError
	var query *sqlite.QueryError
	var damaged *journal.DamagedError
	var scripts host.Errors
	var script *host.ScriptError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, sqlite.ErrLocked), errors.As(err, &busy), errors.As(err, &held):
		return exitBusy
	case errors.Is(err, sqlite.ErrNotOurs), errors.Is(err, sqlite.ErrNewer), errors.Is(err, sqlite.ErrDamaged), errors.As(err, &damaged), errors.Is(err, sqlite.ErrReadOnly):
		return exitUsage
	case errors.As(err, &usage), errors.As(err, &refused), errors.As(err, &message), errors.As(err, &unfinished), errors.As(err, &call), errors.As(err, &delegate),
		errors.As(err, &policy), errors.As(err, &correction), errors.As(err, &planner),
		errors.As(err, &expression), errors.As(err, &path), errors.As(err, &ref), errors.As(err, &fork), errors.As(err, &needed), errors.As(err, &query), errors.Is(err, store.ErrExists), errors.As(err, &scripts), errors.As(err, &script), errors.Is(err, store.ErrNoContext):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailed
}
