package budget

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// What the heap holds, garbage that has not been swept among it, and what of it
// the last collection found to be in use.
const (
	heapMetric = "/memory/classes/heap/objects:bytes"
	liveMetric = "/gc/heap/live:bytes"
)

// collecting lets one collect garbage for all who seem to use too much.
var collecting sync.Mutex

func HeapSize() (all, live uint64) {
	sample := [2]metrics.Sample{{Name: heapMetric}, {Name: liveMetric}}
	metrics.Read(sample[:])
	return sample[0].Value.Uint64(), sample[1].Value.Uint64()
}

// Memory of a call that took much is given back soon after it, whether it was stopped or not.
const (
	muchMemory  = 64 << 20
	returnAfter = 200 * time.Millisecond
)

// FreeMemory collects garbage and gives what it took back. Tests look on.
var FreeMemory = debug.FreeOSMemory

var (
	leftBehind atomic.Bool // a call that took much memory has ended, and nothing was collected since
	returning  atomic.Bool // memory is about to be given back
)

// ReturnMemory has garbage collected and what it took given back to the system, within a
// second, once for all who ask meanwhile. Go would keep it for as long as nothing else is made.
// It is for programs that have let go of much: the host calls it for scripts.
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
