//go:build linux && !race

package worker

import (
	"syscall"
)

// bound keeps this process from taking much more memory than a script may, so
// that the system need not choose whom to end.
func bound(memory int) {
	const own = 256 << 20 // of the runtime and what is loaded
	limit := uint64(memory) + own
	_ = syscall.Setrlimit(rlimitData, &syscall.Rlimit{Cur: limit, Max: limit})
}

// rlimitData is RLIMIT_DATA.
const rlimitData = 2
