package term

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"obelus/cmd/internal/human"
	"obelus/cmd/internal/view"
	"obelus/engine/journal"
)

// Progress shows a run. On a terminal, finished calls stand above the running ones, which show the
// time they have taken; elsewhere each change is a line.
type Progress struct {
	term    *Terminal
	json    bool
	context string // the name of a new context, printed once the run has begun; else empty
	Root    string // the run's own context; calls of other contexts are its delegates'
	stop    chan struct{}
	done    chan struct{}

	mu      sync.Mutex
	running map[[2]string]bool // in JSON, the calls that were printed as running, by context and call
	warned  map[[2]string]bool // the calls whose warnings were printed
}

// liveLines holds the lines at the bottom of a terminal that are redrawn: the running calls.
type liveLines struct {
	running []liveCall
	paint   func(colour, text string) Painted
	widths  []int // the columns of each line that is drawn
	frame   int
	hidden  bool // a question is shown
}

type liveCall struct {
	call, tool string
	since      time.Time
}

// maxLive is how many running calls are shown by name.
const maxLive = 8

func (l *liveLines) erase(w io.Writer) {
	if len(l.widths) == 0 {
		return
	}
	rows := 0
	columns, _ := sizeOf(w)
	for _, drawn := range l.widths {
		rows++
		if columns > 0 { // a terminal that has become narrower has wrapped the line
			rows += max(drawn-1, 0) / columns
		}
	}
	fmt.Fprintf(w, "\r\x1b[%dA\x1b[J", rows) // to the first column, since typed text moves the cursor
	l.widths = nil
}

func (l *liveLines) draw(w io.Writer) {
	if l.hidden {
		return
	}
	columns, rows := sizeOf(w)
	most := maxLive
	switch {
	case rows == 1: // lines that have left the screen can't be erased
		return
	case rows > 0:
		most = min(most, max(rows-2, 0))
	}
	var b strings.Builder
	line := func(mark, text, span string) {
		fmt.Fprintf(&b, "%s%s%s\n", l.paint(human.Blue, mark), text, l.paint(human.Grey, span))
		l.widths = append(l.widths, human.Widths.StringWidth(mark+text+span))
	}
	spinner := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	for i, c := range l.running {
		if i == most {
			line("", human.Cut(fmt.Sprintf("  and %d more", len(l.running)-most), columns), "")
			break
		}
		mark, span := string(spinner[l.frame%len(spinner)]), human.Duration(time.Since(c.since))
		name := c.call + " " + c.tool
		if columns > 0 {
			const blanks, interrupt = 2, 2 // a terminal may show ^C at the end of any line
			name = human.Cut(name, max(columns-human.Widths.StringWidth(mark+span)-blanks-interrupt, 1))
		}
		line(mark, " "+name+" ", span)
	}
	io.WriteString(w, b.String()) // in one write, so that it does not flicker
}

// NewProgress shows the progress of a run on a terminal until End. context is the name of a new
// context, or empty.
func NewProgress(t *Terminal, json bool, context string) *Progress {
	p := &Progress{term: t, json: json, context: context, running: map[[2]string]bool{}, warned: map[[2]string]bool{}}
	if t.Moves && !t.Quiet && !json {
		t.live = &liveLines{paint: t.Paint}
		p.stop, p.done = make(chan struct{}), make(chan struct{})
		go p.spin()
	}
	return p
}

func (p *Progress) spin() {
	defer close(p.done)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.term.mu.Lock()
			p.term.live.frame++
			p.term.live.erase(p.term.Err)
			p.term.live.draw(p.term.Err)
			p.term.mu.Unlock()
		}
	}
}

// Begin prints the name of the new context.
func (p *Progress) Begin() {
	if p.context != "" {
		p.term.Infof("context %s", p.context)
		p.context = ""
	}
}

// End erases the lines that move, and leaves the lines of finished calls.
func (p *Progress) End() {
	p.term.Unpause() // the run may have ended before a question was answered
	if p.stop == nil {
		return
	}
	close(p.stop)
	<-p.done
	p.stop = nil
	p.term.mu.Lock()
	p.term.live.erase(p.term.Err)
	p.term.live = nil
	p.term.mu.Unlock()
}

// Observe shows a change of a call.
func (p *Progress) Observe(r journal.Record) {
	p.Begin()
	p.warn(r)
	if p.json {
		if p.changes(r) {
			p.term.NDJSON(r)
		}
		return
	}
	if r.Status == journal.Blocked || r.Status == journal.Ready { // another change will follow
		return
	}
	r.Call = p.CallName(r)
	if p.term.live != nil {
		p.track(r)
		if r.Status == journal.Running && !r.Rests {
			return
		}
	}
	p.term.Infof("%s", p.describe(r))
}

// warn prints the warning of a call, once.
func (p *Progress) warn(r journal.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if call := [2]string{r.Context, r.Call}; r.Warning != "" && !p.warned[call] {
		p.warned[call] = true
		p.term.Infof("warning: call %s (%s): %s", p.CallName(r), r.Tool, r.Warning)
	}
}

// changes reports whether a record says more than that a call is still running.
func (p *Progress) changes(r journal.Record) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	call, runs := [2]string{r.Context, r.Call}, r.Status == journal.Running
	if runs && p.running[call] {
		return false
	}
	if runs {
		p.running[call] = true
	} else {
		delete(p.running, call)
	}
	return true
}

// CallName returns a call's name in the run.
func (p *Progress) CallName(r journal.Record) string { return CallName(p.Root, r.Context, r.Call) }

// CallName returns the name of a call of a context in the run of root: "1.2", or "1.2/1.1" for call
// 1.1 of the delegate of call 1.2. For a call of another run its context stands before it. Without
// a root all calls are of the run.
func CallName(root, context, call string) string {
	inside, ok := strings.CutPrefix(context, root+".")
	switch {
	case context == root || root == "":
		return call
	case !ok:
		return context + "/" + call
	}
	var calls []string
	parts := strings.Split(inside, ".")
	for i := 0; i+1 < len(parts); i += 2 {
		calls = append(calls, parts[i]+"."+parts[i+1])
	}
	return strings.Join(append(calls, call), "/")
}

// track updates the list of running calls.
func (p *Progress) track(r journal.Record) {
	p.term.mu.Lock()
	defer p.term.mu.Unlock()
	l := p.term.live
	l.erase(p.term.Err)
	at := slices.IndexFunc(l.running, func(c liveCall) bool { return c.call == r.Call })
	switch running := r.Status == journal.Running; {
	case running && at < 0:
		l.running = append(l.running, liveCall{r.Call, human.Printable(r.Tool), time.Now()})
	case !running && at >= 0:
		l.running = slices.Delete(l.running, at, at+1)
	}
	l.draw(p.term.Err)
}

// describe returns a line about a call: its status, its duration, and its outputs or its error.
func (p *Progress) describe(r journal.Record) Painted {
	mark := statusMarks[r.Status]
	status := r.Outcome()
	switch {
	case r.Rests:
		status = strings.TrimSuffix(view.FailedAttempt(r), " ")
	case status == journal.OutcomeRejected:
		mark = statusMarks[journal.Failed]
	case r.Handled != nil:
		mark.colour = human.Yellow
	case r.Status == journal.Running && r.MaxTries > 0:
		status += fmt.Sprintf(" (attempt %d of %d)", r.Attempts+1, r.MaxTries)
	}
	parts := []string{r.Call, r.Tool, status}
	if r.Instance != "" {
		parts = slices.Insert(parts, 2, r.Instance)
	}
	begins := p.term.Paint(mark.colour, mark.mark) + Painted(" "+human.Printable(strings.Join(parts, " ")))
	if r.Status == journal.Done || r.Status == journal.Failed && r.Started != "" {
		begins += " " + p.term.Paint(human.Grey, human.Duration(time.Duration(r.Duration*float64(time.Millisecond))))
	}
	parts = nil
	if len(r.Writes) > 0 {
		parts = append(parts, "→ "+strings.Join(r.Writes, " "))
	}
	if message, ok := r.Error["message"].(string); ok && (r.Status == journal.Failed || r.Rests) {
		parts = append(parts, human.FirstLine(message))
	}
	if r.Handled != nil {
		parts = append(parts, "("+view.HandledFailure(r)+")")
	}
	if len(r.WaitingOn) > 0 {
		parts = append(parts, "for "+strings.Join(r.WaitingOn, " "))
	}
	if until := view.Until(r); until != "" {
		parts = append(parts, until)
	}
	if r.Reason != "" {
		parts = append(parts, "("+r.Reason+")")
	}
	if note := r.AnswerNote(); note != "" && r.Status.Settled() {
		parts = append(parts, "("+note+")")
	}
	for _, part := range parts {
		begins += Painted(" " + human.Printable(part))
	}
	return begins
}

// statusMarks are the symbol and the colour of each status.
var statusMarks = map[journal.Status]struct{ mark, colour string }{
	journal.Done:        {"✓", human.Green},
	journal.Failed:      {"✗", human.Red},
	journal.Skipped:     {"–", human.Grey},
	journal.Waiting:     {"…", human.Yellow},
	journal.Held:        {"‖", human.Yellow},
	journal.Interrupted: {"■", human.Yellow},
	journal.Cancelled:   {"■", human.Yellow},
	journal.InDoubt:     {"?", human.Yellow},
	journal.Running:     {"▸", human.Blue},
}
