package luastd

import (
	"context"
	"runtime"

	lua "github.com/yuin/gopher-lua"
)

// asideFrom is from how many units on work is done aside: below, it takes some
// milliseconds.
const asideFrom = 4096

// working bounds what is done aside at once, work that was left behind among it.
var working = make(chan struct{}, 2*runtime.GOMAXPROCS(0))

// aside charges for work and does it. Much of it is done on a goroutine of its
// own, for parsers and encoders can't be stopped: a script that is out of time
// leaves it behind. So the work touches nothing of the state, and ends by itself;
// what it can stop it stops when ctx ends.
func (e *Env) aside(L *lua.LState, units int, work func(ctx context.Context)) {
	e.charge(L, units)
	if units < asideFrom {
		work(context.Background())
		return
	}
	ctx, cancel := e.Context()
	defer cancel()
	ended := make(chan any, 1)
	select {
	case working <- struct{}{}:
		go func() {
			defer func() {
				ended <- recover()
				<-working
			}()
			work(ctx)
		}()
	case <-ctx.Done():
	}
	select {
	case r := <-ended:
		if r != nil {
			panic(r)
		}
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		e.interrupted(L)
	}
}

// interrupted raises where the script has no time left, in the words of its
// budget.
func (e *Env) interrupted(L *lua.LState) {
	e.charge(L, 1<<20)
	L.RaiseError("the script was interrupted")
}

// weight is how many units a value is worth, about.
func weight(v any) (units int) {
	switch v := v.(type) {
	case string:
		return len(v)/16 + 1
	case map[string]any:
		for name, e := range v {
			units += len(name)/16 + weight(e)
		}
	case []any:
		for _, e := range v {
			units += weight(e)
		}
	}
	return units + 1
}
