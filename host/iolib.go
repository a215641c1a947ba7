package host

import (
	"bytes"
	"io"

	lua "github.com/yuin/gopher-lua"
)

// Pure-Lua libraries take io and os for granted when they are loaded. What
// they find writes to where print does, and reads nothing: files belong to the
// module fs, which asks for permissions.

// lines hands on what a run prints, a Write for each batch of whole lines, so
// that lines of runs at once stay apart.
type lines struct {
	w    io.Writer
	text []byte // that is not written yet
}

// mostUnended bounds a line that is never ended.
const mostUnended = 64 << 10

func (l *lines) write(text string) {
	l.text = append(l.text, text...)
	if end := bytes.LastIndexByte(l.text, '\n') + 1; end > 0 {
		l.w.Write(l.text[:end])
		l.text = append(l.text[:0], l.text[end:]...)
	}
	if len(l.text) > mostUnended {
		l.flush()
	}
}

func (l *lines) flush() {
	if len(l.text) > 0 {
		l.w.Write(l.text)
		l.text = l.text[:0]
	}
}

// stream is what io.stdin, io.stdout and io.stderr are.
type stream struct{ write bool }

// NotJSON says what a script reads that gives a stream as a value.
func (*stream) NotJSON() string { return "a userdata is not a JSON value" }

const (
	noFiles = `io can't open files in scripts: use require "fs"`
	noInput = "scripts have no standard input"
)

// newIO makes the run's io: its streams have a metatable that scripts can
// change.
func newIO(s *state) *lua.LTable {
	lib := s.table(s.libs["io"])
	meta := s.table([]field{{"__index", s.table(s.streams)}})
	for _, name := range []string{"stdin", "stdout", "stderr"} {
		u := s.L.NewUserData()
		u.Value, u.Metatable, u.Env = &stream{name != "stdin"}, meta, s.run.env
		lib.RawSetString(name, u)
	}
	s.run.io = lib
	return lib
}

var ioFuncs = []entry{
	{"close", ioFlush},
	{"flush", ioFlush},
	{"input", standard("stdin")},
	{"lines", refuse(noFiles)},
	{"open", ioFail(noFiles)},
	{"output", standard("stdout")},
	{"read", ioFail(noInput)},
	{"tmpfile", ioFail(noFiles)},
	{"type", ioType},
	{"write", ioWrite},
}

var streamFuncs = []entry{
	{"close", ofStream(ioFlush)},
	{"flush", ofStream(ioFlush)},
	{"lines", ofStream(streamLines)},
	{"read", ofStream(ioFail(noInput))},
	{"seek", ofStream(ioFail("a standard stream has no position"))},
	{"setvbuf", ofStream(ioFlush)},
	{"write", ofStream(streamWrite)},
}

// osStubs join osFuncs.
var osStubs = []entry{
	{"exit", refuse("os.exit is not available in scripts: return, or raise an error")},
	{"getenv", func(s *state, L *lua.LState) int { L.Push(lua.LNil); return 1 }},
}

// refuse makes a function that raises.
func refuse(message string) luaFunc {
	return func(_ *state, L *lua.LState) int {
		L.RaiseError("%s", message)
		return 0
	}
}

// ioFail makes a function that fails as functions of io do.
func ioFail(message string) luaFunc {
	return func(_ *state, L *lua.LState) int {
		L.Push(lua.LNil)
		L.Push(lua.LString(message))
		return 2
	}
}

// standard makes io.input and io.output, which give a stream and take none.
func standard(name string) luaFunc {
	return func(s *state, L *lua.LState) int {
		if L.Get(1) != lua.LNil && streamOf(L) == nil {
			L.RaiseError("%s", noFiles)
		}
		L.Push(s.run.io.RawGetString(name))
		return 1
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

// ofStream makes a method that wants its stream.
func ofStream(f luaFunc) luaFunc {
	return func(s *state, L *lua.LState) int {
		if streamOf(L) == nil {
			L.ArgError(1, "a file is expected: call it with a colon")
		}
		return f(s, L)
	}
}

func ioFlush(s *state, L *lua.LState) int {
	s.run.printed.flush()
	L.Push(lua.LTrue)
	return 1
}

func ioType(s *state, L *lua.LState) int {
	L.CheckAny(1)
	if streamOf(L) == nil {
		L.Push(lua.LNil)
	} else {
		L.Push(lua.LString("file"))
	}
	return 1
}

func ioWrite(s *state, L *lua.LState) int { return writeArguments(s, L, 1) }

func streamWrite(s *state, L *lua.LState) int {
	if !streamOf(L).write {
		return ioFail("standard input can't be written")(s, L)
	}
	return writeArguments(s, L, 2)
}

func writeArguments(s *state, L *lua.LState, first int) int {
	s.budget.Outside(L)
	for i := first; i <= L.GetTop(); i++ {
		text := s.checkText(L, i)
		s.limit(L, len(text))
		s.run.printed.write(text)
	}
	s.budget.Charge(L, 50)
	L.Push(lua.LTrue)
	return 1
}

// streamLines is the lines of a stream: none.
func streamLines(s *state, L *lua.LState) int {
	L.Push(s.fn(func(*state, *lua.LState) int { return 0 }))
	return 1
}
