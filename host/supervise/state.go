package supervise

import (
	"fmt"
	"log/slog"
	"slices"
)

// State is the state of a [Run].
type State uint8

// The states of a run. The package's page shows which follows which.
const (
	Queued     State = iota // it waits for its turn, and then for the run before it in its context
	Starting                // it has its turn, and the log has nothing of it yet
	Running                 // the log has it; it may also have run out of time, and its calls end
	Cancelling              // a person has cancelled it: running calls may end
	Stopping                // Shutdown was called: running calls may end
	Ending                  // it is too late to cancel it

	Ended   // it is done, has failed or was cancelled
	Waiting // it has halted, and goes on when its input comes
	Stopped // the next supervisor of the log goes on with it
	Stuck   // it is tried again by itself: see Supervisor.Stuck
	Refused // it has an error, and does not go on by itself
)

var stateNames = [...]string{
	Queued: "queued", Starting: "starting", Running: "running", Cancelling: "cancelling", Stopping: "stopping", Ending: "ending",
	Ended: "ended", Waiting: "waiting", Stopped: "stopped", Stuck: "stuck", Refused: "refused",
}

// String returns the name of the state, such as "queued".
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// transitions lists the states that may follow each state: none follow a final one. The diagram of
// the package's page is this table.
var transitions = [...][]State{
	Queued:     {Starting, Cancelling, Stopped, Refused},
	Starting:   {Running, Cancelling, Stopping, Ending},
	Running:    {Cancelling, Stopping, Ending},
	Cancelling: {Ending, Ended},
	Stopping:   {Cancelling, Ending},
	Ending:     {Ended, Waiting, Stopped, Stuck, Refused},
	Refused:    nil,
}

// mayBecome reports whether a state may follow another one.
func (s State) mayBecome(next State) bool { return slices.Contains(transitions[s], next) }

// goesOn reports whether a run in a final state is to go on by itself.
func (s State) goesOn() bool { return s == Waiting || s == Stopped || s == Stuck }

// State returns the present state of the run.
func (r *Run) State() State { return State(r.state.Load()) }

// move changes the state of a run: no other function does. The caller holds the lock.
func (t *runTable) move(run *Run, next State) {
	if from := run.State(); !from.mayBecome(next) {
		forbidden(t.logger, run, from, next)
	}
	run.state.Store(uint32(next))
}

// forbidden reports a transition that the table lacks. The run goes on in the new state, which is a
// fact: runs must not be lost because of their supervision. Tests replace it by a panic.
var forbidden = func(logger *slog.Logger, run *Run, from, next State) {
	logger.Error("a run changed its state as none may: this is a fault of the program", "context", run.context, "from", from, "to", next)
}
