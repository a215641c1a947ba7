// Package answers prints the rows that a query in SQL gives: as a table, as JSON or as CSV.
package answers

import (
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"obelus/cmd/internal/human"
	"obelus/cmd/internal/term"
	"obelus/store"
)

// Answer prints the rows of a query. Columns is called first and End last.
type Answer interface {
	Columns(names []string) error
	Row(values []any) error
	End() error
}

// New returns an answer in JSON, in CSV, or else as a table.
func New(t *term.Terminal, asJSON, asCSV bool) Answer {
	switch {
	case asJSON:
		return &jsonAnswer{term: t}
	case asCSV:
		return &csvAnswer{csv.NewWriter(t.Out)}
	}
	return &tableAnswer{term: t}
}

// jsonAnswer prints an object for each row, its keys in the columns' order.
type jsonAnswer struct {
	term *term.Terminal
	keys []string
}

// Columns takes the names, and numbers those that are the same.
func (j *jsonAnswer) Columns(names []string) error {
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

func (j *jsonAnswer) Row(values []any) error {
	var b strings.Builder
	for i, v := range values {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(j.keys[i] + ":")
		switch v := v.(type) {
		case float64:
			switch { // JSON has no infinity, but numbers of any size
			case math.IsInf(v, 1):
				b.WriteString("1e999")
			case math.IsInf(v, -1):
				b.WriteString("-1e999")
			default:
				b.WriteString(formatReal(v))
			}
		case []byte:
			b.Write(store.EncodeJSON(formatCell(v)))
		default:
			b.Write(store.EncodeJSON(v))
		}
	}
	return j.term.Line(b.String() + "}")
}

func (*jsonAnswer) End() error { return nil }

// csvAnswer prints CSV as in RFC 4180, except that lines end with a newline alone.
type csvAnswer struct{ w *csv.Writer }

func (c *csvAnswer) Columns(names []string) error { return c.w.Write(names) }

func (c *csvAnswer) Row(values []any) error {
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = formatCell(v)
	}
	return c.w.Write(cells)
}

func (c *csvAnswer) End() error {
	c.w.Flush()
	return c.w.Error()
}

// tableAnswer prints aligned columns. The first rows set their widths, so that an answer of any
// length is printed as it comes.
type tableAnswer struct {
	term   *term.Terminal
	rows   [][]string
	widths []int
}

// rowsAhead is how many rows are collected before they are printed.
const rowsAhead = 1000

func (t *tableAnswer) Columns(names []string) error {
	t.widths = make([]int, len(names))
	return t.add(names)
}

func (t *tableAnswer) Row(values []any) error {
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = formatCell(v)
	}
	return t.add(cells)
}

// add collects a row, which has as many lines as its highest cell.
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
				row[i] = human.Printable(lines[i][n])
			}
		}
		t.rows = append(t.rows, row)
	}
	if len(t.rows) < rowsAhead {
		return nil
	}
	return t.End()
}

// End prints the rows that were collected.
func (t *tableAnswer) End() error {
	rows := t.rows
	t.rows = nil
	human.Fit(rows, t.term.Width())
	return t.term.Columns(rows, t.widths)
}

// formatCell returns a value as text.
func formatCell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return formatReal(v)
	case []byte:
		return "x'" + hex.EncodeToString(v) + "'"
	}
	return fmt.Sprint(v)
}

// formatReal returns a number with a point, as SQLite writes it.
func formatReal(v float64) string {
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
