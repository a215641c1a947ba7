package cmd

import (
	"context"
	"strings"
	"time"

	"obelus/cmd/internal/human"
	"obelus/cmd/internal/view"
	"obelus/engine/journal"
)

// reportSummary prints, on a terminal, how many calls of a run ended how, and how long the command
// took for it; and anywhere what models used in that run.
func reportSummary(ctx context.Context, a *app, outcome *journal.Outcome, took time.Duration) error {
	if outcome.Tick == 0 {
		return nil
	}
	in := journal.In(a.log, outcome.Context)
	var parts []string
	if a.term.ErrTTY && !a.quiet && !a.json {
		records := outcome.Calls // those of the last tick
		if outcome.First < outcome.Tick {
			var err error
			if records, err = in.Records(ctx); err != nil {
				return err
			}
		}
		parts = append(parts, view.Counts(records, outcome.First), human.Duration(took))
	}
	if a.host != nil && a.host.Generation().Registry().HasModel() {
		spent, err := journal.SpentOn(ctx, in, outcome.First)
		if err != nil {
			return err
		}
		if spent.Requests > 0 {
			parts = append(parts, view.Usage(spent))
		}
	}
	if len(parts) > 0 {
		a.term.Infof("%s", strings.Join(parts, "; "))
	}
	return nil
}
