package term

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
)

// printMark stands before each line that a script prints under serve, so that it is told from
// the server's own lines, none of which begins so.
const printMark = "| "

// MarkPrinted returns a writer to w for what scripts print, which marks each line.
func MarkPrinted(w io.Writer) io.Writer { return printedLines{w} }

// LogPrinted returns a writer for what scripts print, which logs a record for each line.
func LogPrinted(log *slog.Logger) io.Writer { return printedRecords{log} }

// printedLines marks what scripts print, a line at a time.
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

// printedRecords logs what scripts print, a record for each line.
type printedRecords struct{ log *slog.Logger }

func (p printedRecords) Write(text []byte) (int, error) {
	for line := range linesOf(text) {
		p.log.Info("print", "text", line)
	}
	return len(text), nil
}

// linesOf gives the lines of what is printed. A carriage return ends one too, since what
// follows it would stand at the beginning of a line on a terminal.
func linesOf(text []byte) func(yield func(line string) bool) {
	plain := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(text))
	return strings.SplitSeq(strings.TrimSuffix(plain, "\n"), "\n")
}
