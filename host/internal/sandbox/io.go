package sandbox

import lua "github.com/yuin/gopher-lua"

// Libraries in Lua need io when they are loaded. This one writes to the output of print, and reads
// nothing: files belong to the module fs, which asks for permissions.

const (
	noFiles = `io can't open files in scripts: use require "fs"`
	noInput = "scripts have no standard input"
)

// newIO makes the run's io, whose streams have a metatable that scripts can change.
func newIO(s *State) *lua.LTable {
	lib := s.Table(s.Libs["io"])
	meta := s.Table([]Field{{"__index", s.Table(s.streams)}})
	for _, name := range []string{"stdin", "stdout", "stderr"} {
		u := s.L.NewUserData()
		u.Value, u.Metatable, u.Env = &stream{name != "stdin"}, meta, s.Run.Env
		lib.RawSetString(name, u)
	}
	s.Run.io = lib
	return lib
}

var ioFuncs = []StateEntry{
	{"close", ioFlush},
	{"flush", ioFlush},
	{"input", standardStream("stdin")},
	{"lines", raising(noFiles)},
	{"open", failing(noFiles)},
	{"output", standardStream("stdout")},
	{"read", failing(noInput)},
	{"tmpfile", failing(noFiles)},
	{"type", ioType},
	{"write", ioWrite},
}

var streamFuncs = []StateEntry{
	{"close", streamMethod(ioFlush)},
	{"flush", streamMethod(ioFlush)},
	{"lines", streamMethod(streamLines)},
	{"read", streamMethod(failing(noInput))},
	{"seek", streamMethod(failing("a standard stream has no position"))},
	{"setvbuf", streamMethod(ioFlush)},
	{"write", streamMethod(streamWrite)},
}

// raising returns a function that raises.
func raising(message string) Function {
	return func(_ *State, L *lua.LState) int {
		L.RaiseError("%s", message)
		return 0
	}
}

// failing returns a function that fails as functions of io do.
func failing(message string) Function {
	return func(_ *State, L *lua.LState) int {
		return Push(L, lua.LNil, lua.LString(message))
	}
}

// standardStream returns io.input or io.output, which give a stream and take none.
func standardStream(name string) Function {
	return func(s *State, L *lua.LState) int {
		if L.Get(1) != lua.LNil && streamOf(L) == nil {
			L.RaiseError("%s", noFiles)
		}
		return Push(L, s.Run.io.RawGetString(name))
	}
}

func streamOf(L *lua.LState) *stream {
	u, _ := L.Get(1).(*lua.LUserData)
	if u == nil {
		return nil
	}
	own, _ := u.Value.(*stream)
	return own
}

// streamMethod returns a method that requires its stream.
func streamMethod(f Function) Function {
	return func(s *State, L *lua.LState) int {
		if streamOf(L) == nil {
			L.ArgError(1, "a file is expected: call it with a colon")
		}
		return f(s, L)
	}
}

func ioFlush(s *State, L *lua.LState) int {
	s.Run.Printed.Flush()
	return Push(L, lua.LTrue)
}

func ioType(s *State, L *lua.LState) int {
	L.CheckAny(1)
	if streamOf(L) == nil {
		L.Push(lua.LNil)
	} else {
		L.Push(lua.LString("file"))
	}
	return 1
}

func ioWrite(s *State, L *lua.LState) int { return writeArguments(s, L, 1) }

func streamWrite(s *State, L *lua.LState) int {
	if !streamOf(L).write {
		return failing("standard input can't be written")(s, L)
	}
	return writeArguments(s, L, 2)
}

func writeArguments(s *State, L *lua.LState, first int) int {
	s.Budget.Outside(L)
	for i := first; i <= L.GetTop(); i++ {
		text := s.checkText(L, i)
		s.checkLength(L, len(text))
		s.Run.Printed.write(text)
	}
	s.Budget.Charge(L, 50)
	return Push(L, lua.LTrue)
}

// streamLines iterates over the lines of a stream: none.
func streamLines(s *State, L *lua.LState) int {
	return Push(L, s.Fn(func(*State, *lua.LState) int { return 0 }))
}
