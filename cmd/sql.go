package cmd

import (
	"context"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"obelus/cmd/internal/exit"
	"obelus/store"
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

// openSQL opens the log for queries of its own language.
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
		text, err := readFileOrStdin(ctx, a, query)
		if err != nil {
			return err
		}
		query = string(text)
	}
	log, err := openSQL(a)
	if err != nil {
		return err
	}
	var out answer = &tableAnswer{term: a.term}
	switch {
	case a.json:
		out = &jsonAnswer{term: a.term}
	case asCSV:
		out = &csvAnswer{csv.NewWriter(a.term.out)}
	}
	err = log.Query(ctx, query, out.columns, out.row)
	var wrong *sqlite.QueryError
	if errors.As(err, &wrong) && wrong.Unknown != "" {
		err = suggestTable(ctx, a, log, wrong)
	}
	if ctx.Err() != nil {
		return exit.Interrupted
	}
	if err == nil {
		err = out.end()
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
	return &sqlite.QueryError{Message: fmt.Sprintf("%s (%s)", wrong.Message, hint(wrong.Unknown, names, "obelus sql lists them"))}
}

// listRelations lists what can be asked.
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
			err = a.term.ndjson(map[string]any{"name": r.Name, "type": kind, "holds": r.Holds, "columns": r.Columns})
		} else {
			gap := ""
			if i > 0 {
				gap = "\n"
			}
			err = a.term.line(fmt.Sprintf("%s%s (%s)\n%s\n%s", gap, r.Name, kind, wrapped(r.Holds), wrapped(strings.Join(r.Columns, ", "))))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wrapped breaks a text into indented lines.
func wrapped(text string) string {
	const indent, most = "  ", 80
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch n := wideness.StringWidth(word); {
		case column == 0:
			b.WriteString(indent + word)
			column = len(indent) + n
		case column+1+n > most:
			b.WriteString("\n" + indent + word)
			column = len(indent) + n
		default:
			b.WriteString(" " + word)
			column += 1 + n
		}
	}
	return b.String()
}

// answer is a way of printing what a query gives.
type answer interface {
	columns(names []string) error
	row(values []any) error
	end() error
}

// jsonAnswer prints an object for each row, its keys in the columns' order.
type jsonAnswer struct {
	term *terminal
	keys []string
}

// columns takes the names, and tells those apart that are the same.
func (j *jsonAnswer) columns(names []string) error {
	taken := map[string]bool{}
	for _, name := range names {
		key := name
		for n := 1; taken[key]; n++ {
			key = fmt.Sprintf("%s:%d", name, n)
		}
		taken[key] = true
		j.keys = append(j.keys, string(store.EncodeJSON(key)))
	}
	return nil
}

func (j *jsonAnswer) row(values []any) error {
	var b strings.Builder
	for i, v := range values {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(j.keys[i] + ":")
		switch v := v.(type) {
		case float64:
			v = max(min(v, math.MaxFloat64), -math.MaxFloat64) // JSON has no infinity
			b.WriteString(real(v))
		case []byte:
			b.Write(store.EncodeJSON(cell(v)))
		default:
			b.Write(store.EncodeJSON(v))
		}
	}
	return j.term.line(b.String() + "}")
}

func (*jsonAnswer) end() error { return nil }

// csvAnswer prints what RFC 4180 describes, but for the ends of lines.
type csvAnswer struct{ w *csv.Writer }

func (c *csvAnswer) columns(names []string) error { return c.w.Write(names) }

func (c *csvAnswer) row(values []any) error {
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = cell(v)
	}
	return c.w.Write(cells)
}

func (c *csvAnswer) end() error {
	c.w.Flush()
	return c.w.Error()
}

// tableAnswer prints aligned columns. Their widths are those of the first rows,
// so that an answer of any length can be printed as it comes.
type tableAnswer struct {
	term   *terminal
	rows   [][]string
	widths []int
}

const rowsAhead = 1000

func (t *tableAnswer) columns(names []string) error {
	t.widths = make([]int, len(names))
	return t.add(names)
}

func (t *tableAnswer) row(values []any) error {
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = cell(v)
	}
	return t.add(cells)
}

// add takes a row, which has as many lines as its highest cell.
func (t *tableAnswer) add(cells []string) error {
	lines := make([][]string, len(cells))
	height := 1
	for i, c := range cells {
		lines[i] = strings.Split(strings.TrimRight(c, "\n"), "\n")
		height = max(height, len(lines[i]))
	}
	for n := range height {
		row := make([]string, len(cells))
		for i := range cells {
			if n < len(lines[i]) {
				row[i] = printable(lines[i][n])
			}
		}
		t.rows = append(t.rows, row)
	}
	if len(t.rows) < rowsAhead {
		return nil
	}
	return t.end()
}

// end prints the rows that wait.
func (t *tableAnswer) end() error {
	rows := t.rows
	t.rows = nil
	fit(rows, t.term.width())
	return t.term.columns(rows, t.widths)
}

// cell is a value as text.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return real(v)
	case []byte:
		return "x'" + hex.EncodeToString(v) + "'"
	}
	return fmt.Sprint(v)
}

// real is a number with a point, as SQLite writes it too.
func real(v float64) string {
	if math.IsInf(v, 0) {
		return strings.TrimPrefix(fmt.Sprint(v), "+")
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if !strings.ContainsAny(string(text), ".e") {
		return string(text) + ".0"
	}
	return string(text)
}
