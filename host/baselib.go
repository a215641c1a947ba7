package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/codec"
	"obelus/host/internal/luac"
	"obelus/host/internal/luatext"
	"obelus/luastd"
)

// baseFuncs is the safe part of Lua 5.1's basic functions. Left out are those
// that read files, and what shows or drives the collection of garbage.
var baseFuncs = []entry{
	{"assert", baseAssert},
	{"error", baseError},
	{"getfenv", baseGetfenv},
	{"getmetatable", baseGetmetatable},
	{"ipairs", baseIpairs},
	{"load", baseLoad},
	{"loadstring", baseLoadstring},
	{"next", baseNext},
	{"pairs", basePairs},
	{"pcall", basePcall},
	{"print", basePrint},
	{"rawequal", baseRawequal},
	{"rawget", baseRawget},
	{"rawset", baseRawset},
	{"require", baseRequire},
	{"select", baseSelect},
	{"setfenv", baseSetfenv},
	{"setmetatable", baseSetmetatable},
	{"tonumber", baseTonumber},
	{"tostring", baseTostring},
	{"type", baseType},
	{"unpack", baseUnpack},
	{"xpcall", baseXpcall},
}

func openBase(s *state) {
	for _, f := range s.funcs(baseFuncs) {
		s.globals[f.name] = f.value
	}
	s.globals["_VERSION"] = lua.LString("Lua 5.1")
	s.globals["\x00ipairs"] = s.fn(baseIpairsNext)
}

// raised remembers what error or assert raised, until it is caught: what ends
// a run is the author's outcome only if the author raised it.
type raised struct {
	value lua.LValue // as the author gave it, without a position
	file  string
	line  int
}

func baseAssert(s *state, L *lua.LState) int {
	if L.ToBool(1) {
		return L.GetTop()
	}
	message := L.Get(2)
	if message == lua.LNil {
		message = lua.LString("assertion failed!")
	}
	s.raised = &raised{value: message}
	s.raised.file, s.raised.line = s.where(L, 1)
	L.Error(s.raised.placed(), 0)
	return 0
}

// placed is what was raised with its place in front of it, if it is text: a number is, too.
func (r *raised) placed() lua.LValue {
	if r.line == 0 || !lua.LVCanConvToString(r.value) {
		return r.value
	}
	text, isText := r.value.(lua.LString)
	if n, ok := r.value.(lua.LNumber); ok && !isText {
		text = lua.LString(luatext.FormatNumber(n))
	}
	return lua.LString(r.file+":"+strconv.Itoa(r.line)+": ") + text
}

func baseError(s *state, L *lua.LState) int {
	value, level := L.Get(1), optional(L, 2, 1)
	s.raised = &raised{value: value}
	if level > 0 {
		s.raised.file, s.raised.line = s.where(L, pastOperators(s, L, level))
	}
	L.Error(s.raised.placed(), 0)
	return 0
}

// pastOperators is a level of the stack where what operators call does not count: those
// that are functions here are none to a script.
func pastOperators(s *state, L *lua.LState, level int) int {
	for i := 1; i <= level; i++ {
		dbg, ok := L.GetStack(i)
		if !ok {
			break
		}
		if f, err := L.GetInfo("f", dbg, lua.LNil); err == nil && isOperator(s, f) {
			level++
		}
	}
	return level
}

// isOperator reports whether a function is one by which an operator is carried out here.
func isOperator(s *state, f lua.LValue) bool {
	if f == hostFunctions[luac.CallConcat] || f == hostFunctions[luac.CallLength] {
		return true
	}
	for _, adapter := range s.run.adapters {
		if f == adapter {
			return true
		}
	}
	return slices.ContainsFunc(s.operators, func(operator lua.LValue) bool { return f == operator })
}

func baseGetmetatable(s *state, L *lua.LState) int {
	var meta lua.LValue = lua.LNil
	switch v := L.CheckAny(1).(type) {
	case *lua.LTable:
		if !isPrivate(s, v.Metatable) {
			meta = L.GetMetatable(v)
		}
	case *lua.LUserData:
		if _, ok := v.Value.(*stream); ok { // this run's own
			meta = v.Metatable
		}
	}
	L.Push(meta)
	return 1
}

// isPrivate reports whether a metatable is the host's own, which scripts do not
// get to see.
func isPrivate(s *state, meta lua.LValue) bool {
	t, ok := meta.(*lua.LTable)
	return ok && (t == s.envMeta || s.Owns(t))
}

func baseSetmetatable(s *state, L *lua.LState) int {
	t := L.CheckTable(1)
	if L.GetTop() < 2 {
		L.ArgError(2, "nil or table expected")
	}
	L.CheckTypes(2, lua.LTNil, lua.LTTable)
	s.Fill(t)
	if t == s.run.env { // nothing comes in by itself any more
		s.fillEnv(t)
	}
	if old, ok := t.Metatable.(*lua.LTable); ok && old != s.envMeta && old.RawGetString("__metatable") != lua.LNil {
		L.RaiseError("cannot change a protected metatable")
	}
	t.Metatable = L.Get(2)
	if meta, ok := t.Metatable.(*lua.LTable); ok {
		adaptMetatable(s, meta)
	}
	L.SetTop(1)
	return 1
}

func baseIpairs(s *state, L *lua.LState) int {
	t := L.CheckTable(1)
	s.Fill(t)
	L.Push(s.globals["\x00ipairs"])
	L.Push(t)
	L.Push(lua.LNumber(0))
	return 3
}

func baseIpairsNext(s *state, L *lua.LState) int {
	i := integer(L, 2) + 1
	v := L.CheckTable(1).RawGetInt(i)
	if v == lua.LNil {
		return 0
	}
	L.Push(lua.LNumber(i))
	L.Push(v)
	return 2
}

func baseNext(s *state, L *lua.LState) int {
	t := L.CheckTable(1)
	s.Fill(t)
	if t == s.run.env && L.Get(2) == lua.LNil {
		s.fillEnv(t)
	}
	if !s.run.visited.has(t, L.Get(2)) && absentKey(t, L.Get(2)) {
		L.RaiseError("invalid key to next")
	}
	key, value := t.Next(L.Get(2))
	for t == s.run.env && isHidden(key) {
		key, value = t.Next(key)
	}
	s.run.visited = visited{t, key}
	L.Push(key)
	if key == lua.LNil {
		return 1
	}
	L.Push(value)
	return 2
}

// visited is the key that next gave last: an entry may be removed while it is visited.
type visited struct {
	table *lua.LTable
	key   lua.LValue
}

func (v visited) has(t *lua.LTable, key lua.LValue) bool {
	return key == lua.LNil || v.table == t && v.key == key
}

// absentKey reports whether a table never had a key, or has it no more. A removed entry keeps
// its place in the order in which next goes, before an entry that is made now. Of an index of
// an array it is not known.
func absentKey(t *lua.LTable, key lua.LValue) bool {
	if _, ok := key.(lua.LNumber); ok || t.RawGet(key) != lua.LNil {
		return false
	}
	mark := &lua.LUserData{}
	t.RawSet(mark, lua.LTrue)
	t.RawSet(key, lua.LTrue)
	next, _ := t.Next(mark)
	t.RawSet(mark, lua.LNil)
	t.RawSet(key, lua.LNil)
	return next == key
}

func isHidden(key lua.LValue) bool {
	name, ok := key.(lua.LString)
	return ok && strings.HasPrefix(string(name), "\x00")
}

func basePairs(s *state, L *lua.LState) int {
	t := L.CheckTable(1)
	L.Push(s.globals["next"])
	L.Push(t)
	L.Push(lua.LNil)
	return 3
}

func basePrint(s *state, L *lua.LState) int {
	var b strings.Builder
	for i := 1; i <= L.GetTop(); i++ {
		if i > 1 {
			b.WriteByte('\t')
		}
		b.WriteString(s.text(L, L.Get(i)))
		s.limit(L, b.Len())
	}
	b.WriteByte('\n')
	s.budget.Charge(L, 50)
	s.budget.Outside(L)
	s.run.printed.write(b.String())
	return 0
}

func baseRawequal(s *state, L *lua.LState) int {
	L.Push(lua.LBool(L.RawEqual(L.CheckAny(1), L.CheckAny(2))))
	return 1
}

func baseRawget(s *state, L *lua.LState) int {
	t := L.CheckTable(1)
	s.Fill(t)
	key := L.CheckAny(2)
	if v := t.RawGet(key); v == lua.LNil && t == s.run.env && t.Metatable == s.envMeta {
		L.Push(L.GetTable(t, key))
	} else {
		L.Push(v)
	}
	return 1
}

func baseRawset(s *state, L *lua.LState) int {
	t := L.CheckTable(1)
	s.Fill(t)
	L.RawSet(t, L.CheckAny(2), L.CheckAny(3))
	L.SetTop(1)
	return 1
}

func baseSelect(s *state, L *lua.LState) int {
	count := L.GetTop() - 1
	if L.Get(1) == lua.LString("#") {
		L.Push(lua.LNumber(count))
		return 1
	}
	n := integer(L, 1)
	if n < 0 {
		n = count + n + 1
	}
	if n < 1 {
		L.ArgError(1, "index out of range")
	}
	return max(count-n+1, 0)
}

func baseTostring(s *state, L *lua.LState) int {
	L.Push(lua.LString(s.text(L, L.CheckAny(1))))
	return 1
}

// text is a value as tostring gives it.
func (s *state) text(L *lua.LState, v lua.LValue) string {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return luatext.FormatNumber(v)
	}
	if v == luastd.Null {
		return "null"
	}
	if u, ok := v.(*lua.LUserData); ok {
		switch own := u.Value.(type) {
		case *coroutine:
			return fmt.Sprintf("thread: %p", own)
		case *stream:
			return fmt.Sprintf("file (%p)", own)
		}
	}
	if text, ok := codec.ErrorText(v); ok {
		return text
	}
	if t, ok := v.(*lua.LTable); ok && isPrivate(s, t.Metatable) {
		return v.String()
	}
	meta := L.GetMetaField(v, "__tostring")
	if meta == lua.LNil {
		return v.String()
	}
	L.Push(meta)
	L.Push(v)
	L.Call(1, 1)
	text, ok := L.Get(-1).(lua.LString)
	L.Pop(1)
	if !ok {
		L.RaiseError("'__tostring' must return a string")
	}
	return string(text)
}

func baseType(s *state, L *lua.LState) int {
	L.Push(lua.LString(luaType(L.CheckAny(1))))
	return 1
}

// luaType is what type says of a value.
func luaType(v lua.LValue) string {
	if u, ok := v.(*lua.LUserData); ok {
		if _, ok := u.Value.(*coroutine); ok {
			return "thread"
		}
	}
	return v.Type().String()
}

func baseUnpack(s *state, L *lua.LState) int {
	t := L.CheckTable(1)
	s.Fill(t)
	from := optional(L, 2, 1)
	to := optional(L, 3, t.Len())
	if from > to {
		return 0
	}
	if to-from >= 8000 || to-from < 0 {
		L.RaiseError("too many results to unpack")
	}
	for i := from; i <= to; i++ {
		L.Push(t.RawGet(lua.LNumber(i)))
	}
	return to - from + 1
}
