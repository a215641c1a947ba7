package cmd

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"obelus/cmd/internal/exit"
	"obelus/engine"
	"obelus/engine/expr"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/host"
	"obelus/store"
	"obelus/store/sqlite"
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
	a.term.Error(a.withCommandPrefix(withSource(err)))
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
	var lines []string
	for _, e := range scripts {
		lines = append(lines, e.Error())
		if snippet := e.Snippet(); snippet != "" {
			lines = append(lines, snippet)
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}

// withCommandPrefix rewrites the commands in an error of the engine so that they find the same
// project and log from here.
func (a *app) withCommandPrefix(err error) error {
	var unfinished *engine.UnfinishedError
	var call *journal.NoSuchCallError
	if !errors.As(err, &unfinished) && !errors.As(err, &call) {
		return err
	}
	return errors.New(strings.NewReplacer("obelus resume -c", a.commandPrefix()+" resume -c", "obelus fork -c", a.commandPrefix()+" fork -c").Replace(err.Error()))
}

// exitStatus returns the status for the error that a command ended with, which may be nil.
func exitStatus(err error) exit.Status {
	if status := exit.Status(0); errors.As(err, &status) {
		return status
	}
	switch {
	case err == nil:
		return exit.Done
	case isBusy(err):
		return exit.Busy
	case isRefused(err):
		return exit.Refused
	case errors.Is(err, context.Canceled):
		return exit.Interrupted
	}
	return exit.Failed
}

// isBusy reports whether another process or run stands in the way.
func isBusy(err error) bool {
	return errors.Is(err, sqlite.ErrLocked) || is[*engine.BusyError](err) || is[*store.HeldError](err)
}

// isRefused reports whether the error is about the user's request, or about the log itself.
func isRefused(err error) bool {
	for _, refused := range []error{sqlite.ErrNotOurs, sqlite.ErrNewer, sqlite.ErrDamaged, sqlite.ErrReadOnly, store.ErrExists, store.ErrNoContext} {
		if errors.Is(err, refused) {
			return true
		}
	}
	return is[*exit.UsageError](err) ||
		is[*plan.PlanError](err) || is[*plan.MessageError](err) || is[*engine.UnfinishedError](err) ||
		is[*journal.NoSuchCallError](err) || is[*engine.DelegateError](err) || is[*plan.PolicyError](err) ||
		is[*journal.CorrectionError](err) || is[*engine.NoPlannerError](err) || is[*expr.Error](err) ||
		is[*history.RefError](err) || is[*journal.DamagedError](err) ||
		is[*store.PathError](err) || is[*store.ForkError](err) || is[*store.NeededError](err) ||
		is[*sqlite.QueryError](err) || is[host.Errors](err) || is[*host.ScriptError](err)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
