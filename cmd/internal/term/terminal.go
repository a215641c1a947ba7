// Package term is the terminal of the command: everything that people read is written here, and
// everything that a person types is read here. The rules:
//
//   - Data goes to stdout, everything for people to stderr.
//   - An error begins with "obelus: ", is lower case, says where, what, and what to do, and shows
//     nothing of how the program is built.
//   - Colour and lines that move are for terminals only; NO_COLOR is respected.
//   - A value is JSON, keys sorted: one line on a pipe, indented on a terminal.
package term

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"obelus/cmd/internal/human"
	"obelus/engine/visible"
	"obelus/store"
)

// Terminal writes the output of a command. Its methods are safe for concurrent use.
type Terminal struct {
	mu       sync.Mutex
	Out      io.Writer
	Err      io.Writer
	Quiet    bool
	OutTTY   bool
	ErrTTY   bool
	Moves    bool // lines of stderr can be erased
	colour   bool
	live     *liveLines    // lines at the bottom of stderr that move; nil for none
	paused   *bytes.Buffer // output that waits for the answer to a question; nil without a question
	asking   bool          // the cursor is behind a question
	lineOpen bool          // a script has left a line of stderr without its end
}

// New returns a terminal that writes to stdout and stderr.
func New(out, err io.Writer) *Terminal {
	t := &Terminal{Out: out, Err: err, OutTTY: IsTerminal(out), ErrTTY: IsTerminal(err)}
	t.Moves = t.ErrTTY && os.Getenv("TERM") != "dumb"
	t.colour = t.Moves && os.Getenv("NO_COLOR") == ""
	return t
}

// IsTerminal reports whether a writer is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width returns the columns of stdout, or 0 if lines are not to be cut.
func (t *Terminal) Width() int { return widthOf(t.Out) }

func widthOf(w io.Writer) int {
	columns, _ := sizeOf(w)
	return columns
}

// sizeOf returns the columns and rows of a terminal, or 0 if it is none.
func sizeOf(w io.Writer) (columns, rows int) {
	if f, ok := w.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil {
			return columns, rows
		}
	}
	return 0, 0
}

// Value prints a value as JSON on stdout.
func (t *Terminal) Value(v any) error {
	text := store.EncodeJSON(v)
	if t.OutTTY {
		var b bytes.Buffer
		if err := json.Indent(&b, text, "", "  "); err == nil {
			text = b.Bytes()
		}
		return t.Line(visible.Text(string(text)))
	}
	return t.Line(string(text))
}

// NDJSON prints one line of JSON on stdout, as the value marshals itself.
func (t *Terminal) NDJSON(v any) error { return t.Line(string(store.EncodeJSON(v))) }

// Line prints a line on stdout.
func (t *Terminal) Line(text string) error {
	if t.OutTTY && t.ErrTTY {
		t.endLine()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := fmt.Fprintln(t.Out, text)
	return err
}

// Infof prints a message for a person, unless quiet.
func (t *Terminal) Infof(format string, args ...any) {
	if !t.Quiet {
		t.Noticef(format, args...)
	}
}

// Noticef prints a message for a person, even if quiet. Of its arguments only a [Painted] can have
// a colour: all else may be a text of others.
func (t *Terminal) Noticef(format string, args ...any) {
	shown := make([]any, len(args))
	for i, arg := range args {
		shown[i] = printable(arg)
	}
	t.writeLine(fmt.Sprintf(format, shown...))
}

// printable returns an argument of a message without anything that steers a terminal.
func printable(arg any) any {
	switch text := arg.(type) {
	case Painted:
		return string(text)
	case []byte:
		return human.PrintableLines(string(text))
	}
	if v := reflect.ValueOf(arg); v.Kind() == reflect.Bool || v.CanInt() || v.CanUint() || v.CanFloat() {
		return arg
	}
	return human.PrintableLines(fmt.Sprint(arg))
}

// endLine ends the line that a script has left without its end.
func (t *Terminal) endLine() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lineOpen {
		t.writeLocked("\n")
	}
}

// writeLine writes a line to stderr.
func (t *Terminal) writeLine(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lineOpen {
		line = "\n" + line
	}
	t.writeLocked(line + "\n")
}

// Error prints an error, after the program's name, and each of several errors by itself. The
// further lines of one error, such as those of a diff, stand as they are.
func (t *Terminal) Error(err error) {
	for _, text := range textsOf(err) {
		if text = strings.Trim(text, "\r\n"); text == "" {
			continue
		}
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			lines[i] = human.Printable(strings.TrimSuffix(line, "\r"))
		}
		t.writeLine(string(t.Paint(human.Red, "obelus: ")) + strings.Join(lines, "\n"))
	}
}

// textsOf returns the texts of the errors of which an error consists, each on lines of its own, as
// [errors.Join] has them. What wraps them stands before the first.
func textsOf(err error) []string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		joined, ok := inner.(interface{ Unwrap() []error })
		if !ok {
			continue
		}
		var texts []string
		for _, one := range joined.Unwrap() {
			texts = append(texts, textsOf(one)...)
		}
		if before, found := strings.CutSuffix(err.Error(), strings.Join(texts, "\n")); found && len(texts) > 0 {
			texts[0] = before + texts[0]
			return texts
		}
	}
	return []string{err.Error()}
}

// Print prints a line of a script on stderr. On a terminal it can't steer it, but has its colours.
func (t *Terminal) Print(line string) {
	if t.ErrTTY {
		line = human.PrintableText(line)
	}
	t.writeLine(line)
}

// Write writes the output of scripts: to stderr, above the lines that move.
func (t *Terminal) Write(text []byte) (int, error) {
	t.write(string(text))
	return len(text), nil
}

func (t *Terminal) write(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writeLocked(text)
}

// writeLocked writes to stderr while the caller holds the lock.
func (t *Terminal) writeLocked(text string) {
	if text == "" {
		return
	}
	t.lineOpen = !strings.HasSuffix(text, "\n")
	if t.paused != nil {
		t.paused.WriteString(text)
		return
	}
	if t.live != nil {
		if t.lineOpen { // erasing the lines that move would erase it too
			text, t.lineOpen = text+"\n", false
		}
		t.live.erase(t.Err)
		defer t.live.draw(t.Err)
	}
	io.WriteString(t.Err, text)
}

// pause keeps all output but questions back until resume is called.
func (t *Terminal) pause() (resume func()) {
	t.endLine()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live != nil {
		t.live.erase(t.Err)
		t.live.hidden = true
	}
	t.paused = &bytes.Buffer{}
	return t.Unpause
}

// Unpause prints the output that was kept back. Without a pause it does nothing.
func (t *Terminal) Unpause() {
	t.mu.Lock()
	text := t.paused
	t.paused = nil
	if t.asking {
		io.WriteString(t.Err, "\n")
		t.asking = false
	}
	if t.live != nil {
		t.live.hidden = false
	}
	t.mu.Unlock()
	if text != nil {
		t.write(text.String())
	}
}

// askf writes a part of a question.
func (t *Terminal) askf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	t.asking = !strings.HasSuffix(text, "\n")
	io.WriteString(t.Err, text)
}

// answered records that the person has ended the line of a question.
func (t *Terminal) answered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asking = false
}

// Interrupted erases the ^C that the terminal shows, and the lines that move, so that the next
// output begins a line. It gives up after 100 ms if the terminal is blocked.
func (t *Terminal) Interrupted(by os.Signal) {
	if !t.ErrTTY || by != os.Interrupt {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.mu.Lock()
		defer t.mu.Unlock()
		switch {
		case t.asking: // Unpause ends the line of the question
		case !t.Moves:
			io.WriteString(t.Err, "\n")
		default:
			io.WriteString(t.Err, "\r\x1b[K")
			if t.live != nil {
				t.live.erase(t.Err)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(100 * time.Millisecond):
	}
}

// Painted is a text in colours of the program's own, in which all texts of others are escaped.
type Painted string

// Paint colours a text, if the terminal shows colours.
func (t *Terminal) Paint(colour, text string) Painted {
	text = human.PrintableLines(text)
	if !t.colour {
		return Painted(text)
	}
	return Painted("\x1b[" + colour + "m" + text + "\x1b[0m")
}

// Table prints rows in columns on stdout, the last one cut at the terminal's width.
func (t *Terminal) Table(header []string, rows [][]string) error {
	return t.Columns(append([][]string{header}, rows...), make([]int, len(header)))
}

// Columns prints rows in columns on stdout. Each column is as wide as its widest cell and at least
// as wide as widths says, which it updates.
func (t *Terminal) Columns(rows [][]string, widths []int) error {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = human.Printable(cell)
			widths[i] = max(widths[i], human.Widths.StringWidth(row[i]))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-human.Widths.StringWidth(cell)+2))
			}
		}
		if err := t.Line(human.Cut(strings.TrimRight(b.String(), " "), t.Width())); err != nil {
			return err
		}
	}
	return nil
}
