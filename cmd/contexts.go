package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/cmd/internal/view"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/engine/numeral"
	"obelus/store"
	"obelus/store/sqlite"
)

// listFlags are the flags of contexts.
type listFlags struct {
	history.RunFilter
	since, until string
	waiting      string // a path
	after        string
	limit        int
}

// defaultLimit is how many contexts are listed for people.
const defaultLimit = 50

func contextsCommand(a *app) *cobra.Command {
	var o listFlags
	c := &cobra.Command{
		Use:   "contexts",
		Short: "list contexts, the one that was appended to last first",
		Long: `List contexts, the one that was appended to last first: at most 50 unless --limit
says otherwise, with --json all. Delegates' contexts are left out without --all. -c
lists those whose names begin so. A last line counts what the filters pick by status.

An interrupted run had neither ended nor halted when its process ended, or is in a
fork that has not been resumed. resume goes on with it. A server does so by itself if
the process died or was told to end by SIGTERM, and not if a person interrupted it;
with --json that is "stopped" beside the status.`,
		Example: `  obelus contexts --status failed,interrupted --since 1d
  obelus contexts --label customer=7 --plan plans/refund.lua
  obelus contexts --after order-1204          the next ones in the list`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if a.json && !c.Flags().Changed("limit") {
				o.limit = 0
			}
			f, statuses, err := o.read(a)
			if err != nil {
				return err
			}
			return listContexts(c.Context(), a, &o, f, statuses)
		},
	}
	c.Flags().StringSliceVar(&o.Status, "status", nil, "only runs that stand so: `STATUS,...`; held for those that wait for a person")
	c.Flags().StringVar(&o.Plan, "plan", "", "only runs of this plan `FILE`")
	c.Flags().StringVar(&o.since, "since", "", "only contexts appended to since `T`: a time or a span before now (90s, 7d)")
	c.Flags().StringVar(&o.until, "until", "", "only contexts appended to before `T`")
	c.Flags().StringArrayVar(&o.Label, "label", nil, "only runs with this label: `NAME=VALUE`")
	c.Flags().StringVar(&o.Text, "search", "", "only contexts with `TEXT` in their name, plan or labels")
	c.Flags().BoolVar(&o.Held, "held", false, "only runs that wait for a person")
	c.Flags().BoolVar(&o.Retrying, "retrying", false, "only runs with calls that pause before another attempt")
	c.Flags().StringVar(&o.waiting, "waiting-on", "", "only runs that wait for this `PATH`")
	c.Flags().StringVar(&o.Parent, "parent", "", "only the contexts of delegates of this `CONTEXT`")
	c.Flags().BoolVar(&o.All, "all", false, "delegates' contexts too")
	c.Flags().IntVar(&o.limit, "limit", defaultLimit, "at most `N` contexts; 0 for all")
	c.Flags().StringVar(&o.after, "after", "", "go on after this `CONTEXT` of the list")
	return c
}

// read returns the filter of contexts, and the statuses that are asked for.
func (o *listFlags) read(a *app) (f store.ContextFilter, statuses []journal.RunStatus, err error) {
	if o.Since, err = cli.ReadTime("since", o.since); err != nil {
		return f, nil, err
	}
	if o.Until, err = cli.ReadTime("until", o.until); err != nil {
		return f, nil, err
	}
	if o.Waiting, err = cli.ReadPath("waiting-on", o.waiting); err != nil {
		return f, nil, err
	}
	if o.limit < 0 {
		return f, nil, exit.Usagef("--limit %d: it must be a number of contexts, or 0 for all", o.limit)
	}
	f, statuses, err = o.Contexts()
	f.Prefix = a.context
	return f, statuses, cli.FilterUsage(err)
}

func listContexts(ctx context.Context, a *app, o *listFlags, f store.ContextFilter, statuses []journal.RunStatus) error {
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
	counted := f
	if o.after != "" {
		last, err := a.log.Info(ctx, o.after)
		if err != nil {
			return fmt.Errorf("--after: %w", err)
		}
		f.After = last.Mark()
	}
	_, _, heldBy, err := history.ListHeld(ctx, a.log)
	if err != nil {
		return err
	}
	const plan, reason = 2, 9
	var rows [][]string
	listed := 0
	for info, err := range history.List(ctx, a.log, f, statuses) {
		if err != nil {
			return err
		}
		listed++
		line := history.Summarize(info)
		line.AddHeld(heldBy)
		if a.json {
			if err := a.term.NDJSON(line); err != nil {
				return err
			}
		} else {
			rows = append(rows, []string{line.Context, human.OrDash(string(line.Status)), human.OrDash(line.Plan), human.OrDash(view.CallCounts(&line)),
				human.OrDash(view.Started(info)), human.OrDash(view.Worked(&line)), fmt.Sprint(line.Messages), numeral.Size(line.Bytes), human.Time(info.Updated), line.Error})
		}
		if listed == o.limit {
			break
		}
	}
	switch {
	case a.context != "" && listed == 0 && o.isUnfiltered():
		return a.noContext()
	case a.json:
		return nil
	}
	header := []string{"CONTEXT", "STATUS", "PLAN", "CALLS", "STARTED", "TIME", "MESSAGES", "SIZE", "UPDATED", "REASON"}
	if !slices.ContainsFunc(rows, func(row []string) bool { return row[reason] != "" }) {
		header = header[:reason]
		for i := range rows {
			rows[i] = rows[i][:reason]
		}
	}
	table := human.Without(append([][]string{header}, rows...), a.term.Width(), []string{"PLAN", "REASON"}, "SIZE", "MESSAGES", "STARTED", "REASON")
	// The other columns are of no use when they are cut.
	human.Fit(table, a.term.Width(), plan, slices.Index(table[0], "REASON")) // -1 where that is gone
	if err := a.term.Table(table[0], table[1:]); err != nil {
		return err
	}
	return a.printCounts(ctx, counted, statuses, listed, rows)
}

// isUnfiltered reports whether the name is all that contexts are picked by.
func (o *listFlags) isUnfiltered() bool {
	return o.after == "" && reflect.DeepEqual(o.RunFilter, history.RunFilter{All: o.All})
}

// printCounts prints how many contexts the filters pick, by status, and how to see those that are
// left out.
func (a *app) printCounts(ctx context.Context, f store.ContextFilter, statuses []journal.RunStatus, listed int, rows [][]string) error {
	counts, err := history.Count(ctx, a.log, f)
	if err != nil {
		return err
	}
	total, text := view.ContextCounts(counts, statuses)
	if total == 0 {
		return nil
	}
	more := ""
	if int64(listed) < total && listed > 0 {
		more = fmt.Sprintf("; %d listed, the next with --after %s", listed, rows[len(rows)-1][0])
	}
	a.term.Infof("%s%s", text, more)
	return nil
}
