package cmd

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/view"
	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/replay"
	"obelus/store"
)

func replayCommand(a *app) *cobra.Command {
	ask := false
	c := &cobra.Command{
		Use:   "replay [CONTEXT]",
		Short: "check that a run comes out as it is recorded",
		Long: `Check the newest run of a context, the latest unless one is named, against its
record. With the results of activities as they are in the log, everything else must
come out as recorded: which calls were ready, ran and were skipped, with which
arguments, where they wrote, and how each tick and the run ended. Nothing is written,
and no activity runs; but the tools of the plan must be there, and take what it gives
them.

A plan that is a function is asked again for each tick, by its file as it is now and
without permissions, so that it does nothing to the world a second time. It is shown
the context as it was when the tick began, and must give the calls and the output of
then. A tick that differs is reported, and the ticks after it are compared as they are
in the log, not with what the difference would have led to.

The plans of a model are taken from the record. --ask asks the model again, once for
each tick, which costs what it costs, and shows where it plans otherwise by now.

Exit status: 0 if all is the same, 1 if something is different, 2 if the plan is
refused now.`,
		Example: "  obelus replay order-7",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && a.context != "" {
				return exit.Usage("replay: name the context once, as an argument or by -c")
			}
			if len(args) > 0 {
				a.context = args[0]
			}
			return replayRun(c.Context(), a, ask)
		},
	}
	c.Flags().BoolVar(&ask, "ask", false, "ask a model that planned the run again")
	a.models.RegisterRun(c)
	return c
}

func replayRun(ctx context.Context, a *app, ask bool) error {
	run, err := a.openLastRun(ctx)
	if err != nil {
		return err
	}
	last, err := journal.In(a.log, run.context).LastRun(ctx)
	if err != nil {
		return err
	}
	if last.Planner && run.request == nil && run.planError != nil {
		return errors.Join(&engine.NoPlannerError{Context: run.context}, fmt.Errorf("its plan's file can't be read in %s: %w", a.dir, run.planError))
	}
	again := replay.Run
	if ask {
		again = replay.Ask
	}
	var mu sync.Mutex
	var spent plan.Usage
	run.runner.Spent = func(u plan.Usage) {
		mu.Lock()
		defer mu.Unlock()
		spent.Add(u)
	}
	a.models.Watch(a.term, a.json, run.runner)
	replayed, err := again(ctx, run.runner, run.context, run.request)
	if spent.Requests > 0 {
		a.term.Infof("%s", view.Usage(spent))
	}
	if err != nil {
		return err
	}
	for _, d := range replayed.Differences {
		if err := printDifference(a, d); err != nil {
			return err
		}
	}
	if len(replayed.Differences) > 0 {
		return exit.Failed
	}
	if a.json {
		return a.term.NDJSON(map[string]any{"context": run.context, "calls": replayed.Calls, "same": true})
	}
	a.term.Infof("context %s: the same came out (%d calls)", run.context, replayed.Calls)
	return nil
}

func printDifference(a *app, d replay.Difference) error {
	if a.json {
		return a.term.NDJSON(d)
	}
	what := d.What
	switch {
	case d.Call != "":
		what = "call " + d.Call + " " + what
	case d.Tick != 0:
		what = fmt.Sprintf("tick %d %s", d.Tick, what)
	}
	if d.Context != "" {
		what = "context " + d.Context + ", " + what
	}
	return a.term.Line(fmt.Sprintf("%s: %s in the log, %s now", what, store.EncodeJSON(d.Recorded), store.EncodeJSON(d.Replayed)))
}
