package cmd

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/triggers"
	"obelus/host"
	"obelus/store"
	"obelus/store/memory"
	"obelus/store/sqlite"
)

func schedulesCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schedules",
		Short: "list the schedules: when each is due, how it ran last, what was skipped",
		Long: `List the schedules that obelus.lua has under serve (obelus help settings): when each
is due next, by the clock of its zone, its newest run with its status, and below
them the runs that were skipped, the newest first, with the reason:

  missed       no server was there when they were due
  overlapping  the run before had not ended
  refused      the plan or its input was refused
  cancelled    a person cancelled the run before its turn

A server runs them: obelus serve. What it did is read from the log, whether it is
running or not. A run that was skipped can be made by hand, under the name that it
would have had: obelus run --once PLAN -c nightly-20261126T020000Z.`,
		Example: `  obelus schedules
  obelus schedules --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return listSchedules(c.Context(), a) },
	}
}

func listSchedules(ctx context.Context, a *app) error {
	path, err := a.dbPath()
	if err == nil && a.host == nil { // --db names the log
		err = a.openSettings()
	}
	if err != nil {
		return err
	}
	schedules := a.host.Generation().Settings().Serve.Schedules
	if len(schedules) == 0 {
		a.term.Infof("the project has no schedules: they are in %s, serve = { schedules = { … } } (obelus help settings)", host.SettingsFile)
		return nil
	}
	log := store.Reader(memory.New())
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		if err := a.openExisting(sqlite.Options{ReadOnly: true}); err != nil {
			return err
		}
		log = a.log
	}
	listed, err := triggers.ReadSchedules(ctx, log, schedules)
	if err != nil {
		return err
	}
	return triggers.PrintSchedules(a.term, a.json, listed)
}
