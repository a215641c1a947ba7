//go:build !unix

package sqlite

// unwritableFile reports that this process may not write a file, on systems that can say so.
func unwritableFile(string) bool { return false }

// onReadOnlyDisk reports that a file's disk is read-only, on systems that can say so.
func onReadOnlyDisk(string) bool { return false }

// hasEnded reports that there is no process of a pid, on systems that can say so.
func hasEnded(int64) bool { return false }
