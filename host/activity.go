package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine"
	"obelus/host/internal/budget"
	"obelus/host/internal/codec"
	"obelus/host/internal/luaerr"
	"obelus/host/internal/sandbox"
	"obelus/store"
)

// activity is a Lua function that a script registers. For every call the
// script's top level runs again, in an environment of its own, so that nothing
// outlives a call.
type activity struct {
	gen     *Generation
	script  *sandbox.Script
	name    string
	timeout time.Duration   // 0 for the engine's default
	warm    chan *warmState // states to be used again; nil where nothing outlives a call
}

// warmState is a state in which an activity's script has been run: the option
// reuse. What its globals and its locals hold is there again at the next call
// that gets this state. There are several, for calls that run at once, and one
// in which something was raised is thrown away, so that nothing may count on
// what it finds: a warm state is for what is dear to make.
type warmState struct {
	s  *session
	fn *lua.LFunction
}

// maxWarm is how many warm states of one activity are kept.
const maxWarm = 16

func newActivity(g *Generation, name string, a registeredActivity, timeout time.Duration) engine.Activity {
	made := &activity{gen: g, script: a.script, name: name, timeout: timeout}
	if g.mayRunAhead(a.options) {
		return forerunner{made}
	}
	if g.workers != nil {
		return isolated{made, g.workers}
	}
	if a.options.reuse {
		made.warm = make(chan *warmState, maxWarm)
	}
	return made
}

var _ engine.Activity = (*activity)(nil)

// Run does one call. What the script returns after nil or raises, and a
// timeout, is an [*engine.Failure]; every other error is a [*ScriptError].
func (a *activity) Run(ctx context.Context, in engine.Invocation) (engine.Result, error) {
	return a.run(ctx, in, nil)
}

func (a *activity) run(ctx context.Context, in engine.Invocation, reach *budget.Reach) (engine.Result, error) {
	timeout := a.timeout
	if timeout == 0 {
		timeout = engine.DefaultTimeout
	}
	var result engine.Result
	err := sandbox.Guard(a.script.File, func() (err error) {
		result, err = a.runIn(ctx, timeout, in, reach)
		return err
	})
	f, raised := err.(*sandbox.Fault)
	if !raised {
		return result, err
	}
	if failure := faultFailure(f); failure != nil {
		return engine.Result{}, failure
	}
	return engine.Result{}, f.ScriptError
}

// runIn runs the call in a state, which is given back unless something was
// raised.
func (a *activity) runIn(ctx context.Context, timeout time.Duration, in engine.Invocation, reach *budget.Reach) (engine.Result, error) {
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
		if !kept { // a warm state may be at another call by now
			run.Stop()
		}
	}()
	if w.fn == nil {
		if _, err := s.RunFile(a.script); err != nil {
			return engine.Result{}, err
		}
		if w.fn = found.fn; w.fn == nil {
			s.end()
			return engine.Result{}, a.fail("the script did not register activity %s this time", strconv.Quote(a.name))
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

func (a *activity) call(s *session, fn *lua.LFunction, in engine.Invocation) (engine.Result, error) {
	results, err := s.Call(fn, callArguments(s.State, in)...)
	if err != nil {
		return engine.Result{}, err
	}
	result, err := outcome(s.State, results, engine.OutputSchema(in.Tool))
	var failure *engine.Failure
	switch {
	case err == nil || errors.As(err, &failure):
		return result, err
	case s.Budget.Err() != nil:
		return engine.Result{}, s.Fault(err)
	}
	message := err.Error()
	var value *codec.Error
	if path, ok := in.Call["_outputPath"].(string); ok && errors.As(err, &value) && value.TooLong {
		message += " (it was for " + path + ")"
	}
	return engine.Result{}, a.fail("%s", message)
}

// callArguments are what an activity receives: what protocol §5 says, and behind it the key
// of §7, by which the world outside can tell that it has been asked for this before.
func callArguments(s *sandbox.State, in engine.Invocation) []lua.LValue {
	return []lua.LValue{argumentTable(s, in.Call), argumentTable(s, in.Context), argumentTable(s, in.Tool), lua.LString(in.Key)}
}

// outcome reads what an activity gave back: a failure where it returned nil and
// something else.
func outcome(s *sandbox.State, results []lua.LValue, schema any) (engine.Result, error) {
	if len(results) == 0 {
		results = append(results, lua.LNil)
	}
	if results[0] == lua.LNil && len(results) > 1 && results[1] != lua.LNil {
		fields, err := sandbox.FailureFields(s, results[1])
		if err != nil {
			return engine.Result{}, err
		}
		return engine.Result{}, &engine.Failure{Fields: fields, Loose: true}
	}
	result, err := readResult(s, results[0], schema)
	result.Loose = true
	return result, err
}

// argumentTable is an argument of an activity: a table, even if there is nothing.
func argumentTable(s *sandbox.State, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			return s.ToLuaLater(v)
		}
	case bool:
		return lua.LBool(v)
	}
	return s.L.CreateTable(0, 0)
}

func (a *activity) fail(format string, args ...any) *luaerr.ScriptError {
	return &luaerr.ScriptError{File: a.script.File, Message: fmt.Sprintf("activity %s: ", a.name) + fmt.Sprintf(format, args...)}
}

// readResult reads what an activity returned (protocol §5).
func readResult(s *sandbox.State, v lua.LValue, schema any) (engine.Result, error) {
	switch v := v.(type) {
	case *lua.LUserData:
		if to, ok := v.Value.(*outputTo); ok {
			value, err := s.EncodeResult(to.value, schema, "result")
			return engine.Result{To: to.path, Value: value}, err
		}
	case *lua.LTable:
		if m, ok, err := readMessage(s, v); ok || err != nil {
			return engine.Result{Message: m}, err
		}
	}
	value, err := s.EncodeResult(v, schema, "result")
	return engine.Result{Value: value}, err
}

// readMessage reads a result that is a message: one that Message made, or a table
// that looks like a data message.
func readMessage(s *sandbox.State, t *lua.LTable) (m map[string]any, ok bool, err error) {
	made := t.Metatable == messageMark
	if v, ok := codec.Untouched(t); ok { // to fill it would take long
		object, _ := v.(map[string]any)
		if object["type"] != "data" || object["data"] == nil {
			return nil, false, nil
		}
	}
	s.Fill(t)
	if !made && (t.RawGetString("type") != lua.LString("data") || t.RawGetString("data") == lua.LNil) {
		return nil, false, nil
	}
	v, err := s.EncodeResult(t, nil, "result")
	if err != nil {
		return nil, true, err
	}
	m, ok = v.(map[string]any)
	if !made || !ok || m["type"] == "data" {
		return m, ok, nil
	}
	parsed, err := store.ParseMessage(m)
	switch {
	case err != nil:
		return nil, true, fmt.Errorf("result: %w", err)
	case parsed.Type != store.TypeData || !parsed.HasData:
		return nil, true, fmt.Errorf("result: an activity can return a message with data, not one of type %s", strconv.Quote(fmt.Sprint(m["type"])))
	}
	return map[string]any{"type": "data", "kind": parsed.Kind, "data": parsed.Data}, true, nil
}

// faultFailure returns the outcome that a call has by a fault, or nil if the machine is at fault.
func faultFailure(f *sandbox.Fault) *engine.Failure {
	switch {
	case f.Timeout:
		fields := map[string]any{"message": f.Message, "code": "timeout"}
		if f.Line > 0 {
			fields["script"] = f.File + ":" + strconv.Itoa(f.Line)
		}
		return &engine.Failure{Fields: fields}
	case f.Author != nil && f.Bad == nil:
		return &engine.Failure{Fields: f.Fields, Loose: true}
	}
	return nil
}
