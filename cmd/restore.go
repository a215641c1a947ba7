package cmd

import (
	"context"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/store"
	"obelus/store/sqlite"
)

func restoreCommand(a *app) *cobra.Command {
	force := false
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "put a copy that backup made in the place of the log",
		Long: `Put a copy of a log, which obelus backup has made, in the place of the project's log,
or of the one that --db names. The copy stays as it is, and is checked first: that it is
whole, has the tables, indexes, views and triggers of a log and no others, and no number
that can't be. Printed is how much it holds, and of when the newest is.

A copy without contexts is restored only with --force: where log.db was copied by hand
without log.db-wal, what was written last is missing, or all.

A log that is there is moved aside, to a name that is printed, and never removed. One
that holds contexts, or is damaged, is moved only with --force, and one that another
process has open never: end a server or a run before.`,
		Example: `  obelus restore log-2026-01-31.db
  obelus restore log-2026-01-31.db --db elsewhere.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return restoreLog(c.Context(), a, args[0], force) },
	}
	c.Flags().BoolVar(&force, "force", false, "move a log that is not empty, or damaged, aside as well; restore an empty copy")
	return c
}

func restoreLog(ctx context.Context, a *app, from string, force bool) error {
	if from == "" {
		return exit.Usage("the file's name is empty: name a copy")
	}
	path, err := a.dbPath()
	if err != nil {
		return err
	}
	restored, err := sqlite.Restore(ctx, from, path, force)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exit.Usagef("%s: there is no such file", from)
	case errors.Is(err, sqlite.ErrNotEmpty):
		return exit.Usagef("%s: --force moves it aside, and restores the copy", err)
	case errors.Is(err, sqlite.ErrEmptyCopy):
		return exit.Usagef("%s; --force restores it all the same", err)
	case errors.Is(err, sqlite.ErrDamaged) && !force:
		return exit.Usagef("%s; if it is the log that is damaged, and not the copy, --force moves it aside", err)
	case err != nil:
		return err
	}
	newest := ""
	if !restored.Newest.IsZero() {
		newest = store.FormatDate(restored.Newest)
	}
	if a.json {
		return a.term.NDJSON(map[string]any{
			"file": path, "aside": restored.Aside, "contexts": restored.Contexts, "messages": restored.Messages, "newest": newest,
		})
	}
	a.term.Infof("restored %s from %s", path, from)
	a.term.Infof("it holds %s and %s, the newest of %s",
		human.Count(int(restored.Contexts), "context"), human.Count(int(restored.Messages), "message"), human.OrDash(newest))
	if restored.Aside != "" {
		a.term.Infof("the log that was there is now %s", restored.Aside)
	}
	return nil
}
