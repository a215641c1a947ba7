package engine

import (
	"context"
	"slices"
	"time"

	"obelus/engine/internal/declared"
	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/engine/schema"
	"obelus/store"
)

// values are what the calls of a tick read, and what their results join.
type values struct {
	context string
	log     store.Log
	schemas []schema.Option
	plan    *plan.Plan
	event   journal.PlanEvent
	view    *store.View
	state   *sched.State // where the calls stand

	declared *declared.Schemas // of the context
	// Of the tick's messages, if the reads of calls depend on them; else nil.
	writers  writers
	recorded *recordedTick // nil in a live run
}

// reading is what calls read while one is evaluated (see [sched.Values]).
type reading struct {
	*values
	ctx    context.Context
	runner *Runner // for the time
}

func (r *reading) Resolve(call int, path store.Path, instance string) (store.Resolved, error) {
	return r.resolver(call).Resolve(r.ctx, path, instance)
}

func (r *reading) Grant(call int, reads map[string]int64) (map[string]any, error) {
	c := r.plan.Calls[call]
	return grant(r.ctx, r.resolver(call), c.ScopePaths, c.Instance, reads)
}

func (r *reading) CheckMethod(call int, path store.Path) error {
	c := r.plan.Calls[call]
	return r.checkJoin(r.ctx, call, func(resolver store.Resolver) error {
		return resolver.CheckMethod(r.ctx, path, c.Instance, c.JoinMethod())
	})
}

func (r *reading) Now() time.Time { return r.runner.now() }

func (r *reading) Explain(call int, err error) error {
	return r.hintEmpty(r.ctx, call, r.plan.Calls[call].Template(), err)
}

// grant builds what scopes let an instance see, by kind, and notes in reads, if
// it is not nil, where each value came from.
func grant(ctx context.Context, resolver store.Resolver, scopes []store.Path, instance string, reads map[string]int64) (map[string]any, error) {
	granted := map[string]any{}
	scopes = slices.Clone(scopes)
	slices.SortFunc(scopes, func(a, b store.Path) int { return len(a.String()) - len(b.String()) })
	for n, scope := range scopes {
		if slices.ContainsFunc(scopes[:n], func(wider store.Path) bool { return wider.Contains(scope) }) {
			continue
		}
		resolved, err := resolver.Resolve(ctx, scope, instance)
		if err != nil {
			return nil, err
		}
		if resolved.Exists {
			if reads != nil {
				reads[scope.String()] = journal.NewestSeq(resolved.From)
			}
			put(granted, append([]string{scope.Kind()}, scope.Segments()...), resolved.Value)
		}
	}
	return granted, nil
}

// put lays a value below objects that it makes on the way.
func put(object map[string]any, segments []string, v any) {
	for _, segment := range segments[:len(segments)-1] {
		child, ok := object[segment].(map[string]any)
		if !ok {
			child = map[string]any{}
			object[segment] = child
		}
		object = child
	}
	object[segments[len(segments)-1]] = v
}
