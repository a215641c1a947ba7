package engine

import (
	"context"
	"slices"

	"obelus/store"
)

// expand makes one call for each instance of those that are for every one.
func expand(calls []Source, instances []string) []Source {
	var all []Source
	for i, src := range calls {
		src.position = i + 1
		call, _ := src.Call.(map[string]any)
		if call == nil || call["_instance"] != store.EveryInstance {
			all = append(all, src)
			continue
		}
		for _, instance := range instances {
			if instance == "" || instance == store.EveryInstance { // as an older log may have it
				continue
			}
			one := make(map[string]any, len(call))
			for key, v := range call {
				one[key] = v
			}
			one["_instance"] = instance
			all = append(all, Source{Call: one, Line: src.Line, position: src.position, accepted: src.accepted})
		}
	}
	return all
}

func forEveryInstance(calls []Source) bool {
	return slices.ContainsFunc(calls, func(src Source) bool {
		call, _ := src.Call.(map[string]any)
		return call["_instance"] == store.EveryInstance
	})
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

// compile makes a plan of a request's calls on what the view holds. Calls for
// every instance are checked as they are written first, so that what is wrong
// with one is told once. They become as many calls as there are instances,
// unless the plan is to be shown and there are none.
func (l *loop) compile(ctx context.Context, request *Request, show bool) (*Plan, error) {
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
		if instances := instancesOf(held); !show || len(instances) > 1 {
			if _, err := compile(request, registry, everythingExists); err != nil && show {
				return compileToShow(request, registry, there) // with all that is to be said of it
			} else if err != nil {
				return nil, err
			}
			request.Calls = expand(request.Calls, instances)
		}
	}
	compiled := compile
	if show {
		compiled = compileToShow
	}
	plan, err := compiled(request, registry, there)
	if err != nil {
		return nil, err
	}
	return plan, l.policy.check(plan, registry, l.runner.depth)
}
