package host

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// HeapFloor is what the command obelus gives to [KeepHeap], in bytes.
const HeapFloor = 32 << 20

// leastHeap is how large a heap Go collects at 100 percent at least, in bytes, and with
// another percentage in proportion.
const leastHeap = 4 << 20

// beyondFloor is the percentage of a heap that is larger than its floor: less than Go's
// own 100, so that what a long run keeps takes no more memory than without a floor.
const beyondFloor = 75

// KeepHeap lets the heap of the program grow to floor bytes before it is collected, and
// from then on to 1.75 times what is in use. A run makes much that it needs no more at
// the next step and keeps little, so that Go would collect a small heap some hundred
// times a second; with [HeapFloor] 1,000 contexts at once take a quarter less time
// (examples/bench). A program that embeds Obelus calls it, once, if the memory is its own
// to spend: it sets Go's percentage after each collection, and until the first is noticed
// that of an empty heap, so that what grows very fast at the beginning may take more for
// a moment. Where GOGC is set it leaves the percentage alone.
//
// From then on calls wait for others to end while the process holds more than
// limits.process, whatever holds it: what results take until they are in the log has no other
// bound in sum. A program that holds as much for itself sets a higher limit.
func KeepHeap(floor uint64) {
	heapIsKept.Store(true)
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(int(max(beyondFloor, 100*floor/leastHeap))) // until something is known to be in use
	watchHeap(floor)
}

// watchHeap fits the percentage to what is in use, after each collection.
func watchHeap(floor uint64) {
	runtime.SetFinalizer(&collected{}, func(*collected) {
		_, live := heapSize()
		roots := []metrics.Sample{{Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
		metrics.Read(roots)
		debug.SetGCPercent(percentFor(live, roots[0].Value.Uint64()+roots[1].Value.Uint64(), floor))
		watchHeap(floor)
	})
}

// collected is found by the next collection. It is large enough to be alone.
type collected struct{ _ [64]byte }

// percentFor is the percentage with which a heap of which so much is in use is collected
// at floor bytes, or beyondFloor where that is more. Go takes it of what else it has to look
// at as well, the roots, and of leastHeap.
func percentFor(live, roots, floor uint64) int {
	if floor <= live {
		return beyondFloor
	}
	return int(max(beyondFloor, min((floor-live)*100/max(1, live+roots), 100*floor/leastHeap)))
}
