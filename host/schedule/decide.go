package schedule

import (
	"time"
)

// Overlap decides about a run that is due while the run before has not ended.
type Overlap string

// The overlaps.
const (
	Skip  Overlap = "skip"  // it is skipped
	Queue Overlap = "queue" // it starts once the run before has ended, in the order of due times
	All   Overlap = "all"   // it starts
)

// Overlaps lists the overlaps.
func Overlaps() []string { return []string{string(Skip), string(Queue), string(All)} }

// DefaultCatchup is the Catchup of a policy that does not say.
const DefaultCatchup = time.Hour

// punctual is how late a run may start and still counts as one that was not missed.
const punctual = time.Minute

// Policy decides about runs that can't start when they are due.
type Policy struct {
	Overlap Overlap       `json:"overlap" kind:"overlap" jsonschema:"what happens if the run before has not ended: \"skip\", \"queue\", which waits for it, or \"all\", which starts (default \"skip\")"`
	Catchup time.Duration `json:"catchup" kind:"duration" zero:"-1" jsonschema:"how late the newest of the runs may start that were missed while no server was there; older ones are skipped (default \"1h\")"`
}

// Status is the state of a schedule's runs in the log.
type Status struct {
	// Known is the time up to which all due times are dealt with: the one of the newest run or skip,
	// or when the schedule was seen first.
	Known time.Time

	// Unfinished reports that the newest run has neither ended nor been cancelled.
	Unfinished bool

	// Ended is when the newest run ended; zero while it is unfinished, and before the first.
	Ended time.Time
}

// Reason is why a run is skipped.
type Reason string

// The reasons.
const (
	Missed      Reason = "missed"      // no server was there when it was due
	Overlapping Reason = "overlapping" // the run before had not ended
	Refused     Reason = "refused"     // the plan or its input was refused when it was to start
	Cancelled   Reason = "cancelled"   // a person cancelled it before its turn
)

// Skipped is a row of due times that are skipped for one reason.
type Skipped struct {
	From   time.Time // the first of them
	Until  time.Time // the last; From for a single one
	Count  int       // at most maxDue are counted
	Reason Reason
}

// Decision has the runs to start and to skip now.
type Decision struct {
	Start   time.Time // due time of the run to start; zero for none
	Skipped []Skipped // oldest first
	Waits   bool      // runs are due that wait for the end of the newest one
}

// maxDue bounds the due times that are looked at one by one.
const maxDue = 10_000

// Decide decides about the runs that are due at a time and not dealt with.
func (s *Schedule) Decide(p Policy, st Status, now time.Time) (d Decision) {
	due := s.dueUntil(st.Known, now, now.Add(-p.latest()))
	during := len(due) // index of the first due time at which the run before had not ended
	if !st.Unfinished {
		during = 0
		for during < len(due) && !due[during].After(st.Ended) {
			during++
		}
	}
	switch {
	case p.Overlap == All:
		d.startNewest(due, p, now)
	case p.Overlap == Queue && st.Unfinished:
		d.Waits = len(due) > 0
	case p.Overlap == Queue && during > 0 && now.Sub(st.Ended) <= p.latest():
		d.Start = due[0]
	case p.Overlap == Queue:
		d.startNewest(due, p, now)
	default:
		d.skip(due[:during], Overlapping)
		d.startNewest(due[during:], p, now)
	}
	return d
}

// latest returns how late a run may start.
func (p Policy) latest() time.Duration { return max(p.Catchup, punctual) }

// dueUntil lists the due times after one time and up to another. If there are very many, the older
// ones are left out, except for the first of them; those after recent are all there.
func (s *Schedule) dueUntil(known, now, recent time.Time) (due []time.Time) {
	for at := s.Next(known); !at.IsZero() && !at.After(now); at = s.Next(at) {
		due = append(due, at)
		if len(due) == maxDue && at.Before(recent) {
			at = recent
		}
	}
	return due
}

// startNewest starts the newest of some due times, unless it is too long ago, and skips the others.
func (d *Decision) startNewest(due []time.Time, p Policy, now time.Time) {
	if len(due) == 0 {
		return
	}
	if newest := due[len(due)-1]; now.Sub(newest) <= p.latest() {
		d.Start, due = newest, due[:len(due)-1]
	}
	d.skip(due, Missed)
}

func (d *Decision) skip(due []time.Time, why Reason) {
	if len(due) > 0 {
		d.Skipped = append(d.Skipped, Skipped{From: due[0], Until: due[len(due)-1], Count: min(len(due), maxDue), Reason: why})
	}
}
