package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"obelus/engine"
)

// asksPeople tells whether somebody sits at the terminal who can decide about
// held calls while a run goes on.
func (a *app) asksPeople() bool {
	file, ok := a.stdin.(*os.File)
	return ok && isTerminal(file) && a.term.errTTY && !a.quiet && !a.json && !a.prompting
}

// asker asks a person about held calls, one after the other. The answers go
// through the log, as those of approve and reject do, so that the run finds
// them there.
type asker struct {
	app   *app
	place func(engine.Record) string // a call's name in the run
	lines *bufio.Reader

	mu    sync.Mutex
	queue []engine.Record
	later map[string]bool // calls that the person leaves held, by context/call
	busy  bool            // a question is on the terminal
}

func newAsker(a *app, place func(engine.Record) string) *asker {
	return &asker{app: a, place: place, lines: bufio.NewReader(a.stdin), later: map[string]bool{}}
}

// attend lets a runner hold calls for whoever sits at the terminal.
func (q *asker) attend(r *engine.Runner) {
	observe := r.Observe
	r.Observe = func(record engine.Record) {
		observe(record)
		if record.Status == engine.Held {
			q.add(record)
		}
	}
	r.Attend = func(record engine.Record) bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return !q.later[record.Context+"/"+record.Call]
	}
}

func (q *asker) add(r engine.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, r)
	if !q.busy {
		q.busy = true
		go q.work()
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
		q.mu.Unlock()
		resume := q.app.term.pause()
		d, err := q.ask(r)
		if err == nil {
			err = q.app.decided(context.Background(), d)
		}
		resume()
		if err != nil {
			if !errors.Is(err, errLater) {
				q.app.term.fail(err)
			}
			q.mu.Lock()
			q.later[r.Context+"/"+r.Call] = true
			q.mu.Unlock()
		}
	}
}

// errLater is a person who does not decide now.
var errLater = errors.New("later")

// ask shows one call and reads what the person says.
func (q *asker) ask(r engine.Record) (engine.Decision, error) {
	d := engine.Decision{Context: r.Context, Call: r.Call, Who: engine.Who{By: loginName()}}
	t := q.app.term
	t.question("%s", q.describe(r))
	q.forget()
	for {
		t.question("  approve? %s ", t.paint(grey, "[y]es, [n]o, [l]ater:"))
		answer, err := q.read()
		if err != nil {
			return d, errLater
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return d, nil
		case "l", "later":
			return d, errLater
		case "n", "no":
			t.question("  why not? ")
			reason, err := q.read()
			if err != nil {
				return d, errLater
			}
			d.Reject, d.Reason = true, reason
			return d, nil
		}
	}
}

// forget drops what was typed before the question was there to be answered.
func (q *asker) forget() {
	if file, ok := q.app.stdin.(*os.File); ok {
		dropInput(int(file.Fd()))
	}
	q.lines.Reset(q.app.stdin)
}

// read reads what the person types, to the end of the line.
func (q *asker) read() (string, error) {
	line, err := q.lines.ReadString('\n')
	if err == nil {
		q.app.term.answered()
	}
	return line, err
}

// describe is a held call for the person who decides: what it is run with, and
// what it may see.
func (q *asker) describe(r engine.Record) string {
	t := q.app.term
	r.Call = q.place(r)
	var b strings.Builder
	fmt.Fprintf(&b, "%s call %s %s wants to run", t.paint(yellow, "‖"), r.Call, t.paint(blue, printable(r.Tool)))
	if r.Instance != "" {
		fmt.Fprintf(&b, " for %s", printable(r.Instance))
	}
	b.WriteByte('\n')
	for _, name := range sorted(r.Hold.Arguments) {
		fmt.Fprintf(&b, "    %s = %s\n", printable(name), shown(r.Hold.Arguments[name])) // whole: it is what is approved
	}
	if len(r.Hold.Scopes) > 0 {
		fmt.Fprintf(&b, "  it may see %s: %s\n", strings.Join(r.Hold.Scopes, ", "), shown(map[string]any(r.Hold.Granted)))
	}
	return b.String()
}
