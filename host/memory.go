package host

import "obelus/host/internal/budget"

// HeapFloor is what the command obelus gives to [KeepHeap], in bytes.
const HeapFloor = 32 << 20

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
func KeepHeap(floor uint64) { budget.KeepHeap(floor) }

// Idle is for a program to call when no run is under way in it: memory that runs took is given
// back to the system, if it is much. Without [KeepHeap] it does nothing.
func Idle() { budget.Idle() }

// ReturnMemory collects garbage and gives the memory that it took back to the system, within a
// second, once for all calls in that time. Go would keep the memory for as long as nothing else
// is made. It is for programs that have let go of much: the host calls it for scripts.
func ReturnMemory() { budget.ReturnMemory() }
