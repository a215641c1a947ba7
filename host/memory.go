package host

import (
	"obelus/host/internal/budget"
	"obelus/host/internal/setting"
)

// ParseSize reads a number of bytes as the settings have it: "64MB", "500 KB", "100". It is false
// for any other text, and for 0.
func ParseSize(text string) (n int, ok bool) { return setting.ParseSize(text) }

// HeapFloor is the floor, in bytes, that the command obelus passes to [KeepHeap].
const HeapFloor = 32 << 20

// KeepHeap lets the heap of the program grow to floor bytes before it is collected, and from then
// on to 1.5 times the bytes in use. A run allocates much for one step and keeps little, so that Go
// would collect a small heap some hundred times a second; with [HeapFloor] 1,000 contexts at once
// take a quarter less time (examples/bench). A program that embeds Obelus calls it, once, if it may
// use that much memory: KeepHeap sets Go's percentage after each collection, and until the first
// collection the percentage for an empty heap, so that a fast-growing heap may exceed the floor for
// a moment. If GOGC is set it leaves the percentage alone.
//
// From then on calls wait for others to end while the process holds more than limits.process, for
// any purpose: the memory of results that are not yet in the log has no other bound in sum. A
// program that holds as much for itself sets a higher limit.
func KeepHeap(floor uint64) { budget.KeepHeap(floor) }

// Idle returns memory to the system, if runs took much. A program calls it when no run is under
// way. Without [KeepHeap] it does nothing.
func Idle() { budget.Idle() }

// ReturnMemory collects garbage and returns its memory to the system within a second, once for all
// calls in that time. Go would keep the memory while nothing else is allocated. It is for programs
// that have released much: the host calls it for scripts.
func ReturnMemory() { budget.ReturnMemory() }
