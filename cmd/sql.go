package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/answers"
	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
	"obelus/cmd/internal/human"
	"obelus/cmd/internal/usage"
	"obelus/store/sqlite"
)

func sqlCommand(a *app) *cobra.Command {
	var csv bool
	c := &cobra.Command{
		Use:   "sql [QUERY]",
		Short: "ask the log in SQL, which can only read",
		Long: `Ask the log in SQL, for those without sqlite3. The query can only read: the
database refuses all else. It may come from stdin too, as -. Without a query, the
tables and views are listed, with what they hold and their columns.

The answer is a table, on a terminal cut at its width; with --json an object for
each row, with --csv what spreadsheets read. NULL is empty, in JSON null.`,
		Example: `  obelus sql
  obelus sql "SELECT call, tool, status, duration_ms FROM calls WHERE context = 'order-7'"
  obelus sql --csv - < report.sql`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case csv && a.json:
				return exit.Usage("--csv and --json: give one of them")
			case len(args) == 0 && csv:
				return exit.Usage("--csv needs a query")
			case len(args) == 0:
				return listRelations(c.Context(), a)
			}
			return querySQL(c.Context(), a, args[0], csv)
		},
	}
	c.Flags().BoolVar(&csv, "csv", false, "print CSV with a header")
	return c
}

// openSQL opens the log for queries in SQL.
func openSQL(a *app) (*sqlite.Log, error) {
	if err := a.openExisting(sqlite.Options{ReadOnly: true}); err != nil {
		return nil, err
	}
	log, ok := a.log.(*sqlite.Log)
	if !ok {
		return nil, errors.New("this log knows no SQL")
	}
	return log, nil
}

func querySQL(ctx context.Context, a *app, query string, asCSV bool) error {
	if query == "-" {
		text, err := cli.ReadFileOrStdin(ctx, a.stdin, query)
		if err != nil {
			return err
		}
		query = string(text)
	}
	log, err := openSQL(a)
	if err != nil {
		return err
	}
	out := answers.New(a.term, a.json, asCSV)
	err = log.Query(ctx, query, out.Columns, out.Row)
	var wrong *sqlite.QueryError
	if errors.As(err, &wrong) && wrong.Unknown != "" {
		err = suggestTable(ctx, a, log, wrong)
	}
	if ctx.Err() != nil {
		return exit.Interrupted
	}
	if err == nil {
		err = out.End()
	}
	return err
}

func suggestTable(ctx context.Context, a *app, log *sqlite.Log, wrong *sqlite.QueryError) error {
	all, err := log.Relations(ctx)
	if err != nil {
		return wrong
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
	}
	return &sqlite.QueryError{Message: fmt.Sprintf("%s (%s)", wrong.Message, usage.Hint(wrong.Unknown, names, "obelus sql lists them"))}
}

// listRelations prints the tables and views.
func listRelations(ctx context.Context, a *app) error {
	log, err := openSQL(a)
	if err != nil {
		return err
	}
	all, err := log.Relations(ctx)
	if err != nil {
		return err
	}
	for i, r := range all {
		kind := "table"
		if r.View {
			kind = "view"
		}
		if a.json {
			err = a.term.NDJSON(map[string]any{"name": r.Name, "type": kind, "holds": r.Holds, "columns": r.Columns})
		} else {
			gap := ""
			if i > 0 {
				gap = "\n"
			}
			err = a.term.Line(fmt.Sprintf("%s%s (%s)\n%s\n%s", gap, r.Name, kind, human.Wrap(r.Holds), human.Wrap(strings.Join(r.Columns, ", "))))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
