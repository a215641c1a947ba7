package luacall

import (
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/engine/expr"
	"obelus/engine/plan"
	"obelus/host/internal/codec"
	"obelus/host/internal/sandbox"
	"obelus/store"
)

// Open gives scripts the globals for the parts of calls: Message, Output, and the functions that
// convert between data and references.
func Open(s *sandbox.State) {
	s.AddLibrary("Message", s.Funcs(messageFuncs))
	s.AddLibrary("Output", s.Funcs(outputFuncs))
	s.AddGlobals(s.Funcs(ReferenceFuncs))
}

// ReferenceFuncs convert data to references and back. Data that a plan's function sees must not
// act: a text that begins with † would be an expression in the plan that it returns. So such texts
// are escaped in the context that the function gets, with a second †; copied whole into a call a
// text becomes the original again. These globals convert one form into the other.
var ReferenceFuncs = []sandbox.StateEntry{
	{Name: "literal", Fn: referenceLiteral},
	{Name: "ref", Fn: referenceRef},
	{Name: "text", Fn: referenceText},
}

// literal(value) escapes texts that begin with †, here or within.
func referenceLiteral(s *sandbox.State, L *lua.LState) int {
	return sandbox.MapTexts(s, L, func(text string) string { return plan.Literal(text).(string) })
}

// text(value) takes the second † off again.
func referenceText(s *sandbox.State, L *lua.LState) int {
	return sandbox.MapTexts(s, L, func(text string) string {
		if strings.HasPrefix(text, store.Dagger+store.Dagger) {
			return strings.TrimPrefix(text, store.Dagger)
		}
		return text
	})
}

// ref(text) writes the daggers of references: ref "state.a || input.b".
func referenceRef(s *sandbox.State, L *lua.LState) int {
	given := L.CheckString(1)
	made, err := expr.WithDaggers(given)
	if err != nil {
		L.ArgError(1, err.Error())
	}
	return sandbox.Push(L, lua.LString(made))
}

var outputFuncs = []sandbox.StateEntry{
	{Name: "to", Fn: outputToCall},
}

// outputTo is the value that Output.to returns, for a script to return.
type outputTo struct {
	path  string
	value lua.LValue
}

// NotJSON returns the error for such a value within another one.
func (*outputTo) NotJSON() string { return "Output.to(…) must be returned by itself" }

// SentTo returns what Output.to was called with, where it has returned a value.
func SentTo(v lua.LValue) (path string, value lua.LValue, ok bool) {
	if u, isData := v.(*lua.LUserData); isData {
		if to, isSent := u.Value.(*outputTo); isSent {
			return to.path, to.value, true
		}
	}
	return "", nil, false
}

// Output.to(path, value)
func outputToCall(s *sandbox.State, L *lua.LState) int {
	path := L.CheckString(1)
	if _, err := store.ParsePath(path); err != nil {
		L.ArgError(1, err.Error())
	}
	u := L.NewUserData()
	u.Value = &outputTo{path, L.Get(2)}
	return sandbox.Push(L, u)
}

// messageMark is the metatable of tables that Message's functions make.
var messageMark = codec.NewMark()

var messageFuncs = []sandbox.StateEntry{
	{Name: "data", Fn: message("data")},
	{Name: "input", Fn: message("input")},
	{Name: "plan", Fn: messagePlan},
	{Name: "state", Fn: message("state")},
	{Name: "system", Fn: prose("system", "message")},
	{Name: "text", Fn: prose("text", "text")},
	{Name: "tool", Fn: messageTool},
}

// Message.data|input|state(fields): the fields of the table, and a type
func message(typ string) sandbox.Function {
	return func(s *sandbox.State, L *lua.LState) int {
		given := s.CheckTable(L, 1)
		t := L.CreateTable(0, 4)
		for key, v := given.Next(lua.LNil); key != lua.LNil; key, v = given.Next(key) {
			name, ok := key.(lua.LString)
			if !ok {
				L.ArgError(1, "the fields of a message have names")
			}
			if name == "type" && v != lua.LString(typ) {
				L.ArgError(1, "the type of the message is "+strconv.Quote(typ)+" already")
			}
			t.RawSetString(string(name), v)
		}
		return pushMessage(s, L, typ, t)
	}
}

func pushMessage(s *sandbox.State, L *lua.LState, typ string, t *lua.LTable) int {
	t.RawSetString("type", lua.LString(typ))
	t.Metatable = messageMark
	return sandbox.Push(L, t)
}

// Message.system|text(text)
func prose(typ, field string) sandbox.Function {
	return func(s *sandbox.State, L *lua.LState) int {
		t := L.CreateTable(0, 2)
		t.RawSetString(field, lua.LString(L.CheckString(1)))
		return pushMessage(s, L, typ, t)
	}
}

// Message.plan(calls, [mode])
func messagePlan(s *sandbox.State, L *lua.LState) int {
	t := L.CreateTable(0, 3)
	t.RawSetString("plan", s.CheckTable(L, 1))
	if mode := L.OptString(2, ""); mode != "" {
		t.RawSetString("mode", lua.LString(mode))
	}
	return pushMessage(s, L, "plan", t)
}

// Message.tool({name = schema, …})
func messageTool(s *sandbox.State, L *lua.LState) int {
	t := L.CreateTable(0, 2)
	t.RawSetString("tool", s.CheckTable(L, 1))
	return pushMessage(s, L, "tool", t)
}
