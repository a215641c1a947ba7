package proposal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"obelus/engine/internal/logerr"
	"obelus/engine/internal/output"
	"obelus/engine/plan"
)

// Consult asks a planner that is a function for the calls of the tick. It returns the solution, and
// for each path granted to the planner the newest seq that its value came from. Its error is the
// planner's, or wrapped as one of the log.
func (s Source) Consult(ctx context.Context, rehearsal bool) (*plan.Solution, map[string]int64, error) {
	ask := plan.Ask{Context: s.Context.Name, Tick: s.Tick, Rehearsal: rehearsal, Kinds: map[string]any{}}
	saw := map[string]int64{}
	held, err := s.View.Kinds(ctx)
	if err != nil {
		return nil, nil, logerr.Wrap(err)
	}
	instances := map[string]any{}
	kinds := plan.KindPaths(held)
	for _, instance := range plan.Instances(held) {
		scopes := s.Request.Scopes
		if scopes == nil {
			scopes = slices.Concat(kinds[""], kinds[instance])
		}
		granted, err := plan.Grant(ctx, s.View.Resolver(), scopes, instance, saw)
		switch {
		case err != nil:
			return nil, nil, logerr.Wrap(err)
		case instance == "":
			ask.Kinds = granted
		default:
			instances[instance] = granted
		}
	}
	if len(instances) > 0 {
		ask.Kinds[plan.InstancesKey] = instances
	}
	solution, err := plan.Consult(ctx, s.Request.Planner, ask)
	return solution, saw, err
}

// Answer is a model's answer to the question for a tick.
type Answer struct {
	Asked    bool           // else the model was not asked, and all the rest is zero
	Solution *plan.Solution // nil where it gave none
	Shown    []plan.Shown   // the kinds that it was shown
	Saw      map[string]int64
	Used     *plan.Usage // nil if it is not known
}

// Propose asks the model that plans the request for the calls of the tick. Its error is the
// model's, a [*RepeatedError] where the model is not to be asked again, or wrapped as one of the
// log.
func (s Source) Propose(ctx context.Context, planning *plan.Planning, registry *plan.Registry, meter *plan.Meter) (answer Answer, err error) {
	model, err := planning.ModelFor(registry)
	if err != nil { // the run is refused, and has not failed
		return answer, logerr.Wrap(s.Request.Refuse(plan.CodeUnknownTool, err))
	}
	p, err := s.Build(ctx)
	if repeated, ok := errors.AsType[*RepeatedError](err); ok {
		return answer, repeated
	}
	if err != nil {
		return answer, logerr.Wrap(err)
	}
	answer = Answer{Asked: true, Shown: p.Kinds, Saw: s.Saw(p.Kinds)}
	p.Tools, p.Meter = planning.Offers(registry), meter
	p.CheckOutput = func(solution *plan.Solution) (problem, err error) {
		problem, err = output.Check(ctx, *s.Request, solution, s.View.Resolver(), registry.Schemas)
		if err != nil {
			err = logerr.Wrap(err)
		}
		return problem, err
	}
	limit := plan.TimeoutOf(model)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer.Solution, err = plan.Consult(limited, plan.PlannerFunc(func(ctx context.Context, _ plan.Ask) (*plan.Solution, error) {
		return model.Propose(ctx, p)
	}), plan.Ask{})
	answer.Used = meter.Used()
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("the model gave no plan within %s: %w", limit, err)
	}
	if answer.Solution != nil {
		for i := range answer.Solution.Calls {
			answer.Solution.Calls[i].ByModel = &plan.ByModel{Model: planning.Model, Lazy: s.Request.Mode == plan.ModeLazy}
		}
	}
	return answer, err
}
