package engine

import (
	"context"

	"obelus/engine/internal/sched"
	"obelus/engine/journal"
	"obelus/engine/plan"
	"obelus/store"
)

// values are what the calls of a tick read, and what their results join.
type values struct {
	runner  *Runner
	context string
	plan    *plan.Plan
	event   journal.PlanEvent
	view    *store.View
	state   *sched.State // where the calls stand

	declarations map[declaredKey]declaration
	// Of the tick's messages, if the reads of calls depend on them; else nil.
	writers writers
	// Of the tick in the log of the recorded run, once they were asked for; else nil.
	recordedWriters writers
}

// reading is what calls read while one is evaluated (see [sched.Values]).
type reading struct {
	*values
	ctx context.Context
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

func (r *reading) Explain(call int, err error) error {
	return r.hintEmpty(r.ctx, call, r.plan.Calls[call].Template(), err)
}
