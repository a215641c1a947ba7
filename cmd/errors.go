package cmd

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"obelus/cmd/internal/exit"
	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
)

// reportPanic prints a fault of the program itself, with the stack under -v.
func (a *app) reportPanic(broken any) {
	a.term.Error(fmt.Errorf("this is a fault of obelus: %v (what was recorded stands; with -v there is more for a report)", broken))
	if a.verbose {
		a.term.Infof("%s", debug.Stack())
	}
}

// fail prints the error that a command, or an input of the prompt, ended with.
func (a *app) fail(err error) {
	if exitStatus(err) == exit.Interrupted && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	a.term.Error(a.withHint(withSource(err)))
	var plan *plan.PlanError
	if errors.As(err, &plan) {
		a.hintUnreadActivities(plan.Problems)
	}
}

// withSource adds to each error of a script the line of source that it is about.
func withSource(err error) error {
	scripts, ok := err.(host.Errors)
	if one, isOne := err.(*host.ScriptError); isOne {
		scripts, ok = host.Errors{one}, true
	}
	if !ok {
		return err
	}
	var shown []error
	for _, e := range scripts {
		shown = append(shown, errors.New(strings.TrimSuffix(e.Error()+"\n"+e.Snippet(), "\n")))
	}
	return errors.Join(shown...)
}

// withHint adds to an error of the engine the command that it may be followed by, so that it
// finds the same project and log from here.
func (a *app) withHint(err error) error {
	var unfinished *engine.UnfinishedError
	if errors.As(err, &unfinished) {
		return fmt.Errorf("%w: go on with it by: %s resume -c %s", err, a.commandPrefix(), unfinished.Context)
	}
	var call *journal.NoSuchCallError
	if !errors.As(err, &call) {
		return err
	}
	switch hint := call.Hint; {
	case len(hint.Contexts) > 0:
		return fmt.Errorf("%w: name its context (-c): %s", err, strings.Join(hint.Contexts, ", "))
	case hint.Plan != "":
		return fmt.Errorf("%w: %s approve --plan --set, or reject --plan, -c %s", err, a.commandPrefix(), hint.Plan)
	case hint.At > 0:
		return fmt.Errorf("%w: fork where that tick had ended, by %s fork -c %s --at %d, and run it again there", err, a.commandPrefix(), hint.Fork, hint.At)
	case hint.Fork != "":
		return fmt.Errorf("%w: make one by %s fork -c %s, and run calls again there", err, a.commandPrefix(), hint.Fork)
	}
	return err
}

// exitStatus returns the status for the error that a command ended with, which may be nil.
func exitStatus(err error) exit.Status {
	if status := exit.Status(0); errors.As(err, &status) {
		return status
	}
	switch class := store.ClassOf(err); {
	case err == nil:
		return exit.Done
	case class == store.Busy:
		return exit.Busy
	case class != "":
		return exit.Refused
	case errors.Is(err, context.Canceled):
		return exit.Interrupted
	}
	return exit.Failed
}
