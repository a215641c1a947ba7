// Package human formats values for people: durations, sizes, times, and text that can't move a
// terminal's cursor.
package human

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"obelus/engine/lazyregexp"
	"obelus/engine/numeral"
	"obelus/engine/visible"
	"obelus/store"
)

// Duration returns a duration with three digits at most.
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Time returns a time: of today the hour, else the day.
func Time(t time.Time) string {
	if t = t.Local(); t.Format(time.DateOnly) == time.Now().Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateOnly)
}

// OrDash returns a text, or "-" if it is empty.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// FirstLine returns the first line of a text.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r")
}

// Wrap breaks a text into indented lines of at most 80 columns.
func Wrap(text string) string {
	const indent, most = "  ", 80
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch n := Widths.StringWidth(word); {
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

// JSON returns a value as JSON on one line, in which all that it holds is visible.
func JSON(v any) string { return visible.Text(string(store.EncodeJSON(v))) }

// Printable returns a line in which no character moves a terminal's cursor, and all are visible.
func Printable(line string) string {
	return visible.Text(strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return utf8.RuneError
		}
		return r
	}, line))
}

// colours matches the sequences that change only the colour of text.
var colours = lazyregexp.New("\x1b\\[[0-9;]*m")

// PrintableLines is [Printable] for text of several lines.
func PrintableLines(text string) string { return eachLine(text, Printable) }

// PrintableText is [PrintableLines] for text that has colours of its own, which end with each line.
func PrintableText(text string) string { return eachLine(text, printableColoured) }

func eachLine(text string, show func(line string) string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = show(line)
	}
	return strings.Join(lines, "\n")
}

func printableColoured(line string) string {
	const plain = "\x1b[0m"
	var b strings.Builder
	at, last := 0, plain
	for _, colour := range colours().FindAllStringIndex(line, -1) {
		last = line[colour[0]:colour[1]]
		b.WriteString(Printable(line[at:colour[0]]) + last)
		at = colour[1]
	}
	b.WriteString(Printable(line[at:]))
	if last != plain {
		b.WriteString(plain)
	}
	return b.String()
}

// Widths measures texts as terminals show them, whatever the locale: a Chinese character takes two
// columns, an accent that follows its letter none.
var Widths = runewidth.Condition{StrictEmojiNeutral: true}

// Cut shortens a text to a number of columns. 0 leaves it whole.
func Cut(text string, columns int) string {
	if columns <= 0 {
		return text
	}
	return Widths.Truncate(text, columns, "…")
}

// Fit cuts the cells of some columns, or of all, the widest first, until the rows have a width. 0
// leaves them whole.
func Fit(rows [][]string, width int, columns ...int) {
	if width == 0 || len(rows) == 0 {
		return
	}
	widths := make([]int, len(rows[0]))
	total := -2
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], Widths.StringWidth(row[i]))
		}
		total += widths[i] + 2
	}
	for ; total > width; total-- {
		widest := -1
		for i, w := range widths {
			if w > leastCut && (len(columns) == 0 || slices.Contains(columns, i)) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	for _, row := range rows {
		for i := range row {
			row[i] = Cut(row[i], widths[i])
		}
	}
}

// Without returns rows without those of some columns, in their order, that have to go for the rows
// to fit into a width once those that [Fit] may cut are as narrow as they can be read. The first
// row has the names of the columns. 0 leaves all.
func Without(rows [][]string, width int, cut []string, droppable ...string) [][]string {
	for _, name := range droppable {
		if width == 0 || least(rows, cut) <= width {
			break
		}
		at := slices.Index(rows[0], name)
		for i := range rows {
			rows[i] = slices.Delete(slices.Clone(rows[i]), at, at+1)
		}
	}
	return rows
}

// How far a column is cut: while other columns can go in its place, and at most.
const (
	leastRead = 16
	leastCut  = 8
)

// least returns the width of rows whose columns of some names are cut as far as they can be read.
func least(rows [][]string, cut []string) int {
	total := -2
	for i, name := range rows[0] {
		widest := 0
		for _, row := range rows {
			widest = max(widest, Widths.StringWidth(row[i]))
		}
		if slices.Contains(cut, name) {
			widest = min(widest, leastRead)
		}
		total += widest + 2
	}
	return total
}

// The colours, as ANSI codes.
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Blue   = "34"
	Grey   = "90"
)

// Count returns a number of things with their name: "1 request", "3 requests".
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return numeral.Thousands(int64(n)) + " " + thing
}
