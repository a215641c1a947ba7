package engine

import (
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// tick is a tick of a run while it runs. It makes the content of steps: what has
// happened to its calls comes in, messages, records and starts come out. It appends nothing, starts
// nothing and waits for nothing: a [tickRun] does.
type tick struct {
	values
	loop    *loop
	runner  *Runner
	problem error // why its planner gave no valid plan

	repeated bool // the planner repeated the solution that had just been refused

	// Starts of calls that pause between attempts, by their places.
	attempts     map[int]start
	stopping     bool              // the run is to end early
	over         bool              // only its background calls are left
	joining      bool              // calls that begin take no room, see startGroup
	ended        *journal.RunEvent // its end, once that is staged
	newest       journal.RunEvent  // the newest event of the run in the tick; zero for none
	before       journal.RunStatus // of the run, before it was resumed in this tick
	stale        []string          // see [journal.Outcome.Stale]
	givenResults []*result         // results that a person gives, see [Resume.Result]

	made                  // by the step
	evaluating evaluating // what its calls read, while one is evaluated
	text       []byte     // to write records to, again and again
}

// made is the content of a step, to be committed.
type made struct {
	entries  []store.Entry
	places   []int            // by entry, the number of messages before it
	observed []journal.Record // records in the entries, for observers
	resumes  bool             // an entry says that the run is under way again
	starts   []start          // to be launched then
	pauses   bool             // a call pauses before another attempt
	code     []*store.Code    // scripts of started calls that the log may lack

	entriesBefore, observedBefore int              // numbers of both before the step
	newestBefore                  journal.RunEvent // see tick.newest
	endedBefore                   *journal.RunEvent
}

// start is a call that is about to run.
type start struct {
	index int
	// The step that made it; distinguishes it from the call's other starts, undone ones included.
	step       int
	activity   *plan.Registered // the current version
	doer       string           // its name
	invocation plan.Invocation
	// Runs the call while the log lacks its start; nil where that must be recorded first.
	speculative plan.Speculative
	child       *childRun // run of a delegate
	granted     []int64   // of a question to a model: the messages that its scopes' values came from
	slot        slot      // of any other
}

func (vs *values) newRecord(i int) journal.Record {
	return journal.NewRecord(vs.event.Tick, vs.plan.Calls[i])
}

// all gives the calls as they stand.
func (vs *values) all() []journal.Record {
	all := make([]journal.Record, len(vs.state.Calls))
	for i := range vs.state.Calls {
		all[i] = vs.state.Calls[i].Record
		all[i].Context = vs.context
	}
	return all
}
