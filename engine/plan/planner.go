package plan

import (
	"context"
)

// Planner gives the calls of one tick after another (protocol §7, the loop). A
// Lua function, a Go function and a model are planners; a static list of calls
// is one that answers once, and needs no Planner.
type Planner interface {
	// Plan is asked when a tick begins. An error ends the run as failed, as does a
	// solution with what JSON doesn't have. A solution that is refused otherwise, or
	// a [*PlanError] in its place, becomes error messages in the context, and the
	// planner is asked again. It has all the time that it takes until ctx is done,
	// which it must heed: the run waits for it.
	Plan(ctx context.Context, ask Ask) (*Solution, error)
}

// PlannerFunc makes a planner of a Go function.
type PlannerFunc func(ctx context.Context, ask Ask) (*Solution, error)

// Plan calls f.
func (f PlannerFunc) Plan(ctx context.Context, ask Ask) (*Solution, error) { return f(ctx, ask) }

// Ask is a question to a planner. Its values are those of an [Invocation], shared, and must not be
// changed. Texts are as they are: a text that begins with † and goes into a solution becomes an
// expression there, whatever its source, unless it passes through [Literal].
type Ask struct {
	Context string // its name
	Tick    int    // the tick that is to be planned

	// Rehearsal reports that the solution is only compared with a recorded one, or shown. The planner
	// is to do nothing to the world outside.
	Rehearsal bool

	// Kinds holds the value of every kind of the context, or those that the request's scopes grant.
	// Where the context has instances, "_instances" holds the same for each of them.
	Kinds map[string]any
}

// Solution is a planner's answer: calls, and the final output once it is known. Its values may be
// anything that [store.FromGo] takes.
type Solution struct {
	Calls []Source

	// Output ends the loop when it is not null once the tick has settled. It
	// may hold references.
	Output any

	// Choice is the alternative that Output goes to, in a delegate ([Request].Outcomes); nil for the
	// first, or for what an outcome in Output says.
	Choice *Choice

	// Cut has references to the values that a model was shown in part as it made the solution.
	Cut []string
}

// InstancesKey is where a planner finds what instances hold.
const InstancesKey = "_instances"
