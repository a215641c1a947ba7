package cmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/cmd/internal/prune"
	"obelus/cmd/internal/usage"
	"obelus/engine/history"
	"obelus/engine/journal"
	"obelus/store"
	"obelus/store/sqlite"
)

// pruneOptions holds the flags of prune.
type pruneOptions struct {
	older    string
	statuses []string
	dry      bool
	noVacuum bool
}

func pruneCommand(a *app) *cobra.Command {
	var o pruneOptions
	c := &cobra.Command{
		Use:   "prune [CONTEXT…]",
		Short: "remove whole contexts from the log",
		Long: `Remove contexts with everything in them: the named ones, or those that were last
appended to --older-than some time ago, or whose run has a --status; with both,
those for which both is true. Their delegates' contexts go with them. Named
contexts go all or none; others go some ten thousand messages at a time, in whole
contexts, so that runs can append meanwhile.

A context that a fork needs stays. So does a context with an unfinished run, also an
interrupted one, unless it was cancelled; a fork that was never resumed may go. The
file is made smaller afterwards; no other process can append meanwhile, and
--no-vacuum leaves that out.`,
		Example: `  obelus prune --older-than 30d --dry-run
  obelus prune --status done,failed --older-than 24h
  obelus prune order-7`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return pruneContexts(c.Context(), a, args, o) },
	}
	c.Flags().StringVar(&o.older, "older-than", "", "contexts that were appended to last before: a `TIME` ago (30d, 12h), or a date (without a zone, of this machine's)")
	c.Flags().StringSliceVar(&o.statuses, "status", nil, "contexts whose run is `done,failed,...`, or none for those without one")
	c.Flags().BoolVar(&o.dry, "dry-run", false, "print what would go, and remove nothing")
	c.Flags().BoolVar(&o.noVacuum, "no-vacuum", false, "leave the file as large as it is")
	return c
}

func pruneContexts(ctx context.Context, a *app, names []string, o pruneOptions) error {
	before, err := o.before()
	if err != nil {
		return err
	}
	if len(names) == 0 && o.older == "" && len(o.statuses) == 0 {
		return exit.Usage("prune what? Name contexts, or say --older-than or --status")
	}
	if err := usage.CheckWords("status", o.statuses, append(journal.RunStatuses(), "none")...); err != nil {
		return err
	}
	if err := a.openSettings(); err != nil {
		return err
	}
	if err := a.openExisting(a.logOptions()); err != nil {
		return err
	}
	choice := prune.Choice{Names: names, Before: before, Statuses: o.statuses, DryRun: o.dry, Command: a.commandPrefix()}
	removed, inside, failed := choice.Remove(ctx, a.log)
	for _, name := range removed {
		if err := printPruned(a, name); err != nil {
			return err
		}
	}
	if len(removed) > 0 || failed == nil {
		reportPruned(a, len(removed), inside, o)
	}
	if failed != nil || len(removed) == 0 || o.dry || o.noVacuum {
		return failed
	}
	return vacuumLog(ctx, a)
}

func printPruned(a *app, name string) error {
	if a.json {
		return a.term.NDJSON(map[string]any{"context": name})
	}
	return a.term.Line(name)
}

// reportPruned prints how much was removed, or would be.
func reportPruned(a *app, n, inside int, o pruneOptions) {
	with := ""
	if inside > 0 {
		with = fmt.Sprintf(", and %s of delegates", human.Count(inside, "context"))
	}
	switch {
	case n == 0:
		a.term.Infof("there is nothing to prune")
	case o.dry:
		a.term.Infof("these %d would be removed%s", n, with)
	default:
		a.term.Infof("removed %d%s", n, with)
	}
}

// vacuumLog makes the file smaller, unless others use it.
func vacuumLog(ctx context.Context, a *app) error {
	log, ok := a.log.(*sqlite.Log)
	if !ok {
		return nil
	}
	err := log.Vacuum(ctx)
	var held *store.HeldError
	if !errors.As(err, &held) {
		return err
	}
	a.term.Infof("the file stays as large as it is: context %s is being run by %s", held.Context, held.Holder)
	return nil
}

// before returns the time that --older-than names, or the zero time.
func (o *pruneOptions) before() (time.Time, error) {
	if o.older == "" {
		return time.Time{}, nil
	}
	// The zero time means no limit, and programs write it so.
	if t, ok := history.ReadMoment(o.older); ok && !t.IsZero() {
		return t, nil
	}
	return time.Time{}, exit.Usagef("--older-than %s: expected a span such as 30d or 12h, or a date such as 2026-01-31", o.older)
}
