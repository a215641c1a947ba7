//go:build unix

package worker

import (
	"syscall"
)

// apart starts a process in a group of its own.
var apart = &syscall.SysProcAttr{Setpgid: true}
