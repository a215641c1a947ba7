package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/plan"
	"obelus/host/internal/budget"
	"obelus/host/internal/codec"
	"obelus/host/internal/luacall"
	"obelus/host/internal/sandbox"
)

// activity is a Lua function that a script registers. For every call the script's top level runs
// again, in its own environment, so that nothing outlives a call.
type activity struct {
	gen     *Generation
	script  *sandbox.Script
	name    string
	timeout time.Duration   // 0 for the engine's default
	warm    chan *warmState // states to be used again; nil if nothing outlives a call
}

// warmState is a state in which an activity's script has run, for the option reuse. The values of
// its globals and locals are there again at the next call that gets this state. There are several,
// for concurrent calls, and a state in which something was raised is thrown away, so that a script
// must not depend on the values that it finds: a warm state is for values that are expensive to
// make.
type warmState struct {
	s  *session
	fn *lua.LFunction
}

// maxWarm is the number of warm states of one activity that are kept.
const maxWarm = 16

func newActivity(g *Generation, name string, a registeredActivity, timeout time.Duration) plan.Activity {
	made := &activity{gen: g, script: a.script, name: name, timeout: timeout}
	if g.maySpeculate(a.options) {
		return speculative{made}
	}
	if g.workers != nil {
		return isolated{made, g.workers}
	}
	if a.options.reuse {
		made.warm = make(chan *warmState, maxWarm)
	}
	return made
}

var _ plan.Activity = (*activity)(nil)

// Run runs one call. A value that the script returns after nil or raises, and a timeout, is a
// [*plan.Failure]; every other error is a [*ScriptError].
func (a *activity) Run(ctx context.Context, in plan.Invocation) (plan.Result, error) {
	return a.run(ctx, in, nil)
}

func (a *activity) run(ctx context.Context, in plan.Invocation, reach *budget.Reach) (plan.Result, error) {
	timeout := a.timeout
	if timeout == 0 {
		timeout = plan.DefaultTimeout
	}
	var result plan.Result
	err := sandbox.Guard(a.script.File, func() (err error) {
		result, err = a.runIn(ctx, timeout, in, reach)
		return err
	})
	f, raised := err.(*sandbox.Fault)
	if !raised {
		return result, err
	}
	if failure := luacall.Failure(f); failure != nil {
		return plan.Result{}, failure
	}
	return plan.Result{}, f.ScriptError
}

// runIn runs the call in a state, which is given back unless something was raised.
func (a *activity) runIn(ctx context.Context, timeout time.Duration, in plan.Invocation, reach *budget.Reach) (plan.Result, error) {
	var w *warmState
	found := registrations{again: true, activity: a.name}
	select {
	case w = <-a.warm:
		w.s.Resume(ctx, timeout)
	default:
		w = &warmState{s: a.gen.session()}
		w.s.begin(ctx, timeout, a.script, &found)
	}
	s, run, kept := w.s, w.s.Run, false
	s.Budget.Reach = reach
	defer func() {
		if !kept { // another call may have a warm state by now
			run.Stop()
		}
	}()
	if w.fn == nil {
		if _, err := s.RunFile(a.script); err != nil {
			return plan.Result{}, err
		}
		if w.fn = found.fn; w.fn == nil {
			s.end()
			return plan.Result{}, a.fail("the script did not register activity %s this time", strconv.Quote(a.name))
		}
	}
	result, err := a.call(s, w.fn, in)
	if a.warm != nil {
		kept = true
		a.keep(w, err)
	} else if _, raised := err.(*sandbox.Fault); !raised {
		s.end()
	}
	return result, err
}

func (a *activity) keep(w *warmState, err error) {
	w.s.Run.Stop() // coroutines do not outlive a call even here
	if _, raised := err.(*sandbox.Fault); raised {
		return
	}
	w.s.Rest()
	select {
	case a.warm <- w:
	default:
	}
}

func (a *activity) call(s *session, fn *lua.LFunction, in plan.Invocation) (plan.Result, error) {
	results, err := s.Call(fn, luacall.Arguments(s.State, in)...)
	if err != nil {
		return plan.Result{}, err
	}
	result, err := luacall.Outcome(s.State, results, plan.OutputSchema(in.Tool))
	var failure *plan.Failure
	switch {
	case err == nil || errors.As(err, &failure):
		return result, err
	case s.Budget.Err() != nil:
		return plan.Result{}, s.Fault(err)
	}
	message := err.Error()
	var value *codec.Error
	if path, ok := in.Call["_outputPath"].(string); ok && errors.As(err, &value) && value.TooLong {
		message += " (it was for " + path + ")"
	}
	return plan.Result{}, a.fail("%s", message)
}

func (a *activity) fail(format string, args ...any) *ScriptError {
	return &ScriptError{File: a.script.File, Message: fmt.Sprintf("activity %s: ", a.name) + fmt.Sprintf(format, args...)}
}
