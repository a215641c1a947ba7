package luastd

import (
	"context"
	"runtime"

	lua "github.com/yuin/gopher-lua"
)

// asideFrom is the number of units from which work is done aside. Less takes some milliseconds.
const asideFrom = 4096

// working bounds the work that is done aside at once, abandoned work included.
var working = make(chan struct{}, 2*runtime.GOMAXPROCS(0))

// aside charges for work and does it. Much work is done on a goroutine of its own, since parsers
// and encoders can't be stopped: a script that is out of time abandons it. So the work touches
// nothing of the state and ends by itself, the sooner if it heeds ctx.
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

// interrupted raises, in the words of the script's budget, if the script has no time left.
func (e *Env) interrupted(L *lua.LState) {
	e.charge(L, 1<<20)
	L.RaiseError("the script was interrupted")
}

// weight estimates the units that a value is worth.
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
