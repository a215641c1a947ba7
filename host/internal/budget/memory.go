package budget

import (
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
	leftBehind atomic.Bool // a call that took much memory has ended, and nothing was collected since
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
