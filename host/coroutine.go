package host

import (
	"fmt"
	"runtime"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/budget"
)

// Coroutines are not the interpreter's own, whose yield breaks within pcall,
// metamethods and callbacks, and which overflow the stack where two resume each
// other. Each has a goroutine, of which one at a time runs, while the others
// wait for it: so a coroutine can yield from wherever it is. It has the budget
// of its run, and ends with it at the latest.

// Bounds of coroutines.
const (
	maxCoroutines    = 1000 // of a run, that have begun and not ended
	maxResumes       = 100  // that are nested
	coroutineFrames  = callFrames / 2
	coroutinePcalls  = maxPcalls / 4
	coroutineCharged = 100 // units of the budget, for a switch
)

// strand is where a run is, or where a coroutine waits.
type strand struct {
	L       *lua.LState                 // the thread that runs now
	pcalls  int                         // that are being run
	within  int                         // calls of functions that objects were given, one in the other
	threads []*lua.LState               // one for each depth of pcall, made at first need
	callers map[*lua.LState]*lua.LState // of threads: the one in which pcall was called
}

// coroutines are those of a run.
type coroutines struct {
	current *coroutine // nil for the run itself
	resumes int        // how deep current is nested
	begun   map[*coroutine]bool
}

// coroutine is a thread of Lua, in the eyes of scripts.
type coroutine struct {
	strand  // while it does not run
	fn      *lua.LFunction
	handle  *lua.LUserData
	status  string
	top     int      // how many files' top levels it runs itself
	loading []string // modules that it loads

	resume chan []lua.LValue // closed when the run ends
	result chan yielded      // closed when the goroutine ends
}

// NotJSON says what a script reads that gives a coroutine as a value.
func (*coroutine) NotJSON() string { return "a thread is not a JSON value" }

// yielded is what a coroutine gives who resumed it.
type yielded struct {
	values []lua.LValue
	ended  bool
	err    error
}

// newCoroutine makes one; it takes nothing but memory before it is resumed.
func newCoroutine(s *state, fn *lua.LFunction) *coroutine {
	co := &coroutine{fn: fn, status: "suspended"}
	co.handle = s.L.NewUserData()
	co.handle.Value, co.handle.Env = co, s.run.env
	return co
}

// resumeCoroutine runs a coroutine until it yields or ends. Its error is what the
// coroutine raised, or errNotResumed.
func resumeCoroutine(s *state, L *lua.LState, co *coroutine, args []lua.LValue) ([]lua.LValue, error) {
	all := &s.run.coroutines
	switch {
	case co.status != "suspended":
		return nil, errNotResumed("cannot resume " + co.status + " coroutine")
	case all.resumes == maxResumes:
		return nil, errNotResumed(fmt.Sprintf("coroutines are nested more than %d deep", maxResumes))
	case co.resume == nil && len(all.begun) == maxCoroutines:
		return nil, errNotResumed(fmt.Sprintf("more than %d coroutines have begun and not ended", maxCoroutines))
	}
	s.budget.Charge(L, coroutineCharged)
	out := switchToCoroutine(s, L, co, args)
	if s.budget.Err() != nil {
		L.RaiseError("%s", budget.OutOfTime)
	}
	return out.values, out.err
}

// errNotResumed is why a coroutine can't be resumed.
type errNotResumed string

func (e errNotResumed) Error() string { return string(e) }

// switchToCoroutine lets a coroutine run, and everything in the state that is about the
// place where the run is be the coroutine's.
func switchToCoroutine(s *state, L *lua.LState, co *coroutine, args []lua.LValue) yielded {
	r := s.run
	outer, resumer, top, loading := s.strand, r.current, r.top, r.loading
	if resumer != nil {
		resumer.status = "normal"
	}
	r.current, co.status = co, "running"
	r.resumes++
	if r.top += co.top; co.loading != nil {
		r.loading = co.loading
	}
	if co.resume == nil {
		startCoroutine(s, L, co, args)
	} else {
		s.strand = co.strand
		co.resume <- args
	}
	out := <-co.result
	co.strand, co.top, co.loading = s.strand, r.top-top, r.loading
	s.strand, r.current, r.top, r.loading = outer, resumer, top, loading
	r.resumes--
	if resumer != nil {
		resumer.status = "running"
	}
	co.status = "suspended"
	if out.ended {
		co.status, co.strand = "dead", strand{}
		delete(r.begun, co)
	}
	return out
}

func startCoroutine(s *state, L *lua.LState, co *coroutine, args []lua.LValue) {
	if s.run.begun == nil {
		s.run.begun = map[*coroutine]bool{}
	}
	s.run.begun[co] = true
	co.resume, co.result = make(chan []lua.LValue), make(chan yielded)
	s.strand = strand{L: s.newThread(L, coroutineFrames)}
	go runCoroutine(s, co, s.L, args)
}

// runCoroutine is the goroutine of a coroutine.
func runCoroutine(s *state, co *coroutine, thread *lua.LState, args []lua.LValue) {
	defer close(co.result)
	err := s.protected(co.fn, args)
	out := yielded{ended: true, err: err}
	if err == nil {
		for i := 1; i <= thread.GetTop(); i++ {
			out.values = append(out.values, thread.Get(i))
		}
	}
	co.result <- out
}

// yieldCoroutine hands values to who resumed the coroutine, and waits.
func yieldCoroutine(s *state, L *lua.LState, co *coroutine, values []lua.LValue) []lua.LValue {
	co.result <- yielded{values: values}
	args, ok := <-co.resume
	if !ok {
		runtime.Goexit() // it can't be caught as an error can
	}
	if s.budget.Err() != nil {
		L.RaiseError("%s", budget.OutOfTime)
	}
	return args
}

// stop ends what a run leaves: it writes a line that is not ended, and ends
// coroutines that wait to be resumed. No Lua runs any more then.
func (r *run) stop() {
	r.turn.Add(1)
	r.printed.flush()
	for co := range r.begun {
		close(co.resume)
		<-co.result
		co.status = "dead"
	}
	r.begun = nil
	r.top, r.loading = 0, nil // a coroutine that ended in a require has left its own
}

// maxPcallsOf is how deep they may be nested here.
func maxPcallsOf(s *state) int {
	if s.run.current != nil {
		return coroutinePcalls
	}
	return maxPcalls
}
