package term

import "golang.org/x/sys/unix"

// dropInput drops the input of a terminal that was typed and not read yet.
func dropInput(fd int) { _ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
