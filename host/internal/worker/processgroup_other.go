//go:build !unix

package worker

import "syscall"

// ownProcessGroup starts a process in its own group, where there are groups.
var ownProcessGroup *syscall.SysProcAttr
