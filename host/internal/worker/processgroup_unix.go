//go:build unix

package worker

import "syscall"

// ownProcessGroup starts a process in its own group.
var ownProcessGroup = &syscall.SysProcAttr{Setpgid: true}
