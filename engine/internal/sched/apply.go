package sched

import (
	"time"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// Event is something that happens to a call.
type Event struct {
	Kind EventKind
	Call int

	Status journal.Status // of Finished: done, failed or skipped; of Cut: how the call stands
	Joins  bool           // of Started: it takes no room beside the call with which it begins
	// Of AttemptFailed: when the next attempt is due; of Missing: the time for which the call waits,
	// which may be when its next attempt is due, 0 for none. Since the run was opened.
	Due  time.Duration
	Hold *journal.Hold // of Decided
}

// Apply moves a call to the phase that follows an event, and releases the calls that waited for the
// event. [Arrived] and [Decided] come from the log, and are not undone with the step. It panics
// where the event does not happen in the call's phase.
func (s *State) Apply(e Event) {
	if e.Kind == Arrived || e.Kind == Decided {
		s.applyForeign(e)
		return
	}
	c := s.Change(e.Call)
	if e.Kind == Started {
		c.Joins = e.Joins
	}
	s.move(e.Call, e)
	switch e.Kind {
	case Started:
		c.Step = s.step
		s.release(e.Call, c.Record.Unstored)
	case Confirmed:
		c.timed = c.timed || c.decided // the condition comes first
		if c.decided = true; c.isFree() {
			s.move(e.Call, Event{Kind: Released})
		}
	case Finished:
		s.release(e.Call, true)
	}
}

// applyForeign applies an event that comes from the log.
func (s *State) applyForeign(e Event) {
	s.move(e.Call, e)
	if s.Calls[e.Call].isFree() {
		s.move(e.Call, Event{Kind: Released})
	}
}

// ApplyMessage applies [Arrived] to the calls that wait for a value at, above or below a path,
// where a foreign message has arrived.
func (s *State) ApplyMessage(path store.Path) {
	for _, i := range s.waiting.removeOverlapping(path) {
		s.applyForeign(Event{Kind: Arrived, Call: i})
	}
}

// Parents returns the calls that wait for their delegates, by the delegates' contexts. It must not
// be changed, and is not up to date after the next event.
func (s *State) Parents() map[string]int { return s.parents }

// ApplyTime applies [Due] to the calls whose pauses are over at a time since the run was opened,
// and [Arrived] to calls whose time has come.
func (s *State) ApplyTime(now time.Duration) {
	for len(s.paused) > 0 && s.paused[0].due <= now {
		i := s.paused.pop()
		switch c := &s.Calls[i]; { // in no other phase is it due any more
		case c.Phase == Paused && c.Due <= now:
			s.Apply(Event{Kind: Due, Call: i})
		case c.Phase == Waiting && c.Due != 0 && c.Due <= now:
			s.Change(i) // unlike an arrival from the log it is undone with the step
			s.applyForeign(Event{Kind: Arrived, Call: i})
		}
	}
}

// move changes the phase of a call, and the queues, indexes and counts with it.
func (s *State) move(i int, e Event) {
	c := &s.Calls[i]
	to := c.Phase.after(e.Kind, c.Record.Call)
	if c.Phase == to {
		c.setStatus(e)
		return
	}
	s.leave(i)
	c.Phase = to
	c.setStatus(e)
	s.enter(i)
	if e.Kind != AtLimit && e.Kind != Released { // else the call took no room in its activity
		s.unpark(s.Plan.Calls[i].Activity)
	}
}

// setStatus gives a call's record the status that it has after an event, and records whether it
// pauses between attempts.
func (c *Call) setStatus(e Event) {
	switch r := &c.Record; e.Kind {
	case Started:
		r.Status, r.Rests, r.RetryAt, r.Failures = journal.Running, false, "", 0
	case HeldBack:
		r.Status = journal.Held
	case Missing:
		r.Status, c.Due = journal.Waiting, e.Due
	case Arrived:
		r.Status = journal.Blocked
	case Returned:
		if r.Status = journal.Blocked; c.Step != 0 { // else it pauses since before this run
			r.Rests, r.RetryAt, r.Failures = false, "", 0
		}
	case Decided:
		r.Status, r.Hold = journal.Ready, e.Hold
	case AttemptFailed:
		r.Status, r.Rests, c.Due = journal.Running, true, e.Due
	case Finished, Cut:
		r.Status = e.Status
	}
}

// leave removes a call from the counts of its phase, and a parent from the index of parents. It
// need not touch the others: whoever applies an event to a queued, parked or waiting call has
// removed it from its queue before, and [State.ApplyTime] skips a call that is paused no more.
func (s *State) leave(i int) {
	c := &s.Calls[i]
	s.number[c.Phase]--
	if c.retries() {
		s.Retrying--
	}
	switch c.Phase {
	case Running:
		s.occupy(i, -1)
	case Waiting:
		if c.Record.Child != "" {
			delete(s.parents, c.Record.Child)
		}
	}
}

// enter adds a call to the counts, queues and indexes of its phase.
func (s *State) enter(i int) {
	c := &s.Calls[i]
	s.number[c.Phase]++
	if c.retries() {
		s.Retrying++
	}
	switch c.Phase {
	case Queued:
		s.queueOf(i).push(queuedCall{call: i})
	case Parked:
		if s.parked == nil {
			s.parked = map[lot][]int{}
		}
		in := lot{s.Plan.Calls[i].Activity, c.Record.Unstored}
		s.parked[in] = append(s.parked[in], i)
	case Running:
		s.occupy(i, 1)
	case Settled:
		switch c.Record.Status {
		case journal.Done:
			s.Done++
		case journal.Failed:
			s.Failed++
		}
	case Paused:
		s.paused.push(queuedCall{c.Due, i})
	case Waiting:
		if c.Due != 0 {
			s.paused.push(queuedCall{c.Due, i})
		}
		if c.Record.Child != "" {
			if s.parents == nil {
				s.parents = map[string]int{}
			}
			s.parents[c.Record.Child] = i
			return
		}
		if s.waiting == nil {
			s.waiting = waitIndex{}
		}
		s.waiting.add(i, c.Record.WaitingOn)
	}
}

// queueOf returns the queue for a call.
func (s *State) queueOf(i int) *queue {
	if c := &s.Calls[i]; !c.decided || !c.timed {
		return &s.asking
	}
	if s.Plan.Calls[i].FireAndForget() {
		return &s.detached
	}
	return &s.ready
}

// occupy adds n, which is 1 or -1, to the counts of running calls that a call belongs to.
func (s *State) occupy(i, n int) {
	if s.Calls[i].Record.Unstored {
		s.detachedRunning += n
	}
	if s.Calls[i].Joins {
		s.joined += n
	}
	if a := s.Plan.Calls[i].Activity; a != nil && a.Concurrency > 0 {
		if s.busy == nil {
			s.busy = map[*plan.Registered]int{}
		}
		s.busy[a] += n
	}
}

// isFull reports whether an activity is at its limit.
func (s *State) isFull(a *plan.Registered) bool {
	return a != nil && a.Concurrency > 0 && s.busy[a] >= a.Concurrency
}

// unpark queues the first calls that are parked for an activity, one of either kind, if it has
// room.
func (s *State) unpark(a *plan.Registered) {
	for _, from := range [2]lot{{a, false}, {a, true}} {
		if parked := s.parked[from]; len(parked) > 0 && !s.isFull(a) {
			s.parked[from] = parked[1:]
			s.move(parked[0], Event{Kind: Released})
		}
	}
}

// release removes edges from a call to those that wait for it: those that wait until it has read,
// and if settled is set also those that wait for its outcome. A call without edges is queued. One
// that had settled before the run was resumed, while others that it had waited for run again,
// releases the calls behind it only then.
func (s *State) release(i int, settled bool) {
	c := s.Change(i)
	for _, e := range s.Plan.Graph.OutOf[i] {
		removed := e.Kind == plan.ReadEdge && !c.read || e.Kind != plan.ReadEdge && settled && !c.settled
		if !removed {
			continue
		}
		next := s.Change(e.To)
		if next.removeEdge(e); !next.isFree() {
			continue
		}
		switch next.Phase {
		case Blocked:
			s.move(e.To, Event{Kind: Released})
		case Settled:
			s.release(e.To, true)
		}
	}
	c.read = true
	c.settled = c.settled || settled
}

// Next returns the call that is to be evaluated next, and leaves it in its queue; ok is false if no
// call can run. Calls of activities that are at their limit are parked. Conditions and times come
// first and fire-and-forget calls last.
func (s *State) Next() (call int, ok bool) {
	for {
		q := s.nextQueue()
		if q == nil {
			return 0, false
		}
		i := (*q)[0].call
		if q == &s.asking || !s.isFull(s.Plan.Calls[i].Activity) {
			return i, true
		}
		q.pop()
		s.move(i, Event{Kind: AtLimit})
	}
}

// nextQueue returns the queue whose first call is next, nil if no call can run.
func (s *State) nextQueue() *queue {
	switch {
	case len(s.asking) > 0:
		return &s.asking
	case len(s.ready) > 0 && s.Running()-s.joined < s.Parallel:
		return &s.ready
	case len(s.detached) > 0 && s.detachedRunning < s.Parallel:
		return &s.detached
	}
	return nil
}

// Dequeue removes a call from its queue, if it is queued. An event must follow.
func (s *State) Dequeue(call int) (queued bool) {
	if s.Calls[call].Phase != Queued {
		return false
	}
	s.queueOf(call).remove(call)
	return true
}

// Change returns a call to be changed within the step, once its state before has been kept.
func (s *State) Change(i int) *Call {
	c := &s.Calls[i]
	if s.keep && c.saved != s.step {
		s.undo = append(s.undo, savedCall{i, *c})
		c.saved = s.step
	}
	return c
}
