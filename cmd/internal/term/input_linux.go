package term

import "golang.org/x/sys/unix"

// dropInput drops what was typed on a terminal and nobody has read.
func dropInput(fd int) { _ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
