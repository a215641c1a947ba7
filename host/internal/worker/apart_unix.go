//go:build unix

package worker

import "syscall"

// apart starts a process in its own group.
var apart = &syscall.SysProcAttr{Setpgid: true}
