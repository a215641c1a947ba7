package replay

import (
	"context"
	"errors"
	"fmt"

	"obelus/engine"
	"obelus/engine/journal"
	"obelus/engine/plan"
)

// Replayed is the result of a replay, compared with the log.
type Replayed struct {
	Context     string
	Calls       int // of the run
	Differences []Difference
}

// Difference is one thing that comes out otherwise than recorded.
type Difference struct {
	Context string `json:"context,omitempty"` // of a delegate; empty for the context that was replayed
	Call    string `json:"call,omitempty"`    // empty for a tick, or the run's own end
	Tick    int    `json:"tick,omitempty"`    // of a plan, or a tick that the run does not end with; else 0

	// Of a call: "issued" (the call in the plan), "status", "_if", "arguments", "reads", "writes",
	// "_call" (the call in its messages), "_outputMethod", "error", or a path that it wrote. Of a
	// tick: "plan", "output" or "status".
	What     string `json:"what"`
	Recorded any    `json:"recorded"`
	Replayed any    `json:"replayed"`
}

// Run checks the newest run of a context, and those of its delegates, against the log. Where a
// function planned the run, the request's is asked again for each tick, and its delegates'
// functions are; a model is not: its recorded plans count, as all plans do without a request. Each
// tick is compared with the log as it is, whatever a difference before it would have led to.
// Nothing outside is touched, and nothing is written. Its error is an [*engine.UnfinishedError]
// for a run that has not ended, an [*engine.NoPlannerError] for one whose planner the request no
// longer has, and a [*plan.PlanError] for a plan that is refused now.
func Run(ctx context.Context, r *engine.Runner, name string, request *plan.Request) (*Replayed, error) {
	return run(ctx, r, name, request, false)
}

// Ask is [Run], except that a model that planned the run is asked again, once for each tick, of the
// request as it is given: what differs is where it plans otherwise now. This costs what asking it
// costs.
func Ask(ctx context.Context, r *engine.Runner, name string, request *plan.Request) (*Replayed, error) {
	return run(ctx, r, name, request, true)
}

func run(ctx context.Context, r *engine.Runner, name string, request *plan.Request, ask bool) (*Replayed, error) {
	last, err := journal.In(r.Log, name).LastRun(ctx)
	switch {
	case err != nil:
		return nil, err
	case last.Tick == 0:
		return nil, &journal.NoSuchCallError{Message: fmt.Sprintf("context %s has no run to replay", name)}
	case !last.Status.Finished():
		return nil, &engine.UnfinishedError{Context: name, Status: last.Status}
	}
	runner, own, lost := r.Within(ctx, name, request)
	if runner == nil {
		return nil, lost
	}
	p := &replayer{
		runner: runner, ask: ask, asks: last.Planner && own != nil && (ask || !own.IsModelPlanned()),
		account: plan.NewAccount(runner.Budget, plan.Usage{}, runner.Spent), done: &Replayed{Context: name},
	}
	if p.asks && own.Planner == nil {
		return nil, &engine.NoPlannerError{Context: name}
	}
	err = p.check(ctx, own)
	if lost != nil && errors.As(err, new(*plan.PlanError)) {
		err = &engine.LostError{Err: fmt.Errorf("%w (%w)", err, lost)}
	}
	if err != nil {
		return nil, err
	}
	return p.done, nil
}

// check checks the run of the context that is replayed.
func (p *replayer) check(ctx context.Context, request *plan.Request) error {
	r, err := readRecord(ctx, p.runner.Log, p.done.Context, 0)
	if err != nil {
		return err
	}
	top := p.newCheck(r, p.runner.Registry, 0)
	if p.asks {
		if top.request, err = request.Normalize(); err != nil {
			return err
		}
	}
	err = top.run(ctx)
	for _, t := range top.ticks {
		p.done.Calls += len(t.plan.Calls)
	}
	return err
}

// replayer holds what is common to the check of a run and of its delegates' runs.
type replayer struct {
	runner  *engine.Runner
	ask     bool // models that planned are asked again
	asks    bool // planners are asked again; else all plans are taken from the log
	account plan.Ledger
	done    *Replayed
}
