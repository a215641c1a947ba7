// Package reading decides which messages of a context the calls of a tick see.
package reading

import (
	"context"
	"errors"
	"maps"
	"sync"

	"obelus/engine/internal/sched"
	"obelus/engine/plan"
	"obelus/store"
)

// Writers maps the seqs of messages to the calls of a tick that wrote them. A call that runs once
// more finds more messages in the log than at first, and its reads must not depend on them: not on
// writes of calls that wait until it has read. Of foreign messages, a call that runs again reads
// those that it read at first; a retried call reads all of them. Earlier writes of calls that run
// again are hidden from the whole run, by its view.
type Writers map[int64]int

// Reports stands for the writer of messages that report calls' failures. They came as the tick
// ended, so that none of its calls saw them at first.
const Reports = -1

// DropAfter drops the writers of messages after a seq, which are undone.
func (w Writers) DropAfter(last int64) {
	maps.DeleteFunc(w, func(seq int64, _ int) bool { return seq > last })
}

// Reader reads for the calls of a tick.
type Reader struct {
	Plan    *plan.Plan
	State   *sched.State // where the calls stand
	View    *store.View
	Writers Writers // of the tick's messages, if the reads of calls depend on them; else nil
}

// Resolver reads paths for call i: as of now, or as of when it started first.
func (r Reader) Resolver(i int) store.Resolver {
	resolver, record := r.View.Resolver(), &r.State.Calls[i].Record
	resolver.At = record.At
	if r.Writers == nil {
		return resolver
	}
	overwriters := sync.OnceValue(func() map[int]bool { return r.Plan.Graph.Overwriters(i) })
	resolver.Log = store.Hiding(resolver.Log, func(seq int64) bool {
		switch writer, ours := r.Writers[seq]; {
		case !ours:
			return record.Before != 0 && seq > record.Before
		case writer == Reports:
			return true
		default:
			return overwriters()[writer]
		}
	})
	return resolver
}

// CheckJoin checks the write of call i against the value there. Where that fails for a call that
// runs once more, it is checked against the value without the writes of calls that wait for it. Its
// error is a [*plan.Fault], or the log's.
func (r Reader) CheckJoin(i int, check func(store.Resolver) error) error {
	err := check(r.View.Resolver())
	_, misfit := errors.AsType[*store.FitError](err)
	if misfit && r.Writers != nil {
		downstream, resolver := r.Plan.Graph.Downstream(i), r.View.Resolver()
		resolver.Log = store.Hiding(r.View, func(seq int64) bool {
			writer, ours := r.Writers[seq]
			return ours && downstream[writer]
		})
		err = check(resolver)
	}
	if _, misfit := errors.AsType[*store.FitError](err); misfit {
		return &plan.Fault{Code: "method", Err: err}
	}
	return err
}

// CheckMethod checks that the value at a path takes the method by which call i writes there.
func (r Reader) CheckMethod(ctx context.Context, i int, path store.Path) error {
	c := r.Plan.Calls[i]
	return r.CheckJoin(i, func(resolver store.Resolver) error {
		return resolver.CheckMethod(ctx, path, c.Instance, c.JoinMethod())
	})
}

// Grant returns the values that the scopes of call i grant, by kind.
func (r Reader) Grant(ctx context.Context, i int, reads map[string]int64) (map[string]any, error) {
	c := r.Plan.Calls[i]
	return plan.Grant(ctx, r.Resolver(i), c.ScopePaths, c.Instance, reads)
}
