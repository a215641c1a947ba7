package sandbox

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/budget"
	"obelus/host/internal/limits"
	"obelus/host/internal/luac"
)

// Code that a script makes is compiled as files are, with their bounds, and runs in the run's
// environment or in a table of the script's. It has no other global table.

// load(function, [name, [mode, [env]]]), which takes text too, as later Luas do.
func baseLoad(s *State, L *lua.LState) int {
	if _, ok := L.Get(1).(lua.LString); ok {
		return baseLoadstring(s, L)
	}
	next := L.CheckFunction(1)
	var b strings.Builder
	for {
		piece := callFunction(L, next)
		if piece == lua.LNil || piece == lua.LString("") {
			return loadText(s, L, b.String(), "=(load)")
		}
		text, ok := piece.(lua.LString)
		if !ok {
			return failing("reader function must return a string")(s, L)
		}
		b.WriteString(string(text))
		s.checkLength(L, b.Len())
		if b.Len() > s.Project.Limits.Source {
			return loadText(s, L, b.String(), "=(load)")
		}
	}
}

// loadstring(text, [name, [mode, [env]]])
func baseLoadstring(s *State, L *lua.LState) int {
	text := s.checkText(L, 1)
	return loadText(s, L, text, text)
}

func loadText(s *State, L *lua.LState, text, name string) int {
	name = chunkName(L.OptString(2, name))
	mode := L.OptString(3, "bt")
	env := L.OptTable(4, s.Run.Env)
	switch {
	case strings.HasPrefix(text, "\x1b"):
		return failing("attempt to load a binary chunk: scripts load text alone")(s, L)
	case len(text) > s.Project.Limits.Source:
		return failing(limits.Over(fmt.Sprintf("the chunk has %d bytes", len(text)), "source", s.Project.Limits.Source))(s, L)
	case !strings.Contains(mode, "t"):
		return failing("attempt to load a text chunk (mode is '"+mode+"')")(s, L)
	}
	s.Budget.Charge(L, len(text)+budget.CheckEvery) // so that the clock is read each time
	proto, err := compileInTime(s, L, name, text)
	if err != nil {
		return failing(err.Error())(s, L)
	}
	f := L.NewFunctionFromProto(proto)
	s.Fill(env)
	f.Env = env
	return Push(L, f)
}

// functionAt returns the function for getfenv and setfenv: an argument, or the one at a level of
// the stack. It is nil for a function of the host.
func functionAt(s *State, L *lua.LState) *lua.LFunction {
	f, ok := L.Get(1).(*lua.LFunction)
	if !ok {
		level := optional(L, 1, 1)
		if level < 0 {
			L.ArgError(1, "level must be non-negative")
		}
		dbg, found := L.GetStack(level)
		if !found {
			L.ArgError(1, "invalid level")
		}
		v, err := L.GetInfo("f", dbg, lua.LNil)
		if f, ok = v.(*lua.LFunction); err != nil || !ok {
			return nil
		}
	}
	if f.IsG {
		return nil
	}
	return f
}

// getfenv([function or level])
func baseGetfenv(s *State, L *lua.LState) int {
	env := s.Run.Env
	if L.Get(1) != lua.LNumber(0) {
		if f := functionAt(s, L); f != nil {
			env = f.Env
		}
	}
	return Push(L, env)
}

// setfenv(function or level, table)
func baseSetfenv(s *State, L *lua.LState) int {
	env := s.CheckTable(L, 2)
	L.CheckAny(1)
	if L.Get(1) == lua.LNumber(0) {
		L.RaiseError("setfenv can't change the environment of the whole script")
	}
	f := functionAt(s, L)
	if f == nil {
		L.RaiseError("setfenv can't change the environment of a library function")
	}
	f.Env = env
	return Push(L, f)
}

// compileInTime waits for the compiler, which can't be interrupted, as long as the run has time.
func compileInTime(s *State, L *lua.LState, name, text string) (proto *lua.FunctionProto, err error) {
	ctx, cancel := s.Budget.WaitContext()
	defer cancel()
	compiled := make(chan func(), 1)
	go func() {
		late, lateErr := luac.Compile(name, []byte(text), Functions)
		compiled <- func() { proto, err = late, lateErr }
	}()
	select {
	case take := <-compiled:
		take()
	case <-ctx.Done():
		s.Budget.Charge(L, budget.CheckEvery)
		L.RaiseError("%s", limits.OutOfTime)
	}
	return proto, err
}

// chunkName returns the name of a chunk in messages, as Lua's own luaO_chunkid makes it.
func chunkName(name string) string {
	const most = 60
	line, _, more := strings.Cut(name, "\n")
	if line != "" && (line[0] == '=' || line[0] == '@') {
		return strings.ToValidUTF8(line[1:min(len(line), most)], "?")
	}
	if len(line) > most-20 {
		line, more = line[:most-20], true
	}
	if more {
		line += "..."
	}
	return `[string "` + strings.ToValidUTF8(line, "?") + `"]`
}
