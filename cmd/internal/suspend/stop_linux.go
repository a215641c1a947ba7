package suspend

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// stopProcess stops the whole process, and returns once it goes on. The signal is for the
// calling thread, which stops before the call returns: one for the process could reach another
// thread, after this one has gone on.
func stopProcess() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP)
}
