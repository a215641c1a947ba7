package engine

import (
	"context"
	"time"

	"obelus/engine/internal/declared"
	"obelus/engine/internal/reading"
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
	writers reading.Writers
}

// evaluating is what calls read while one is evaluated (see [sched.Values]).
type evaluating struct {
	*values
	ctx    context.Context
	runner *Runner // for the time
}

func (r *evaluating) Resolve(call int, path store.Path, instance string) (store.Resolved, error) {
	return r.resolver(call).Resolve(r.ctx, path, instance)
}

func (r *evaluating) Grant(call int, reads map[string]int64) (map[string]any, error) {
	return r.reads().Grant(r.ctx, call, reads)
}

func (r *evaluating) CheckMethod(call int, path store.Path) error {
	return r.reads().CheckMethod(r.ctx, call, path)
}

func (r *evaluating) Now() time.Time { return r.runner.now() }

func (r *evaluating) Explain(call int, err error) error {
	return r.hintEmpty(r.ctx, call, r.plan.Calls[call].Template(), err)
}
