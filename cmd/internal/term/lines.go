package term

import (
	"obelus/cmd/internal/exit"

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
)

// pipedLines are the lines of a file or of another program.
type pipedLines struct{ from *bufio.Reader }

func NewPipedLines(r io.Reader) *pipedLines { return &pipedLines{bufio.NewReader(r)} }

func (l *pipedLines) Read(ctx context.Context, _ bool) (string, error) {
	return cli.WaitFor(ctx, func() (string, error) {
		line, err := l.from.ReadString('\n')
		if line != "" {
			err = nil // the last line may have no end
		}
		return strings.TrimRight(line, "\r\n"), err
	})
}

func (l *pipedLines) Running(ctx context.Context) (context.Context, func()) { return ctx, func() {} }

// typedLines are the lines that a person types, with editing, history and
// completion, where the terminal can move its cursor.
type typedLines struct {
	term       *Terminal
	line       *liner.State
	more       bool              // the line goes on with an input
	whole, raw liner.ModeApplier // of the terminal, while something runs and while a line is typed
	history    string            // the file, or empty
	interrupts chan os.Signal
	beforeExit func()     // waits until an interrupted run is recorded
	pending    chan typed // where a line is being read already
}

// typed is a line that was typed, or why there is none.
type typed struct {
	line string
	err  error
}

func (l *typedLines) Close() {
	signal.Stop(l.interrupts)
	l.line.Close()
}

func (l *typedLines) Read(ctx context.Context, more bool) (string, error) {
	l.more = more
	prompt := "> "
	if more {
		prompt = ">> "
	}
	l.term.endLine() // the editor writes its line anew, from the first column on
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

// prompt reads a line. Where the editor leaves the terminal as it is, Ctrl-C is a signal:
// what was typed is dropped then, and the next line comes from the same reading.
func (l *typedLines) prompt(ctx context.Context, prompt string) (string, error) {
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
		l.term.Tell("") // the terminal shows ^C
		return "", liner.ErrPromptAborted
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Running lets an interrupt end one input. The second one ends the program, as
// it does elsewhere.
func (l *typedLines) Running(ctx context.Context) (context.Context, func()) {
	l.whole.ApplyMode()
	select {
	case <-l.interrupts: // it came too late for the input before
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched) // or it may take what is meant for the next input
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
				l.term.Tell("") // the terminal shows ^C
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

// MostHistory is how many lines of history are kept.
const MostHistory = 1000

// openHistory reads the history, and shortens the file if it is long. A history
// that can't be kept is no reason not to go on.
func (l *typedLines) openHistory(file string) {
	l.history = file
	content, err := os.ReadFile(file)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) || os.MkdirAll(filepath.Dir(file), 0o777) != nil {
			l.history = ""
		}
		return
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	if len(lines) > 2*MostHistory {
		lines = lines[len(lines)-MostHistory:]
		short := file + ".new"
		if os.WriteFile(short, []byte(strings.Join(lines, "\n")+"\n"), 0o600) == nil {
			os.Rename(short, file)
		}
	}
	for _, line := range lines {
		l.line.AppendHistory(line)
	}
}

// appendHistory keeps a line at once, so that a session that is killed, or
// another one at the same time, loses none.
func (l *typedLines) appendHistory(line string) {
	if l.history == "" {
		return
	}
	f, err := os.OpenFile(l.history, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600) // inputs are nobody else's business
	if err != nil {
		return
	}
	f.WriteString(line + "\n")
	f.Close()
}

// LineReader is where the lines of a session come from. It gives io.EOF where
// the session is to end, and errDropped for a line that is not wanted.
type LineReader interface {
	Read(ctx context.Context, more bool) (string, error)
	// running gives a context for one input, which an interrupt ends.
	Running(ctx context.Context) (context.Context, func())
}

var ErrDropped = errors.New("dropped")

// OpenTypedLines prepares the terminal for a session. history is the file of its history, or empty;
// complete returns the words that can stand at the end of what was typed, and what stands before
// them; beforeExit is called before a second interrupt ends the process.
func OpenTypedLines(t *Terminal, history string, complete func(typed string) (head string, words []string), beforeExit func()) (*typedLines, error) {
	l := &typedLines{term: t, beforeExit: beforeExit, interrupts: make(chan os.Signal, 1)}
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
		if before := string(runes[:at]); l.more && strings.TrimSpace(before) == "" { // a text that is pasted may be indented by tabs
			return before, []string{"  "}, string(runes[at:])
		}
		head, words = complete(string(runes[:at]))
		return head, words, string(runes[at:])
	})
	if history != "" {
		l.openHistory(history)
	}
	signal.Reset(os.Interrupt) // it ends what runs, not the program
	signal.Notify(l.interrupts, os.Interrupt)
	return l, nil
}
