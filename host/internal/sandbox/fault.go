package sandbox

import (
	"context"
	"errors"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/budget"
	"obelus/host/internal/explain"
	"obelus/host/internal/luaerr"
	"obelus/store"
)

// Fault is the bad end of a run.
type Fault struct {
	*luaerr.ScriptError
	Author  *raised // the value of error or assert; nil for other faults
	Timeout bool
	Fields  map[string]any // fields of a failure with the author's value
	Bad     error          // reason why the author's value can't be a failure
}

func (f *Fault) Unwrap() error { return f.ScriptError }

// Fault returns the fault for the error of a protected call.
func (s *State) Fault(err error) *Fault {
	f := &Fault{ScriptError: &luaerr.ScriptError{}, Author: s.Raised}
	value, stack := lua.LValue(lua.LString(err.Error())), ""
	panicked := true
	var api *lua.ApiError
	if errors.As(err, &api) {
		value, stack, panicked = api.Object, api.StackTrace, api.Type == lua.ApiErrorPanic
	}
	f.Traceback = explain.Traceback(stack)
	if len(f.Traceback) > 0 {
		f.place(f.Traceback[0] + " ")
	}
	switch {
	case s.Budget.Err() != nil:
		f.Author = nil
		luaerr.WithCause(f.ScriptError, s.Budget.Err())
		f.Timeout = errors.Is(s.Budget.Err(), context.DeadlineExceeded)
		f.Message = "interrupted"
		var limit *budget.LimitError
		switch {
		case f.Timeout:
			f.Message = "timed out after " + s.Budget.TimeoutText()
		case errors.As(s.Budget.Err(), &limit):
			f.Message = limit.Message
		}
	case f.Author != nil:
		authored(s, f)
	default:
		message := explain.WithoutSpace(value.String())
		if panicked {
			message = explain.Panic(message, explain.GoPlace(stack))
		} else if rest, ok := f.place(message); ok {
			message = rest
		}
		if broken := s.Project.brokenModule(message); broken != nil {
			f.File, f.Line, f.Column, f.Source, f.Message = broken.File, broken.Line, broken.Column, broken.Source, broken.Message
			break
		}
		f.Message = explain.Message(message, namesIn(s, f.File, f.Line))
	}
	if f.File == "" && s.Run != nil {
		f.File = s.Run.Script.File
	}
	return f
}

// place moves "file:line: " from a message into the error.
func (f *Fault) place(message string) (rest string, ok bool) {
	m := explain.Place(message)
	if m == nil {
		return message, false
	}
	f.File = m[1]
	f.Line, _ = strconv.Atoi(m[2])
	return message[len(m[0]):], true
}

// authored sets the fields of a failure for the value that the author raised.
func authored(s *State, f *Fault) {
	if f.Author.line > 0 {
		f.File, f.Line = f.Author.file, f.Author.line
	}
	f.Fields, f.Bad = FailureFields(s, f.Author.Value)
	if f.Bad != nil {
		f.Message = f.Bad.Error()
		return
	}
	if _, isTable := f.Author.Value.(*lua.LTable); !isTable && f.Author.line > 0 {
		f.Fields["script"] = f.Author.file + ":" + strconv.Itoa(f.Author.line)
	}
	f.Message, _ = f.Fields["message"].(string)
	if f.Message == "" {
		f.Message = string(store.EncodeJSON(f.Fields))
	}
}

// caught returns the error value that pcall gives: a value of the author unchanged, the
// interpreter's messages in Lua's words.
func (s *State) caught(err error) lua.LValue {
	authored := s.Raised != nil
	s.Raised = nil
	value, panicked := raisedValue(err)
	object, ok := value.(lua.LString)
	if !ok || panicked || authored {
		return value
	}
	text := explain.WithoutSpace(string(object))
	if m := explain.Place(text); m != nil {
		return lua.LString(m[0] + explain.Message(text[len(m[0]):], nil))
	}
	return lua.LString(explain.Message(text, nil))
}

// unnamedFunction is the interpreter's name for a function that no line of Lua called.
const unnamedFunction = " to ? ("

// nameCalled puts the name of a library function into the error that it raised when pcall called
// it.
func nameCalled(s *State, err error, called lua.LValue) error {
	var api *lua.ApiError
	fn, ok := called.(*lua.LFunction)
	const alone = 2 // frames in Go: the function, and the bottom of the stack
	if !ok || !fn.IsG || !errors.As(err, &api) || s.Raised != nil || strings.Count(api.StackTrace, "\n\t[G]") > alone {
		return err
	}
	text, ok := api.Object.(lua.LString)
	name := nameOf(s, fn)
	if ok && name != "" {
		text = lua.LString(strings.Replace(string(text), " to main chunk (", unnamedFunction, 1))
		api.Object = lua.LString(strings.Replace(string(text), unnamedFunction, " to "+name+" (", 1))
	}
	return err
}

// nameOf returns the name of a library function, as scripts write it; empty for another function.
func nameOf(s *State, fn *lua.LFunction) string {
	for name, v := range s.Globals {
		if v == fn {
			return name
		}
	}
	for _, libs := range []map[string][]Field{s.Libs, s.Modules} {
		for lib, fields := range libs {
			for _, f := range fields {
				if f.Value == fn {
					return lib + "." + f.Name
				}
			}
		}
	}
	return ""
}

// raisedValue returns the value that Lua code raised, or the message of a panic in Go in Lua's
// words.
func raisedValue(err error) (value lua.LValue, panicked bool) {
	var api *lua.ApiError
	switch {
	case !errors.As(err, &api):
		return lua.LString(explain.Panic(err.Error(), "")), true
	case api.Type == lua.ApiErrorPanic:
		return lua.LString(explain.Panic(api.Object.String(), explain.GoPlace(api.StackTrace))), true
	}
	return api.Object, false
}

// namesIn returns the expressions on a line of a script's source, or nil if the source is not
// available.
func namesIn(s *State, file string, line int) *explain.Names {
	sc, ok := s.Project.Scripts[file]
	if s.Run != nil && s.Run.Script.File == file {
		sc, ok = s.Run.Script, true
	}
	if !ok || line == 0 {
		return nil
	}
	return explain.NamesAt(faultEnvironment{s}, file, sc.Source, line)
}

// faultEnvironment has the names of a state that messages may be about.
type faultEnvironment struct{ s *State }

func (e faultEnvironment) HasGlobal(name string) bool { return e.s.Globals[name] != nil }

func (e faultEnvironment) DeclaresFunction(name string) bool {
	return e.s.Run != nil && e.s.Run.Env.RawGetString(name).Type() == lua.LTFunction
}

func (e faultEnvironment) Library(name string) (fields []string) {
	for _, f := range e.s.Libs[name] {
		fields = append(fields, f.Name)
	}
	return fields
}

func (e faultEnvironment) Globals() []string { return e.s.knownNames }
