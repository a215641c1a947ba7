//go:build unix

package sqlite

import (
	"path/filepath"
	"syscall"
)

// forWriting is what access is asked for.
const forWriting = 2

// unwritableFile reports that this process may not write a file.
func unwritableFile(path string) bool { return syscall.Access(path, forWriting) == syscall.EACCES }

// onReadOnlyDisk reports that a file's disk is read-only, whatever the permissions: SQLite's error
// does not name that reason.
func onReadOnlyDisk(path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return syscall.Access(filepath.Dir(path), forWriting) == syscall.EROFS
}

// hasEnded reports that there is no process of a pid. os.FindProcess would do, but it first forks
// this process, and a Ctrl-C that comes just then is counted twice.
func hasEnded(pid int64) bool { return pid > 0 && syscall.Kill(int(pid), 0) == syscall.ESRCH }
