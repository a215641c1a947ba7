//go:build !linux || race

package worker

// limitMemory does nothing here, nor under the race detector, which takes much memory itself: the
// script's own limit must do.
func limitMemory(int) {}
