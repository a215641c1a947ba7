package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/view"
	"obelus/engine/history"
	"obelus/engine/journal"
)

func whyCommand(a *app) *cobra.Command {
	return refCommand(a, &cobra.Command{
		Use:   "why REF",
		Short: "show where a value comes from",
		Long: `Show where the value of a reference or an expression comes from: the messages
that it is made of, the calls that wrote them, what those read, and so on back to
what came from outside, through delegates too. It is a tree of text, or with --json
an object. What was shown before is marked as such, and its objects and arrays are not
repeated.

Exit status: 0, or 1 if it is missing.`,
		Example: `  obelus why state.receipt
  obelus why state.total --at 12 --json`,
	}, printWhy)
}

func printWhy(ctx context.Context, a *app, of refQuery) error {
	why, err := history.Explain(ctx, journal.In(a.log, of.context), of.expr, of.at, of.instance)
	if err != nil {
		return err
	}
	if a.json {
		return a.term.NDJSON(why)
	}
	return a.term.Line(strings.TrimRight(view.Why(*why, a.term.Width()), "\n"))
}
