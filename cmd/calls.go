package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/cmd/internal/view"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/store"
)

// callsOptions holds the flags of calls.
type callsOptions struct {
	history.CallFilter
	at     int64
	since  string
	bars   bool
	follow bool
}

func callsCommand(a *app) *cobra.Command {
	var o callsOptions
	c := &cobra.Command{
		Use:   "calls",
		Short: "print the calls of a context: status, time, script, error",
		Long: `Print the calls of a context, the latest unless -c names one: how they stand, how
often they were tried, how long they took, and where they wrote or why they did
not. On a terminal that is wide enough bars show when each of them ran. -v adds
the script that ran and the start of its SHA-256, or the model and its tokens. --follow goes on with every
change, until it is interrupted. A call that only computes may be recorded when
it has ended, and not as it begins.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkAt(c, o.at); err != nil {
				return err
			}
			if o.follow && o.at > 0 {
				return exit.Usage("--follow goes on with what comes, and --at ends before it: give one of them")
			}
			if err := o.Check(); err != nil {
				return cli.FilterUsage(err)
			}
			if !c.Flags().Changed("bars") {
				o.bars = a.term.OutTTY && a.term.Width() >= minBarColumns
			}
			var err error
			if o.Since, err = cli.ReadTime("since", o.since); err != nil {
				return err
			}
			return listCalls(c.Context(), a, o)
		},
	}
	c.Flags().Int64Var(&o.at, "at", 0, "as they stood at the message `SEQ`")
	c.Flags().Var((*cli.Words)(&o.Tool), "tool", "only calls of the `TOOL,...`")
	c.Flags().StringSliceVar(&o.Status, "status", nil, "only calls that stand so: `STATUS,...`")
	c.Flags().StringVar(&o.since, "since", "", "only calls that began since `T`: a time (RFC 3339), or a span before now (90s, 7d)")
	c.Flags().StringVar(&o.Text, "search", "", "only calls with `TEXT` in their number, tool or instance")
	c.Flags().BoolVar(&o.bars, "bars", false, "show when each ran (default on a terminal of 80 columns)")
	c.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on with every change")
	return c
}

func listCalls(ctx context.Context, a *app, o callsOptions) error {
	name, err := a.openForReading(ctx)
	if err != nil {
		return err
	}
	if o.follow {
		return followCalls(ctx, a, name, o)
	}
	h, err := journal.ReadHistory(ctx, a.log, name)
	if err != nil {
		return err
	}
	lines, err := h.Lines(ctx, o.at)
	if err != nil {
		return err
	}
	records, err := h.Records(ctx, journal.Pick(lines, o.Picks))
	if err != nil {
		return err
	}
	if a.json {
		for _, r := range records {
			if err := a.term.NDJSON(r); err != nil {
				return err
			}
		}
		return nil
	}
	header := []string{"CALL", "TOOL", "STATUS", "TRIES", "TIME", "RESULT"}
	if a.verbose {
		header = slices.Insert(header, 5, "SCRIPT")
	}
	var rows [][]string
	for _, r := range records {
		rows = append(rows, view.CallRow(r, a.verbose))
	}
	if o.bars {
		header = slices.Insert(header, 5, "")
		for i, bar := range view.Bars(records) {
			rows[i] = slices.Insert(rows[i], 5, bar)
		}
	}
	return a.term.Table(header, rows)
}

// minBarColumns is the least number of columns for bars on a terminal: the result of a call stands
// behind them.
const minBarColumns = 80

// followCalls prints a line for each change of a call so far, and then for each new one.
func followCalls(ctx context.Context, a *app, name string, o callsOptions) error {
	f := store.JournalFilter{Context: name}
	return followUntilDone(ctx, func() error {
		for entry, err := range a.log.Journal(ctx, f) {
			if err != nil {
				return err
			}
			f.After = entry.N
			told, err := journal.ReadEntry(entry)
			if err != nil {
				return err
			}
			r, ok := told.(journal.Record)
			switch {
			case !ok || !o.Picks(journal.LineOf(&r)):
			case a.json:
				err = a.term.NDJSON(r)
			default:
				row := view.CallRow(r, a.verbose)
				line := fmt.Sprintf("%s  %-6s %s %-10s %8s  %s", entry.Date.Local().Format("15:04:05.000"), row[0], human.Widths.FillRight(row[1], 20), row[2], row[4], row[len(row)-1])
				err = a.term.Line(human.Cut(strings.TrimRight(line, " "), a.term.Width()))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
