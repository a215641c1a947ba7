package sandbox

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/luatext"
)

// Run has everything that belongs to one run of a script.
type Run struct {
	Script    *Script
	Env       *lua.LTable
	Depth     int                 // number of files whose top level is running
	loaded    *lua.LTable         // package.loaded; nil before the first require
	loading   []string            // modules whose top level is running
	preloaded *lua.LTable         // package.preload; nil before package is read
	io        *lua.LTable         // nil before it is read
	Lines     map[*lua.LTable]int // lines of calls in a plan; nil if they are not wanted
	Printed   lines               // output of print
	turn      atomic.Int64        // number of calls that have ended
	random    *rand.Rand          // seeded generator of math.random; nil without a seed
	// Functions that call objects as metamethods; nil without any.
	adapters map[*lua.LTable]*lua.LFunction
	visited  visited
	coroutines
	Test   bool // a file of tests runs
	varied bool // its top level has done something that may come out otherwise the next time
}

// Stop ends the remains of a run: it writes an unfinished line, and ends suspended coroutines. No
// Lua runs after it.
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

// raised is the value of error or assert until it is caught. The end of a run is an outcome of the
// author only if the author raised it.
type raised struct {
	Value lua.LValue // without a position
	file  string
	line  int
}

// withPlace returns the raised value with its place before it, if it is text or a number.
func (r *raised) withPlace() lua.LValue {
	if r.line == 0 || !lua.LVCanConvToString(r.Value) {
		return r.Value
	}
	text, isText := r.Value.(lua.LString)
	if n, ok := r.Value.(lua.LNumber); ok && !isText {
		text = lua.LString(luatext.FormatNumber(n))
	}
	return lua.LString(r.file+":"+strconv.Itoa(r.line)+": ") + text
}

// visited is the last key of next: its entry may be removed during the visit.
type visited struct {
	table *lua.LTable
	key   lua.LValue
}

func (v visited) has(t *lua.LTable, key lua.LValue) bool {
	return key == lua.LNil || v.table == t && v.key == key
}

// coroutines has the coroutines of a run.
type coroutines struct {
	current *coroutine // nil for the run itself
	resumes int        // depth of current
	begun   map[*coroutine]bool
}

// unwound is the stack of the error that a handler of xpcall handles.
type unwound struct {
	lines   []string    // up to xpcall
	outside *lua.LState // the caller of xpcall
}

// lines writes the output of a run, a Write for each batch of whole lines, so that lines of
// concurrent runs stay separate.
type lines struct {
	w    io.Writer
	text []byte // not written yet
}

// maxUnended is the longest line, in bytes, that is written as a whole.
const maxUnended = 64 << 10

func (l *lines) write(text string) {
	l.text = append(l.text, text...)
	if end := bytes.LastIndexByte(l.text, '\n') + 1; end > 0 {
		l.w.Write(l.text[:end])
		l.text = append(l.text[:0], l.text[end:]...)
	}
	if len(l.text) > maxUnended {
		l.Flush()
	}
}

// Flush writes an unfinished line.
func (l *lines) Flush() {
	if len(l.text) > 0 {
		l.w.Write(l.text)
		l.text = l.text[:0]
	}
}

// stream is the value of io.stdin, io.stdout and io.stderr.
type stream struct{ write bool }

// NotJSON returns the error for a stream in a value.
func (*stream) NotJSON() string { return "a userdata is not a JSON value" }

// LockWriter returns a writer to w that may be used by several goroutines at once.
func LockWriter(w io.Writer) io.Writer { return &lockedWriter{w: w} }

// lockedWriter keeps the lines of concurrent scripts separate.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(text)
}
