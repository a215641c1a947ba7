package term

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/peterh/liner"

	"obelus/cmd/internal/cli"
	"obelus/cmd/internal/exit"
)

// PipedLines reads lines from a file or another program.
type PipedLines struct{ from *bufio.Reader }

// NewPipedLines returns a reader of the lines of r.
func NewPipedLines(r io.Reader) *PipedLines { return &PipedLines{bufio.NewReader(r)} }

// Read returns the next line, without its end, or [io.EOF]. It stops when ctx is done.
func (l *PipedLines) Read(ctx context.Context, _ bool) (string, error) {
	return cli.WaitFor(ctx, func() (string, error) {
		line, err := l.from.ReadString('\n')
		if line != "" {
			err = nil // the last line may have no newline
		}
		return strings.TrimRight(line, "\r\n"), err
	})
}

// Running returns ctx: no interrupt is typed here.
func (l *PipedLines) Running(ctx context.Context) (context.Context, func()) { return ctx, func() {} }

// TypedLines reads lines that a person types, with editing, history and completion if the terminal
// can move its cursor.
type TypedLines struct {
	term *Terminal
	line *liner.State
	more bool // the line continues an input
	// Modes of the terminal while an input runs, and while a line is typed.
	whole, raw liner.ModeApplier
	history    string // the file of the history, or empty
	interrupts chan os.Signal
	beforeExit func()     // waits until an interrupted run is recorded
	pending    chan typed // receives a line that is being read already; nil if none is
}

// typed is a line that was typed, or the error of reading it.
type typed struct {
	line string
	err  error
}

// Close gives the terminal back as it was.
func (l *TypedLines) Close() {
	signal.Stop(l.interrupts)
	l.line.Close()
}

// Read asks for a line; more tells that it continues an input. Its error is [ErrDropped] if the
// person drops the line, and [io.EOF] at the end.
func (l *TypedLines) Read(ctx context.Context, more bool) (string, error) {
	l.more = more
	prompt := "> "
	if more {
		prompt = ">> "
	}
	l.term.endLine() // the editor redraws its line from the first column
	l.raw.ApplyMode()
	line, err := l.prompt(ctx, prompt)
	if errors.Is(err, liner.ErrPromptAborted) {
		return "", ErrDropped
	}
	if err == nil && strings.TrimSpace(line) != "" {
		l.line.AppendHistory(line)
		l.appendHistory(line)
	}
	return line, err
}

// prompt reads a line. If the editor can't control the terminal, Ctrl-C is a signal: the line typed
// so far is dropped, and the reading that goes on gives the next one.
func (l *TypedLines) prompt(ctx context.Context, prompt string) (string, error) {
	var interrupts chan os.Signal
	if !liner.TerminalSupported() {
		interrupts = l.interrupts
	}
	if l.pending != nil {
		fmt.Print(prompt)
	} else {
		l.pending = make(chan typed, 1)
		go func(read chan typed) {
			line, err := l.line.Prompt(prompt)
			read <- typed{line, err}
		}(l.pending)
	}
	select {
	case read := <-l.pending:
		l.pending = nil
		return read.line, read.err
	case <-interrupts:
		l.term.Noticef("") // the terminal shows ^C
		return "", liner.ErrPromptAborted
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Running returns a context that an interrupt ends, for one input, and a function that ends it. A
// second interrupt ends the program.
func (l *TypedLines) Running(ctx context.Context) (context.Context, func()) {
	l.whole.ApplyMode()
	select {
	case <-l.interrupts: // it was meant for the input before
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched) // else it might take an interrupt of the next input
		for n := 0; ; n++ {
			select {
			case <-ended:
				return
			case by := <-l.interrupts:
				if n > 0 {
					l.term.Interrupted(by)
					l.beforeExit()
					os.Exit(int(exit.Interrupted))
				}
				l.term.Noticef("") // the terminal shows ^C
				cancel()
			}
		}
	}()
	return ctx, func() {
		close(ended)
		<-watched
		cancel()
	}
}

// MaxHistory is how many lines of history are kept when the file is shortened.
const MaxHistory = 1000

// openHistory reads the history, and shortens the file if it is long. Errors only switch the
// history off.
func (l *TypedLines) openHistory(file string) {
	l.history = file
	content, err := os.ReadFile(file)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) || os.MkdirAll(filepath.Dir(file), 0o777) != nil {
			l.history = ""
		}
		return
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	if len(lines) > 2*MaxHistory {
		lines = lines[len(lines)-MaxHistory:]
		short := file + ".new"
		if os.WriteFile(short, []byte(strings.Join(lines, "\n")+"\n"), 0o600) == nil {
			os.Rename(short, file)
		}
	}
	for _, line := range lines {
		l.line.AppendHistory(line)
	}
}

// appendHistory writes a line at once, so that a session that is killed, and another one at the
// same time, lose none.
func (l *TypedLines) appendHistory(line string) {
	if l.history == "" {
		return
	}
	// Readable by the user alone.
	f, err := os.OpenFile(l.history, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	f.WriteString(line + "\n")
	f.Close()
}

// LineReader gives the lines of a session. Read returns io.EOF at the end of the session, and
// [ErrDropped] for an input that is given up; more says that the line continues an input. Running
// returns a context for one input, which an interrupt ends, and a function that ends it.
type LineReader interface {
	Read(ctx context.Context, more bool) (string, error)
	// See the type.
	Running(ctx context.Context) (context.Context, func())
}

// ErrDropped means that the person has given up an input.
var ErrDropped = errors.New("dropped")

// OpenTypedLines prepares the terminal for a session. history is the file of its history, or empty.
// complete returns the words that fit at the end of the typed text, and the text before them.
// beforeExit is called before a second interrupt ends the process.
func OpenTypedLines(t *Terminal, history string, complete func(typed string) (head string, words []string), beforeExit func()) (*TypedLines, error) {
	l := &TypedLines{term: t, beforeExit: beforeExit, interrupts: make(chan os.Signal, 1)}
	var err error
	if l.whole, err = liner.TerminalMode(); err != nil {
		return nil, err
	}
	l.line = liner.NewLiner()
	if l.raw, err = liner.TerminalMode(); err != nil {
		l.line.Close()
		return nil, err
	}
	l.line.SetCtrlCAborts(true)
	l.line.SetTabCompletionStyle(liner.TabPrints)
	l.line.SetWordCompleter(func(line string, at int) (head string, words []string, tail string) {
		runes := []rune(line)
		// Pasted text may be indented by tabs.
		if before := string(runes[:at]); l.more && strings.TrimSpace(before) == "" {
			return before, []string{"  "}, string(runes[at:])
		}
		head, words = complete(string(runes[:at]))
		return head, words, string(runes[at:])
	})
	if history != "" {
		l.openHistory(history)
	}
	signal.Reset(os.Interrupt) // it ends an input, not the program
	signal.Notify(l.interrupts, os.Interrupt)
	return l, nil
}
