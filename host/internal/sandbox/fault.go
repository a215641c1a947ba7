package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

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
		readRaised(s, f)
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
		f.Message = explain.Message(message, namesAt(s, f.File, f.Line))
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

// readRaised sets the fields of a failure for the value that the author raised.
func readRaised(s *State, f *Fault) {
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

// catch returns the error value that pcall gives: a value of the author unchanged, the
// interpreter's messages in Lua's words.
func (s *State) catch(err error) lua.LValue {
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
	name := libraryName(s, fn)
	if ok && name != "" {
		text = lua.LString(strings.Replace(string(text), " to main chunk (", unnamedFunction, 1))
		api.Object = lua.LString(strings.Replace(string(text), unnamedFunction, " to "+name+" (", 1))
	}
	return err
}

// libraryName returns the name of a library function, as scripts write it; empty for another
// function.
func libraryName(s *State, fn *lua.LFunction) string {
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

// namesAt returns the expressions on a line of a script's source, or nil if the source is not
// available.
func namesAt(s *State, file string, line int) *explain.Names {
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

// Guard calls do, which reads or makes values of a script outside of a call. An error that is
// raised there, by a table that is too long to fill itself for example, is an error of the script
// and must not end the program.
func Guard(file string, do func() error) (err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		message := "the script broke down"
		var api *lua.ApiError
		if e, ok := r.(error); ok && errors.As(e, &api) && api.Object != nil {
			message = api.Object.String()
		}
		err = &luaerr.ScriptError{File: file, Message: message}
	}()
	return do()
}

// FailureFields returns the fields of a failure for a value that a script returned after nil, or
// raised: text, or a table, which gets a message if it has none.
func FailureFields(s *State, v lua.LValue) (map[string]any, error) {
	value, err := s.FromLua(v, "error")
	if err != nil { // perhaps for bytes that are not UTF-8
		m := textMapper{s: s, of: escapeInvalidUTF8, charge: func() {}, made: map[*lua.LTable]*lua.LTable{}}
		v = m.value(v, 0)
		value, err = s.FromLua(v, "error")
	}
	if err != nil {
		return nil, err
	}
	t, isTable := v.(*lua.LTable)
	if !isTable {
		message := "failed"
		if value != nil {
			message = s.PlainText(v)
		}
		return map[string]any{"message": message}, nil
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return map[string]any{"message": string(store.EncodeJSON(value))}, nil
	}
	if _, ok := fields["message"].(string); ok {
		return fields, nil
	}
	copied := map[string]any{}
	for name, field := range fields {
		copied[name] = field
	}
	copied["message"], err = s.FromLua(lua.LString(escapeInvalidUTF8(messageOf(s, t, fields))), "error")
	return copied, err
}

// escapeInvalidUTF8 returns a text in which bytes that are not UTF-8 are escaped as in Lua.
func escapeInvalidUTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "\\%03d", text[i])
		} else {
			b.WriteString(text[i : i+n])
		}
		i += n
	}
	return b.String()
}

// messageOf returns a message for an error table without one: the result of __tostring, its
// code, or all of it.
func messageOf(s *State, t *lua.LTable, fields map[string]any) string {
	if s.L.GetMetaField(t, "__tostring") != lua.LNil {
		if text := s.PlainText(t); text != "" {
			return text
		}
	}
	if code, ok := fields["code"].(string); ok {
		return code
	}
	if len(fields) == 0 {
		return "failed"
	}
	return string(store.EncodeJSON(fields))
}

// PlainText is tostring outside of a protected call; empty if it fails.
func (s *State) PlainText(v lua.LValue) string {
	L := s.L
	top := L.GetTop()
	defer L.SetTop(top)
	err := L.CallByParam(lua.P{Fn: s.Globals["tostring"], NRet: 1, Protect: true}, v)
	if err != nil {
		return ""
	}
	return lua.LVAsString(L.Get(-1))
}

// MapTexts pushes the first argument with every text in it mapped.
func MapTexts(s *State, L *lua.LState, of func(string) string) int {
	m := textMapper{s: s, of: of, charge: func() { s.Budget.Charge(L, 1) }, made: map[*lua.LTable]*lua.LTable{}}
	return Push(L, m.value(L.CheckAny(1), 0))
}

// textMapper copies a value with every text in it mapped. Keys stay as they are, and so do tables
// deeper than a value may be.
type textMapper struct {
	s      *State
	of     func(string) string
	charge func() // called for each value
	made   map[*lua.LTable]*lua.LTable
}

func (m *textMapper) value(v lua.LValue, depth int) lua.LValue {
	m.charge()
	switch v := v.(type) {
	case lua.LString:
		return lua.LString(m.of(string(v)))
	case *lua.LTable:
		if made, ok := m.made[v]; ok {
			return made
		}
		if depth > m.s.Project.Limits.Depth {
			return v
		}
		m.s.Fill(v)
		made := m.s.L.CreateTable(v.Len(), 0)
		made.Metatable = v.Metatable // has the mark of an array, and kept numbers
		m.made[v] = made
		for key, e := v.Next(lua.LNil); key != lua.LNil; key, e = v.Next(key) {
			made.RawSet(key, m.value(e, depth+1))
		}
		return made
	}
	return v
}
