//go:build unix

package sqlite

import (
	"path/filepath"
	"syscall"
)

// forWriting is what access is asked for.
const forWriting = 2

// unwritableFile tells that this process may not write a file.
func unwritableFile(path string) bool { return syscall.Access(path, forWriting) == syscall.EACCES }

// onReadOnlyDisk tells that nobody can write where a file is, whatever the
// permissions: SQLite does not say that this is why.
func onReadOnlyDisk(path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return syscall.Access(filepath.Dir(path), forWriting) == syscall.EROFS
}

// gone tells that there is no process of a pid. os.FindProcess would do, but for what
// it tries first: it forks this process, and a Ctrl-C that comes just then is counted
// twice.
func gone(pid int64) bool { return pid > 0 && syscall.Kill(int(pid), 0) == syscall.ESRCH }
