package host

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/codec"
	"obelus/store"
)

// openCalls gives scripts the globals for what calls are made of: Message, Output, and the
// functions that lead from data to references and back.
func openCalls(s *state) {
	s.addLibrary("Message", s.funcs(messageFuncs))
	s.addLibrary("Output", s.funcs(outputFuncs))
	s.addGlobals(s.funcs(referenceFuncs))
}

var outputFuncs = []entry{
	{"to", outputTo_},
}

// outputTo is what Output.to gives a script, to be returned.
type outputTo struct {
	path  string
	value lua.LValue
}

// NotJSON says what a script reads that gives it within another value.
func (*outputTo) NotJSON() string { return "Output.to(…) must be returned by itself" }

// Output.to(path, value)
func outputTo_(s *state, L *lua.LState) int {
	path := L.CheckString(1)
	if _, err := store.ParsePath(path); err != nil {
		L.ArgError(1, err.Error())
	}
	u := L.NewUserData()
	u.Value = &outputTo{path, L.Get(2)}
	L.Push(u)
	return 1
}

// messageMark is the metatable of what Message.state and others make.
var messageMark = codec.NewMark()

var messageFuncs = []entry{
	{"data", message("data")},
	{"input", message("input")},
	{"plan", messagePlan},
	{"state", message("state")},
	{"system", prose("system", "message")},
	{"text", prose("text", "text")},
	{"tool", messageTool},
}

// Message.data|input|state(fields): the fields of the table, and a type
func message(typ string) luaFunc {
	return func(s *state, L *lua.LState) int {
		given := s.checkTable(L, 1)
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

func pushMessage(s *state, L *lua.LState, typ string, t *lua.LTable) int {
	t.RawSetString("type", lua.LString(typ))
	t.Metatable = messageMark
	L.Push(t)
	return 1
}

// Message.system|text(text)
func prose(typ, field string) luaFunc {
	return func(s *state, L *lua.LState) int {
		t := L.CreateTable(0, 2)
		t.RawSetString(field, lua.LString(L.CheckString(1)))
		return pushMessage(s, L, typ, t)
	}
}

// Message.plan(calls, [mode])
func messagePlan(s *state, L *lua.LState) int {
	t := L.CreateTable(0, 3)
	t.RawSetString("plan", s.checkTable(L, 1))
	if mode := L.OptString(2, ""); mode != "" {
		t.RawSetString("mode", lua.LString(mode))
	}
	return pushMessage(s, L, "plan", t)
}

// Message.tool({name = schema, …})
func messageTool(s *state, L *lua.LState) int {
	t := L.CreateTable(0, 2)
	t.RawSetString("tool", s.checkTable(L, 1))
	return pushMessage(s, L, "tool", t)
}
