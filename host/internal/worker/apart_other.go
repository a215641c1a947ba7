//go:build !unix

package worker

import (
	"syscall"
)

// apart starts a process in a group of its own, where there are such groups.
var apart *syscall.SysProcAttr
