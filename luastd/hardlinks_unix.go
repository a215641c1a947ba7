//go:build unix

package luastd

import (
	"io/fs"
	"syscall"
)

// hardLinks is how many names a file has.
func hardLinks(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() {
		return uint64(stat.Nlink)
	}
	return 1
}
