package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"obelus/engine/internal/logerr"
	"obelus/engine/internal/proposal"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// compile makes a plan of a request's calls on the values of the view. Calls for every instance are
// checked as written first, so that a fault of one is reported once. They become as many calls as
// there are instances, unless the plan is for display and there are none.
func (l *loop) compile(ctx context.Context, request *plan.Request, show bool) (*plan.Plan, error) {
	registry, err := l.registryNow(ctx)
	if err != nil {
		return nil, err
	}
	there := exists(ctx, l.view.Resolver())
	if plan.EveryInstance(request.Calls) {
		held, err := l.view.Kinds(ctx)
		if err != nil {
			return nil, err
		}
		if instances := plan.Instances(held); !show || len(instances) > 1 {
			if _, err := plan.CompileRequest(request, registry, plan.EverythingExists); err != nil && show {
				return plan.CompileForDisplay(request, registry, there) // with all warnings
			} else if err != nil {
				return nil, err
			}
			request.Calls = plan.ExpandInstances(request.Calls, instances)
		}
	}
	compiled := plan.CompileRequest
	if show {
		compiled = plan.CompileForDisplay
	}
	p, err := compiled(request, registry, there)
	if err != nil {
		return nil, err
	}
	return p, l.policy.Check(p, registry, l.runner.depth)
}

// registryNow returns the registry with the tools that messages of the context define.
func (l *loop) registryNow(ctx context.Context) (*plan.Registry, error) {
	if l.view.Committed() == 0 {
		return l.runner.Registry, nil
	}
	return journal.In(l.runner.Log, l.context).WithTools(ctx, 0, l.runner.Registry)
}

// solver gets the calls of a tick from the planner of a run's request.
type solver struct{ *loop }

// nextSolution gives the request with the calls and the output of the next tick. A
// problem is one of the planner's that the run ends with.
func (l solver) nextSolution(ctx context.Context, number int) (request *plan.Request, problem, err error) {
	if l.request == nil {
		return nil, nil, &NoPlannerError{l.context}
	}
	solved, err := l.normalizedRequest()
	if err != nil || solved.Planner == nil {
		return solved, nil, err
	}
	solution, err := l.askPlanner(ctx, number, solved)
	if cause, ok := logerr.Cause(err); ok {
		return nil, nil, cause
	}
	if err != nil {
		awaitEnd(ctx)
	}
	var refused *plan.PlanError
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil, err
	case errors.As(err, &refused) && len(refused.Problems) > 0:
		return solved, refused, nil
	case err != nil:
		return solved, &plannerError{err}, nil
	}
	solved.Calls, solved.Shown = solution.Calls, l.proposed.shown
	solved.Choice = solution.Choice
	solved.Output = store.Optional{Value: solution.Output, Set: solution.Output != nil}
	return solved, nil, nil
}

// askPlanner asks the planner of a request for the calls of a tick. Its error is the planner's, or
// wrapped as one of the log.
func (l solver) askPlanner(ctx context.Context, number int, request *plan.Request) (*plan.Solution, error) {
	if planning, ok := request.Planner.(*plan.Planning); ok {
		return l.askForPlan(ctx, number, request, planning)
	}
	from := l.source(number, request)
	solution, saw, err := from.Consult(ctx, l.runner.Rehearsal)
	l.plannerSaw = saw
	return solution, err
}

// source returns the parts that a question to a planner is made from.
func (l solver) source(number int, request *plan.Request) proposal.Source {
	return proposal.Source{Context: journal.In(l.runner.Log, l.context), View: l.view, Request: request, Tick: number}
}

// awaitEnd waits for the end of a context whose time is over: a script looks at the clock
// itself, and may give up before the context does.
func awaitEnd(ctx context.Context) {
	if until, ok := ctx.Deadline(); ok && !time.Now().Before(until) {
		<-ctx.Done()
	}
}

// normalizedRequest returns the run's request for one tick. Its values are made JSON once, not at
// every tick.
func (l solver) normalizedRequest() (*plan.Request, error) {
	if !l.normalized {
		made, err := l.request.Normalize()
		if err != nil {
			return nil, err
		}
		l.request, l.normalized = made, true
	}
	request := *l.request
	return &request, nil
}

// refusalOf returns the refusal of a solution with a problem; nil for one without, or where the
// planner broke down. start is the seq before the messages that report the problem.
func refusalOf(problem error, request *plan.Request, start int64) *journal.Refusal {
	var refused *plan.PlanError
	if !errors.As(problem, &refused) {
		return nil
	}
	calls, _ := plan.Message(request).Data.Value.([]any)
	refusal := []any{proposal.WithoutReasons(calls), request.Output.Value}
	if request.Calls == nil { // the answer was no plan
		refusal = append(refusal, refused.Error())
	}
	reported := 0
	for _, p := range refused.Problems {
		if p.Severity != plan.SeverityWarning {
			reported++
		}
	}
	digest := sha256.Sum256(store.EncodeJSON(refusal))
	return &journal.Refusal{Digest: hex.EncodeToString(digest[:]), Next: start + int64(reported)}
}

// plannerError is a planner that broke down, and is not asked again.
type plannerError struct{ err error }

func (e *plannerError) Error() string { return plan.ValidText(e.err.Error()) }

func (e *plannerError) Unwrap() error { return e.err }

func exists(ctx context.Context, resolver store.Resolver) plan.Exists {
	return func(path store.Path, instance string) (bool, error) {
		resolved, err := resolver.Resolve(ctx, path, instance)
		return resolved.Exists, err
	}
}

// askForPlan asks a model for the calls of a tick.
func (l solver) askForPlan(ctx context.Context, number int, request *plan.Request, planning *plan.Planning) (*plan.Solution, error) {
	// The tick was planned already, and begins again since a message was appended meanwhile. The
	// model is not asked twice: it will see that message when it plans the next tick.
	if l.proposed.tick == number {
		return l.proposed.solution, l.proposed.err
	}
	l.planUsage = nil
	registry, err := l.registryNow(ctx)
	if err != nil {
		return nil, logerr.Wrap(err)
	}
	from := l.source(number, request)
	if l.begun && l.tick >= l.first {
		if from.Plans, err = from.Context.Plans(ctx, l.first); err != nil {
			return nil, logerr.Wrap(err)
		}
	}
	asked := l.view.Seq()
	answer, err := from.Propose(ctx, planning, registry.WithRequest(request), l.runner.meter(l.context, strconv.Itoa(number)))
	if !answer.Asked {
		return nil, err
	}
	l.plannerSaw = answer.Saw
	if l.planUsage = answer.Used; l.planUsage != nil {
		l.planUsage.Context = l.context
	}
	if ctx.Err() == nil {
		l.proposed = proposed{number, asked, answer.Shown, answer.Solution, err}
	}
	return answer.Solution, err
}

// proposed is the answer of a model to the question for a tick.
type proposed struct {
	tick     int   // 0 for none
	asked    int64 // the seq as of which it was shown the context
	shown    []plan.Shown
	solution *plan.Solution
	err      error
}

// boundRefusals returns the problem that ends a run once a model's solutions were refused too often
// in a row; else the problem as it is.
func (e *ending) boundRefusals(problem error) error {
	refused := e.event.Refused
	if !e.event.ByModel || refused == nil || refused.Times < e.loop.request.RefusalLimit() {
		return problem
	}
	return &plannerError{fmt.Errorf("the model's plans were refused %d times in a row: %w", refused.Times, problem)}
}

// countSpent opens the account of a resumed run, in which models may have spent something already.
func (l *loop) countSpent(ctx context.Context, first int) error {
	if l.runner.depth > 0 || l.runner.account == nil {
		return nil
	}
	spent, err := journal.SpentWithRoot(ctx, journal.In(l.runner.Log, l.context), first)
	l.runner.account = plan.NewAccount(l.runner.Budget, spent, l.runner.Spent)
	return err
}
