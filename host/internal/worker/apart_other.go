//go:build !unix

package worker

import "syscall"

// apart starts a process in its own group, where there are groups.
var apart *syscall.SysProcAttr
