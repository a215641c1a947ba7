package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"obelus/engine"
	"obelus/engine/journal"
)

// The sizes of a timeline, in pixels.
const (
	timelineWidth = 1000
	barRow        = 24
	barHeight     = 12
	cutWidth      = 28 // of time in which nothing ran
)

// timelineView shows when calls ran.
type timelineView struct {
	Height int
	Rows   []barView
	Cuts   []cutView // idle time that takes no room
	More   int       // calls that have no room
	Span   string    // from the first begin to the last end
	Busy   string    // the same without idle time
}

// barView is a call's bar.
type barView struct {
	Call, Title, Word, Took string
	Y, X, Width             int
	Tries                   int
	Critical                bool // the run could not have been faster without this call being faster
}

// cutView is a time in which nothing ran.
type cutView struct {
	X    int
	Took string
}

// interval is the time of a call.
type interval struct {
	record       journal.Record
	began, ended time.Time
}

// timelineOf returns the bars of the calls that have begun, in the order in which they did.
func timelineOf(records []journal.Record, rounds []engine.Round) timelineView {
	var all []interval
	now := time.Now()
	for _, r := range records {
		began, ended := rowOfCall(r).When()
		if began.IsZero() {
			continue
		}
		if ended.IsZero() {
			ended = now
		}
		all = append(all, interval{r, began, ended})
	}
	slices.SortStableFunc(all, func(a, b interval) int { return a.began.Compare(b.began) })
	if len(all) == 0 {
		return timelineView{}
	}
	critical := criticalPath(all, rounds)
	scale, cuts, busy := scaleOf(all)
	v := timelineView{Cuts: cuts, Busy: duration(ms(busy))}
	last := all[0].ended
	for _, i := range all {
		last = later(last, i.ended)
	}
	v.Span = duration(ms(last.Sub(all[0].began)))
	v.More = max(0, len(all)-mostRows)
	for row, i := range all[:len(all)-v.More] {
		x, end := scale(i.began), scale(i.ended)
		bar := barView{
			Call: i.record.Call, Title: i.record.Call + " " + i.record.Tool, Word: wordOf(i.record), Y: row * barRow, X: x, Width: max(end-x, 2),
			Took: duration(ms(i.ended.Sub(i.began))), Tries: i.record.Attempts, Critical: critical[i.record.Call],
		}
		v.Rows = append(v.Rows, bar)
	}
	v.Height = len(v.Rows)*barRow + 8
	return v
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// scaleOf returns the place of a time, between 0 and timelineWidth. Time in which nothing ran takes
// cutWidth where it is longer than a fifth of all the time in which something did.
func scaleOf(all []interval) (scale func(time.Time) int, cuts []cutView, busy time.Duration) {
	type piece struct {
		from, to time.Time
		idle     bool
	}
	var pieces []piece
	until := all[0].began
	for _, i := range all {
		if i.began.After(until) {
			pieces = append(pieces, piece{until, i.began, true})
		}
		if i.ended.After(until) {
			from := later(until, i.began)
			pieces = append(pieces, piece{from, i.ended, false})
			until = i.ended
		}
	}
	for _, p := range pieces {
		if !p.idle {
			busy += p.to.Sub(p.from)
		}
	}
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
func criticalPath(all []interval, rounds []engine.Round) map[string]bool {
	by := map[string]interval{}
	for _, i := range all {
		by[i.record.Call] = i
	}
	before := map[string][]string{}
	for _, round := range rounds {
		for _, w := range round.Plan.Wires() {
			to := journal.CallID(round.Tick, w.To)
			before[to] = append(before[to], journal.CallID(round.Tick, w.From))
		}
	}
	path := map[string]bool{}
	at := slices.MaxFunc(all, func(a, b interval) int { return cmp.Or(a.ended.Compare(b.ended), b.began.Compare(a.began)) }).record.Call
	for at != "" && !path[at] {
		path[at] = true
		next := ""
		for _, call := range before[at] {
			if i, ok := by[call]; ok && (next == "" || i.ended.After(by[next].ended)) {
				next = call
			}
		}
		at = next
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
