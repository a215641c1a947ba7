package term

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
)

// printMark stands before each line that a script prints under serve. No line of the server itself
// begins with it.
const printMark = "| "

// MarkPrinted returns a writer for the output of scripts that marks each line and writes it to w.
func MarkPrinted(w io.Writer) io.Writer { return printedLines{w} }

// LogPrinted returns a writer for the output of scripts that logs a record for each line.
func LogPrinted(log *slog.Logger) io.Writer { return printedRecords{log} }

// printedLines marks the lines that scripts print.
type printedLines struct{ w io.Writer }

func (p printedLines) Write(text []byte) (int, error) {
	var b bytes.Buffer
	for line := range linesOf(text) {
		b.WriteString(printMark + line + "\n")
	}
	if _, err := p.w.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// printedRecords logs the lines that scripts print.
type printedRecords struct{ log *slog.Logger }

func (p printedRecords) Write(text []byte) (int, error) {
	for line := range linesOf(text) {
		p.log.Info("print", "text", line)
	}
	return len(text), nil
}

// linesOf returns the lines of a text. A carriage return ends a line too, since a terminal shows
// the text after it at the beginning of the line.
func linesOf(text []byte) func(yield func(line string) bool) {
	plain := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(text))
	return strings.SplitSeq(strings.TrimSuffix(plain, "\n"), "\n")
}
