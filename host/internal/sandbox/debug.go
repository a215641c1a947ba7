package sandbox

import (
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luatext"
)

// debugFuncs are the functions of debug that change nothing. They see only the stack of the
// innermost pcall or coroutine.
var debugFuncs = []StateEntry{
	{"gethook", func(*State, *lua.LState) int { return 0 }},
	{"getinfo", debugGetinfo},
	{"getmetatable", baseGetmetatable},
	{"sethook", debugSethook},
	{"setmetatable", debugSetmetatable},
	{"traceback", debugTraceback},
}

// dropThread removes a thread before the other arguments; own reports that the arguments are
// about the running thread.
func dropThread(L *lua.LState) (own bool) {
	u, ok := L.Get(1).(*lua.LUserData)
	if !ok {
		return true
	}
	if _, ok = u.Value.(*coroutine); ok {
		L.Remove(1)
	}
	return !ok
}

// debug.getinfo([thread,] function or level [, what]) gives all fields, whatever is asked for.
func debugGetinfo(s *State, L *lua.LState) int {
	own := dropThread(L)
	f, _ := L.Get(1).(*lua.LFunction)
	info := &lua.Debug{CurrentLine: -1}
	if f == nil {
		level := integer(L, 1)
		dbg, ok := L.GetStack(level)
		if !own || level < 0 || !ok {
			return Push(L, lua.LNil)
		}
		v, err := L.GetInfo("fln", dbg, lua.LNil)
		if err != nil {
			return Push(L, lua.LNil)
		}
		f, info = v.(*lua.LFunction), dbg
	}
	return Push(L, describeFunction(s, f, info))
}

func describeFunction(s *State, f *lua.LFunction, info *lua.Debug) *lua.LTable {
	t := s.L.CreateTable(0, 10)
	set := func(name string, v lua.LValue) { t.RawSetString(name, v) }
	set("namewhat", lua.LString(""))
	if luatext.IsName(info.Name) {
		set("name", lua.LString(info.Name))
	}
	set("nups", lua.LNumber(0))
	if f.IsG {
		set("what", lua.LString("C"))
		set("source", lua.LString("=[C]"))
		set("short_src", lua.LString("[C]"))
		set("currentline", lua.LNumber(-1))
		set("linedefined", lua.LNumber(-1))
		set("lastlinedefined", lua.LNumber(-1))
		return t
	}
	source := f.Proto.SourceName
	set("short_src", lua.LString(source))
	if !strings.HasPrefix(source, "[string ") {
		source = "@" + source
	}
	set("source", lua.LString(source))
	set("what", lua.LString("Lua"))
	if f.Proto.LineDefined == 0 {
		set("what", lua.LString("main"))
	}
	set("currentline", lua.LNumber(info.CurrentLine))
	set("linedefined", lua.LNumber(f.Proto.LineDefined))
	set("lastlinedefined", lua.LNumber(f.Proto.LastLineDefined))
	set("nups", lua.LNumber(len(f.Upvalues)))
	set("func", f)
	return t
}

// debug.sethook() removes a hook: there never is one.
func debugSethook(s *State, L *lua.LState) int {
	if _, ok := L.Get(1).(*lua.LFunction); ok {
		L.RaiseError("debug.sethook is not available in scripts")
	}
	return 0
}

// debug.setmetatable(v, meta). For scripts only tables have metatables.
func debugSetmetatable(s *State, L *lua.LState) int {
	if _, ok := L.CheckAny(1).(*lua.LTable); ok {
		return baseSetmetatable(s, L)
	}
	if L.Get(2) != lua.LNil {
		L.RaiseError("the metatable of a %s can't be changed", TypeName(L.Get(1)))
	}
	L.SetTop(1)
	return 1
}

// debug.traceback([thread,] [message [, level]]). A handler of xpcall sees the stack of the error.
func debugTraceback(s *State, L *lua.LState) int {
	own := dropThread(L)
	message := L.Get(1)
	if message != lua.LNil && !lua.LVCanConvToString(message) {
		L.SetTop(1)
		return 1
	}
	var b strings.Builder
	if message != lua.LNil {
		b.WriteString(s.toText(L, message) + "\n")
	}
	b.WriteString("stack traceback:")
	if level := optional(L, 2, 1); own {
		writeFrames(&b, L, level)
	}
	if s.unwound != nil {
		for _, line := range s.unwound.lines {
			b.WriteString("\n\t" + line)
		}
		writeFrames(&b, s.unwound.outside, 0)
	}
	s.checkLength(L, b.Len())
	return Push(L, lua.LString(b.String()))
}

func writeFrames(b *strings.Builder, L *lua.LState, level int) {
	for level = max(level, 0); b.Len() <= maxUnended; level++ {
		dbg, ok := L.GetStack(level)
		if !ok {
			return
		}
		b.WriteString(frameText(L, dbg))
	}
}

// frameText returns a line of a traceback; none for a function of the host.
func frameText(L *lua.LState, dbg *lua.Debug) string {
	v, err := L.GetInfo("fln", dbg, lua.LNil)
	f, ok := v.(*lua.LFunction)
	if err != nil || !ok || f.IsG {
		return ""
	}
	in := "function <" + f.Proto.SourceName + ":" + strconv.Itoa(f.Proto.LineDefined) + ">"
	switch {
	case f.Proto.LineDefined == 0:
		in = "main chunk"
	case luatext.IsName(dbg.Name):
		in = "function '" + dbg.Name + "'"
	}
	return "\n\t" + f.Proto.SourceName + ":" + strconv.Itoa(dbg.CurrentLine) + ": in " + in
}
