package cmd

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
)

// terminal is where a command writes. Its methods may be called from several
// goroutines at once.
type terminal struct {
	mu         sync.Mutex
	out        io.Writer
	err        io.Writer
	quiet      bool
	outTTY     bool
	errTTY     bool
	moves      bool // lines of stderr can be taken back
	colour     bool
	live       *liveLines    // what moves at the bottom of stderr; nil without
	paused     *bytes.Buffer // what is to be told once a question has its answer; nil without one
	unanswered bool          // the cursor stands behind a question
	begun      bool          // a script has begun a line of stderr and not ended it
}

func newTerminal(out, err io.Writer) *terminal {
	t := &terminal{out: out, err: err, outTTY: isTerminal(out), errTTY: isTerminal(err)}
	t.moves = t.errTTY && os.Getenv("TERM") != "dumb"
	t.colour = t.moves && os.Getenv("NO_COLOR") == ""
	return t
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is how many columns stdout has; 0 where lines are not to be cut.
func (t *terminal) width() int { return widthOf(t.out) }

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

// value prints JSON on stdout.
func (t *terminal) value(v any) error {
	text := store.EncodeJSON(v)
	if t.outTTY {
		var b bytes.Buffer
		if err := json.Indent(&b, text, "", "  "); err == nil {
			text = b.Bytes()
		}
		return t.line(withoutControls(string(text)))
	}
	return t.line(string(text))
}

// ndjson prints one line of JSON on stdout, as the value marshals itself.
func (t *terminal) ndjson(v any) error { return t.line(string(store.EncodeJSON(v))) }

// line prints a line on stdout.
func (t *terminal) line(text string) error {
	if t.outTTY && t.errTTY {
		t.endLine()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := fmt.Fprintln(t.out, text)
	return err
}

// say tells a person something, unless it was asked to be quiet.
func (t *terminal) say(format string, args ...any) {
	if !t.quiet {
		t.tell(format, args...)
	}
}

// tell is say for what must be known in any case.
func (t *terminal) tell(format string, args ...any) {
	t.writeLine(harmless(fmt.Sprintf(format, args...)))
}

// endLine ends the line that a script has left without an end.
func (t *terminal) endLine() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun {
		t.put("\n")
	}
}

// writeLine writes a line of its own.
func (t *terminal) writeLine(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun {
		line = "\n" + line
	}
	t.put(line + "\n")
}

// fail tells of an error; a line of it each with the program's name, but for
// what is indented below it.
func (t *terminal) fail(err error) {
	first := true
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if line = printable(strings.TrimSuffix(line, "\r")); line == "" {
			continue
		}
		if first || line[0] != ' ' {
			line = t.paint(red, "obelus: ") + line
		}
		t.writeLine(line)
		first = false
	}
}

// Write is for what scripts print: to stderr, above what moves.
func (t *terminal) Write(text []byte) (int, error) {
	t.write(string(text))
	return len(text), nil
}

func (t *terminal) write(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(text)
}

// put writes for one that has the lock.
func (t *terminal) put(text string) {
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
		t.live.erase(t.err)
		defer t.live.draw(t.err)
	}
	io.WriteString(t.err, text)
}

// pause keeps everything but questions off stderr, until the function that it
// gives is called.
func (t *terminal) pause() (resume func()) {
	t.endLine()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live != nil {
		t.live.erase(t.err)
		t.live.still = true
	}
	t.paused = &bytes.Buffer{}
	return t.unpause
}

// unpause tells what was kept back. Without a pause it does nothing.
func (t *terminal) unpause() {
	t.mu.Lock()
	text := t.paused
	t.paused = nil
	if t.unanswered {
		io.WriteString(t.err, "\n")
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
func (t *terminal) question(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	t.unanswered = !strings.HasSuffix(text, "\n")
	io.WriteString(t.err, text)
}

// answered tells that a person has ended the line of a question.
func (t *terminal) answered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unanswered = false
}

// interrupted takes away the ^C that the terminal shows, and what moves: whatever
// is written next begins a line. It waits for no terminal that stands still.
func (t *terminal) interrupted(by os.Signal) {
	if !t.errTTY || by != os.Interrupt {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.mu.Lock()
		defer t.mu.Unlock()
		switch {
		case t.unanswered: // whoever ends the question ends its line
		case !t.moves:
			io.WriteString(t.err, "\n")
		default:
			io.WriteString(t.err, "\r\x1b[K")
			if t.live != nil {
				t.live.erase(t.err)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(100 * time.Millisecond):
	}
}

func (t *terminal) paint(colour, text string) string {
	if !t.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// table prints rows in columns on stdout, the last one cut at the terminal's
// width.
func (t *terminal) table(header []string, rows [][]string) error {
	return t.columns(append([][]string{header}, rows...), make([]int, len(header)))
}

// columns prints rows in columns on stdout, which are as wide as their widest
// cells and as they were before.
func (t *terminal) columns(rows [][]string, widths []int) error {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable(cell)
			widths[i] = max(widths[i], wideness.StringWidth(row[i]))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-wideness.StringWidth(cell)+2))
			}
		}
		if err := t.line(cut(strings.TrimRight(b.String(), " "), t.width())); err != nil {
			return err
		}
	}
	return nil
}
