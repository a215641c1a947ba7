package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine"
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

// place finds "file:line: " before a message.
var placeBefore = regexp.MustCompile(`^([^\n]*?):(\d+): `)

// fault reads what a protected call failed with.
func (s *state) fault(err error) *fault {
	f := &fault{ScriptError: &luaerr.ScriptError{}, author: s.raised}
	value, stack := lua.LValue(lua.LString(err.Error())), ""
	panicked := true
	var api *lua.ApiError
	if errors.As(err, &api) {
		value, stack, panicked = api.Object, api.StackTrace, api.Type == lua.ApiErrorPanic
	}
	f.Traceback = traceback(stack)
	if len(f.Traceback) > 0 {
		f.place(f.Traceback[0] + " ")
	}
	switch {
	case s.budget.err != nil:
		f.author = nil
		luaerr.WithCause(f.ScriptError, s.budget.err)
		f.timeout = errors.Is(s.budget.err, context.DeadlineExceeded)
		f.Message = "interrupted"
		var limit *limitError
		switch {
		case f.timeout:
			f.Message = "timed out after " + s.budget.timeoutText()
		case errors.As(s.budget.err, &limit):
			f.Message = limit.message
		}
	case f.author != nil:
		authored(s, f)
	default:
		message := unplaced(value.String())
		if panicked {
			message = goPanic(message, goPlace(stack))
		} else if rest, ok := f.place(message); ok {
			message = rest
		}
		if broken := s.gen.brokenModule(message); broken != nil {
			f.File, f.Line, f.Column, f.Source, f.Message = broken.File, broken.Line, broken.Column, broken.Source, broken.Message
			break
		}
		f.Message = explain(message, namesAt(s, f.File, f.Line))
	}
	if f.File == "" && s.run != nil {
		f.File = s.run.script.file
	}
	return f
}

// mostPlace is how much of a message is searched for its place: it may be as long
// as a string.
const mostPlace = 1000

// placeOf finds "file:line: " at the beginning of a message: as it stands there,
// the file and the line.
func placeOf(message string) []string {
	return placeBefore.FindStringSubmatch(message[:min(len(message), mostPlace)])
}

// place takes "file:line: " off a message and into the error.
func (f *fault) place(message string) (rest string, ok bool) {
	m := placeOf(message)
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
	value, err := s.fromLua(v, nil, "error")
	if err != nil { // of bytes that are no UTF-8, perhaps
		m := textMapper{s: s, of: visibleText, charge: func() {}, made: map[*lua.LTable]*lua.LTable{}}
		v = m.value(v, 0)
		value, err = s.fromLua(v, nil, "error")
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
	copied["message"], err = s.fromLua(lua.LString(visibleText(tableMessage(s, t, fields))), nil, "error")
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

// failure is the outcome that a call has by this fault, nil if the machine is
// at fault.
func (f *fault) failure() *engine.Failure {
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
	text := unplaced(string(object))
	if m := placeOf(text); m != nil {
		return lua.LString(m[0] + explain(text[len(m[0]):], nil))
	}
	return lua.LString(explain(text, nil))
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
		return lua.LString(goPanic(err.Error(), "")), true
	case api.Type == lua.ApiErrorPanic:
		return lua.LString(goPanic(api.Object.String(), goPlace(api.StackTrace))), true
	}
	return api.Object, false
}

// unplaced is a message of the interpreter, which begins with a space where a
// library function raised it that no line of Lua called.
func unplaced(message string) string { return strings.TrimPrefix(message, " ") }

// goPanic says in Lua's words what made the interpreter itself panic, or an object of the
// host, whose place in Go is known.
func goPanic(message, place string) string {
	if place != "" {
		return "an object of the host failed at " + place + ": " + message
	}
	if m := gaveWrong.FindStringSubmatch(message); m != nil {
		return "results of a function that was given to an object: wanted " + m[1] + ", got " + m[2]
	}
	if m := faultUse.FindStringSubmatch(message); m != nil {
		return "a function that was given to an object returned a wrong value: " + luaTypeOf(m[3]) + " expected, got " + luaTypeOf(cmp.Or(m[2], "nil"))
	}
	for _, known := range []string{"callstack overflow", "index out of range", "stack overflow", "slice bounds out of range"} {
		if strings.Contains(message, known) {
			return "stack overflow"
		}
	}
	return "an object of the host failed: " + message
}

// gaveWrong is what gopher-luar says of a function of Lua that an object called.
var gaveWrong = regexp.MustCompile(`^expecting (\d+) return values, got (\d+)$`)

// goPlace is the file and the line of what panicked, in the stack of an error of the
// interpreter; "" if that has none, or it was the interpreter itself. The folder would
// tell of the machine that the program was made on.
func goPlace(stack string) string {
	_, frames, _ := strings.Cut(stack, "\npanic(")
	lines := strings.Split(frames, "\n")
	for i := 2; i+1 < len(lines); i += 2 { // a function, and its place
		if !strings.HasPrefix(lines[i], "runtime.") && !strings.HasPrefix(lines[i], "internal/runtime/") {
			if strings.HasPrefix(lines[i], "github.com/yuin/gopher-lua.") || strings.HasPrefix(lines[i], "layeh.com/gopher-luar.") {
				return ""
			}
			place, _, _ := strings.Cut(strings.TrimPrefix(lines[i+1], "\t"), " ")
			return place[strings.LastIndexByte(place, '/')+1:]
		}
	}
	return ""
}

// traceback reads the interpreter's own, leaving out what is Go's.
func traceback(stack string) []string {
	var lines []string
	if _, own, ok := strings.Cut(stack, "stack traceback:"); ok {
		stack = own
	}
	for line := range strings.SplitSeq(stack, "\n") {
		line, ok := strings.CutPrefix(line, "\t")
		if !ok || strings.HasPrefix(line, "[G]") || strings.HasPrefix(line, "(tailcall)") {
			continue
		}
		lines = append(lines, line)
	}
	return lines
}
