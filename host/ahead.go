package host

import (
	"context"
	"errors"
	"time"

	"github.com/yuin/gopher-lua"

	"obelus/engine/plan"
	"obelus/luastd"
)

// speculative is an activity whose calls may run ahead of the log: whatever its script can
// reach beyond its memory it reaches by way of the host, and nothing of a call outlives it.
type speculative struct{ *activity }

var _ plan.Speculative = speculative{}

// mayRunAhead tells whether an activity may be a forerunner.
func (g *Generation) mayRunAhead(o activityOptions) bool {
	_, system := g.config.Clock.(luastd.SystemClock)
	return system && g.workers == nil && len(g.config.Objects) == 0 && !o.reuse
}

// Run does one call, and tells whether anything of it could be seen.
func (f speculative) Run(ctx context.Context, in plan.Invocation) (plan.Result, error) {
	var reach reach
	result, err := f.run(ctx, in, &reach)
	result.Pure = err == nil && !reach.out
	return result, err
}

// Speculate does one call for as long as it only computes. One that would print, log, sleep,
// or touch a file or the network gives up before that, as does one with long work that
// can't be interrupted.
func (f speculative) Speculate(ctx context.Context, in plan.Invocation) (result plan.Result, ran bool, err error) {
	if crowded(f.gen.limits.Process) {
		return plan.Result{}, false, nil // it may have to wait, and the run's log with it
	}
	reach := reach{ends: true}
	result, err = f.run(ctx, in, &reach)
	until, limited := ctx.Deadline()
	late := ctx.Err() != nil || limited && !time.Now().Before(until)
	if reach.out || late && err != nil {
		return plan.Result{}, false, nil
	}
	return result, true, err
}

// reach is what becomes of a call as its script reaches out.
type reach struct {
	ends bool // it ends then
	out  bool // it has, or would have
}

// errAhead ends a script that has run ahead as far as it may.
var errAhead = errors.New("it has run ahead as far as it may")

// outside comes before a script reaches beyond its memory.
func (s *state) outside(L *lua.LState) {
	if s.reaches() {
		L.RaiseError("%s", outOfTime)
	}
}

// reaches notes that a script reaches beyond its memory, and tells whether it is to end
// before it does.
func (s *state) reaches() (ends bool) {
	r := s.run.reach
	if r == nil {
		return false
	}
	r.out = true
	if r.ends {
		s.budget.end(errAhead)
	}
	return r.ends
}

// longWork is how many units of work at once take long enough, perhaps a millisecond, for a
// call to be better not ahead of the log meanwhile.
const longWork = 4096

// tooLong tells whether a script is to end before long work.
func (s *state) tooLong(units int) bool {
	return units >= longWork && s.run != nil && s.run.reach != nil && s.run.reach.ends && s.reaches()
}
