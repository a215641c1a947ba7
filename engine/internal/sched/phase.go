package sched

import "fmt"

// Phase is the state of a call in the scheduler.
type Phase uint8

// The phases of calls.
const (
	Blocked Phase = iota // it waits for other calls of the plan
	Queued               // it can begin, or go on, as soon as there is room
	Parked               // it could begin, but its activity is at its limit
	Waiting              // it waits for messages from outside the plan, for a time, a next attempt's too, or for its delegate
	Held                 // it waits for a person's decision
	Running              // it is at work
	Paused               // it has failed, and pauses before the next attempt, for which its run waits
	Settled              // it has its outcome
	Stopped              // it was cut off, or is in doubt: it goes on only in a run that is resumed
	phases
)

func (p Phase) String() string {
	return [phases]string{"blocked", "queued", "parked", "waiting", "held", "running", "paused", "settled", "stopped"}[p]
}

// EventKind is a kind of event in the life of a call.
type EventKind uint8

// The events of calls. The scheduler makes the first two itself, and the runner applies the others.
const (
	Released      EventKind = iota // nothing that the call waited for is left
	AtLimit                        // its activity is at its limit
	Confirmed                      // its condition holds, or its time has come
	Started                        // it begins an attempt
	HeldBack                       // a person is to decide about it
	Missing                        // values from outside the plan are missing, for it or in its delegate, or it is not time
	Arrived                        // something has come that it, or its delegate, may have waited for, a time too
	Decided                        // a person has decided about it
	AttemptFailed                  // an attempt has failed, in an earlier run too, and another is due after a pause
	Due                            // the pause before the next attempt is over
	Returned                       // its attempt has not begun, and is left for the next time that it can
	Finished                       // it has its outcome
	Cut                            // it was cut off
	eventKinds
)

func (k EventKind) String() string {
	return [eventKinds]string{
		"Released", "AtLimit", "Confirmed", "Started", "HeldBack", "Missing", "Arrived",
		"Decided", "AttemptFailed", "Due", "Returned", "Finished", "Cut",
	}[k]
}

// transition is one line of the table of phases.
type transition struct {
	from Phase
	on   EventKind
	to   Phase
}

// transitions lists every change of phase that there is, in the order of the package's page. A call
// stays in its phase where it is returned after its next attempt was due: only its record changes.
var transitions = []transition{
	{Blocked, Released, Queued},
	{Queued, AtLimit, Parked},
	{Queued, Started, Running},
	{Queued, HeldBack, Held},
	{Queued, Confirmed, Blocked},
	{Queued, Missing, Waiting},
	{Queued, AttemptFailed, Paused},
	{Queued, Finished, Settled},
	{Queued, Returned, Queued},
	{Parked, Released, Queued},
	{Parked, Returned, Parked},
	{Waiting, Arrived, Blocked},
	{Held, Decided, Blocked},
	{Running, Missing, Waiting},
	{Running, AttemptFailed, Paused},
	{Running, Returned, Queued},
	{Running, Finished, Settled},
	{Running, Cut, Stopped},
	{Paused, Due, Queued},
	{Paused, Returned, Queued},
}

// none marks an event that does not happen in a phase.
const none = phases

// next holds the phase that follows, by phase and event.
var next = func() (table [phases][eventKinds]Phase) {
	for from := range table {
		for on := range table[from] {
			table[from][on] = none
		}
	}
	for _, t := range transitions {
		table[t.from][t.on] = t.to
	}
	return table
}()

// after returns the phase after an event. It panics if the event does not happen in the phase: a
// runner that goes on would have a wrong state.
func (p Phase) after(on EventKind, call string) Phase {
	to := next[p][on]
	if to == none {
		panic(fmt.Sprintf("call %s is %s, where %s does not happen", call, p, on))
	}
	return to
}
