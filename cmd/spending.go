package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/answers"
	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/usage"
	"obelus/store"
)

// spendingKeys are what usage sums by, with the column of the view for each.
var spendingKeys = []struct{ name, column string }{
	{"model", "model"}, {"tool", "coalesce(tool, '(plan)')"}, {"context", "context"}, {"day", "substr(date, 1, 10)"},
}

func usageCommand(a *app) *cobra.Command {
	by, since := "model", ""
	csv := false
	c := &cobra.Command{
		Use:   "usage",
		Short: "print what models used: requests, tokens, cost",
		Long: `Print what models used, summed by model or by what --by names: of the whole log,
or with -c of a context and of its delegates. The plans that models made have the
tool (plan). The cost is in US dollars, and is that of the requests to models with
a price; tokens are an estimate where a provider does not count them. A fork has
what was used in it, and not what its calls had used before.

The view spending has a row for each call and plan (obelus sql).`,
		Example: `  obelus usage --by day --since 30d
  obelus usage -c order-7 --by tool`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if csv && a.json {
				return exit.Usage("--csv and --json: give one of them")
			}
			return printUsage(c.Context(), a, by, since, csv)
		},
	}
	c.Flags().StringVar(&by, "by", by, "sum by `KEY`: model, tool, context or day")
	c.Flags().StringVar(&since, "since", "", "only what was used since `T`: a time (RFC 3339), or a span before now (90s, 7d)")
	c.Flags().BoolVar(&csv, "csv", false, "print CSV with a header")
	return c
}

func printUsage(ctx context.Context, a *app, by, since string, csv bool) error {
	column, names := "", []string{}
	for _, key := range spendingKeys {
		names = append(names, key.name)
		if key.name == by {
			column = key.column
		}
	}
	if column == "" {
		return exit.Usagef("--by %s: %s", by, usage.Hint(by, names, "it is one of "+strings.Join(names, ", ")))
	}
	began, err := cli.ReadTime("since", since)
	if err != nil {
		return err
	}
	log, err := openSQL(a)
	if err != nil {
		return err
	}
	of := "SELECT context FROM contexts"
	if a.context != "" {
		name, err := a.readContext(ctx)
		if err != nil {
			return err
		}
		of = fmt.Sprintf("SELECT %s UNION SELECT c.context FROM contexts AS c JOIN own ON c.parent = own.context", quoteSQL(name))
	}
	where := ""
	if !began.IsZero() {
		where = " AND date >= " + quoteSQL(store.FormatDate(began))
	}
	query := fmt.Sprintf(`WITH RECURSIVE own(context) AS (%s)
SELECT %s AS "%s", %s AS requests, %s AS input, %s AS output, %s AS cached, round(min(sum(max(cost, 0) * 1.0), 1e300), 9) AS cost
FROM spending WHERE context IN (SELECT context FROM own)%s GROUP BY 1 ORDER BY 1`,
		of, column, by, sumOf("requests"), sumOf("input"), sumOf("output"), sumOf("cache_read"), where)
	out := answers.New(a.term, a.json, csv)
	if err := log.Query(ctx, query, out.Columns, out.Row); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return exit.Interrupted
	}
	return out.End()
}

// sumOf returns the sum of a column of counts in SQL, whatever an older log has there: a negative
// count and a text are 0, and no sum is too large.
func sumOf(column string) string {
	return fmt.Sprintf("CAST(min(total(max(%s, 0)), 9e18) AS INTEGER)", column)
}

// quoteSQL is a text as SQL has it.
func quoteSQL(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
