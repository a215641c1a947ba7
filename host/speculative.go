package host

import (
	"context"
	"time"

	"obelus/engine/plan"
	"obelus/host/internal/budget"
	"obelus/luastd"
)

// speculative is an activity whose calls may run ahead of the log: its script reaches beyond its
// memory only by way of the host, and nothing of a call outlives it.
type speculative struct{ *activity }

var _ plan.Speculative = speculative{}

// maySpeculate reports whether an activity may be speculative.
func (g *Generation) maySpeculate(o activityOptions) bool {
	_, system := g.config.Clock.(luastd.SystemClock)
	return system && g.workers == nil && len(g.config.Objects) == 0 && !o.reuse
}

// Run runs one call. The result is marked as pure if the call had no effect outside.
func (f speculative) Run(ctx context.Context, in plan.Invocation) (plan.Result, error) {
	var reach budget.Reach
	result, err := f.run(ctx, in, &reach)
	result.Pure = err == nil && !reach.Out
	return result, err
}

// Speculate runs one call for as long as it only computes. ran is false for a call that would
// print, log, sleep, or touch a file or the network, or that has long work that can't be
// interrupted.
func (f speculative) Speculate(ctx context.Context, in plan.Invocation) (result plan.Result, ran bool, err error) {
	if budget.IsCrowded(f.gen.project.Limits.Process) {
		return plan.Result{}, false, nil // the call may have to wait, and the run's log with it
	}
	reach := budget.Reach{Ends: true}
	result, err = f.run(ctx, in, &reach)
	until, limited := ctx.Deadline()
	late := ctx.Err() != nil || limited && !time.Now().Before(until)
	if reach.Out || late && err != nil {
		return plan.Result{}, false, nil
	}
	return result, true, err
}
