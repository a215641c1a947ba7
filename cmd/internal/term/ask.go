package term

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"obelus/cmd/internal/human"
	"obelus/cmd/internal/view"
	"obelus/engine"
	"obelus/engine/journal"
)

// Asker asks a person about held calls, one after the other. The answers go through the log, as the
// decisions of approve and reject do, and the run finds them there.
type Asker struct {
	term  *Terminal
	stdin io.Reader
	// The login name, recorded with each decision.
	by       string
	decide   func(context.Context, journal.Decision) error // records a decision
	callName func(journal.Record) string                   // the name of a call in the run
	// Lines that the person types, from one reader that starts with the first question.
	typed chan typedLine
	reads sync.Once

	mu        sync.Mutex
	queue     []journal.Record
	postponed map[string]bool // calls that the person leaves held, by context/call
	busy      bool            // a question is on the terminal
	asking    string          // the call of the question, as context/call
	// Receives the record if another decision releases the call of the question first.
	overtaken chan journal.Record
}

// typedLine is a line, or the error of reading it.
type typedLine struct {
	text string
	err  error
}

// NewAsker returns an asker. by is recorded with each decision, callName names a call in the run,
// and decide records a decision.
func NewAsker(t *Terminal, stdin io.Reader, by string, place func(journal.Record) string, decide func(context.Context, journal.Decision) error) *Asker {
	return &Asker{term: t, stdin: stdin, by: by, decide: decide, callName: place, typed: make(chan typedLine), postponed: map[string]bool{}}
}

// Attend has a runner keep held calls for the person at the terminal.
func (q *Asker) Attend(r *engine.Runner) {
	observe := r.Observe
	r.Observe = func(record journal.Record) {
		observe(record)
		if record.Status == journal.Held {
			q.add(record)
		} else if record.Hold != nil {
			q.decided(record)
		}
	}
	r.Attend = func(record journal.Record) bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return !q.postponed[record.Context+"/"+record.Call]
	}
}

func (q *Asker) add(r journal.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, r)
	if !q.busy {
		q.busy = true
		go q.askAll()
	}
}

// decided ends the question about a call that another decision has released.
func (q *Asker) decided(r journal.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	name := r.Context + "/" + r.Call
	q.queue = slices.DeleteFunc(q.queue, func(one journal.Record) bool { return one.Context+"/"+one.Call == name })
	if q.asking == name {
		select {
		case q.overtaken <- r:
		default:
		}
	}
}

// askAll asks until no question is left. Other output waits meanwhile.
func (q *Asker) askAll() {
	for {
		q.mu.Lock()
		if len(q.queue) == 0 {
			q.busy = false
			q.mu.Unlock()
			return
		}
		r := q.queue[0]
		q.queue = q.queue[1:]
		q.asking = r.Context + "/" + r.Call
		q.overtaken = make(chan journal.Record, 1)
		q.mu.Unlock()
		resume := q.term.pause()
		d, err := q.ask(r)
		if err == nil {
			q.mu.Lock()
			q.asking = "" // the records that follow result from this decision
			q.mu.Unlock()
			err = q.decide(context.Background(), d)
		}
		resume()
		if overtaken, ok := errors.AsType[*overtakenError](err); ok {
			q.term.Infof("%s", overtaken.Error())
			continue
		}
		if err != nil {
			if !errors.Is(err, errPostponed) {
				q.term.Error(err)
			}
			q.mu.Lock()
			q.postponed[r.Context+"/"+r.Call] = true
			q.mu.Unlock()
		}
	}
}

// errPostponed means that the person does not decide now.
var errPostponed = errors.New("later")

// overtakenError means that another decision came before the answer.
type overtakenError struct {
	call string // the call's name in the run
	hold *journal.Hold
}

func (e *overtakenError) Error() string {
	text := fmt.Sprintf("call %s was %s by %s meanwhile", e.call, e.hold.Decision, human.Printable(e.hold.Name()))
	for i, name := range e.hold.Corrected {
		if i == 0 {
			text += ", with"
		}
		text += fmt.Sprintf(" %s=%s", human.Printable(name), human.JSON(e.hold.Arguments[name]))
	}
	return text
}

// postponedOr returns the error of a question without an answer.
func postponedOr(err error) error {
	if errors.As(err, new(*overtakenError)) {
		return err
	}
	return errPostponed
}

// ask shows one call and reads the person's decision.
func (q *Asker) ask(r journal.Record) (journal.Decision, error) {
	d := journal.Decision{Context: r.Context, Call: r.Call, Who: journal.Who{By: q.by}}
	t := q.term
	t.askf("%s", q.describe(r))
	q.dropTyped()
	for {
		t.askf("  approve? %s ", t.Paint(human.Grey, "[y]es, [n]o, [l]ater:"))
		answer, err := q.readAnswer(r)
		if err != nil {
			return d, postponedOr(err)
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return d, nil
		case "l", "later":
			return d, errPostponed
		case "n", "no":
			t.askf("  why not? ")
			reason, err := q.readAnswer(r)
			if err != nil {
				return d, postponedOr(err)
			}
			d.Reject, d.Reason = true, reason
			return d, nil
		}
	}
}

// dropTyped drops the input that was typed before the question was shown.
func (q *Asker) dropTyped() {
	if file, ok := q.stdin.(*os.File); ok {
		dropInput(int(file.Fd()))
	}
	select {
	case <-q.typed:
	default:
	}
}

// readAnswer reads a line that the person types, unless another decision about the call comes
// first.
func (q *Asker) readAnswer(r journal.Record) (string, error) {
	q.reads.Do(func() {
		go func() {
			lines := bufio.NewReader(q.stdin)
			for {
				text, err := lines.ReadString('\n')
				q.typed <- typedLine{text, err}
				if err != nil {
					close(q.typed)
					return
				}
			}
		}()
	})
	q.mu.Lock()
	overtaken := q.overtaken
	q.mu.Unlock()
	select {
	case line, ok := <-q.typed:
		if !ok {
			return "", io.EOF
		}
		if line.err == nil {
			q.term.answered()
		}
		return line.text, line.err
	case by := <-overtaken:
		return "", &overtakenError{q.callName(r), by.Hold}
	}
}

// describe returns a held call for the person: its arguments and the data that it may see.
func (q *Asker) describe(r journal.Record) string {
	t := q.term
	r.Call = q.callName(r)
	var b strings.Builder
	fmt.Fprintf(&b, "%s call %s %s wants to run", t.Paint(human.Yellow, "‖"), r.Call, t.Paint(human.Blue, human.Printable(r.Tool)))
	if r.Instance != "" {
		fmt.Fprintf(&b, " for %s", human.Printable(r.Instance))
	}
	b.WriteByte('\n')
	for _, name := range view.SortedNames(r.Hold.Arguments) {
		// Not cut, since it is approved as shown.
		fmt.Fprintf(&b, "    %s = %s\n", human.Printable(name), human.JSON(r.Hold.Arguments[name]))
	}
	if r.Corrected != nil {
		fmt.Fprintf(&b, "   %s\n", human.Printable(view.Corrections(r)))
	}
	if len(r.Hold.Scopes) > 0 {
		fmt.Fprintf(&b, "  it may see %s: %s\n", human.Printable(strings.Join(r.Hold.Scopes, ", ")), human.JSON(map[string]any(r.Hold.Granted)))
	}
	return b.String()
}

// AskYes asks a question that is answered by yes or no, which is the answer to anything else.
func AskYes(ctx context.Context, t *Terminal, stdin io.Reader, question string) (bool, error) {
	t.askf("%s [y/N] ", question)
	line, err := NewPipedLines(stdin).Read(ctx, true)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", err
}
