//go:build unix

package sqlite

import (
	"path/filepath"
	"syscall"
)

// onReadOnlyDisk tells that nobody can write where a file is, whatever the
// permissions: SQLite does not say that this is why.
func onReadOnlyDisk(path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	const forWriting = 2
	return syscall.Access(filepath.Dir(path), forWriting) == syscall.EROFS
}
