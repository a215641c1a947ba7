// Package budget bounds a run of Lua in time, instructions and memory, and the memory of all runs
// of the process. A [Budget] is the context of an LState. The memory of the process decides when a
// call may begin ([Admit]), when garbage is collected ([KeepHeap]), and when memory is returned to
// the system.
package budget

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/limits"
)

// CheckEvery is the number of Lua instructions between two looks at the clock.
const CheckEvery = 1024

// Budget is the context that an LState runs under. The interpreter calls Done before every
// instruction, so that is where instructions are counted. The clock is read only once in a while,
// and after the alarm has rung: a few instructions that make large tables may take long.
//
// A budget belongs to the goroutine of its state. Code that blocks must wait for the parent and the
// deadline instead of Done: see [Budget.WaitContext].
type Budget struct {
	context.Context // of the caller
	// Machine that runs under the budget, for the functions that compiled code calls.
	Owner         any
	Reach         *Reach // records the reach of a call; nil if it is not watched
	Start         time.Time
	timeout       time.Duration // as given
	deadline      time.Time
	n             int64
	Limits        *limits.Limits
	alarm         *alarm
	memoryChecked int64  // n at the last look at the memory
	heap          uint64 // bytes of the process at the first look; 0 before
	reason        error
}

// alarm makes the budget read the clock at its deadline. It is not stopped when a call ends: if it
// rings during the next one, the clock is read once more than needed.
type alarm struct {
	next  atomic.Int64 // count of instructions at which the clock is read; 0 once it has rung
	timer *time.Timer
}

// set makes the alarm ring after some time.
func (a *alarm) set(after time.Duration) {
	if a.timer == nil {
		a.timer = time.AfterFunc(after, func() { a.next.Store(0) })
		return
	}
	a.timer.Reset(after)
}

// LimitError is the end of a budget other than by time.
type LimitError struct{ Message string }

func (e *LimitError) Error() string { return e.Message }

// checkMemoryEvery is the number of units between two looks at the memory, which cost more than
// looks at the clock. A call that ends earlier has used little.
const checkMemoryEvery = 8 * CheckEvery

// checkMemory returns an error if the process has grown too much since the call began. It counts
// the memory of other calls too, since within one process memory has no owner. If enough of it may
// be garbage, that is collected first.
func (b *Budget) checkMemory() error {
	// Without it, this call could take as much again.
	if b.heap == 0 && leftBehind.CompareAndSwap(true, false) {
		collecting.Lock()
		runtime.GC()
		collecting.Unlock()
	}
	now, _ := HeapSize()
	if b.heap == 0 {
		b.heap = now
	}
	most := uint64(b.Limits.Memory)
	if now < b.heap+most {
		return nil
	}
	collecting.Lock()
	defer collecting.Unlock()
	now, live := HeapSize()
	if now > live+most/16 {
		runtime.GC()
		now, _ = HeapSize()
	}
	if now < b.heap+most {
		return nil
	}
	return &LimitError{limits.Over("the process has grown too much while the script ran", "memory", b.Limits.Memory)}
}

// Release drops the references to a call that has ended.
func (b *Budget) Release() { b.Context, b.Reach = nil, nil }

// WaitContext returns a context for code that blocks: it ends with the caller and at the deadline.
// The caller must call cancel.
func (b *Budget) WaitContext() (ctx context.Context, cancel context.CancelFunc) {
	return context.WithDeadline(b.Context, b.deadline)
}

// Extend moves the deadline by the time that something took which does not count against the
// script.
func (b *Budget) Extend(L *lua.LState, took time.Duration) {
	b.Start, b.deadline = b.Start.Add(took), b.deadline.Add(took)
	b.heap = 0
	b.Charge(L, CheckEvery)
}

// Finish is called at the end of a call. It has memory returned if the call took much.
func (b *Budget) Finish() {
	if b.heap == 0 {
		return // too short to have been weighed
	}
	if now, _ := HeapSize(); now < b.heap+muchMemory {
		return
	}
	ReturnMemory()
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Reset starts the budget anew. An earlier deadline of the parent applies.
func (b *Budget) Reset(parent context.Context, timeout time.Duration) {
	if b.alarm == nil {
		b.alarm = &alarm{}
	}
	*b = Budget{Context: parent, Owner: b.Owner, Limits: b.Limits, alarm: b.alarm, Start: time.Now(), timeout: timeout}
	b.deadline = b.Start.Add(timeout)
	if d, ok := parent.Deadline(); ok && d.Before(b.deadline) {
		b.deadline = d
	}
	b.alarm.next.Store(CheckEvery)
	b.alarm.set(b.deadline.Sub(b.Start))
	if parent.Err() != nil {
		b.alarm.next.Store(0)
	}
}

// Done returns a closed channel once the budget is used up, and nil before.
func (b *Budget) Done() <-chan struct{} {
	if b.n++; b.n < b.alarm.next.Load() {
		return nil
	}
	return b.check()
}

func (b *Budget) check() <-chan struct{} {
	if b.reason == nil {
		b.alarm.next.Store(b.n + CheckEvery) // before the clock is read, so that no ring is lost
		switch {
		case b.Context.Err() != nil:
			b.reason = context.Cause(b.Context)
		case !time.Now().Before(b.deadline):
			b.reason = context.DeadlineExceeded
		case b.n > int64(b.Limits.Instructions):
			b.reason = &LimitError{limits.Over("the script has run too many instructions", "instructions", b.Limits.Instructions)}
		default:
			if b.n-b.memoryChecked >= checkMemoryEvery { // a long string is many units
				b.memoryChecked, b.reason = b.n, b.checkMemory()
			}
			if b.reason == nil {
				return nil
			}
		}
	}
	b.alarm.next.Store(0)
	return closed
}

// Exhausted looks at the clock, the memory and the count of instructions, and reports whether the
// budget is used up.
func (b *Budget) Exhausted() bool { return b.check() != nil }

// End ends the budget with an error.
func (b *Budget) End(why error) {
	b.reason = why
	b.alarm.next.Store(0)
}

// Err returns the reason for which the budget ended, nil before.
func (b *Budget) Err() error { return b.reason }

// Deadline returns the time at which the budget ends.
func (b *Budget) Deadline() (time.Time, bool) { return b.deadline, true }

// Charge counts the work of a native function, in units of an instruction, and raises in the script
// when the budget is used up.
func (b *Budget) Charge(L *lua.LState, units int) {
	if b.Spent(units) {
		L.RaiseError("%s", limits.OutOfTime)
	}
}

// Spent is Charge for code that must not raise: it reports whether the budget is used up.
func (b *Budget) Spent(units int) bool {
	b.n += int64(units)
	if b.tooLong(units) {
		return true
	}
	return b.n >= b.alarm.next.Load() && b.check() != nil
}

// TimeoutText returns the length of the budget as people write it.
func (b *Budget) TimeoutText() string {
	d := b.deadline.Sub(b.Start)
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

// Reach records whether a call's script reaches beyond its memory: prints, sleeps, touches a file
// or the network.
type Reach struct {
	Ends bool // the script is to end before it does
	Out  bool // it did, or would have
}

// errReached ends a speculative call before its script reaches beyond its memory.
var errReached = errors.New("it has run ahead as far as it may")

// Outside is called before a script reaches beyond its memory. It raises in the script if that is
// to end first.
func (b *Budget) Outside(L *lua.LState) {
	if b.reaches() {
		L.RaiseError("%s", limits.OutOfTime)
	}
}

// reaches records that the script reaches beyond its memory, and reports whether it is to end
// before it does.
func (b *Budget) reaches() (ends bool) {
	if b.Reach == nil {
		return false
	}
	b.Reach.Out = true
	if b.Reach.Ends {
		b.End(errReached)
	}
	return b.Reach.Ends
}

// longWork is how many units of work at once take so long, perhaps a millisecond, that a call
// should not be speculative meanwhile.
const longWork = 4096

// tooLong reports whether a script is to end before long work.
func (b *Budget) tooLong(units int) bool {
	return units >= longWork && b.Reach != nil && b.Reach.Ends && b.reaches()
}
