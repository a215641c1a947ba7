package suspend

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// stopProcess stops the whole process, and returns once it continues. The signal is sent to the
// calling thread, which stops before the call returns. One that is sent to the process could reach
// another thread after this one has gone on.
func stopProcess() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP)
}
