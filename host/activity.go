package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/plan"
	"obelus/host/internal/budget"
	"obelus/host/internal/codec"
	"obelus/host/internal/luacall"
	"obelus/host/internal/sandbox"
	"obelus/host/internal/worker"
	"obelus/luastd"
)

// activity is a Lua function that a script registers. Every call gets a function of its own, in an
// environment of its own ([session.make]), so that nothing outlives a call.
type activity struct {
	gen     *Generation
	script  *sandbox.Script
	name    string
	title   string          // activity "greet"
	line    int             // of its registration, in the script or a module of it
	timeout time.Duration   // 0 for the engine's default
	grants  *luastd.Grants  // of its calls; those of tools with _allow have less
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
	made := &activity{gen: g, script: a.script, name: name, title: a.what, line: a.line, timeout: timeout, grants: g.activityGrants(a)}
	if g.maySpeculate(a.options) {
		return speculative{made}
	}
	if g.workers != nil {
		return isolated{made, g.workers}
	}
	if a.options.Reuse {
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
	timeout := cmp.Or(in.Timeout, a.timeout, plan.DefaultTimeout)
	grants, err := a.callGrants(in)
	if err != nil {
		return plan.Result{}, err
	}
	var result plan.Result
	err = sandbox.Guard(a.script.File, func() (err error) {
		result, err = a.runIn(ctx, timeout, grants, in, reach)
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
func (a *activity) runIn(ctx context.Context, timeout time.Duration, grants *luastd.Grants, in plan.Invocation, reach *budget.Reach) (plan.Result, error) {
	var w *warmState
	found := registrations{again: true}
	warm := a.warm
	if grants != a.grants {
		warm = nil // its values may be of calls that may do more
	}
	select {
	case w = <-warm:
		w.s.Resume(ctx, timeout)
	default:
		w = &warmState{s: a.gen.session()}
		w.s.begin(ctx, timeout, a.script, &found)
		w.s.use(grants)
	}
	s, run, kept := w.s, w.s.Run, false
	s.Budget.Reach = reach
	s.called, s.models, s.output.call = true, in.Models, in
	defer func() {
		if !kept { // another call may have a warm state by now
			run.Stop()
		}
	}()
	if w.fn == nil {
		v, err := s.make(a.script, a.title)
		if err != nil {
			return plan.Result{}, err
		}
		if w.fn, _ = v.(*lua.LFunction); w.fn == nil {
			s.end()
			return plan.Result{}, a.fail("the script did not register %s this time", a.title)
		}
	}
	result, err := a.call(s, w.fn, in)
	if warm != nil {
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
	w.s.models, w.s.output.call = nil, plan.Invocation{}
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

// isolated is an activity whose calls run in workers, processes of their own.
type isolated struct {
	*activity
	workers *worker.Pool
}

var _ plan.Activity = isolated{}

// Run runs one call in a worker.
func (a isolated) Run(ctx context.Context, in plan.Invocation) (plan.Result, error) {
	grants, err := a.callGrants(in)
	if err != nil {
		return plan.Result{}, err
	}
	out := &output{config: &a.gen.config, call: in}
	call := worker.Call{Script: a.script, Name: a.name, Timeout: cmp.Or(in.Timeout, a.timeout), Ask: a.gen.askFor(grants, in.Models), Output: out, Log: slog.New(out)}
	if grants.Bounds != nil {
		call.Bounds = grants.Bounds.By
	}
	return a.workers.Run(ctx, call, in)
}

// Worker lets this program run activities in processes of their own, for projects that set isolate
// = "process". A program that embeds Obelus calls it first in its main: in a process that was
// started as a worker it does not return.
func Worker() { worker.Main(openWorker) }

// openWorker returns the executor of a worker. Its project has no folder.
func openWorker(s worker.Setup) worker.Executor {
	c := Config{Dir: s.Dir, Stderr: s.Stderr, Log: s.Log}.withDefaults()
	g := &Generation{config: c, project: newProject(c, s.Limits), registry: plan.NewRegistry()}
	g.project.Grants, g.project.Scripts, g.project.DefaultModel, g.askHost = s.Grants, s.Scripts, s.DefaultModel, s.Ask
	return func(call worker.Call, in plan.Invocation) (plan.Result, error) {
		a := &activity{gen: g, script: call.Script, name: call.Name, title: titleOf("activity", call.Name), timeout: call.Timeout, grants: g.narrowed(call.Bounds...)}
		return a.Run(context.Background(), in)
	}
}

// speculative is an activity whose calls may run ahead of the log: its script reaches beyond its
// memory only by way of the host, and nothing of a call outlives it.
type speculative struct{ *activity }

var _ plan.Speculative = speculative{}

// maySpeculate reports whether an activity may be speculative.
func (g *Generation) maySpeculate(o activityOptions) bool {
	_, system := g.config.Clock.(luastd.SystemClock)
	return system && g.workers == nil && len(g.config.Objects) == 0 && !o.Reuse
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
