//go:build !unix

package sqlite

// unwritableFile tells that this process may not write a file, where there is a way to
// tell.
func unwritableFile(string) bool { return false }

// onReadOnlyDisk tells that nobody can write where a file is, where there is a
// way to tell.
func onReadOnlyDisk(string) bool { return false }

// gone tells that there is no process of a pid, where there is a way to tell.
func gone(int64) bool { return false }
