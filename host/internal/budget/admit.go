package budget

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

var (
	heapIsKept  atomic.Bool   // set by [KeepHeap]
	heapSeen    atomic.Uint64 // bytes of the heap at the last look
	heapSeenAt  atomic.Int64  // time of that look, in nanoseconds since began
	callsAtWork atomic.Int64  // admitted calls of the process
	lastForced  atomic.Int64  // end of the last collection for calls that wait, in nanoseconds since began
	began       = time.Now()
)

const (
	lookAgain    = 2 * time.Millisecond   // between two looks at the heap
	waitAgain    = 20 * time.Millisecond  // between two attempts of a call that waits
	collectAgain = 200 * time.Millisecond // between two collections for calls that wait
)

// IsCrowded reports whether the process holds more than most bytes, beyond which calls wait.
func IsCrowded(most int) bool {
	if !heapIsKept.Load() {
		return false
	}
	now, seen := int64(time.Since(began)), heapSeenAt.Load()
	if now-seen > int64(lookAgain) && heapSeenAt.CompareAndSwap(seen, now) {
		all, _ := HeapSize()
		heapSeen.Store(all)
	}
	return heapSeen.Load() > uint64(most)
}

// Admit blocks a call while the process holds more than most bytes, unless it is the only one:
// others end and results reach the log, which frees memory. ok is false if ctx ends first. The
// caller must call done when the call has ended. See [engine.Runner.Acquire].
func Admit(ctx context.Context, most int) (done func(), ok bool) {
	if !IsCrowded(most) {
		callsAtWork.Add(1)
		return callEnds, true
	}
	look := time.NewTicker(waitAgain)
	defer look.Stop()
	for IsCrowded(most) {
		if callsAtWork.CompareAndSwap(0, 1) {
			return callEnds, true
		}
		select {
		case <-look.C:
			collectForWaiting()
		case <-ctx.Done():
			return nil, false
		}
	}
	callsAtWork.Add(1)
	return callEnds, true
}

func callEnds() { callsAtWork.Add(-1) }

// collectForWaiting collects garbage for calls that wait, at most every collectAgain: an idle
// process would not collect any by itself.
func collectForWaiting() {
	if !collecting.TryLock() {
		return
	}
	defer collecting.Unlock()
	if time.Since(began)-time.Duration(lastForced.Load()) < collectAgain {
		return
	}
	runtime.GC()
	lastForced.Store(int64(time.Since(began)))
}

// Idle gives memory back to the system if the process holds much more than at the last time. A
// program calls it when no run is under way. Without [KeepHeap] it does nothing.
func Idle() {
	if _, live := HeapSize(); heapIsKept.Load() && live > inUseWhenIdle.Load()+muchMemory {
		returnsForIdle.Store(true)
		ReturnMemory()
	}
}

var (
	returnsForIdle atomic.Bool
	inUseWhenIdle  atomic.Uint64 // bytes in use when memory was given back for [Idle] last
)
