package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/human"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/store/sqlite"
)

func contextsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "contexts",
		Short: "list all contexts, the one that was appended to last first",
		Long: `List all contexts, the one that was appended to last first. An interrupted run had
neither ended nor halted when its process ended, or is in a fork that has not been
resumed. resume goes on with it. A server does so by itself if the process died or
was told to end by SIGTERM, and not if a person interrupted it; with --json that is
"stopped" beside the status.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return listContexts(c.Context(), a) },
	}
}

func listContexts(ctx context.Context, a *app) error {
	path, err := a.dbPath()
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		a.term.Infof("there is no log at %s yet", path)
		return nil
	}
	if err := a.openExisting(sqlite.Options{ReadOnly: true}); err != nil {
		return err
	}
	const plan = 2
	var rows [][]string
	listed := false
	var broken error // errors of damaged contexts; the others are listed all the same
	for info, err := range a.log.Contexts(ctx, a.context) {
		if err != nil {
			return err
		}
		listed = true
		line, err := history.Summarize(ctx, a.log, info)
		status := string(line.Status)
		if errors.As(err, new(*journal.DamagedError)) {
			broken, status, err = errors.Join(broken, err), "damaged", nil
		}
		if err != nil {
			return err
		}
		if a.json {
			if err := a.term.NDJSON(line); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{line.Context, human.OrDash(status), human.OrDash(line.Plan), fmt.Sprint(line.Messages), human.Size(line.Bytes), human.Time(info.Updated)})
	}
	switch {
	case a.context != "" && !listed:
		return a.noContext()
	case a.json:
		return broken
	}
	header := []string{"CONTEXT", "STATUS", "PLAN", "MESSAGES", "SIZE", "UPDATED"}
	// The other columns are of no use when they are cut.
	human.Fit(append([][]string{header}, rows...), a.term.Width(), plan)
	return errors.Join(a.term.Table(header, rows), broken)
}
