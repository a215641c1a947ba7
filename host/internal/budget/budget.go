package budget

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"

	"obelus/host/internal/limits"
)

// CheckEvery is how many Lua instructions run between two looks at the clock.
const CheckEvery = 1024

// Budget is the context that an LState runs under. The interpreter asks for
// Done before every instruction, so that is where instructions are counted;
// only now and then is the clock looked at, and when the alarm has rung: a few
// instructions may take long that make large tables.
//
// A budget belongs to the goroutine of its state. What blocks must wait for
// the parent and the deadline instead of Done: see [budget.waitContext].
type Budget struct {
	context.Context        // of the caller
	Owner           any    // the machine that runs under it, found by the functions that code calls
	Reach           *Reach // of a call whose reach is watched; nil elsewhere
	Start           time.Time
	timeout         time.Duration // as it was given
	deadline        time.Time
	n               int64
	Limits          *limits.Limits
	alarm           *alarm
	weighed         int64  // n when memory was looked at last
	heap            uint64 // of the process, when it was looked at first; 0 before
	used            error
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

// LimitError is a budget that is used up otherwise than by time.
type LimitError struct{ Message string }

func (e *LimitError) Error() string { return e.Message }

// weighEvery is how many units there are between two looks at the memory, which
// cost more than those at the clock. A call that is over before has used little.
const weighEvery = 8 * CheckEvery

// weigh looks at how much the process has grown since the call began. What other
// calls use counts too: within one process nobody can tell whose it is. What may
// be garbage is collected first, if it is enough to be worth it.
func (b *Budget) weigh() error {
	if b.heap == 0 && leftBehind.CompareAndSwap(true, false) { // or this call could take as much again
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

// Release lets go of what the budget keeps of a call that has ended.
func (b *Budget) Release() { b.Context, b.Reach = nil, nil }

// WaitContext returns a context for what blocks: it ends with the caller and at the deadline. The
// caller must call cancel.
func (b *Budget) WaitContext() (ctx context.Context, cancel context.CancelFunc) {
	return context.WithDeadline(b.Context, b.deadline)
}

// Extend gives a script the time back that something took which does not count against it.
func (b *Budget) Extend(L *lua.LState, took time.Duration) {
	b.Start, b.deadline = b.Start.Add(took), b.deadline.Add(took)
	b.heap = 0
	b.Charge(L, CheckEvery)
}

// Ended takes note of the end of a call.
func (b *Budget) Ended() {
	if b.heap == 0 {
		return // it was over before it was weighed
	}
	if now, _ := HeapSize(); now < b.heap+muchMemory {
		return
	}
	ReturnMemory()
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Reset starts the budget anew. A parent whose own deadline is nearer wins.
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

// Done is closed once the budget is used up.
func (b *Budget) Done() <-chan struct{} {
	if b.n++; b.n < b.alarm.next.Load() {
		return nil
	}
	return b.check()
}

func (b *Budget) check() <-chan struct{} {
	if b.used == nil {
		b.alarm.next.Store(b.n + CheckEvery) // before the clock is read, so that no ring is lost
		switch {
		case b.Context.Err() != nil:
			b.used = context.Cause(b.Context)
		case !time.Now().Before(b.deadline):
			b.used = context.DeadlineExceeded
		case b.n > int64(b.Limits.Instructions):
			b.used = &LimitError{limits.Over("the script has run too many instructions", "instructions", b.Limits.Instructions)}
		default:
			if b.n-b.weighed >= weighEvery { // a long string is many units
				b.weighed, b.used = b.n, b.weigh()
			}
			if b.used == nil {
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

// EndWith uses the budget up.
func (b *Budget) EndWith(why error) {
	b.used = why
	b.alarm.next.Store(0)
}

// Err is what Done was closed for.
func (b *Budget) Err() error { return b.used }

// Deadline is when the budget is used up.
func (b *Budget) Deadline() (time.Time, bool) { return b.deadline, true }

// Charge counts the work of a native function, a unit for an instruction, and
// raises in the script when the budget is used up.
func (b *Budget) Charge(L *lua.LState, units int) {
	if b.Spent(units) {
		L.RaiseError("%s", limits.OutOfTime)
	}
}

// Spent is charge for where nothing may be raised: it reports whether the budget
// is used up.
func (b *Budget) Spent(units int) bool {
	b.n += int64(units)
	if b.tooLong(units) {
		return true
	}
	return b.n >= b.alarm.next.Load() && b.check() != nil
}

// TimeoutText is the length of the budget as people write it.
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
