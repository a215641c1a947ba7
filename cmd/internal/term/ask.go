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

	"obelus/engine"
	"obelus/engine/journal"

	"obelus/cmd/internal/human"
	"obelus/cmd/internal/view"
)

// asker asks a person about held calls, one after the other. The answers go
// through the log, as those of approve and reject do, so that the run finds
// them there.
type asker struct {
	term   *Terminal
	stdin  io.Reader
	by     string                                        // who decides: the login name
	decide func(context.Context, journal.Decision) error // records a decision
	place  func(journal.Record) string                   // the name of a call in the run
	typed  chan typedLine                                // what the person types; one reader sends it, once there is a question
	reads  sync.Once

	mu       sync.Mutex
	queue    []journal.Record
	later    map[string]bool                // calls that the person leaves held, by context/call
	busy     bool                           // a question is on the terminal
	asking   string                         // about this call, by context/call
	overtook map[string]chan journal.Record // by call that is asked about: receives its record when somebody else decides first
}

// typedLine is a line, or why there is none.
type typedLine struct {
	text string
	err  error
}

// NewAsker returns an asker. decide records what the person who is at stdin decides.
func NewAsker(t *Terminal, stdin io.Reader, by string, place func(journal.Record) string, decide func(context.Context, journal.Decision) error) *asker {
	return &asker{term: t, stdin: stdin, by: by, decide: decide, place: place, typed: make(chan typedLine), later: map[string]bool{}, overtook: map[string]chan journal.Record{}}
}

// Attend lets a runner hold calls for whoever sits at the terminal.
func (q *asker) Attend(r *engine.Runner) {
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
		return !q.later[record.Context+"/"+record.Call]
	}
}

func (q *asker) add(r journal.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, r)
	if !q.busy {
		q.busy = true
		go q.work()
	}
}

// decided ends the question about a call about which somebody else has decided.
func (q *asker) decided(r journal.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	name := r.Context + "/" + r.Call
	q.queue = slices.DeleteFunc(q.queue, func(one journal.Record) bool { return one.Context+"/"+one.Call == name })
	if q.asking == name {
		select {
		case q.overtook[name] <- r:
		default:
		}
	}
}

// work asks until no question is left. What else there is to tell waits
// meanwhile.
func (q *asker) work() {
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
		q.overtook[q.asking] = make(chan journal.Record, 1)
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
			q.term.Say("%s", overtaken.Error())
			continue
		}
		if err != nil {
			if !errors.Is(err, errLater) {
				q.term.Fail(err)
			}
			q.mu.Lock()
			q.later[r.Context+"/"+r.Call] = true
			q.mu.Unlock()
		}
	}
}

// errLater is a person who does not decide now.
var errLater = errors.New("later")

// overtakenError is a question that somebody else has answered.
type overtakenError struct {
	call string // its name in the run
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

// laterOr is what becomes of a question without an answer.
func laterOr(err error) error {
	if errors.As(err, new(*overtakenError)) {
		return err
	}
	return errLater
}

// ask shows one call and reads what the person says.
func (q *asker) ask(r journal.Record) (journal.Decision, error) {
	d := journal.Decision{Context: r.Context, Call: r.Call, Who: journal.Who{By: q.by}}
	t := q.term
	t.question("%s", q.describe(r))
	q.forget()
	for {
		t.question("  approve? %s ", t.Paint(human.Grey, "[y]es, [n]o, [l]ater:"))
		answer, err := q.read(r)
		if err != nil {
			return d, laterOr(err)
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return d, nil
		case "l", "later":
			return d, errLater
		case "n", "no":
			t.question("  why not? ")
			reason, err := q.read(r)
			if err != nil {
				return d, laterOr(err)
			}
			d.Reject, d.Reason = true, reason
			return d, nil
		}
	}
}

// forget drops what was typed before the question was there to be answered.
func (q *asker) forget() {
	if file, ok := q.stdin.(*os.File); ok {
		dropInput(int(file.Fd()))
	}
	select {
	case <-q.typed:
	default:
	}
}

// read reads what the person types, to the end of the line, unless somebody else decides about
// the call before that.
func (q *asker) read(r journal.Record) (string, error) {
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
	overtook := q.overtook[r.Context+"/"+r.Call]
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
	case by := <-overtook:
		return "", &overtakenError{q.place(r), by.Hold}
	}
}

// describe is a held call for the person who decides: what it is run with, and
// what it may see.
func (q *asker) describe(r journal.Record) string {
	t := q.term
	r.Call = q.place(r)
	var b strings.Builder
	fmt.Fprintf(&b, "%s call %s %s wants to run", t.Paint(human.Yellow, "‖"), r.Call, t.Paint(human.Blue, human.Printable(r.Tool)))
	if r.Instance != "" {
		fmt.Fprintf(&b, " for %s", human.Printable(r.Instance))
	}
	b.WriteByte('\n')
	for _, name := range view.SortedNames(r.Hold.Arguments) {
		fmt.Fprintf(&b, "    %s = %s\n", human.Printable(name), human.JSON(r.Hold.Arguments[name])) // whole: it is what is approved
	}
	if len(r.Hold.Scopes) > 0 {
		fmt.Fprintf(&b, "  it may see %s: %s\n", strings.Join(r.Hold.Scopes, ", "), human.JSON(map[string]any(r.Hold.Granted)))
	}
	return b.String()
}
