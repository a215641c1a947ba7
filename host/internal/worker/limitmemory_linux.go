//go:build linux && !race

package worker

import "syscall"

// limitMemory limits the memory of this process to little more than a script may take, so that the
// system need not end another process.
func limitMemory(memory int) {
	const own = 256 << 20 // for the runtime and the loaded scripts
	limit := uint64(memory) + own
	_ = syscall.Setrlimit(rlimitData, &syscall.Rlimit{Cur: limit, Max: limit})
}

// rlimitData is RLIMIT_DATA.
const rlimitData = 2
