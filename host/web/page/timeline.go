package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
)

// The sizes of a timeline, in pixels.
const (
	timelineWidth = 1000
	barRow        = 24
	cutWidth      = 28 // of time in which nothing ran
)

// timelineView shows when calls ran.
type timelineView struct {
	address
	Height int
	Rows   []barView
	Cuts   []cutView // idle time that takes no room
	More   int       // calls that have no room
	Span   string    // from the first begin to the last end
	Busy   string    // the same without idle time
	Pauses bool      // a call paused before another attempt
	Waits  bool      // a call waited, or was held
}

// barView is a call's bar, or the heading of the calls below it.
type barView struct {
	Heading                 string
	Call, Title, Word, Took string
	Y                       int
	Parts                   []partView
	Tries                   int
	Critical                bool // the run could not have been faster without this call being faster
}

// partView is a part of a bar.
type partView struct {
	Kind     string // the call's status where it ran; failed for an attempt that failed; pause or wait
	X, Width int
}

// cutView is a time in which nothing ran.
type cutView struct {
	X    int
	Took string
}

// interval is the time of a call, without the pauses in it.
type interval struct {
	line         *journal.Line
	began, ended time.Time
	pauses       []journal.Pause // each has an end
	rests        bool            // the last pause goes on
}

// span is a time in which a call ran.
type span struct{ from, to time.Time }

// spans returns the times in which the call ran: those between its pauses.
func (i interval) spans() (all []span) {
	from := i.began
	for _, p := range i.pauses {
		if p.Retry || p.Began.After(from) { // an attempt may have taken no time
			all = append(all, span{from, later(from, p.Began)})
		}
		from = later(from, p.Ended)
	}
	if !i.rests {
		all = append(all, span{from, later(from, i.ended)})
	}
	return all
}

// ran returns how long the call ran.
func (i interval) ran() (sum time.Duration) {
	for _, s := range i.spans() {
		sum += s.to.Sub(s.from)
	}
	return sum
}

// mostPauses bounds the pauses of a call that are shown: the newest ones.
const mostPauses = 100

// intervalsOf returns the times of the calls that have begun, sorted by their beginnings. What goes
// on ends at until.
func intervalsOf(lines []*journal.Line, pauses map[string][]journal.Pause, until time.Time) (all []interval) {
	all = make([]interval, 0, len(lines))
	for _, line := range lines {
		own := pauses[line.Call]
		i := interval{line: line, began: line.Started}
		if i.began.IsZero() && len(own) > 0 {
			i.began = own[0].Began
		}
		if i.began.IsZero() {
			continue
		}
		if i.ended = later(until, i.began); line.Status.Settled() {
			i.ended = i.began.Add(line.Duration)
		}
		for _, p := range own[max(0, len(own)-mostPauses):] {
			if i.rests = p.Ended.IsZero(); i.rests || p.Ended.After(i.ended) {
				p.Ended = i.ended
			}
			if p.Began.Before(i.began) { // it was held before it began
				i.began = p.Began
			}
			i.pauses = append(i.pauses, p)
		}
		all = append(all, i)
	}
	slices.SortStableFunc(all, func(a, b interval) int { return a.began.Compare(b.began) })
	return all
}

// timelineOf returns the bars of the calls that have begun, in the order in which they did. What
// goes on ends at until.
func timelineOf(a address, lines []*journal.Line, ticks []engine.Tick, pauses map[string][]journal.Pause, until time.Time) timelineView {
	v := timelineView{address: a}
	all := intervalsOf(lines, pauses, until)
	if len(all) == 0 {
		return v
	}
	critical := criticalPath(all, ticks)
	scale, cuts, busy := scaleOf(all)
	v.Cuts, v.Busy = cuts, duration(ms(busy))
	last := all[0].ended
	for _, i := range all {
		last = later(last, i.ended)
	}
	v.Span = duration(ms(last.Sub(all[0].began)))
	v.More = max(0, len(all)-mostRows)
	all = all[:len(all)-v.More]
	slices.SortStableFunc(all, func(x, y interval) int { return strings.Compare(a.groupOf(x.line), a.groupOf(y.line)) })
	for n, i := range all {
		if group := a.groupOf(i.line); group != "" && (n == 0 || group != a.groupOf(all[n-1].line)) {
			v.Rows = append(v.Rows, barView{Heading: group})
		}
		bar := barView{
			Call: i.line.Call, Title: i.line.Call + " " + i.line.Tool, Word: i.line.Word, Y: len(v.Rows) * barRow,
			Took: duration(ms(i.ran())), Tries: i.line.Attempts, Critical: critical[i.line.Call],
		}
		if i.line.Instance != "" && a.Group != "instance" {
			bar.Title += " [" + i.line.Instance + "]"
		}
		bar.Parts = i.parts(bar.Word, scale)
		for _, p := range i.pauses {
			v.Pauses, v.Waits = v.Pauses || p.Retry, v.Waits || !p.Retry
		}
		v.Rows = append(v.Rows, bar)
	}
	v.Height = len(v.Rows) * barRow
	return v
}

// parts returns the parts of a call's bar.
func (i interval) parts(word string, scale func(time.Time) int) (parts []partView) {
	add := func(kind string, from, to time.Time) {
		x := scale(from)
		parts = append(parts, partView{kind, x, max(scale(to)-x, 2)})
	}
	for _, s := range i.spans() {
		kind := word
		if slices.ContainsFunc(i.pauses, func(p journal.Pause) bool { return p.Retry && later(s.from, p.Began).Equal(s.to) }) {
			kind = string(journal.Failed)
		}
		add(kind, s.from, s.to)
	}
	for _, p := range i.pauses {
		add(cond(p.Retry, "pause", "wait"), p.Began, p.Ended)
	}
	return parts
}

// groupOf is the heading under which the timeline shows a call; empty for none.
func (a address) groupOf(l *journal.Line) string {
	switch a.Group {
	case "tool":
		return l.Tool
	case "instance":
		return cmp.Or(l.Instance, "no instance")
	}
	return ""
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// piece is a time in which calls ran, or in which none did.
type piece struct {
	span
	idle bool
}

// piecesOf cuts the time of all calls into pieces, and returns how long calls ran.
func piecesOf(all []interval) (pieces []piece, busy time.Duration) {
	var spans []span
	until, end := all[0].began, all[0].ended
	for _, i := range all {
		spans = append(spans, i.spans()...)
		end = later(end, i.ended)
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	for _, s := range spans {
		if s.from.After(until) {
			pieces = append(pieces, piece{span{until, s.from}, true})
		}
		if s.to.After(until) {
			from := later(until, s.from)
			busy += s.to.Sub(from)
			pieces = append(pieces, piece{span{from, s.to}, false})
			until = s.to
		}
	}
	if end.After(until) { // a call still pauses or waits
		pieces = append(pieces, piece{span{until, end}, true})
	}
	return pieces, busy
}

// scaleOf returns the place of a time, between 0 and timelineWidth. Time in which nothing ran takes
// cutWidth where it is longer than a fifth of all the time in which something did.
func scaleOf(all []interval) (scale func(time.Time) int, cuts []cutView, busy time.Duration) {
	pieces, busy := piecesOf(all)
	var shown time.Duration
	cut := 0
	isCut := func(p piece) bool {
		return p.idle && p.to.Sub(p.from) > busy/5 && p.to.Sub(p.from) > 5*time.Millisecond
	}
	for _, p := range pieces {
		if isCut(p) {
			cut++
		} else {
			shown += p.to.Sub(p.from)
		}
	}
	room := float64(max(timelineWidth-cut*cutWidth, timelineWidth/2))
	starts := make([]float64, len(pieces))
	widths := make([]float64, len(pieces))
	x := 0.0
	for i, p := range pieces {
		starts[i] = x
		if isCut(p) {
			widths[i] = cutWidth
			cuts = append(cuts, cutView{X: int(x) + cutWidth/2, Took: duration(ms(p.to.Sub(p.from)))})
		} else if shown > 0 {
			widths[i] = room * float64(p.to.Sub(p.from)) / float64(shown)
		}
		x += widths[i]
	}
	return func(t time.Time) int {
		for i, p := range pieces {
			if !t.After(p.to) && p.to.After(p.from) {
				part := float64(t.Sub(p.from)) / float64(p.to.Sub(p.from))
				return int(starts[i] + widths[i]*max(part, 0))
			}
		}
		return int(x)
	}, cuts, busy
}

// criticalPath returns the calls that made the run as long as it was: from the call that ended last
// back, each time to the call that it waited for longest.
func criticalPath(all []interval, ticks []engine.Tick) map[string]bool {
	type place struct{ tick, position int }
	by := make(map[place]*interval, len(all))
	at := &all[0]
	for n := range all {
		i := &all[n]
		by[place{i.line.Tick, i.line.Position}] = i
		if cmp.Or(i.ended.Compare(at.ended), at.began.Compare(i.began)) > 0 {
			at = i
		}
	}
	path := map[string]bool{}
	for at != nil && !path[at.line.Call] {
		path[at.line.Call] = true
		line := at.line
		at = nil
		for _, tick := range ticks {
			if tick.Tick != line.Tick || line.Position > len(tick.Plan.Graph.Into) {
				continue
			}
			for _, e := range tick.Plan.Graph.Into[line.Position-1] {
				if i := by[place{tick.Tick, e.From + 1}]; i != nil && (at == nil || i.ended.After(at.ended)) {
					at = i
				}
			}
		}
	}
	return path
}

// Label says what stands beside a bar.
func (b barView) Label() string {
	text := b.Took
	if b.Tries > 1 {
		text += fmt.Sprintf(", %d tries", b.Tries)
	}
	return text
}

// Groups are the orders in which the timeline can show calls.
func (timelineView) Groups() []struct{ Name, Title string } {
	return []struct{ Name, Title string }{{"", "begin"}, {"tool", "tool"}, {"instance", "instance"}}
}
