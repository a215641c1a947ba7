package engine

import (
	"context"
	"fmt"
	"slices"

	"obelus/store"
)

// Planner gives the calls of one tick after another (protocol §7, the loop). A
// Lua function, a Go function and a model are planners; a static list of calls
// is one that answers once, and needs no Planner.
type Planner interface {
	// Plan is asked when a tick begins. An error ends the run as failed, as does a
	// solution with what JSON doesn't have. A solution that is refused otherwise
	// becomes error messages in the context, and the planner is asked again. It
	// has all the time that it takes until ctx is done, which it must heed: the
	// run waits for it.
	Plan(ctx context.Context, ask Ask) (*Solution, error)
}

// PlannerFunc makes a planner of a Go function.
type PlannerFunc func(ctx context.Context, ask Ask) (*Solution, error)

// Plan calls f.
func (f PlannerFunc) Plan(ctx context.Context, ask Ask) (*Solution, error) { return f(ctx, ask) }

// Ask is what a planner is asked with. Its values are those of an [Invocation],
// shared, and must not be changed.
type Ask struct {
	Context string // its name
	Tick    int    // the tick that is to be planned

	// Kinds holds the value of every kind of the context, or what the request's
	// scopes grant. Where the context has instances, "_instances" holds the same
	// for each of them.
	Kinds map[string]any
}

// Solution is what a planner answers: calls, and the final output once it is
// known. Its values may be anything that [store.FromGo] takes.
type Solution struct {
	Calls []Source

	// Output ends the loop when it is not null once the tick has settled. It
	// may hold references.
	Output any
}

// NoPlannerError is a run whose planner is to be asked again and is not at hand.
type NoPlannerError struct{ Context string }

func (e *NoPlannerError) Error() string {
	return fmt.Sprintf("the function that plans context %s is to be asked again, and is not there", e.Context)
}

// instancesKey is where a planner finds what instances hold.
const instancesKey = "_instances"

// ask builds what a planner is asked with from what the view holds.
func (l *loop) ask(ctx context.Context, tick int) (Ask, error) {
	ask := Ask{Context: l.context, Tick: tick, Kinds: map[string]any{}}
	held, err := l.view.Kinds(ctx)
	if err != nil {
		return ask, err
	}
	instances := map[string]any{}
	kinds := kindsOf(held)
	for _, instance := range instancesOf(held) {
		scopes := l.request.Scopes
		if scopes == nil {
			scopes = slices.Concat(kinds[""], kinds[instance])
		}
		granted, err := grant(ctx, func(store.Path) store.Resolver { return l.view.Resolver() }, scopes, instance, nil)
		switch {
		case err != nil:
			return ask, err
		case instance == "":
			ask.Kinds = granted
		default:
			instances[instance] = granted
		}
	}
	if len(instances) > 0 {
		ask.Kinds[instancesKey] = instances
	}
	return ask, nil
}

// kindsOf sorts the kinds by the instances that hold them.
func kindsOf(held []store.KindOf) map[string][]store.Path {
	kinds := map[string][]store.Path{}
	for _, h := range held {
		kinds[h.Instance] = append(kinds[h.Instance], store.KindPath(h.Kind))
	}
	return kinds
}

// instancesOf lists the instances that a context holds, "" for none first.
func instancesOf(held []store.KindOf) []string {
	instances := []string{""}
	for _, h := range held {
		if h.Instance != instances[len(instances)-1] {
			instances = append(instances, h.Instance)
		}
	}
	return instances
}

// everyInstance as a call's _instance makes one call of it for each instance
// that the context holds when its plan starts.
const everyInstance = "*"

// expand makes one call for each instance of those that are for every one.
func expand(calls []Source, instances []string) []Source {
	var all []Source
	for i, src := range calls {
		src.position = i + 1
		call, _ := src.Call.(map[string]any)
		if call == nil || call["_instance"] != everyInstance {
			all = append(all, src)
			continue
		}
		for _, instance := range instances {
			if instance == "" {
				continue
			}
			one := make(map[string]any, len(call))
			for key, v := range call {
				one[key] = v
			}
			one["_instance"] = instance
			all = append(all, Source{Call: one, Line: src.Line, position: src.position})
		}
	}
	return all
}

func forEveryInstance(calls []Source) bool {
	return slices.ContainsFunc(calls, func(src Source) bool {
		call, _ := src.Call.(map[string]any)
		return call["_instance"] == everyInstance
	})
}

// compile makes a plan of a request's calls on what the view holds. Calls for
// every instance are checked as they are written first, so that what is wrong
// with one is told once. They become as many calls as there are instances,
// unless keep is set and there are none.
func (l *loop) compile(ctx context.Context, request *Request, keep bool) (*Plan, error) {
	registry := l.runner.Registry
	if l.view.Committed() > 0 {
		var err error
		if registry, err = contextTools(ctx, l.runner.Log, l.context, 0, registry); err != nil {
			return nil, err
		}
	}
	there := exists(ctx, l.view.Resolver())
	if forEveryInstance(request.Calls) {
		held, err := l.view.Kinds(ctx)
		if err != nil {
			return nil, err
		}
		if instances := instancesOf(held); !keep || len(instances) > 1 {
			if _, err := compile(request, registry, everythingExists); err != nil {
				return nil, err
			}
			request.Calls = expand(request.Calls, instances)
		}
	}
	plan, err := compile(request, registry, there)
	if err != nil {
		return nil, err
	}
	return plan, l.policy.check(plan, registry, l.runner.depth)
}
