package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine"
	"obelus/host/internal/budget"
	"obelus/host/internal/explain"
	"obelus/host/internal/luaerr"
	"obelus/store"
)

// fault is how a run ended badly.
type fault struct {
	*ScriptError
	author  *raised // what error or assert raised, nil for a fault of the machine
	timeout bool
	fields  map[string]any // of author, as a failure has them
	bad     error          // why the author's value can't be a failure
}

func (f *fault) Unwrap() error { return f.ScriptError }

// fault reads what a protected call failed with.
func (s *state) fault(err error) *fault {
	f := &fault{ScriptError: &luaerr.ScriptError{}, author: s.raised}
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
	case s.budget.Err() != nil:
		f.author = nil
		luaerr.WithCause(f.ScriptError, s.budget.Err())
		f.timeout = errors.Is(s.budget.Err(), context.DeadlineExceeded)
		f.Message = "interrupted"
		var limit *budget.LimitError
		switch {
		case f.timeout:
			f.Message = "timed out after " + s.budget.TimeoutText()
		case errors.As(s.budget.Err(), &limit):
			f.Message = limit.Message
		}
	case f.author != nil:
		authored(s, f)
	default:
		message := explain.WithoutSpace(value.String())
		if panicked {
			message = explain.Panic(message, explain.GoPlace(stack))
		} else if rest, ok := f.place(message); ok {
			message = rest
		}
		if broken := s.project.brokenModule(message); broken != nil {
			f.File, f.Line, f.Column, f.Source, f.Message = broken.File, broken.Line, broken.Column, broken.Source, broken.Message
			break
		}
		f.Message = explain.Message(message, namesIn(s, f.File, f.Line))
	}
	if f.File == "" && s.run != nil {
		f.File = s.run.script.file
	}
	return f
}

// place takes "file:line: " off a message and into the error.
func (f *fault) place(message string) (rest string, ok bool) {
	m := explain.Place(message)
	if m == nil {
		return message, false
	}
	f.File = m[1]
	f.Line, _ = strconv.Atoi(m[2])
	return message[len(m[0]):], true
}

// authored is what the author raised, as the fields of a failure.
func authored(s *state, f *fault) {
	if f.author.line > 0 {
		f.File, f.Line = f.author.file, f.author.line
	}
	f.fields, f.bad = failureFields(s, f.author.value)
	if f.bad != nil {
		f.Message = f.bad.Error()
		return
	}
	if _, isTable := f.author.value.(*lua.LTable); !isTable && f.author.line > 0 {
		f.fields["script"] = f.author.file + ":" + strconv.Itoa(f.author.line)
	}
	f.Message, _ = f.fields["message"].(string)
	if f.Message == "" {
		f.Message = string(store.EncodeJSON(f.fields))
	}
}

// failureFields makes the fields of a failure of what a script returned after
// nil, or raised: text, or a table, which gets a message if it has none.
func failureFields(s *state, v lua.LValue) (map[string]any, error) {
	value, err := s.FromLua(v, "error")
	if err != nil { // of bytes that are no UTF-8, perhaps
		m := textMapper{s: s, of: visibleText, charge: func() {}, made: map[*lua.LTable]*lua.LTable{}}
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
			message = s.plainText(v)
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
	copied["message"], err = s.FromLua(lua.LString(visibleText(tableMessage(s, t, fields))), "error")
	return copied, err
}

// visibleText is a text with the bytes of it that are no UTF-8 as Lua escapes them.
func visibleText(text string) string {
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

// tableMessage is a message for an error table without one: what __tostring
// says, its code, or all of it.
func tableMessage(s *state, t *lua.LTable, fields map[string]any) string {
	if s.L.GetMetaField(t, "__tostring") != lua.LNil {
		if text := s.plainText(t); text != "" {
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

// plainText is tostring outside of a protected call.
func (s *state) plainText(v lua.LValue) string {
	L := s.L
	top := L.GetTop()
	defer L.SetTop(top)
	err := L.CallByParam(lua.P{Fn: s.globals["tostring"], NRet: 1, Protect: true}, v)
	if err != nil {
		return ""
	}
	return lua.LVAsString(L.Get(-1))
}

// faultFailure returns the outcome that a call has by a fault, or nil if the machine is at fault.
func faultFailure(f *fault) *engine.Failure {
	switch {
	case f.timeout:
		fields := map[string]any{"message": f.Message, "code": "timeout"}
		if f.Line > 0 {
			fields["script"] = f.File + ":" + strconv.Itoa(f.Line)
		}
		return &engine.Failure{Fields: fields}
	case f.author != nil && f.bad == nil:
		return &engine.Failure{Fields: f.fields, Loose: true}
	}
	return nil
}

// caught is what pcall gives for an error: what the author raised as it is, the
// machine's messages in Lua's words.
func (s *state) caught(err error) lua.LValue {
	authored := s.raised != nil
	s.raised = nil
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

// unnamedFunction is what the interpreter calls a function that no line of Lua called.
const unnamedFunction = " to ? ("

// nameCalled puts the name of a function of the library into the error that it raised when
// pcall called it.
func nameCalled(s *state, err error, called lua.LValue) error {
	var api *lua.ApiError
	fn, ok := called.(*lua.LFunction)
	const alone = 2 // frames in Go: the function's, and the bottom of the stack
	if !ok || !fn.IsG || !errors.As(err, &api) || s.raised != nil || strings.Count(api.StackTrace, "\n\t[G]") > alone {
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

// nameOf is the name of a function of the library, as scripts write it; empty for another.
func nameOf(s *state, fn *lua.LFunction) string {
	for name, v := range s.globals {
		if v == fn {
			return name
		}
	}
	for _, libs := range []map[string][]field{s.libs, s.modules} {
		for lib, fields := range libs {
			for _, f := range fields {
				if f.value == fn {
					return lib + "." + f.name
				}
			}
		}
	}
	return ""
}

// raisedValue is what Lua code raised, as it was, or in Lua's words what made Go panic.
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

// namesIn returns the expressions on a line of a script's source, or nil if that is not at hand.
func namesIn(s *state, file string, line int) *explain.Names {
	sc, ok := s.project.scripts[file]
	if s.run != nil && s.run.script.file == file {
		sc, ok = s.run.script, true
	}
	if !ok || line == 0 {
		return nil
	}
	return explain.NamesAt(faultEnvironment{s}, file, sc.source, line)
}

// faultEnvironment is what messages may be about in a state.
type faultEnvironment struct{ s *state }

func (e faultEnvironment) HasGlobal(name string) bool { return e.s.globals[name] != nil }

func (e faultEnvironment) DeclaresFunction(name string) bool {
	return e.s.run != nil && e.s.run.env.RawGetString(name).Type() == lua.LTFunction
}

func (e faultEnvironment) Library(name string) (fields []string) {
	for _, f := range e.s.libs[name] {
		fields = append(fields, f.name)
	}
	return fields
}

func (e faultEnvironment) Globals() []string { return globalNames }
