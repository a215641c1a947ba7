package budget

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// leastHeap is the smallest heap, in bytes, at which Go collects at 100 percent; with another
// percentage it is in proportion.
const leastHeap = 4 << 20

// beyondFloor is the percentage for a heap that is larger than its floor: less than Go's own 100,
// so that a long run takes no more memory than without a floor.
const beyondFloor = 75

// KeepHeap sets Go's percentage after each collection, such that the heap of the process is
// collected at floor bytes, or at 1.75 times the bytes in use if that is more. It leaves the
// percentage alone if GOGC is set. From then on calls wait while the process holds too much, see
// [Admit].
func KeepHeap(floor uint64) {
	heapIsKept.Store(true)
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(int(max(beyondFloor, 100*floor/leastHeap))) // until the bytes in use are known
	watchHeap(floor)
}

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
// bytes, or beyondFloor if that is more. Go applies it to the roots too, and to at least leastHeap.
func percentFor(live, roots, floor uint64) int {
	if floor <= live {
		return beyondFloor
	}
	return int(max(beyondFloor, min((floor-live)*100/max(1, live+roots), 100*floor/leastHeap)))
}
