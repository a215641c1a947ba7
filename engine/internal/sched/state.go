package sched

import (
	"time"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// Config holds the plan of a tick and the rules for its calls.
type Config struct {
	Plan     *plan.Plan
	Approve  plan.Policy // calls to hold for a person
	Parallel int         // number of calls at work at once, and of fire-and-forget calls besides
}

// State holds the calls of a tick, and decides which can run. The zero State is not usable. One
// goroutine at a time may use a State.
type State struct {
	// By their places in the plan. Within a step they are changed through Apply and Change alone,
	// so that the step can be undone; before the first, records may be set.
	Calls []Call
	Config

	ready    queue          // queued calls
	detached queue          // queued fire-and-forget calls, which take no room from others
	asking   queue          // queued calls whose conditions or times are to be evaluated, which takes no room
	paused   queue          // paused calls, and waiting ones with a time, the first due first
	parked   map[lot][]int  // parked calls
	waiting  waitIndex      // waiting calls, by the paths that they wait for
	parents  map[string]int // waiting calls, by the contexts of their delegates

	Done, Failed    int                      // numbers of settled calls; read only
	Retrying        int                      // number of calls that pause, or have paused, before another attempt; read only
	number          [phases]int              // of calls, by phase
	detachedRunning int                      // running fire-and-forget calls
	joined          int                      // running calls that take no room of their own
	busy            map[*plan.Registered]int // running calls, by their activities, where these have a limit

	step int  // number of the step
	keep bool // the step may be undone
	undo Undo // of the step, if keep is set
}

// lot is where calls are parked until their activity has room. Fire-and-forget calls are parked
// apart, so that no call waits behind one of the other kind, which may have no room for it.
type lot struct {
	activity *plan.Registered
	detached bool
}

// Call is the state of one call.
type Call struct {
	Record  journal.Record
	Phase   Phase
	Written []store.Path // paths that it wrote
	Step    int          // in which its newest attempt began; 0 if that is one of an earlier run
	Started time.Time    // when its first attempt did
	// Of a call between two attempts: when the next one is due; of one that waits for a time: when
	// that is. Since the run was opened.
	Due time.Duration
	// Of a call that waits for its delegate: the journal's position when that began to wait.
	WaitsSince int64
	Before     journal.Status // before the run was resumed
	Reported   bool           // an error message reported its failure when the run ended before
	Joins      bool           // it began together with another call, and takes no room beside that

	waits   int  // edges into it that still hold it
	asks    int  // edges among them that its condition waits for
	decided bool // its condition has been evaluated, or it has none
	timed   bool // its time has come, or it has none
	read    bool // calls that wait for its reads have been released
	settled bool // calls that wait for its outcome have been released
	saved   int  // number of the step that has kept its state before
}

// Index is the call's place in the plan, from 0.
func (c *Call) Index() int { return c.Record.Position - 1 }

// isFree reports whether nothing holds a call that is blocked, or those behind a call that has
// settled: not its condition, or, once that is decided, no call that it waits for. A call whose
// condition does not hold has settled without the others.
func (c *Call) isFree() bool {
	skipped := c.Phase == Settled && c.Record.If != nil && !c.Record.If.Holds
	return c.waits == 0 || c.asks == 0 && (!c.decided || skipped)
}

// AwaitsRetry reports whether an attempt of the call has failed, and the next has not begun. It may
// be due.
func (c *Call) AwaitsRetry() bool {
	return c.Record.Rests && (c.Phase == Paused || c.Phase == Queued || c.Phase == Parked)
}

// retries reports whether an attempt of the call has failed, and the next has not begun, though it
// may wait for that with its run.
func (c *Call) retries() bool { return c.AwaitsRetry() || c.Record.Rests && c.Phase == Waiting }

// Undo is the states of calls before a step changed them.
type Undo []savedCall

type savedCall struct {
	index  int
	before Call
}

// New returns the state of a tick before any call of it can run. The records of calls may be
// changed until [State.Restore], which queues those that can run.
func New(c Config, record func(i int) journal.Record) *State {
	s := &State{Config: c, Calls: make([]Call, len(c.Plan.Calls))}
	for i := range s.Calls {
		s.Calls[i] = Call{Record: record(i), waits: len(c.Plan.Graph.Into[i]), decided: c.Plan.Calls[i].If == nil, timed: c.Plan.Calls[i].Schedule == nil}
		if !s.Calls[i].decided {
			s.Calls[i].asks = count(c.Plan.Graph.Into[i], plan.IfEdge)
		}
	}
	s.number[Blocked] = len(s.Calls)
	return s
}

func count(edges []plan.Edge, kind plan.EdgeKind) (n int) {
	for _, e := range edges {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// removeEdge removes an edge into the call.
func (c *Call) removeEdge(e plan.Edge) {
	c.waits--
	if e.Kind == plan.IfEdge {
		c.asks--
	}
}

// Restore gives calls the phases that their records tell, releases those that wait for settled
// ones, as long as these need not run again, and queues those that can run. A record is settled,
// held, in doubt, or running where a person gives its result; all others are of calls that are to
// run.
func (s *State) Restore() {
	for i := range s.Calls {
		s.Calls[i].restore(s.Plan.Calls[i])
	}
	for i := range s.Calls {
		switch c := &s.Calls[i]; {
		case c.Phase == Settled && c.isFree():
			s.release(i, true)
		case c.Phase != Settled && c.Record.At != 0:
			s.release(i, false)
		}
	}
	for i := range s.Calls {
		if c := &s.Calls[i]; c.Phase == Blocked && c.isFree() {
			c.Phase = Queued
		}
	}
	s.rebuild()
}

// restore gives the call the phase that its record tells, and what it has decided about itself.
func (c *Call) restore(call *plan.Call) {
	switch c.Record.Status {
	case journal.Done, journal.Failed, journal.Skipped:
		c.Phase = Settled
	case journal.Held:
		c.Phase = Held
	case journal.Running:
		c.Phase = Running
	case journal.InDoubt:
		c.Phase = Stopped
	default:
		c.Phase = Blocked
	}
	h := c.Record.Hold
	hasRead := c.Record.At != 0 || h != nil && h.Decision != ""
	c.decided = hasRead || call.If == nil || c.Record.If != nil
	c.timed = hasRead || call.Schedule == nil
}

// Load gives a call a record of the log. A state whose calls are loaded answers
// [State.Evaluate], [State.Lookup] and [State.RunStatus] as of these records, whatever they wait
// for; it queues no calls until [State.Restore].
func (s *State) Load(i int, r journal.Record) {
	c := &s.Calls[i]
	c.Record, c.Written = r, nil
	for _, text := range r.Writes {
		if path, err := store.ParsePath(text); err == nil {
			c.Written = append(c.Written, path)
		}
	}
	c.restore(s.Plan.Calls[i])
}

// rebuild computes queues, indexes and counts from the phases of the calls. Parked calls are
// queued.
func (s *State) rebuild() {
	s.ready, s.detached, s.asking, s.paused = s.ready[:0], s.detached[:0], s.asking[:0], s.paused[:0]
	s.parked, s.waiting, s.parents, s.busy = nil, nil, nil, nil
	s.number, s.Done, s.Failed, s.Retrying, s.detachedRunning, s.joined = [phases]int{}, 0, 0, 0, 0, 0
	for i := range s.Calls {
		if s.Calls[i].Phase == Parked {
			s.Calls[i].Phase = Queued
		}
		s.enter(i)
	}
}

// Begin begins a step. If keep is set, the states of the calls that it changes are kept for
// [State.Revert].
func (s *State) Begin(keep bool) {
	s.step++
	s.keep, s.undo = keep, s.undo[:0]
}

// Step returns the number of the step.
func (s *State) Step() int { return s.step }

// Undo returns the changes of the step so far. They are valid until the next step begins.
func (s *State) Undo() Undo { return s.undo }

// KeepUndo returns the changes of the step. They stay valid while other steps are made.
func (s *State) KeepUndo() Undo {
	kept := s.undo
	s.undo = nil
	return kept
}

// Revert restores the calls as they were before some steps, the newest first.
func (s *State) Revert(steps ...Undo) {
	for _, undo := range steps {
		for _, c := range undo {
			s.Calls[c.index] = c.before
		}
	}
	s.rebuild()
}

// Running returns the number of calls at work that the tick waits for.
func (s *State) Running() int { return s.number[Running] - s.detachedRunning }

// Detached returns the number of fire-and-forget calls at work.
func (s *State) Detached() int { return s.detachedRunning }

// In returns the number of calls in a phase.
func (s *State) In(p Phase) int { return s.number[p] }

// HasQueued reports whether calls can run as soon as there is room.
func (s *State) HasQueued() bool { return s.number[Queued]+s.number[Parked] > 0 }

// AwaitsOutside reports whether calls wait for messages, delegates or people.
func (s *State) AwaitsOutside() bool { return s.number[Waiting]+s.number[Held] > 0 }

// IsOver reports whether no call is left to run or to wait for.
func (s *State) IsOver() bool {
	return s.number[Running]+s.number[Paused] == 0 && !s.AwaitsOutside() && !s.HasQueued()
}

// NextDue returns when the first pause between attempts ends, or the time of a waiting call comes,
// since the run was opened; ok is false if there is none. It may be early, by a call that another
// event has reached before.
func (s *State) NextDue() (due time.Duration, ok bool) {
	if len(s.paused) == 0 {
		return 0, false
	}
	return s.paused[0].due, true
}

// EarliestDue returns the earliest time for which a call waits, in its delegate too; ok is false if
// none waits for a time.
func (s *State) EarliestDue() (due time.Time, ok bool) {
	for i := range s.Calls {
		if t, waits := s.Calls[i].Record.WaitsUntil(); waits && (!ok || t.Before(due)) {
			due, ok = t, true
		}
	}
	return due, ok
}
