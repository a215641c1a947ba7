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

// Progress shows a run: on a terminal what is done above what runs, with the
// time that it has taken; elsewhere a line per change.
type Progress struct {
	term    *Terminal
	json    bool
	context string // a new context, of which people are told once the run has begun
	Root    string // the run's own context; calls of others are its delegates'
	stop    chan struct{}
	done    chan struct{}

	mu    sync.Mutex
	still map[[2]string]bool // in JSON, the calls that were told to run, by context and call
}

// liveLines is what moves at the bottom of a terminal: the calls that run.
type liveLines struct {
	running []liveCall
	paint   func(colour, text string) string
	drawn   []int // how many columns each line has that stands there
	frame   int
	still   bool // a question is on the terminal
}

type liveCall struct {
	call, tool string
	since      time.Time
}

// maxLive is how many running calls are shown by name.
const maxLive = 8

func (l *liveLines) erase(w io.Writer) {
	if len(l.drawn) == 0 {
		return
	}
	rows := 0
	columns, _ := sizeOf(w)
	for _, drawn := range l.drawn {
		rows++
		if columns > 0 { // a terminal that has become narrower has broken the line
			rows += max(drawn-1, 0) / columns
		}
	}
	fmt.Fprintf(w, "\r\x1b[%dA\x1b[J", rows) // what a person typed has moved the cursor
	l.drawn = nil
}

func (l *liveLines) draw(w io.Writer) {
	if l.still {
		return
	}
	columns, rows := sizeOf(w)
	most := maxLive
	switch {
	case rows == 1: // what has left the screen can't be taken back
		return
	case rows > 0:
		most = min(most, max(rows-2, 0))
	}
	var b strings.Builder
	line := func(mark, text, span string) {
		fmt.Fprintf(&b, "%s%s%s\n", l.paint(human.Blue, mark), text, l.paint(human.Grey, span))
		l.drawn = append(l.drawn, human.Widths.StringWidth(mark+text+span))
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
	io.WriteString(w, b.String()) // at once, so that it does not flicker
}

func NewProgress(t *Terminal, json bool, context string) *Progress {
	p := &Progress{term: t, json: json, context: context, still: map[[2]string]bool{}}
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

// Begin names the new context.
func (p *Progress) Begin() {
	if p.context != "" {
		p.term.Say("context %s", p.context)
		p.context = ""
	}
}

// End leaves the lines of what is done, and takes away what moves.
func (p *Progress) End() {
	p.term.Unpause() // a question that the end of the run has overtaken
	if p.stop == nil {
		return
	}
	close(p.stop)
	<-p.done
	p.term.mu.Lock()
	p.term.live.erase(p.term.Err)
	p.term.live = nil
	p.term.mu.Unlock()
}

// Observe is told of every change of a call.
func (p *Progress) Observe(r journal.Record) {
	p.Begin()
	if p.json {
		if p.changes(r) {
			p.term.NDJSON(r)
		}
		return
	}
	if r.Status == journal.Blocked || r.Status == journal.Ready { // it will be heard of again
		return
	}
	r.Call = p.Place(r)
	if p.term.live != nil {
		p.track(r)
		if r.Status == journal.Running && !r.Rests {
			return
		}
	}
	p.term.Say("%s", p.describe(r))
}

// changes tells whether there is more to a record than that a call runs still.
func (p *Progress) changes(r journal.Record) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	call, runs := [2]string{r.Context, r.Call}, r.Status == journal.Running
	if runs && p.still[call] {
		return false
	}
	if runs {
		p.still[call] = true
	} else {
		delete(p.still, call)
	}
	return true
}

// Place is a call's place in the run: "1.2", or "1.2/1.1" for call 1.1 of the
// delegate of call 1.2.
func (p *Progress) Place(r journal.Record) string {
	inside, ok := strings.CutPrefix(r.Context, p.Root+".")
	switch {
	case r.Context == p.Root || p.Root == "":
		return r.Call
	case !ok:
		return r.Context + "/" + r.Call
	}
	var calls []string
	parts := strings.Split(inside, ".")
	for i := 0; i+1 < len(parts); i += 2 {
		calls = append(calls, parts[i]+"."+parts[i+1])
	}
	return strings.Join(append(calls, r.Call), "/")
}

// track keeps the list of what runs.
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

// describe is one line about a call: what has become of it, how long it took,
// where it wrote or why it did not.
func (p *Progress) describe(r journal.Record) string {
	mark := statusMarks[r.Status]
	status := r.Outcome()
	switch {
	case r.Rests:
		status = strings.TrimSuffix(view.FailedAttempt(r), " ")
	case r.Handled != nil:
		mark.colour = human.Yellow
	case r.Status == journal.Running && r.MaxTries > 0:
		status += fmt.Sprintf(" (attempt %d of %d)", r.Attempts+1, r.MaxTries)
	}
	parts := []string{p.term.Paint(mark.colour, mark.mark), r.Call, human.Printable(r.Tool), status}
	if r.Instance != "" {
		parts = slices.Insert(parts, 3, human.Printable(r.Instance))
	}
	if r.Status == journal.Done || r.Status == journal.Failed && r.Started != "" {
		parts = append(parts, p.term.Paint(human.Grey, human.Duration(time.Duration(r.Duration*float64(time.Millisecond)))))
	}
	if len(r.Writes) > 0 {
		parts = append(parts, "→ "+strings.Join(r.Writes, " "))
	}
	if message, ok := r.Error["message"].(string); ok && (r.Status == journal.Failed || r.Rests) {
		parts = append(parts, human.FirstLine(message))
	}
	if r.Handled != nil {
		parts = append(parts, "("+view.Handled(r)+")")
	}
	if len(r.WaitingOn) > 0 {
		parts = append(parts, "for "+strings.Join(r.WaitingOn, " "))
	}
	if r.Reason != "" {
		parts = append(parts, "("+r.Reason+")")
	}
	return strings.Join(parts, " ")
}

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
