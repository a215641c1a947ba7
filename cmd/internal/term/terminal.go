package term

// All that people read is written here. The rules:
//
//   - Data goes to stdout, everything for people to stderr.
//   - An error begins with "obelus: ", is lower case, says where, what, and
//     what to do, and shows nothing of how the program is built.
//   - Colour and what moves are for terminals only; NO_COLOR is respected.
//   - A value is JSON, keys sorted: one line on a pipe, indented on a
//     terminal.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"obelus/store"

	"obelus/cmd/internal/human"
)

// Terminal is where a command writes. Its methods may be called from several
// goroutines at once.
type Terminal struct {
	mu         sync.Mutex
	Out        io.Writer
	Err        io.Writer
	Quiet      bool
	OutTTY     bool
	ErrTTY     bool
	Moves      bool // lines of stderr can be taken back
	colour     bool
	live       *liveLines    // what moves at the bottom of stderr; nil without
	paused     *bytes.Buffer // what is to be told once a question has its answer; nil without one
	unanswered bool          // the cursor stands behind a question
	begun      bool          // a script has begun a line of stderr and not ended it
}

func New(out, err io.Writer) *Terminal {
	t := &Terminal{Out: out, Err: err, OutTTY: IsTerminal(out), ErrTTY: IsTerminal(err)}
	t.Moves = t.ErrTTY && os.Getenv("TERM") != "dumb"
	t.colour = t.Moves && os.Getenv("NO_COLOR") == ""
	return t
}

func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width is how many columns stdout has; 0 where lines are not to be cut.
func (t *Terminal) Width() int { return widthOf(t.Out) }

func widthOf(w io.Writer) int {
	columns, _ := sizeOf(w)
	return columns
}

// sizeOf is how many columns and rows a terminal has; 0 where there is none.
func sizeOf(w io.Writer) (columns, rows int) {
	if f, ok := w.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil {
			return columns, rows
		}
	}
	return 0, 0
}

// Value prints JSON on stdout.
func (t *Terminal) Value(v any) error {
	text := store.EncodeJSON(v)
	if t.OutTTY {
		var b bytes.Buffer
		if err := json.Indent(&b, text, "", "  "); err == nil {
			text = b.Bytes()
		}
		return t.Line(human.WithoutControls(string(text)))
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

// Say tells a person something, unless it was asked to be quiet.
func (t *Terminal) Say(format string, args ...any) {
	if !t.Quiet {
		t.Tell(format, args...)
	}
}

// Tell is say for what must be known in any case.
func (t *Terminal) Tell(format string, args ...any) {
	t.writeLine(human.Harmless(fmt.Sprintf(format, args...)))
}

// endLine ends the line that a script has left without an end.
func (t *Terminal) endLine() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun {
		t.put("\n")
	}
}

// writeLine writes a line of its own.
func (t *Terminal) writeLine(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun {
		line = "\n" + line
	}
	t.put(line + "\n")
}

// Fail tells of an error; a line of it each with the program's name, but for
// what is indented below it.
func (t *Terminal) Fail(err error) {
	first := true
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if line = human.Printable(strings.TrimSuffix(line, "\r")); line == "" {
			continue
		}
		if first || line[0] != ' ' {
			line = t.Paint(human.Red, "obelus: ") + line
		}
		t.writeLine(line)
		first = false
	}
}

// Write is for what scripts print: to stderr, above what moves.
func (t *Terminal) Write(text []byte) (int, error) {
	t.write(string(text))
	return len(text), nil
}

func (t *Terminal) write(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(text)
}

// put writes for one that has the lock.
func (t *Terminal) put(text string) {
	if text == "" {
		return
	}
	t.begun = !strings.HasSuffix(text, "\n")
	if t.paused != nil {
		t.paused.WriteString(text)
		return
	}
	if t.live != nil {
		if t.begun { // what stands in the line of what moves would go with it
			text, t.begun = text+"\n", false
		}
		t.live.erase(t.Err)
		defer t.live.draw(t.Err)
	}
	io.WriteString(t.Err, text)
}

// pause keeps everything but questions off stderr, until the function that it
// gives is called.
func (t *Terminal) pause() (resume func()) {
	t.endLine()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live != nil {
		t.live.erase(t.Err)
		t.live.still = true
	}
	t.paused = &bytes.Buffer{}
	return t.Unpause
}

// Unpause tells what was kept back. Without a pause it does nothing.
func (t *Terminal) Unpause() {
	t.mu.Lock()
	text := t.paused
	t.paused = nil
	if t.unanswered {
		io.WriteString(t.Err, "\n")
		t.unanswered = false
	}
	if t.live != nil {
		t.live.still = false
	}
	t.mu.Unlock()
	if text != nil {
		t.write(text.String())
	}
}

// question writes a part of a question that is being asked.
func (t *Terminal) question(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	t.unanswered = !strings.HasSuffix(text, "\n")
	io.WriteString(t.Err, text)
}

// answered tells that a person has ended the line of a question.
func (t *Terminal) answered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unanswered = false
}

// Interrupted takes away the ^C that the terminal shows, and what moves: whatever
// is written next begins a line. It waits for no terminal that stands still.
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
		case t.unanswered: // whoever ends the question ends its line
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

func (t *Terminal) Paint(colour, text string) string {
	if !t.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Table prints rows in columns on stdout, the last one cut at the terminal's
// width.
func (t *Terminal) Table(header []string, rows [][]string) error {
	return t.Columns(append([][]string{header}, rows...), make([]int, len(header)))
}

// Columns prints rows in columns on stdout, which are as wide as their widest
// cells and as they were before.
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
