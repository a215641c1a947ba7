package host

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/limits"
)

// checkEvery is how many Lua instructions run between two looks at the clock.
const checkEvery = 1024

// budget is the context that an LState runs under. The interpreter asks for
// Done before every instruction, so that is where instructions are counted;
// only now and then is the clock looked at, and when the alarm has rung: a few
// instructions may take long that make large tables.
//
// A budget belongs to the goroutine of its state. What blocks must wait for
// the parent and the deadline instead of Done: see [state.waitContext].
type budget struct {
	context.Context // of the caller
	state           *state
	start           time.Time
	timeout         time.Duration // as it was given
	deadline        time.Time
	n               int64
	limits          *limits.Limits
	alarm           *alarm
	weighed         int64  // n when memory was looked at last
	heap            uint64 // of the process, when it was looked at first; 0 before
	err             error
}

// alarm has the clock looked at by and by, and at a state's deadlines. It is not
// stopped when a call ends: if it rings in the midst of the next one, the clock is
// looked at once more.
type alarm struct {
	next  atomic.Int64 // the count of instructions at which to look; 0 when it has rung
	timer *time.Timer
}

// set makes it ring after some time.
func (a *alarm) set(after time.Duration) {
	if a.timer == nil {
		a.timer = time.AfterFunc(after, func() { a.next.Store(0) })
		return
	}
	a.timer.Reset(after)
}

// limitError is a budget that is used up otherwise than by time.
type limitError struct{ message string }

func (e *limitError) Error() string { return e.message }

// weighEvery is how many units there are between two looks at the memory, which
// cost more than those at the clock. A call that is over before has used little.
const weighEvery = 8 * checkEvery

// What the heap holds, garbage that has not been swept among it, and what of it
// the last collection found to be in use.
const (
	heapMetric = "/memory/classes/heap/objects:bytes"
	liveMetric = "/gc/heap/live:bytes"
)

// collecting lets one collect garbage for all who seem to use too much.
var collecting sync.Mutex

func heapSize() (all, live uint64) {
	sample := [2]metrics.Sample{{Name: heapMetric}, {Name: liveMetric}}
	metrics.Read(sample[:])
	return sample[0].Value.Uint64(), sample[1].Value.Uint64()
}

// weigh looks at how much the process has grown since the call began. What other
// calls use counts too: within one process nobody can tell whose it is. What may
// be garbage is collected first, if it is enough to be worth it.
func (b *budget) weigh() error {
	if b.heap == 0 && leftBehind.CompareAndSwap(true, false) { // or this call could take as much again
		collecting.Lock()
		runtime.GC()
		collecting.Unlock()
	}
	now, _ := heapSize()
	if b.heap == 0 {
		b.heap = now
	}
	most := uint64(b.limits.Memory)
	if now < b.heap+most {
		return nil
	}
	collecting.Lock()
	defer collecting.Unlock()
	now, live := heapSize()
	if now > live+most/16 {
		runtime.GC()
		now, _ = heapSize()
	}
	if now < b.heap+most {
		return nil
	}
	return &limitError{limits.Over("the process has grown too much while the script ran", "memory", b.limits.Memory)}
}

// Memory of a call that took much is given back soon after it, whether it was stopped or not.
const (
	muchMemory  = 64 << 20
	returnAfter = 200 * time.Millisecond
)

// freeMemory collects garbage and gives what it took back. Tests look on.
var freeMemory = debug.FreeOSMemory

var (
	leftBehind atomic.Bool // a call that took much memory has ended, and nothing was collected since
	returning  atomic.Bool // memory is about to be given back
)

// ended takes note of the end of a call.
func (b *budget) ended() {
	if b.heap == 0 {
		return // it was over before it was weighed
	}
	if now, _ := heapSize(); now < b.heap+muchMemory {
		return
	}
	ReturnMemory()
}

// ReturnMemory has garbage collected and what it took given back to the system, within a
// second, once for all who ask meanwhile. Go would keep it for as long as nothing else is made.
// It is for programs that have let go of much: the host calls it for scripts.
func ReturnMemory() {
	leftBehind.Store(true)
	if returning.CompareAndSwap(false, true) {
		time.AfterFunc(returnAfter, func() {
			returning.Store(false)
			leftBehind.Store(false)
			freeMemory()
			if returnsForIdle.Swap(false) {
				_, live := heapSize()
				inUseWhenIdle.Store(live)
			}
		})
	}
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// reset starts the budget anew. A parent whose own deadline is nearer wins.
func (b *budget) reset(parent context.Context, timeout time.Duration) {
	if b.alarm == nil {
		b.alarm = &alarm{}
	}
	*b = budget{Context: parent, state: b.state, limits: b.limits, alarm: b.alarm, start: time.Now(), timeout: timeout}
	b.deadline = b.start.Add(timeout)
	if d, ok := parent.Deadline(); ok && d.Before(b.deadline) {
		b.deadline = d
	}
	b.alarm.next.Store(checkEvery)
	b.alarm.set(b.deadline.Sub(b.start))
	if parent.Err() != nil {
		b.alarm.next.Store(0)
	}
}

// Done is closed once the budget is used up.
func (b *budget) Done() <-chan struct{} {
	if b.n++; b.n < b.alarm.next.Load() {
		return nil
	}
	return b.check()
}

func (b *budget) check() <-chan struct{} {
	if b.err == nil {
		b.alarm.next.Store(b.n + checkEvery) // before the clock is read, so that no ring is lost
		switch {
		case b.Context.Err() != nil:
			b.err = context.Cause(b.Context)
		case !time.Now().Before(b.deadline):
			b.err = context.DeadlineExceeded
		case b.n > int64(b.limits.Instructions):
			b.err = &limitError{limits.Over("the script has run too many instructions", "instructions", b.limits.Instructions)}
		default:
			if b.n-b.weighed >= weighEvery { // a long string is many units
				b.weighed, b.err = b.n, b.weigh()
			}
			if b.err == nil {
				return nil
			}
		}
	}
	b.alarm.next.Store(0)
	return closed
}

// end uses the budget up.
func (b *budget) end(why error) {
	b.err = why
	b.alarm.next.Store(0)
}

// Err is what Done was closed for.
func (b *budget) Err() error { return b.err }

// Deadline is when the budget is used up.
func (b *budget) Deadline() (time.Time, bool) { return b.deadline, true }

// Charge counts the work of a native function, a unit for an instruction, and
// raises in the script when the budget is used up.
func (b *budget) Charge(L *lua.LState, units int) {
	if b.Spent(units) {
		L.RaiseError("%s", outOfTime)
	}
}

// Spent is charge for where nothing may be raised: it reports whether the budget
// is used up.
func (b *budget) Spent(units int) bool {
	b.n += int64(units)
	if b.state.tooLong(units) {
		return true
	}
	return b.n >= b.alarm.next.Load() && b.check() != nil
}

// outOfTime is what a script sees of its deadline, if it looks.
const outOfTime = "out of time"

// timeoutText is the length of the budget as people write it.
func (b *budget) timeoutText() string {
	d := b.deadline.Sub(b.start)
	switch {
	case b.timeout-d < 5*time.Millisecond: // the caller's began a little earlier
		d = b.timeout
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(time.Millisecond)
	}
	return max(d, 0).String()
}
