package budget

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// The bytes of the heap, unswept garbage included, and the bytes that the last collection found in
// use.
const (
	heapMetric = "/memory/classes/heap/objects:bytes"
	liveMetric = "/gc/heap/live:bytes"
)

// collecting is held during a collection, so that one serves all calls that seem to use too much.
var collecting sync.Mutex

// HeapSize returns the bytes of the heap, and the bytes that the last collection found in use.
func HeapSize() (all, live uint64) {
	sample := [2]metrics.Sample{{Name: heapMetric}, {Name: liveMetric}}
	metrics.Read(sample[:])
	return sample[0].Value.Uint64(), sample[1].Value.Uint64()
}

// Memory of a call that took much is given back soon after its end.
const (
	muchMemory  = 64 << 20
	returnAfter = 200 * time.Millisecond
)

// FreeMemory collects garbage and returns memory to the system. Tests replace it.
var FreeMemory = debug.FreeOSMemory

var (
	// A call that took much memory has ended, and nothing was collected since.
	leftBehind atomic.Bool
	returning  atomic.Bool // memory is about to be given back
)

// ReturnMemory collects garbage and returns its memory to the system within a second, once for all
// calls in that time. Go would keep the memory while nothing else is allocated.
func ReturnMemory() {
	leftBehind.Store(true)
	if returning.CompareAndSwap(false, true) {
		time.AfterFunc(returnAfter, func() {
			returning.Store(false)
			leftBehind.Store(false)
			FreeMemory()
			if returnsForIdle.Swap(false) {
				_, live := HeapSize()
				inUseWhenIdle.Store(live)
			}
		})
	}
}

// Idle gives memory back to the system if the process holds much more than at the last time. A
// program calls it when no run is under way. Without [KeepHeap] it does nothing.
func Idle() {
	if _, live := HeapSize(); heapIsKept.Load() && live > inUseWhenIdle.Load()+muchMemory {
		returnsForIdle.Store(true)
		ReturnMemory()
	}
}

// KeepHeap sets Go's percentage after each collection, such that the heap of the process is
// collected at floor bytes, or at 1.5 times the bytes in use if that is more. It leaves the
// percentage alone if GOGC is set. From then on calls wait while the process holds too much, see
// [Admit].
func KeepHeap(floor uint64) {
	heapIsKept.Store(true)
	if os.Getenv("GOGC") != "" {
		return
	}
	// Until the bytes in use are known.
	debug.SetGCPercent(int(max(beyondFloor, 100*floor/minHeap)))
	watchHeap(floor)
}

var (
	heapIsKept  atomic.Bool   // set by [KeepHeap]
	heapSeen    atomic.Uint64 // bytes of the heap at the last look
	heapSeenAt  atomic.Int64  // time of that look, in nanoseconds since began
	callsAtWork atomic.Int64  // admitted calls of the process
	// End of the last collection for calls that wait, in nanoseconds since began.
	lastForced atomic.Int64
	began      = time.Now()
)

const (
	lookEvery    = 2 * time.Millisecond   // between two looks at the heap
	retryEvery   = 20 * time.Millisecond  // between two attempts of a call that waits
	collectEvery = 200 * time.Millisecond // between two collections for calls that wait
)

// IsCrowded reports whether the process holds more than most bytes, beyond which calls wait.
func IsCrowded(most int) bool {
	if !heapIsKept.Load() {
		return false
	}
	now, seen := int64(time.Since(began)), heapSeenAt.Load()
	if now-seen > int64(lookEvery) && heapSeenAt.CompareAndSwap(seen, now) {
		all, _ := HeapSize()
		heapSeen.Store(all)
	}
	return heapSeen.Load() > uint64(most)
}

// Admit blocks a call while the process holds more than most bytes, unless it is the only one:
// others end and results reach the log, which frees memory. ok is false if ctx ends first. The
// caller must call done when the call has ended. See [obelus/engine.Runner.Acquire].
func Admit(ctx context.Context, most int) (done func(), ok bool) {
	if !IsCrowded(most) {
		callsAtWork.Add(1)
		return endCall, true
	}
	look := time.NewTicker(retryEvery)
	defer look.Stop()
	for IsCrowded(most) {
		if callsAtWork.CompareAndSwap(0, 1) {
			return endCall, true
		}
		select {
		case <-look.C:
			collectForWaiting()
		case <-ctx.Done():
			return nil, false
		}
	}
	callsAtWork.Add(1)
	return endCall, true
}

func endCall() { callsAtWork.Add(-1) }

// collectForWaiting collects garbage for calls that wait, at most once in collectEvery: an idle
// process would not collect any by itself.
func collectForWaiting() {
	if !collecting.TryLock() {
		return
	}
	defer collecting.Unlock()
	if time.Since(began)-time.Duration(lastForced.Load()) < collectEvery {
		return
	}
	runtime.GC()
	lastForced.Store(int64(time.Since(began)))
}

var (
	returnsForIdle atomic.Bool
	inUseWhenIdle  atomic.Uint64 // bytes in use when memory was given back for [Idle] last
)

// minHeap is the smallest heap, in bytes, at which Go collects at 100 percent; with another
// percentage it is in proportion.
const minHeap = 4 << 20

// beyondFloor is the percentage for a heap that is larger than its floor: less than Go's own 100,
// so that a long run takes no more memory than without a floor.
const beyondFloor = 50

// watchHeap sets the percentage after each collection, by the bytes in use.
func watchHeap(floor uint64) {
	runtime.SetFinalizer(&collected{}, func(*collected) {
		_, live := HeapSize()
		roots := []metrics.Sample{{Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
		metrics.Read(roots)
		debug.SetGCPercent(percentFor(live, roots[0].Value.Uint64()+roots[1].Value.Uint64(), floor))
		watchHeap(floor)
	})
}

// collected is found by the next collection. It is large enough to be alone.
type collected struct{ _ [64]byte }

// percentFor returns the percentage with which a heap with live bytes in use is collected at floor
// bytes, or beyondFloor if that is more. Go applies it to the roots too, and to at least minHeap.
func percentFor(live, roots, floor uint64) int {
	if floor <= live {
		return beyondFloor
	}
	return int(max(beyondFloor, min((floor-live)*100/max(1, live+roots), 100*floor/minHeap)))
}
