package cmd

import (
	"context"
	"strings"
	"time"

	"obelus/cmd/internal/human"
	"obelus/cmd/internal/view"
	"obelus/engine/journal"
)

// reportSummary prints, on a terminal, how many calls of the newest run of a context ended how, and
// how long the command took for it; and anywhere what models used in that run.
func reportSummary(ctx context.Context, a *app, name string, took time.Duration) error {
	counts := a.term.ErrTTY && !a.quiet && !a.json
	models := a.host != nil && a.host.Generation().Registry().HasModel()
	if name == "" || !counts && !models {
		return nil
	}
	in := journal.In(a.log, name)
	last, err := in.LastRun(ctx)
	if err != nil || last.Tick == 0 {
		return err
	}
	var parts []string
	if counts {
		records, err := in.Records(ctx)
		if err != nil {
			return err
		}
		parts = append(parts, view.Counts(records, last.Event.First), human.Duration(took))
	}
	if models {
		spent, err := journal.SpentOn(ctx, in, last.Event.First)
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
