// Package luacall turns a call of the engine into arguments of a Lua function, and the results of
// the function into a result of the call. It has the globals that scripts use for this: Message,
// Output, ref, text and literal.
package luacall

import (
	"fmt"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/plan"
	"obelus/host/internal/codec"
	"obelus/host/internal/sandbox"
	"obelus/store"
)

// Arguments returns the arguments of an activity's function: as protocol §5 lists them, then
// the key of protocol §7, by which the outside world recognises a repeated request.
func Arguments(s *sandbox.State, in plan.Invocation) []lua.LValue {
	return []lua.LValue{Table(s, in.Call), Table(s, in.Context), Table(s, in.Tool), lua.LString(in.Key)}
}

// Outcome reads the results of an activity's function. Results of nil and something else are a
// [*plan.Failure].
func Outcome(s *sandbox.State, results []lua.LValue, schema any) (plan.Result, error) {
	if len(results) == 0 {
		results = append(results, lua.LNil)
	}
	if results[0] == lua.LNil && len(results) > 1 && results[1] != lua.LNil {
		fields, err := sandbox.FailureFields(s, results[1])
		if err != nil {
			return plan.Result{}, err
		}
		return plan.Result{}, &plan.Failure{Fields: fields, Loose: true}
	}
	result, err := readResult(s, results[0], schema)
	result.Loose = true
	return result, err
}

// Table returns an argument of an activity, which is a table even for nil.
func Table(s *sandbox.State, v any) lua.LValue {
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

// readResult reads the first result of an activity's function (protocol §5).
func readResult(s *sandbox.State, v lua.LValue, schema any) (plan.Result, error) {
	switch v := v.(type) {
	case *lua.LUserData:
		if path, sent, ok := SentTo(v); ok {
			value, err := s.EncodeResult(sent, schema, "result")
			return plan.Result{To: path, Value: value}, err
		}
	case *lua.LTable:
		if m, ok, err := readMessage(s, v); ok || err != nil {
			return plan.Result{Message: m}, err
		}
	}
	value, err := s.EncodeResult(v, schema, "result")
	return plan.Result{Value: value}, err
}

// readMessage reads a result that is a message: one that Message made, or a table that looks like a
// data message.
func readMessage(s *sandbox.State, t *lua.LTable) (m map[string]any, ok bool, err error) {
	made := t.Metatable == messageMark
	if v, ok := codec.Untouched(t); ok { // filling it would take long
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
	case parsed.Type != store.TypeData || !parsed.Data.Set:
		return nil, true, fmt.Errorf("result: an activity can return a message with data, not one of type %s", strconv.Quote(fmt.Sprint(m["type"])))
	}
	return map[string]any{"type": "data", "kind": parsed.Kind, "data": parsed.Data.Value}, true, nil
}

// Failure returns the outcome of a call by its fault, or nil if that is no outcome: the error of
// the script itself.
func Failure(f *sandbox.Fault) *plan.Failure {
	switch {
	case f.Timeout:
		fields := map[string]any{"message": f.Message, "code": "timeout"}
		if f.Line > 0 {
			fields["script"] = f.File + ":" + strconv.Itoa(f.Line)
		}
		return &plan.Failure{Fields: fields}
	case f.Author != nil && f.Bad == nil:
		return &plan.Failure{Fields: f.Fields, Loose: true}
	}
	return nil
}
