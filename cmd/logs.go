package cmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/human"
	"obelus/cmd/internal/view"
	"obelus/engine/journal"
	"obelus/store"
)

func logsCommand(a *app) *cobra.Command {
	level, follow := cli.Level(0), false
	c := &cobra.Command{
		Use:   "logs [CALL]",
		Short: "print what scripts printed and logged, by call",
		Long: `Print the lines that scripts printed, and what they logged by the module log, while
the calls of a context ran, the latest context unless -c names one; or with CALL, as
1.2, while that call ran. Each has its time, its call, the attempt of the call, and its
tool; a bar stands before what was printed, the level before what was logged. On a
terminal a line is cut at its width, unless -v is given. --follow goes on with every
line, until it is interrupted. The lines of a delegate are in the context of the
delegate (obelus contexts --all).

Of each call the newest lines are kept, 256 KB of them unless the setting logs says
otherwise (obelus help settings), and a note says how many were before. Lines are no
part of the log itself: a crash may lose those of its last moment, and a run that is
resumed, forked or replayed does not depend on them.`,
		Example: `  obelus logs -c order-7
  obelus logs 1.2 --level warn --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f := store.LogFilter{Level: store.LogLevel(level)}
			if len(args) > 0 {
				f.Call = args[0]
			}
			return printLogs(c.Context(), a, f, follow)
		},
	}
	c.Flags().Var(&level, "level", "only lines from this `LEVEL` on: debug, info (also what was printed), warn or error")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with every line")
	return c
}

func printLogs(ctx context.Context, a *app, f store.LogFilter, follow bool) error {
	var err error
	if f.Context, err = a.openForReading(ctx); err != nil {
		return err
	}
	newest := map[string]int64{} // number of the newest line of each call
	show := func() error {
		for l, err := range a.log.Logs(ctx, f) {
			if err != nil {
				return err
			}
			f.After = l.N
			// A fork counts its own lines of a call that it shares from 1.
			if dropped := l.Line - newest[l.Call] - 1; dropped > 0 && f.Level <= store.LevelDebug && !a.json {
				if err := a.term.Line(view.DroppedLines(l, dropped)); err != nil {
					return err
				}
			}
			newest[l.Call] = l.Line
			if err := printLogLine(a, l); err != nil {
				return err
			}
		}
		return nil
	}
	if follow {
		return followUntilDone(ctx, show)
	}
	if err := show(); err != nil || len(newest) > 0 {
		return err
	}
	none := "no lines of scripts"
	if f.Level > store.LevelDebug {
		none += fmt.Sprintf(" of level %s or above", f.Level)
	}
	if f.Call == "" {
		a.term.Infof("%s are kept of context %s", none, f.Context)
		return nil
	}
	records, err := journal.In(a.log, f.Context).Records(ctx)
	if err == nil && !slices.ContainsFunc(records, func(r journal.Record) bool { return r.Call == f.Call }) {
		err = &journal.NoSuchCallError{Message: fmt.Sprintf("no call %q in context %s", f.Call, f.Context), Absent: true}
	}
	if err == nil {
		a.term.Infof("%s are kept of call %s", none, f.Call)
	}
	return err
}

func printLogLine(a *app, l store.LogLine) error {
	if a.json {
		return a.term.NDJSON(l)
	}
	text := human.Printable(view.LogLine(l))
	if !a.verbose {
		text = human.Cut(text, a.term.Width())
	}
	return a.term.Line(text)
}
