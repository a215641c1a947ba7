package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/human"
	"obelus/engine"
	"obelus/engine/journal"
)

func cancelCommand(a *app) *cobra.Command {
	var w deciderFlags
	c := &cobra.Command{
		Use:   "cancel",
		Short: "give a run up that waits, or that was interrupted",
		Long: `Record that the newest run of a context is given up: the context that -c names in
whole, else the only one with an unfinished run. A server then leaves it alone, and
prune may remove it. The log stays as it is, and resume still goes on with the run. A
run that a process has under way is stopped there: by an interrupt, or by DELETE
/v1/runs/ID of the server that has it. Of a run that has ended, the calls that it left
in the background are given up.`,
		Example: `  obelus cancel -c order-7`,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return cancelRun(c.Context(), a, w) },
	}
	w.register(c)
	return c
}

func cancelRun(ctx context.Context, a *app, w deciderFlags) error {
	by, err := w.decider()
	if err != nil {
		return err
	}
	if err := a.openSettings(); err != nil {
		return err
	}
	if err := a.openExisting(a.logOptions()); err != nil {
		return err
	}
	name, err := a.roots().Find(ctx, a.roots().Unfinished(ctx, "cancel", false))
	if err != nil {
		return err
	}
	run, err := journal.In(a.log, name).LastRun(ctx)
	if err != nil {
		return err
	}
	err = engine.Cancel(ctx, a.log, name, by)
	if errors.As(err, new(*engine.BusyError)) {
		return fmt.Errorf("%w: interrupt it there, or ask the server that has it by DELETE /v1/runs/%s", err, name)
	}
	if err != nil {
		return err
	}
	if run.Status.Finished() { // only calls in the background were left
		if a.json {
			return a.term.NDJSON(map[string]any{"context": name, "status": run.Status})
		}
		a.term.Infof("cancelled the calls in the background of %s in context %s, which is %s", planName(run.Plan), name, run.Status)
		return nil
	}
	if a.json {
		return a.term.NDJSON(map[string]any{"context": name, "status": journal.RunCancelled})
	}
	a.term.Infof("cancelled %s in context %s: %s resume -c %[2]s would go on with it", planName(run.Plan), name, a.commandPrefix())
	return nil
}

// planName names a run by its plan.
func planName(plan string) string {
	if plan == "" {
		return "the run"
	}
	return "the run of " + human.Printable(plan)
}
