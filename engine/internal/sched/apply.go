package sched

import (
	"time"

	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// Event is something that has happened.
type Event struct {
	Kind EventKind
	Call int

	Status journal.Status // of Finished: done, failed or skipped; of Cut: how the call stands
	Due    time.Duration  // of AttemptFailed: when the next attempt is due, since the run was opened
	Hold   *journal.Hold  // of Decided
}

// Apply has something happen to a call, and releases the calls that waited for it. Events of
// [Arrived] and [Decided] come from the log, and are not undone with the step. It panics where the
// event does not happen in the call's phase.
func (s *State) Apply(e Event) {
	if e.Kind == Arrived || e.Kind == Decided {
		s.applyForeign(e)
		return
	}
	c := s.Change(e.Call)
	s.move(e.Call, e)
	switch e.Kind {
	case Started:
		c.Step = s.step
		s.release(e.Call, c.Record.Unstored)
	case Finished:
		s.release(e.Call, true)
	}
}

// applyForeign has an event of the log happen.
func (s *State) applyForeign(e Event) {
	s.move(e.Call, e)
	if s.Calls[e.Call].waits == 0 {
		s.move(e.Call, Event{Kind: Released})
	}
}

// ApplyMessage has a foreign message arrive at a path: the calls that wait for a value there, above
// or below are queued.
func (s *State) ApplyMessage(path store.Path) {
	for _, i := range s.waiting.take(path) {
		s.applyForeign(Event{Kind: Arrived, Call: i})
	}
}

// Parents returns the calls that wait for their delegates, by the delegates' contexts. It must not
// be changed, and is not up to date after the next event.
func (s *State) Parents() map[string]int { return s.parents }

// ApplyTime ends the pauses that are over by a time since the run was opened. Calls for which it is
// time at once come in the order of the plan, whatever was noticed first.
func (s *State) ApplyTime(now time.Duration) {
	for len(s.paused) > 0 && s.paused[0].rank.N <= int64(now) {
		i := s.paused.take()
		if c := &s.Calls[i]; c.Phase == Paused && c.Due <= now { // it may have returned meanwhile
			s.Apply(Event{Kind: Due, Call: i})
		}
	}
}

// move changes the phase of a call, and all that depends on phases.
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
	if e.Kind != AtLimit && e.Kind != Released { // its activity may have room
		s.unpark(s.Plan.Calls[i].Activity)
	}
}

// setStatus gives a call's record the status that it has after an event, and records whether it
// pauses between attempts.
func (c *Call) setStatus(e Event) {
	switch r := &c.Record; e.Kind {
	case Started:
		r.Status, r.Rests, r.RetryAt = journal.Running, false, ""
	case HeldBack:
		r.Status = journal.Held
	case Missing:
		r.Status = journal.Waiting
	case Arrived:
		r.Status = journal.Blocked
	case Returned:
		r.Status, r.Rests, r.RetryAt = journal.Blocked, false, ""
	case Decided:
		r.Status, r.Hold = journal.Ready, e.Hold
	case AttemptFailed:
		r.Rests, c.Due = true, e.Due
	case Finished, Cut:
		r.Status = e.Status
	}
}

// leave takes a call out of its phase. Queues drop theirs by themselves.
func (s *State) leave(i int) {
	c := &s.Calls[i]
	s.number[c.Phase]--
	switch c.Phase {
	case Running:
		s.occupy(i, -1)
	case Waiting:
		if c.Record.Child != "" {
			delete(s.parents, c.Record.Child)
		}
	}
}

// enter counts and queues a call by its phase.
func (s *State) enter(i int) {
	c := &s.Calls[i]
	s.number[c.Phase]++
	switch c.Phase {
	case Queued:
		s.queueOf(i).add(queuedCall{s.span(i).Began, i})
	case Parked:
		a := s.Plan.Calls[i].Activity
		if s.parked == nil {
			s.parked = map[*plan.Registered][]int{}
		}
		s.parked[a] = append(s.parked[a], i)
	case Running:
		s.occupy(i, 1)
	case Paused:
		s.paused.add(queuedCall{journal.Position{N: int64(c.Due)}, i})
	case Waiting:
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

// queueOf is the queue for a call.
func (s *State) queueOf(i int) *queue {
	if s.Plan.Calls[i].FireAndForget() {
		return &s.detached
	}
	return &s.ready
}

// occupy counts a call that begins to run, or, by -1, has ended.
func (s *State) occupy(i, n int) {
	if s.Calls[i].Record.Unstored {
		s.detachedRunning += n
	}
	if a := s.Plan.Calls[i].Activity; a != nil && a.Concurrency > 0 {
		if s.busy == nil {
			s.busy = map[*plan.Registered]int{}
		}
		s.busy[a] += n
	}
}

// isFull reports whether an activity is at its limit; it never is in a recorded run.
func (s *State) isFull(a *plan.Registered) bool {
	return s.Order == nil && a != nil && a.Concurrency > 0 && s.busy[a] >= a.Concurrency
}

// unpark queues a call that waits for room in its activity, if there is some.
func (s *State) unpark(a *plan.Registered) {
	if parked := s.parked[a]; len(parked) > 0 && !s.isFull(a) {
		s.parked[a] = parked[1:]
		s.move(parked[0], Event{Kind: Released})
	}
}

// release lets go of the calls that wait for a call: those that wait until it has read, and, once
// it has settled, all.
func (s *State) release(i int, settled bool) {
	c := s.Change(i)
	for _, e := range s.Plan.Graph.OutOf[i] {
		free := e.Kind == plan.ReadEdge && !c.read || e.Kind != plan.ReadEdge && settled && !c.settled
		if !free || s.overtook(e) {
			continue
		}
		next := s.Change(e.To)
		if next.waits--; next.waits > 0 {
			continue
		}
		switch next.Phase {
		case Blocked:
			s.move(e.To, Event{Kind: Released})
		case Settled:
			defer s.release(e.To, true)
		}
	}
	c.read = true
	c.settled = c.settled || settled
}

// Next returns the call whose turn has come; false if none can run. Calls of activities that are at
// their limit are parked. Fire-and-forget calls come last, except in a recorded run, where the
// record gives the order.
func (s *State) Next() (call int, ok bool) {
	for {
		q := s.nextQueue()
		if q == nil {
			return 0, false
		}
		i := (*q)[0].call
		if !s.isFull(s.Plan.Calls[i].Activity) {
			return i, true
		}
		q.take()
		s.move(i, Event{Kind: AtLimit})
	}
}

// nextQueue returns the queue whose first call is next, nil if none may run.
func (s *State) nextQueue() *queue {
	ready := len(s.ready) > 0 && s.Running() < s.Parallel
	detached := len(s.detached) > 0 && s.detachedRunning < s.Parallel
	switch {
	case detached && (!ready || s.detached[0].rank.Before(s.ready[0].rank)):
		return &s.detached
	case ready:
		return &s.ready
	}
	return nil
}

// Take takes the call out of its queue whose turn has come, to be evaluated.
func (s *State) Take() { s.nextQueue().take() }

// overtook reports whether a recorded call did not wait for another: that one ran again when it had
// long begun.
func (s *State) overtook(e plan.Edge) bool {
	if s.Order == nil {
		return false
	}
	began := s.span(e.To).Began.N
	return began != 0 && began < s.span(e.From).Began.N
}

// span is when a recorded call began and settled; zero in a live run.
func (s *State) span(i int) (none journal.Span) {
	if s.Order == nil {
		return none
	}
	return s.Order.Span(s.Calls[i].Record.Call)
}

// Change returns a call to be changed within the step.
func (s *State) Change(i int) *Call {
	c := &s.Calls[i]
	if s.keep && c.saved != s.step {
		s.undo = append(s.undo, savedCall{i, *c})
		c.saved = s.step
	}
	return c
}
