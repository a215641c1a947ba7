package host

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine"
)

// ahead is whether calls of an activity run ahead of the log. It may be used by several
// goroutines at once.
type ahead struct {
	never  bool         // scripts may reach beyond their memory without the host's knowing
	behind atomic.Int64 // how many calls are yet to stay behind
}

// stayBehind is how many calls of an activity stay behind after one that gave up: its
// work was in vain, and so was the state that it ran in.
const stayBehind = 100

// errAhead ends a script that has run ahead as far as it may.
var errAhead = errors.New("it has run ahead as far as it may")

var _ engine.Forerunner = (*activity)(nil)

// RunAhead does one call for as long as it only computes. One that would print, log,
// sleep, or touch a file or the network gives up before that, and as nothing else
// outlives a call it leaves no trace.
func (a *activity) RunAhead(ctx context.Context, in engine.Invocation) (result engine.Result, ran bool, err error) {
	if a.ahead.never || a.ahead.behind.Load() > 0 && a.ahead.behind.Add(-1) >= 0 {
		return engine.Result{}, false, nil
	}
	result, err = a.run(ctx, in, true)
	until, limited := ctx.Deadline()
	late := ctx.Err() != nil || limited && !time.Now().Before(until)
	if late || errors.Is(err, errAhead) {
		a.ahead.behind.Store(stayBehind)
		return engine.Result{}, false, nil
	}
	return result, true, err
}

// outside comes before a script reaches beyond its memory, and ends one that runs ahead.
func (s *state) outside(L *lua.LState) {
	if s.run.ahead {
		s.budget.err = errAhead
		s.budget.charge(L, checkEvery) // which raises
	}
}
