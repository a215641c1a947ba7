package cmd

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/engine/numeral"
	"obelus/store/sqlite"
)

func backupCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "copy the log to a new file, while runs go on",
		Long: `Copy the log, as it is at this moment, to a new file; runs may go on meanwhile. The
copy is a log like any other: --db FILE reads it, and goes on from it. None is made of
a log that is damaged.

obelus restore goes back to a copy. Where it is done by hand, the files -wal and -shm
beside the log go with it: with the -wal of another log SQLite would make a third one.

A file that is there already is never written over. Until it is whole the copy is
FILE.new-…; what is left of one that was cut off, the next to FILE removes.`,
		Example: `  obelus backup log-2026-01-31.db
  obelus contexts --db log-2026-01-31.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return backupLog(c.Context(), a, args[0]) },
	}
}

func backupLog(ctx context.Context, a *app, path string) error {
	if path == "" {
		return exit.Usage("the file's name is empty: name a new file")
	}
	if err := a.openExisting(sqlite.Options{ReadOnly: true}); err != nil {
		return err
	}
	log, ok := a.log.(*sqlite.Log)
	if !ok {
		return errors.New("this log can't be copied")
	}
	switch err := log.Backup(ctx, path); {
	case errors.Is(err, fs.ErrExist):
		return exit.Usagef("%s is there already: name a new file", path)
	case errors.Is(err, fs.ErrNotExist):
		return exit.Usagef("%s: there is no such folder", path)
	case err != nil:
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if a.json {
		return a.term.NDJSON(map[string]any{"file": path, "bytes": info.Size()})
	}
	a.term.Infof("copied the log to %s (%s)", path, numeral.Size(info.Size()))
	return nil
}
