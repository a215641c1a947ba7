package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/engine/journal"
	"obelus/store"
)

func forkCommand(a *app) *cobra.Command {
	var at int64
	c := &cobra.Command{
		Use:   "fork [NAME]",
		Short: "make a context that shares another one's log up to some point",
		Long: `Make a context that begins as another one is, the latest unless -c names one, or
as it was at --at; what one call wrote at several paths can't be parted, nor what was
imported at once with calls or plans. It shares that log and copies nothing, so it
costs the same however long the log is. What was running there is as if its process
had died: resume goes on with it in the fork, and run --from runs some of it again.
What a call does to the world outside is then done again, under another key. What
was approved, rejected or released, and has not settled, is held again: a decision
counts in the context in which it was made.`,
		Example: `  obelus fork --at 12 -c order-7 what-if
  obelus run --from 1.4 --set amount:=20 -c what-if
  obelus diff order-7 what-if`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkAt(c, at); err != nil {
				return err
			}
			name := newContext()
			if len(args) > 0 {
				name = args[0]
			}
			return forkContext(c.Context(), a, at, name)
		},
	}
	c.Flags().Int64Var(&at, "at", 0, "as of the message `SEQ` (default: the newest)")
	return c
}

func forkContext(ctx context.Context, a *app, at int64, name string) error {
	if err := store.CheckContext(name); err != nil {
		return exit.Usage(err.Error())
	}
	if err := a.openSettings(); err != nil {
		return err
	}
	if err := a.openExisting(a.logOptions()); err != nil {
		return err
	}
	from, err := a.readContext(ctx)
	if err != nil {
		return err
	}
	if at, err = journal.Fork(ctx, a.log, from, at, name); err != nil {
		return err
	}
	if a.json {
		return a.term.NDJSON(map[string]any{"context": name, "parent": from, "at": at})
	}
	a.term.Infof("forked from %s at %d", from, at)
	return a.term.Line(name)
}
