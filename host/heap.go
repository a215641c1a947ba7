package host

import (
	"os"
	"runtime"
	"runtime/debug"
)

// HeapFloor is what the command obelus gives to [KeepHeap], in bytes.
const HeapFloor = 32 << 20

// leastHeap is how large a heap Go collects at 100 percent at least, in bytes, and with
// another percentage in proportion.
const leastHeap = 4 << 20

// KeepHeap lets the heap of the program grow to floor bytes before it is collected,
// and from then on as large as ever: twice what is in use. A run makes much that it
// needs no more at the next step and keeps little, so that Go would collect a small
// heap some hundred times a second; with [HeapFloor] 1,000 contexts at once take a
// sixth less time (examples/bench). A program that embeds Obelus calls it, once, if the
// memory is its own to spend. Where GOGC is set it does nothing.
func KeepHeap(floor uint64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(int(max(100, 100*floor/leastHeap))) // until something is known to be in use
	watchHeap(floor)
}

// watchHeap fits the percentage to what is in use, after each collection.
func watchHeap(floor uint64) {
	runtime.SetFinalizer(&collected{}, func(*collected) {
		_, live := heapSize()
		debug.SetGCPercent(percentFor(live, floor))
		watchHeap(floor)
	})
}

// collected is found by the next collection. It is large enough to be alone.
type collected struct{ _ [64]byte }

// percentFor is how much the heap may grow beyond what is in use, in percent of that,
// so that it is collected at floor bytes, or at twice of what is in use.
func percentFor(live, floor uint64) int {
	live = max(live, leastHeap/8)
	if 2*live >= floor {
		return 100
	}
	return int((floor - live) * 100 / live)
}
