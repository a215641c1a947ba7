package sandbox

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strconv"
	"sync/atomic"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luatext"
)

// raised remembers what error or assert raised, until it is caught: what ends
// a run is the author's outcome only if the author raised it.
type raised struct {
	Value lua.LValue // as the author gave it, without a position
	file  string
	line  int
}

// placed is what was raised with its place in front of it, if it is text: a number is, too.
func (r *raised) placed() lua.LValue {
	if r.line == 0 || !lua.LVCanConvToString(r.Value) {
		return r.Value
	}
	text, isText := r.Value.(lua.LString)
	if n, ok := r.Value.(lua.LNumber); ok && !isText {
		text = lua.LString(luatext.FormatNumber(n))
	}
	return lua.LString(r.file+":"+strconv.Itoa(r.line)+": ") + text
}

// visited is the key that next gave last: an entry may be removed while it is visited.
type visited struct {
	table *lua.LTable
	key   lua.LValue
}

func (v visited) has(t *lua.LTable, key lua.LValue) bool {
	return key == lua.LNil || v.table == t && v.key == key
}

// coroutines are those of a run.
type coroutines struct {
	current *coroutine // nil for the run itself
	resumes int        // how deep current is nested
	begun   map[*coroutine]bool
}

// Stop ends what a run leaves: it writes a line that is not ended, and ends
// coroutines that wait to be resumed. No Lua runs any more then.
func (r *Run) Stop() {
	r.turn.Add(1)
	r.Printed.Flush()
	for co := range r.begun {
		close(co.resume)
		<-co.result
		co.status = "dead"
	}
	r.begun = nil
	r.Depth, r.loading = 0, nil // a coroutine that ended in a require has left its own
}

// unwound is the stack of the error that a handler of xpcall is asked about.
type unwound struct {
	lines   []string    // up to xpcall
	outside *lua.LState // which called xpcall
}

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
		l.Flush()
	}
}

func (l *lines) Flush() {
	if len(l.text) > 0 {
		l.w.Write(l.text)
		l.text = l.text[:0]
	}
}

// Run is what one run of a script has to itself.
type Run struct {
	Script    *Script
	Env       *lua.LTable
	Depth     int                            // how many files' top levels are being run
	loaded    *lua.LTable                    // by require, as package.loaded shows it; nil before the first
	loading   []string                       // modules whose top level is being run
	preloaded *lua.LTable                    // package.preload; nil before package is touched
	io        *lua.LTable                    // nil before it is touched
	Lines     map[*lua.LTable]int            // of calls in a plan; nil if nobody asks
	Printed   lines                          // what it prints
	turn      atomic.Int64                   // how many calls have ended
	random    *rand.Rand                     // of math.random; nil where nothing was seeded
	adapters  map[*lua.LTable]*lua.LFunction // that call objects which are metamethods; nil without any
	visited   visited
	coroutines
	Test bool // it is that of a file of tests
}

// stream is what io.stdin, io.stdout and io.stderr are.
type stream struct{ write bool }

// NotJSON says what a script reads that gives a stream as a value.
func (*stream) NotJSON() string { return "a userdata is not a JSON value" }
