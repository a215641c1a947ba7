//go:build unix && !linux

package suspend

import (
	"os"
	"syscall"
	"time"
)

// stopProcess stops the whole process, and returns once it continues.
func stopProcess() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	time.Sleep(50 * time.Millisecond) // the signal may take a moment to stop this thread
}
