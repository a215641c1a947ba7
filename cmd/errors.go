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
)

// brokeDown tells of a fault of the program itself, and whoever says -v where it is.
func (a *app) brokeDown(broken any) {
	a.term.fail(fmt.Errorf("this is a fault of obelus: %v (what was recorded stands; with -v there is more for a report)", broken))
	if a.verbose {
		a.term.say("%s", debug.Stack())
	}
}

// fail tells why a command, or an input of the prompt, came to nothing.
func (a *app) fail(err error) {
	if exit.Of(err) == exit.Interrupted && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	a.term.fail(a.fromHere(withSource(err)))
	var plan *plan.PlanError
	if errors.As(err, &plan) {
		a.tellUnread(plan.Problems)
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
