//go:build !unix

package luastd

import "io/fs"

// hardLinks is how many names a file has, as far as that can be told: one.
func hardLinks(fs.FileInfo) uint64 { return 1 }
