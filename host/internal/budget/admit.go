package budget

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

var (
	heapIsKept  atomic.Bool   // by [KeepHeap]
	heapSeen    atomic.Uint64 // its size when it was looked at last
	heapSeenAt  atomic.Int64  // when that was, in nanoseconds since began
	callsAtWork atomic.Int64  // of the process, that were admitted
	lastForced  atomic.Int64  // when a collection for calls that wait ended, in nanoseconds since began
	began       = time.Now()
)

const (
	lookAgain    = 2 * time.Millisecond   // after which the heap is looked at again
	waitAgain    = 20 * time.Millisecond  // after which a call that waits does
	collectAgain = 200 * time.Millisecond // after which garbage is collected again for those that wait
)

// IsCrowded tells whether the process holds more than calls begin with.
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

// Admit has a call wait while the process holds more than most bytes, unless no other is
// at work: what others hold, and what is on its way into the log, becomes less meanwhile.
// See [engine.Runner.Acquire].
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

// collectForWaiting finds what has been let go of, where nothing else leads to a collection.
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

// Idle is for a program to tell that no run is under way in it: what they took is given
// back to the system, if it is much. Without [KeepHeap] it does nothing.
func Idle() {
	if _, live := HeapSize(); heapIsKept.Load() && live > inUseWhenIdle.Load()+muchMemory {
		returnsForIdle.Store(true)
		ReturnMemory()
	}
}

var (
	returnsForIdle atomic.Bool
	inUseWhenIdle  atomic.Uint64 // bytes, when memory was given back for [Idle] last
)
